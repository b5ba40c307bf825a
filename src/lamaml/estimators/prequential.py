"""Test, then train: how good every answer was at the time it had to be given."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, mean_absolute_error
from sklearn.utils import _safe_indexing, check_array
from sklearn.utils.validation import check_is_fitted

from lamaml.estimators._rows import as_float32, bad_rows, missing_labels


class Prequential(NamedTuple):
    """What a stream showed, one entry a call that could be tested."""

    num_rows: np.ndarray  # tested so far
    scores: np.ndarray  # of each call's rows
    running: np.ndarray  # mean over all rows so far

    @property
    def final(self) -> float:
        """The mean over all rows that were tested."""
        return float(self.running[-1]) if len(self.running) else float("nan")


def evaluate_prequential(
    estimator: Any,
    stream: Iterable[tuple[Any, ...]],
    *,
    classes: Any = None,
    metric: Callable[[Any, Any], float] | None = None,
) -> Prequential:
    """Ask for the answer to every row of a stream before learning from it.

    Args:
      estimator: any of scikit-learn's kind with `partial_fit`, of this package or not. What it has
        not yet learned anything from is learned only, not tested.
      stream: of (X, y).
      classes: passed to the first `partial_fit`, for estimators that must know.
      metric: (y, answers) -> score; None for accuracy, or the mean absolute error of a regressor.

    Example:
      >>> from lamaml import LaMAMLClassifier
      >>> x, y = np.eye(2)[np.arange(80) % 2], np.arange(80) % 2
      >>> stream = ((x[i : i + 10], y[i : i + 10]) for i in range(0, 80, 10))
      >>> clf = LaMAMLClassifier("er", hidden_sizes=(8,))
      >>> float(evaluate_prequential(clf, stream).scores[-1])
      1.0
    """
    score = metric or (accuracy_score if is_classifier(estimator) else mean_absolute_error)
    sizes, scores = [], []
    first = {} if classes is None else {"classes": classes}
    for x, y in stream:
        asked = _answerable(estimator, x, y) if _is_fitted(estimator) else np.zeros(0, int)
        if len(asked):
            answers = estimator.predict(_safe_indexing(x, asked))
            sizes.append(len(asked))
            scores.append(float(score(_safe_indexing(y, asked), answers)))
        estimator.partial_fit(x, y, **first)
        first = {}
    num_rows = np.cumsum(sizes, dtype=int)
    running = np.cumsum(np.multiply(sizes, scores)) / np.maximum(num_rows, 1)
    return Prequential(num_rows, np.array(scores), running)


def _answerable(estimator: Any, x: Any, y: Any) -> np.ndarray:
    """The rows that can be asked for: not the bad ones of an estimator that skips them."""
    rows = np.arange(len(x))
    if getattr(estimator, "on_bad_rows", "raise") != "skip":
        return rows
    targets = np.asarray(y)
    numbers = check_array(x, ensure_all_finite=False, allow_nd=True)
    bad = np.union1d(bad_rows(as_float32(numbers), targets), missing_labels(targets))
    return np.delete(rows, bad)


def _is_fitted(estimator: Any) -> bool:
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True
