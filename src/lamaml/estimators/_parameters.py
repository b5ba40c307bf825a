"""Parameters: those of a learner by nested names, those that may not change, the writers' lock."""

import threading
from collections.abc import Mapping
from typing import Any, Self
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.base import BaseEstimator

from lamaml.errors import InvalidArgument

FIXED = (
    *("learner", "learner_options", "model", "hidden_sizes", "memory_size", "memory_bytes"),
    *("scale", "random_state", "columns"),
)
"""What a fitted state is made of. Only `fit`, which starts afresh, can use another value."""

_NESTED = "learner_options__"
_locks: WeakKeyDictionary[BaseEstimator, Any] = WeakKeyDictionary()
_lock_of_locks = threading.Lock()


def writers_lock(estimator: BaseEstimator) -> Any:
    """Return the lock of an estimator's writers: no attribute of it, as locks are not pickled."""
    with _lock_of_locks:
        return _locks.setdefault(estimator, threading.RLock())


class TunableEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator whose learner's settings are parameters too: `learner_options__hyper_rate`."""

    learner_options: Mapping[str, Any] | None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name.

        Args:
          deep: whether to add each of the `learner_options` as `learner_options__name`.
        """
        parameters: dict[str, Any] = super().get_params(deep=False)
        options = self.learner_options if deep else None
        if isinstance(options, Mapping):
            parameters |= {f"{_NESTED}{name}": value for name, value in options.items()}
        return parameters

    def set_params(self, **params: Any) -> Self:
        """Set parameters, `learner_options__name` among them, as a grid search does.

        The next call applies them or says that they cannot change any more. A nested name is added
        to `learner_options`, whose other entries stay.
        """
        nested = {name: params.pop(name) for name in list(params) if name.startswith(_NESTED)}
        super().set_params(**params)
        if nested:
            options = {name.removeprefix(_NESTED): value for name, value in nested.items()}
            self.learner_options = {**(self.learner_options or {}), **options}
        return self


def fixed_parameters(estimator: BaseEstimator) -> dict[str, Any]:
    """Return the parameters that the next call fixes."""
    return {name: getattr(estimator, name) for name in FIXED}


def check_unchanged(estimator: BaseEstimator, fixed: Mapping[str, Any]) -> None:
    """Raise InvalidArgument if a parameter has another value than when learning began."""
    for name, before in fixed.items():
        now = getattr(estimator, name)
        if now is not before and not _are_equal(now, before):
            raise InvalidArgument(
                f"{name} = {now!r}: was {before!r} when learning began and cannot change now; set "
                "it back, start afresh with fit, or make another estimator"
            )


def _are_equal(one: Any, other: Any) -> bool:
    sequences = (list, tuple, np.ndarray)
    if isinstance(one, sequences) and isinstance(other, sequences):
        return list(one) == list(other)
    return bool(one == other)
