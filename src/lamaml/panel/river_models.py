"""River's models, which learn one row at a time, behind the panel's interface."""

import pickle
from typing import Any

import numpy as np

from lamaml.errors import DataUnavailable


class RiverModel:
    """A model of river.

    Args:
      name: "linear", "tree" or "forest".
      num_classes: 0 for a regression.
      seed: of its random draws.
    """

    def __init__(self, name: str, num_classes: int, seed: int) -> None:
        self._num_classes = num_classes
        self._model = _build(name, not num_classes, num_classes > 2, seed)

    def learn(self, x: np.ndarray, y: np.ndarray) -> None:
        """Learn the next rows, one by one."""
        for row, target in zip(_as_dicts(x), y.tolist(), strict=True):
            self._model.learn_one(row, target)

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Return (n, classes) probabilities, or (n,) targets."""
        if not self._num_classes:
            return np.array([self._model.predict_one(row) or 0.0 for row in _as_dicts(x)])
        shares = np.zeros((len(x), self._num_classes))
        for number, row in enumerate(_as_dicts(x)):
            for label, share in self._model.predict_proba_one(row).items():
                shares[number, int(label)] = share
        return shares

    def end_stream(self) -> None:
        """Do nothing: all rows are learned."""

    def next_step(self) -> int:
        """Return the number of rows to predict before the next ones are learned."""
        return 10

    def num_bytes(self) -> int:
        """Return the bytes of the pickled model."""
        return len(pickle.dumps(self._model))


def _as_dicts(x: np.ndarray) -> list[dict[int, float]]:
    return [dict(enumerate(row)) for row in x.tolist()]


def _build(name: str, is_regression: bool, is_multiclass: bool, seed: int) -> Any:
    try:
        from river import forest, linear_model, multiclass, preprocessing, tree
    except ImportError as error:
        advice = "install the packages of the panel: pip install 'lamaml[panel]'"
        raise DataUnavailable(f"river is not installed: {advice}") from error
    if name == "tree":
        if is_regression:
            return tree.HoeffdingAdaptiveTreeRegressor(seed=seed)
        return tree.HoeffdingAdaptiveTreeClassifier(seed=seed)
    if name == "forest":
        return (forest.ARFRegressor if is_regression else forest.ARFClassifier)(seed=seed)
    scaler = preprocessing.StandardScaler()
    if is_regression:
        return scaler | preprocessing.TargetStandardScaler(linear_model.LinearRegression())
    logistic = linear_model.LogisticRegression()
    return scaler | (multiclass.OneVsRestClassifier(logistic) if is_multiclass else logistic)
