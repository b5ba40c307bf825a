"""The regressor: a learner of this package as a scikit-learn estimator."""

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from lamaml.errors import InvalidArgument
from lamaml.estimators._base import StreamEstimator
from lamaml.estimators._labels import Labels, TaskId, check_task, empty_labels
from lamaml.estimators._prediction import allowed_outputs, predict_targets


class LaMAMLRegressor(RegressorMixin, StreamEstimator):  # type: ignore[misc]
    """Regressor of one or more targets for streams that keeps what it has learned.

    It minimises the squared error of targets that are standardised by their running mean and
    standard deviation. Parameters and attributes are those of `LaMAMLClassifier`, without
    `classes_` and `class_weight`. Learners that predict classes themselves, such as "icarl", are
    not available.

    Examples:
      >>> import numpy as np
      >>> x = np.linspace(-1, 1, 400)[:, None]
      >>> model = LaMAMLRegressor("er", hidden_sizes=(8,)).fit(x, 5 + 3 * x[:, 0])
      >>> bool(model.score(x, 5 + 3 * x[:, 0]) > 0.9)
      True
    """

    _is_regression = True

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: y may have several columns."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the regressor from scratch, in `epochs` passes over shuffled rows.

        Args:
          X: rows, (n, columns) or (n, height, width, channels), as an array or a frame; sparse
            rows are made dense, in blocks where they are many.
          y: targets, real numbers; (n, targets) for several, which share the hidden layers.
          sample_weight: weight of each row, at least 0: what it counts beside a row of weight 1,
            which is what rows without a weight and replayed rows have. Rows of weight 0 are
            ignored.

        Returns:
          The regressor itself.

        Raises:
          InvalidArgument: a parameter, row, target or weight is not valid; it is a ValueError.
          Diverged: a loss or weight is no longer finite; the previous state was restored.
        """
        return self._fit(X, y, sample_weight)

    def partial_fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, task: TaskId = None
    ) -> Self:
        """Learn from the next rows of a stream, in their order.

        Args:
          X: rows, as in `fit`; all rows of a stream have the same shape.
          y: targets.
          sample_weight: weight of each row, as in `fit`.
          task: name of the task of these rows, for learners that use boundaries: "gem", "ewc".

        Returns:
          The regressor itself.

        Raises:
          InvalidArgument: a parameter, row, target or weight is not valid; it is a ValueError.
          Diverged: a loss or weight is no longer finite; the previous state was restored.
        """
        return self._partial_fit(X, y, None, sample_weight, task)

    def predict(self, X: Any, *, task: TaskId = None) -> np.ndarray:
        """Return the predicted target of each row.

        Args:
          X: rows, as in `fit`. Bad rows raise, whatever `on_bad_rows` is; `bad_rows` finds them.
          task: one of the tasks seen, or None. All tasks share one output: it changes nothing.
        """
        fitted = self._require_fitted()
        allowed_outputs(fitted, check_task(task))  # raises for a task that was never seen
        targets = self._by_parts(X, lambda x: predict_targets(fitted, x))
        return targets if fitted.offsets.target is None else targets + fitted.offsets.target

    def _check_targets(self, y: np.ndarray) -> np.ndarray:
        if y.dtype.kind not in "fiubO":
            raise InvalidArgument(f"y has dtype {y.dtype}: must be real numbers")
        known = 1 if self._fitted is None else self._fitted.config.num_targets
        found = 1 if y.ndim == 1 else y.shape[1]
        if self._fitted is not None and found != known:
            raise InvalidArgument(f"y has {found} targets: must be {known}, as in the first call")
        return y.astype(np.float64)

    def _encode(self, y: np.ndarray, classes: Any) -> tuple[np.ndarray, Labels]:
        return y, empty_labels(y.dtype) if self._fitted is None else self._fitted.labels
