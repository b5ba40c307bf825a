"""Recipes, how they are run and stored, reports, and the paper's tables and figures."""
