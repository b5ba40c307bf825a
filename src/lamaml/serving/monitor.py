"""What a service has seen: rows learned, and scores of predictions made before learning.

The score of a row is 1 or 0 for a class, the absolute error for a target. The monitor is part of
the state that a version stores: after a restart it is what it was, to the bit.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lamaml._records import from_json, to_json

WINDOW = 1000
"""Number of the latest scores that are kept."""
SHORT_WINDOW = 100
"""Number of the latest scores in the short mean."""
_POINTS = 300  # of the curve that the page draws
_SPACING = 50  # scored rows per point at first; doubled when the curve is full
_MAX_FAILURES = 20


@dataclass(frozen=True)
class Point:
    """A point of the curve: the mean of the last scores after a number of rows."""

    rows: int
    score: float


@dataclass(frozen=True)
class Failure:
    """An entry that passed the checks and yet could not be learned."""

    entry: int
    rows: int
    reason: str


@dataclass(frozen=True)
class Monitor:
    """Counts and scores; never changed, only replaced.

    Attributes:
      rows_learned: number of rows learned, over the whole life of the service.
      rows_scored: number of those that were predicted before.
      score_sum: sum of all scores.
      recent: the last scores, oldest first, at most `WINDOW`.
      late_rows: number of rows whose label came after their prediction.
      delay_sum: sum of these delays, in seconds.
      rows_failed: number of rows that could not be learned.
      failures: the last of them.
      rollbacks: number of rollbacks.
      curve: mean of the recent scores over the life of the service.
      spacing: scored rows per point of the curve.
    """

    rows_learned: int = 0
    rows_scored: int = 0
    score_sum: float = 0.0
    recent: np.ndarray = field(default_factory=lambda: np.zeros(0))
    late_rows: int = 0
    delay_sum: float = 0.0
    rows_failed: int = 0
    failures: list[Failure] = field(default_factory=list)
    rollbacks: int = 0
    curve: list[Point] = field(default_factory=list)
    spacing: int = _SPACING

    @property
    def score(self) -> float | None:
        """Mean of all scores; None without any."""
        return self.score_sum / self.rows_scored if self.rows_scored else None

    def window_score(self, size: int) -> float | None:
        """Return the mean of the last `size` scores; None without any."""
        return float(self.recent[-size:].mean()) if len(self.recent) else None

    def after_rows(
        self,
        num_rows: int,
        scores: Sequence[float] | np.ndarray,
        delays: Sequence[tuple[int, float]],
    ) -> "Monitor":
        """Return the monitor after a batch.

        Args:
          num_rows: number of rows learned.
          scores: of those that were predicted before.
          delays: number of rows and delay, per entry whose label came late.
        """
        new = np.asarray(scores, float)
        recent = np.concatenate([self.recent, new])[-WINDOW:]
        learned, scored = self.rows_learned + num_rows, self.rows_scored + len(new)
        curve, spacing = self.curve, self.spacing
        if scored // spacing > self.rows_scored // spacing:
            curve = [*curve, Point(learned, float(recent.mean()))]
            if len(curve) >= _POINTS:
                curve, spacing = curve[1::2], 2 * spacing
        return replace(
            self,
            rows_learned=learned,
            rows_scored=scored,
            score_sum=self.score_sum + float(new.sum()),
            recent=recent,
            late_rows=self.late_rows + sum(rows for rows, _ in delays),
            delay_sum=self.delay_sum + sum(rows * delay for rows, delay in delays),
            curve=curve,
            spacing=spacing,
        )

    def after_failures(self, failures: Sequence[Failure]) -> "Monitor":
        """Return the monitor after entries that could not be learned."""
        failed = self.rows_failed + sum(failure.rows for failure in failures)
        kept = [*self.failures, *failures][-_MAX_FAILURES:]
        return replace(self, rows_failed=failed, failures=kept)

    def after_rollback(self) -> "Monitor":
        """Return the monitor after a rollback; the scores stay those of the service."""
        return replace(self, rollbacks=self.rollbacks + 1)

    def to_json(self) -> dict[str, Any]:
        """Return the monitor as JSON types."""
        return {name: to_json(value) for name, value in vars(self).items()}

    @classmethod
    def from_json(cls, value: Any) -> "Monitor":
        """Return what `to_json` was called on."""
        known = dict(value)
        known["recent"] = np.asarray(known["recent"], float)
        known["failures"] = from_json(list[Failure], known["failures"])
        known["curve"] = from_json(list[Point], known["curve"])
        return cls(**known)
