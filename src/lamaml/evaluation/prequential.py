"""Prequential evaluation: every row of a stream is predicted before it is learned."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, mean_absolute_error
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from lamaml._rows import bad_rows, missing_labels
from lamaml.errors import InvalidArgument


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
        fitted, rows are learned without being tested. An object with `partial_fit` and `predict`
        alone counts as fitted after the first call.
      stream: yields (X, y). X may be a dictionary, as in river's streams, or a list of them: they
        become a pandas frame with the columns of the first one, in which what is not there is
        missing.
      classes: passed to the first `partial_fit`, for estimators that require it.
      metric: (y, predictions) -> score; None for the mean absolute error of a scikit-learn
        regressor, and the accuracy of everything else.

    Examples:
      >>> from lamaml import LaMAMLClassifier
      >>> x, y = np.eye(2)[np.arange(80) % 2], np.arange(80) % 2
      >>> stream = ((x[i : i + 10], y[i : i + 10]) for i in range(0, 80, 10))
      >>> clf = LaMAMLClassifier("er", hidden_sizes=(8,))
      >>> float(evaluate_prequential(clf, stream).scores[-1])
      1.0
    """
    score = metric or (mean_absolute_error if _predicts_numbers(estimator) else accuracy_score)
    sizes, scores = [], []
    first = {} if classes is None else {"classes": classes}
    names: list[Any] = []
    for num_calls, (x, y) in enumerate(stream):
        if isinstance(x, Mapping):
            x, y = [x], [y]
        if isinstance(x, list) and x and isinstance(x[0], Mapping):
            names = names or list(x[0])
            x, y = _as_frame(x, names), np.asarray(y)
        is_fitted = _is_fitted(estimator) if hasattr(estimator, "fit") else num_calls > 0
        tested = _testable(estimator, x, y) if is_fitted else np.zeros(0, int)
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
    labels = np.union1d(bad_rows(targets), missing_labels(targets))
    return np.delete(rows, np.union1d(estimator.bad_rows(x), labels).astype(int))


def _as_frame(rows: list[Mapping[Any, Any]], names: list[Any]) -> Any:
    """Return dictionaries as a pandas frame with these columns."""
    try:
        import pandas
    except ImportError as error:
        message = "rows given as dictionaries need pandas: pip install pandas"
        raise InvalidArgument(message) from error
    for row in rows:
        new = [name for name in row if name not in names]
        if new:
            message = "the first row must have every key that a later one has"
            raise InvalidArgument(f"a row has the key {new[0]!r}, which is new: {message}")
    return pandas.DataFrame(rows, columns=names)


def _predicts_numbers(estimator: Any) -> bool:
    return hasattr(estimator, "__sklearn_tags__") and is_regressor(estimator)


def _is_fitted(estimator: Any) -> bool:
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True
