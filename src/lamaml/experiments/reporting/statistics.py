"""Welch's test against the paper's values, and paired differences over seeds."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from scipy import stats

LEVEL = 0.05

Word = Literal["within", "above", "below", "–"]


class Sample(NamedTuple):
    """Mean, standard deviation and number of seeds of a metric."""

    mean: float
    sd: float
    num_seeds: int


class Verdict(NamedTuple):
    """Result of a comparison with the paper.

    `within` where the test finds no difference, else `above` or `below`; "–" where a test is not
    possible.
    """

    word: Word
    p: float | None


class Difference(NamedTuple):
    """Mean difference of two learners over shared seeds, with the ends of its 95 % interval."""

    mean: float
    low: float
    high: float

    @property
    def significant(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low > 0 or self.high < 0


NO_VERDICT = Verdict("–", None)


def sample(values: Sequence[float | None]) -> Sample | None:
    """Returns the sample of the values that are known; None with fewer than two."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return None
    mean = sum(known) / len(known)
    variance = sum((value - mean) ** 2 for value in known) / (len(known) - 1)
    return Sample(mean, variance**0.5, len(known))


def verdict(ours: Sample | None, paper: Sample | None) -> Verdict:
    """Compares two samples by Welch's test, two-sided, at 5 %.

    >>> verdict(Sample(75.7, 0.5, 5), Sample(77.4, 0.65, 5)).word
    'below'
    >>> verdict(Sample(48.2, 0.45, 5), Sample(48.5, 0.45, 5)).word
    'within'
    """
    if ours is None or paper is None:
        return NO_VERDICT
    p = _welch(ours, paper, "two-sided")
    if p >= LEVEL:
        return Verdict("within", p)
    return Verdict("above" if ours.mean > paper.mean else "below", p)


def higher(one: Sample | None, other: Sample | None) -> bool | None:
    """Whether one mean is above the other by Welch's test, one-sided, at 5 %.

    Returns:
      None where the seeds do not tell the two apart.

    >>> higher(Sample(61.2, 1.4, 3), Sample(47.9, 0.7, 3))
    True
    >>> higher(Sample(61.2, 1.4, 3), Sample(59.0, 1.4, 3)) is None
    True
    """
    if one is None or other is None:
        return None
    if _welch(one, other, "greater") < LEVEL:
        return True
    return False if _welch(one, other, "less") < LEVEL else None


def paired_difference(one: Sequence[float], other: Sequence[float]) -> Difference:
    """Returns the mean of `one` − `other`, seed by seed, with Student's 95 % interval.

    >>> [round(value, 2) for value in paired_difference([3.0, 4.0, 5.0], [1.0, 2.0, 4.0])]
    [1.67, 0.23, 3.1]

    Raises:
      ValueError: there are fewer than two pairs.
    """
    found = sample([a - b for a, b in zip(one, other, strict=True)])
    if found is None:
        raise ValueError("a paired interval needs at least two shared seeds")
    reach = float(stats.t.ppf(1 - LEVEL / 2, found.num_seeds - 1)) * found.sd / found.num_seeds**0.5
    return Difference(found.mean, found.mean - reach, found.mean + reach)


def _welch(one: Sample, other: Sample, alternative: str) -> float:
    if one.sd == other.sd == 0:  # Welch's statistic divides by zero
        same = one.mean == other.mean
        agrees = (one.mean > other.mean) == (alternative == "greater")
        return 1.0 if same or (alternative != "two-sided" and not agrees) else 0.0
    return float(
        stats.ttest_ind_from_stats(*one, *other, equal_var=False, alternative=alternative).pvalue
    )
