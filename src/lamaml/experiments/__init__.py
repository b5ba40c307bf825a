"""Recipes, the one training loop, the processes it runs in, and what it leaves behind."""
