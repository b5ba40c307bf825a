"""Measurements of speed: updates, checkpoints and the latency of the estimators."""

from lamaml.bench.results import Measurements
from lamaml.bench.run import measure

__all__ = ["Measurements", "measure"]
