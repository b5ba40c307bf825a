"""Parameters that may not change once learning has begun, and the lock of the writers."""

import threading
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.base import BaseEstimator

from lamaml.errors import InvalidArgument

FIXED = (
    *("learner", "learner_options", "model", "hidden_sizes", "memory_size", "memory_bytes"),
    *("scale", "random_state"),
)
"""What a fitted state is made of. Only `fit`, which starts afresh, can use another value."""

_locks: WeakKeyDictionary[BaseEstimator, Any] = WeakKeyDictionary()
_lock_of_locks = threading.Lock()


def writers_lock(estimator: BaseEstimator) -> Any:
    """Return the lock of an estimator's writers: no attribute of it, as locks are not pickled."""
    with _lock_of_locks:
        return _locks.setdefault(estimator, threading.RLock())


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
