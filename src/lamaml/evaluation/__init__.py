"""Measures of a learner: accuracy, retained accuracy and transfer, agreement of gradients."""

from lamaml.evaluation.accuracy import Evaluator, confusion_matrix, evaluator
from lamaml.evaluation.alignment import with_alignment
from lamaml.evaluation.inter_task import inter_task
from lamaml.evaluation.look_ahead import look_ahead
from lamaml.evaluation.metrics import Metrics, class_accuracies, metrics
from lamaml.evaluation.probing import Probe, probe_rows, with_probes

__all__ = [
    "Evaluator",
    "Metrics",
    "Probe",
    "class_accuracies",
    "confusion_matrix",
    "evaluator",
    "inter_task",
    "look_ahead",
    "metrics",
    "probe_rows",
    "with_alignment",
    "with_probes",
]
