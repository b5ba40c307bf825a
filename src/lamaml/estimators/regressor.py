"""La-MAML as a scikit-learn regressor."""

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from lamaml.errors import InvalidArgument
from lamaml.estimators._base import StreamEstimator
from lamaml.estimators._labels import Labels, TaskId, no_labels
from lamaml.estimators._prediction import targets_for


class LaMAMLRegressor(RegressorMixin, StreamEstimator):  # type: ignore[misc]
    """A regressor that learns from a stream and does not forget.

    It minimises the squared error, in deviations of the targets seen so far. Parameters and
    attributes are those of `LaMAMLClassifier`, without `classes_`; `task` matters only to learners
    that need boundaries, such as "gem" or "ewc".

    Example:
      >>> import numpy as np
      >>> x = np.linspace(-1, 1, 400)[:, None]
      >>> model = LaMAMLRegressor("er", hidden_sizes=(8,)).fit(x, 5 + 3 * x[:, 0])
      >>> bool(model.score(x, 5 + 3 * x[:, 0]) > 0.9)
      True
    """

    _is_regression = True

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Forget everything, then learn these rows in `epochs` passes, shuffled anew."""
        return self._fit(X, y, sample_weight)

    def partial_fit(self, X: Any, y: Any, task: TaskId = None, sample_weight: Any = None) -> Self:
        """Learn from the next rows of a stream, in their order."""
        return self._partial_fit(X, y, None, task, sample_weight)

    def predict(self, X: Any) -> np.ndarray:
        """The expected target of each row."""
        learned = self._known()
        origin = learned.origins.target
        return targets_for(learned, self._checked_inputs(X)) + (0.0 if origin is None else origin)

    def _targets(self, y: np.ndarray) -> np.ndarray:
        if y.dtype.kind not in "fiubO":
            raise InvalidArgument(f"y has dtype {y.dtype}: must be real numbers")
        return y.astype(np.float64)

    def _encoded(self, y: np.ndarray, classes: Any) -> tuple[np.ndarray, Labels]:
        labels = no_labels(y.dtype) if self._learned is None else self._learned.labels
        return y, labels

    def _num_outputs(self, labels: Labels) -> int:
        return 1
