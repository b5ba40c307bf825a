"""How much a learner knows, and how much of it is new."""

from lamaml.evaluation.accuracy import Evaluator, evaluator
from lamaml.evaluation.metrics import Metrics, metrics

__all__ = ["Evaluator", "Metrics", "evaluator", "metrics"]
