"""Measurements of speed: updates, checkpoints and the estimators' latency."""
