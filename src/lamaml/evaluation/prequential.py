"""Prequential evaluation: every row of a stream is predicted before it is learned."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, mean_absolute_error
from sklearn.utils import _safe_indexing, check_array
from sklearn.utils.validation import check_is_fitted

from lamaml._rows import as_float32, bad_rows, missing_labels


class Prequential(NamedTuple):
    """Scores on a stream, one entry per call that could be tested."""

    num_rows: np.ndarray  # rows tested so far
    scores: np.ndarray  # the score of each call
    running: np.ndarray  # the mean over all rows tested so far

    @property
    def final(self) -> float:
        """The mean score over all rows tested; NaN if there are none."""
        return float(self.running[-1]) if len(self.running) else float("nan")


def evaluate_prequential(
    estimator: Any,
    stream: Iterable[tuple[Any, ...]],
    *,
    classes: Any = None,
    metric: Callable[[Any, Any], float] | None = None,
) -> Prequential:
    """Predict every row of a stream before learning from it, and return the scores.

    Args:
      estimator: any scikit-learn estimator with `partial_fit`, of this package or not. Until it is
        fitted, rows are learned without being tested.
      stream: yields (X, y).
      classes: passed to the first `partial_fit`, for estimators that require it.
      metric: (y, predictions) -> score; None for accuracy, or the mean absolute error of a
        regressor.

    Examples:
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
        tested = _testable(estimator, x, y) if _is_fitted(estimator) else np.zeros(0, int)
        if len(tested):
            predictions = estimator.predict(_safe_indexing(x, tested))
            sizes.append(len(tested))
            scores.append(float(score(_safe_indexing(y, tested), predictions)))
        estimator.partial_fit(x, y, **first)
        first = {}
    num_rows = np.cumsum(sizes, dtype=int)
    running = np.cumsum(np.multiply(sizes, scores)) / np.maximum(num_rows, 1)
    return Prequential(num_rows, np.array(scores), running)


def _testable(estimator: Any, x: Any, y: Any) -> np.ndarray:
    """Return the indices of rows to predict, without bad rows if the estimator skips them."""
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
