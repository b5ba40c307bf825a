"""How much a learner knows, how much of it is new, and how its gradients agree."""

from lamaml.evaluation.accuracy import Evaluator, evaluator
from lamaml.evaluation.alignment import with_alignment
from lamaml.evaluation.inter_task import inter_task
from lamaml.evaluation.look_ahead import look_ahead
from lamaml.evaluation.metrics import Metrics, metrics
from lamaml.evaluation.probing import blocks, with_probes

__all__ = [
    "Evaluator",
    "Metrics",
    "blocks",
    "evaluator",
    "inter_task",
    "look_ahead",
    "metrics",
    "with_alignment",
    "with_probes",
]
