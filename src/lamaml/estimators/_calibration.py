"""Temperature scaling (Guo et al., 2017) of a classifier's probabilities, on its held-out rows.

    p(y | x) ∝ exp(z_y / T),    T = argmin over held-out rows of the mean of −log p(y | x)

T is found when probabilities are asked for, from the state alone: an update never waits for it,
nothing is stored, and a saved classifier gives the same probabilities. No prediction changes.
"""

from weakref import WeakKeyDictionary

import numpy as np
from sklearn.base import BaseEstimator

from lamaml.estimators._prediction import allowed_outputs, network_outputs
from lamaml.estimators._state import FittedState

MIN_ROWS = 50
"""Held-out rows that a temperature needs; with fewer it is 1."""
_LOGS = np.linspace(np.log(0.25), np.log(4.0), 41)  # of the temperatures tried

_found: WeakKeyDictionary[BaseEstimator, tuple[FittedState, float]] = WeakKeyDictionary()


def temperature_of(estimator: BaseEstimator, fitted: FittedState) -> float:
    """Return the temperature of a fitted state, computed once per state."""
    known = _found.get(estimator)
    if known is None or known[0] is not fitted:
        known = _found[estimator] = (fitted, find_temperature(fitted))
    return known[1]


def find_temperature(fitted: FittedState) -> float:
    """Return the temperature with the lowest log loss on the held-out rows, in [1/4, 4]."""
    held = fitted.holdout
    if held.size < MIN_ROWS:
        return 1.0
    allowed = allowed_outputs(fitted, None)
    logits = network_outputs(fitted, held.x[: held.size].astype(np.float32))[:, allowed]
    label = (np.cumsum(allowed) - 1)[held.y[: held.size]]
    return best_temperature(logits.astype(np.float64), label)


def best_temperature(logits: np.ndarray, label: np.ndarray) -> float:
    """Return the temperature of logits (n, classes) for the classes of their rows.

    >>> sure, label = np.array([[9.0, 0.0]] * 4), np.array([0, 0, 0, 1])
    >>> bool(best_temperature(sure, label) > 3)
    True
    """
    below_best = logits - logits.max(axis=1, keepdims=True)
    scaled = below_best / np.exp(_LOGS)[:, None, None]  # (temperatures, n, classes)
    surprise = np.log(np.exp(scaled).sum(axis=2)) - scaled[:, np.arange(len(label)), label]
    return float(np.exp(_LOGS[surprise.mean(axis=1).argmin()]))
