"""Drift tests: does the model do worse than before?"""

import math
from collections.abc import Sequence
from typing import Any, Protocol

from lamaml.errors import DataUnavailable
from lamaml.estimators import Report
from lamaml.serving.config import Drift

_MIN_HELD_OUT = 10  # rows
_WORSE = 1.5  # times the mean absolute error of a regression on arrival


class DriftTest(Protocol):
    """Called with every report; returns a sentence when the test says drift, else None."""

    def __call__(self, report: Report, scores: Sequence[float], is_regression: bool) -> str | None:
        """Return why to raise an alarm.

        Args:
          report: of the latest version.
          scores: of the rows that were predicted before learning since the last call.
          is_regression: whether scores are errors.
        """


def make_test(drift: Drift) -> DriftTest:
    """Return the test of a configuration.

    Raises:
      DataUnavailable: the test is river's, and river is not installed.
    """
    if drift.test in ("adwin", "page_hinkley"):
        return RiverTest(drift.test)
    if drift.test == "held_out":
        return HeldOutTest(drift.p_value)
    return _never


def _never(report: Report, scores: Sequence[float], is_regression: bool) -> str | None:
    return None


class HeldOutTest:
    """Compares the scores of held-out rows with those on their arrival.

    For classes: a one-sided test of two proportions. For targets: the mean absolute error has grown
    by half.
    """

    def __init__(self, p_value: float) -> None:
        self._p_value = p_value

    def __call__(self, report: Report, scores: Sequence[float], is_regression: bool) -> str | None:
        """See DriftTest."""
        then, now, count = report.score_then, report.score_now, report.held_out_rows
        if then is None or now is None or count < _MIN_HELD_OUT:
            return None
        if is_regression:
            if now > _WORSE * then:
                return f"mean error of {count} held-out rows: {then:.3g} on arrival, {now:.3g} now"
            return None
        p_value = two_proportions(then, now, count)
        if p_value >= self._p_value:
            return None
        return (
            f"{count} held-out rows: {then:.0%} right on arrival, {now:.0%} now (p = {p_value:.2g})"
        )


def two_proportions(then: float, now: float, count: int) -> float:
    """Return the one-sided p-value of a share that has fallen, each of `count` rows.

    >>> round(two_proportions(0.9, 0.5, 20), 4)
    0.0029
    """
    pooled = (then + now) / 2
    spread = math.sqrt(2 * pooled * (1 - pooled) / count)
    return 0.5 * math.erfc((then - now) / spread / math.sqrt(2)) if spread else 1.0


class RiverTest:
    """River's ADWIN or Page-Hinkley test of the prequential errors."""

    def __init__(self, name: str) -> None:
        try:
            from river import drift as river
        except ImportError as error:
            message = f"drift test {name!r} needs river: pip install 'lamaml[drift]'"
            raise DataUnavailable(message) from error
        self._name = name
        tests: dict[str, Any] = {"adwin": river.ADWIN, "page_hinkley": river.PageHinkley}
        self._test = tests[name]()

    def __call__(self, report: Report, scores: Sequence[float], is_regression: bool) -> str | None:
        """See DriftTest."""
        found = False
        for score in scores:
            self._test.update(score if is_regression else 1.0 - score)
            found |= bool(self._test.drift_detected)
        return f"{self._name} has found a change of the prequential error" if found else None
