"""An estimator with a fitted state: saved, loaded, pickled."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import jax
import numpy as np
from sklearn.exceptions import NotFittedError

from lamaml.errors import DataCorrupt
from lamaml.estimators._config import Builder, Network
from lamaml.estimators._parameters import TunableEstimator, fixed_parameters
from lamaml.estimators._saving import SavedEstimator, read_estimator, write_estimator
from lamaml.estimators._state import FittedState


class SaveableEstimator(TunableEstimator):
    """An estimator with a fitted state that can be saved, loaded and pickled."""

    _fitted: FittedState | None = None
    _fixed: dict[str, Any] | None = None  # parameters of the fitted state; None: today's
    _num_bad_rows = 0
    _seconds = 0.0

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether a call of `fit` or `partial_fit` has succeeded."""
        return self._fitted is not None

    def _require_fitted(self) -> FittedState:
        """Return the fitted state, or raise scikit-learn's NotFittedError."""
        if self._fitted is None:
            raise NotFittedError(f"{type(self).__name__} is not fitted: call partial_fit or fit")
        return self._fitted

    def save(self, path: str | Path) -> None:
        """Write the fitted estimator to one safetensors file, atomically.

        Args:
          path: of the file, which is replaced if it exists.

        Raises:
          InvalidArgument: a parameter cannot be stored, such as a `RandomState`.
        """
        parameters = self.get_params(deep=False)
        names = self.__dict__.get("feature_names_in_")
        saved = SavedEstimator(
            class_name=type(self).__name__,
            parameters={name: parameters[name] for name in parameters if name != "model"},
            feature_names=None if names is None else names.tolist(),
            num_bad_rows=self._num_bad_rows,
            seconds=self._seconds,
            fitted=self._require_fitted(),
        )
        write_estimator(path, saved)

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        model: Network | None = None,
        learner: str | Builder | None = None,
    ) -> Self:
        """Return the estimator that `save` wrote; it continues exactly where the saved one was.

        Args:
          path: of the file. Reading it runs no code from the file and imports nothing it names.
          model: the network it was saved with, if that was a parameter.
          learner: the learner it was saved with, if that was a function or "module:function".

        Raises:
          DataUnavailable, DataCorrupt: the file is missing, damaged or of another class.
          InvalidArgument, Mismatch: the model or the learner is missing or another one.
        """
        saved = read_estimator(path, model, learner)
        if saved.class_name != cls.__name__:
            raise DataCorrupt(f"{path}: holds a {saved.class_name}, not a {cls.__name__}")
        estimator = cls(**saved.parameters, model=model)
        estimator._fitted, estimator._fixed = saved.fitted, fixed_parameters(estimator)
        estimator._num_bad_rows, estimator._seconds = saved.num_bad_rows, saved.seconds
        encoding = saved.fitted.encoding
        num_columns = saved.fitted.config.num_columns if encoding is None else len(encoding.kinds)
        estimator.n_features_in_ = num_columns
        if saved.feature_names is not None:
            estimator.feature_names_in_ = np.array(saved.feature_names, object)
        return estimator

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes for pickle and joblib, with NumPy arrays instead of JAX's."""
        kept = dict(super().__getstate__())
        if self._fitted is not None:
            state = jax.tree.map(np.asarray, self._fitted.learner_state)
            kept["_fitted"] = replace(self._fitted, learner_state=state)
        return kept
