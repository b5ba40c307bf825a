"""Weights of classes, as scikit-learn spells them, from the rows of each class seen so far."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from lamaml.errors import InvalidArgument
from lamaml.estimators._labels import Labels, match_dtype

BALANCED = "balanced"


def with_class_weight(labels: Labels, class_weight: Any, outputs: np.ndarray) -> Labels:
    """Return the labels with these rows counted and the weight of each class.

    Args:
      labels: the classes of these rows included.
      class_weight: None for 1; "balanced" for n / (C · n_c) after n rows of C classes, n_c of them
        of class c; or a mapping from classes to positive numbers, 1 for classes it does not name,
        divided by their mean over the rows seen, so that updates keep their size.
      outputs: the output of each new row's class.

    Raises:
      InvalidArgument: `class_weight` is something else.
    """
    num_rows = labels.num_rows + np.bincount(outputs, minlength=len(labels.num_rows))
    weight = np.ones(len(num_rows))
    if class_weight == BALANCED:
        seen = num_rows > 0
        weight[seen] = num_rows.sum() / (seen.sum() * num_rows[seen])
    elif isinstance(class_weight, Mapping):
        for label, value in class_weight.items():
            if not _is_positive(value):
                raise _refusal(class_weight)
            found = np.flatnonzero(labels.classes == match_dtype(np.array([label]), labels)[0])
            weight[labels.outputs[found]] = value
        weight *= num_rows.sum() / max(num_rows @ weight, 1e-300)
    elif class_weight is not None:
        raise _refusal(class_weight)
    return labels._replace(num_rows=num_rows, class_weight=weight)


def _is_positive(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and bool(0 < value < np.inf)


def _refusal(class_weight: Any) -> InvalidArgument:
    allowed = "None, 'balanced', or a mapping from classes to positive numbers"
    return InvalidArgument(f"class_weight = {class_weight!r}: must be {allowed}")
