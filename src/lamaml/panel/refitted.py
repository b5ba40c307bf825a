"""Batch estimators on a stream: refitted from time to time on the rows that are kept."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

_FIRST = (10, 20, 50, 100, 200)  # rows seen at the first refits


class Refitted:
    """An estimator that is fitted anew on a reservoir, or on a window of the last rows.

    It is refitted after 10, 20, 50, 100 and 200 rows, then every `every` rows, and at the end.
    Predictions do not change between refits, so all rows until the next are predicted at once.

    Args:
      build: () -> an unfitted estimator of scikit-learn's.
      num_classes: 0 for a regression.
      size: number of rows kept.
      every: number of rows between refits.
      is_window: keep the last rows instead of a uniform sample of all.
      seed: decides which rows the reservoir keeps.
    """

    def __init__(
        self,
        build: Callable[[], Any],
        num_classes: int,
        size: int,
        *,
        every: int,
        is_window: bool,
        seed: int,
    ) -> None:
        self._build, self._num_classes, self._is_window = build, num_classes, is_window
        self._every = every
        self._size, self._rng, self._num_seen = size, np.random.default_rng([seed, 6]), 0
        self._x: list[np.ndarray] = []
        self._y: list[Any] = []
        self._scaler = StandardScaler()
        self._fitted: Any = None

    def learn(self, x: np.ndarray, y: np.ndarray) -> None:
        """Keep the next rows, and refit if it is time."""
        before = self._num_seen
        for row, target in zip(x, y, strict=True):
            self._keep(row, target)
        if self._due(before) <= self._num_seen:
            self._refit()

    def end_stream(self) -> None:
        """Refit, so that the last rows count."""
        self._refit()

    def _refit(self) -> None:
        rows, targets = np.array(self._x), np.array(self._y)
        self._fitted = self._build().fit(self._scaler.fit_transform(rows), targets)

    def _keep(self, row: np.ndarray, target: Any) -> None:
        self._num_seen += 1
        if len(self._y) < self._size:
            self._x.append(row)
            self._y.append(target)
            return
        slot = self._num_seen % self._size
        if not self._is_window:
            slot = int(self._rng.integers(self._num_seen))
        if slot < self._size:
            self._x[slot], self._y[slot] = row, target

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Return (n, classes) probabilities, or (n,) targets."""
        scaled = self._scaler.transform(x)
        if not self._num_classes:
            return self._fitted.predict(scaled)
        shares = np.zeros((len(x), self._num_classes))
        if len(self._fitted.classes_) == 1:  # for which boosting returns two columns
            shares[:, self._fitted.classes_] = 1.0
            return shares
        shares[:, self._fitted.classes_] = self._fitted.predict_proba(scaled)
        return shares

    def next_step(self) -> int:
        """Return the number of rows until the next refit."""
        return self._due(self._num_seen) - self._num_seen

    def _due(self, num_seen: int) -> int:
        """Return the number of rows seen at the next refit."""
        later = (num_seen // self._every + 1) * self._every
        return next((rows for rows in _FIRST if rows > num_seen), later)

    def num_bytes(self) -> int:
        """Return the bytes of the rows kept and of the fitted estimator."""
        rows = sum(row.nbytes + 8 for row in self._x)
        return rows + len(pickle.dumps(self._fitted))
