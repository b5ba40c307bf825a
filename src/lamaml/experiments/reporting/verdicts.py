"""Ours beside the paper's: is the difference more than chance?

Welch's test, two-sided, at 5 %, from both means, standard deviations and numbers of seeds. Where
it finds no difference the verdict is `within`; else `above` or `below`. With fewer than two seeds,
or at another size than the paper's, there is none.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from scipy import stats

LEVEL = 0.05


class Sample(NamedTuple):
    """Seeds, summed up."""

    mean: float
    sd: float
    num_seeds: int


class Verdict(NamedTuple):
    """What the test says."""

    word: Literal["within", "above", "below", "–"]
    p: float | None  # how likely such a difference is by chance


NONE = Verdict("–", None)


def sampled(values: Sequence[float | None]) -> Sample | None:
    """Of the values that are known; None with fewer than two."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return None
    mean = sum(known) / len(known)
    variance = sum((value - mean) ** 2 for value in known) / (len(known) - 1)
    return Sample(mean, variance**0.5, len(known))


def verdict(ours: Sample | None, paper: Sample | None) -> Verdict:
    """Whether ours is what the paper has.

    >>> verdict(Sample(75.7, 0.5, 5), Sample(77.4, 0.65, 5)).word
    'below'
    >>> verdict(Sample(48.2, 0.45, 5), Sample(48.5, 0.45, 5)).word
    'within'
    """
    if ours is None or paper is None:
        return NONE
    p = _welch(ours, paper, "two-sided")
    if p >= LEVEL:
        return Verdict("within", p)
    return Verdict("above" if ours.mean > paper.mean else "below", p)


def higher(one: Sample | None, other: Sample | None) -> bool | None:
    """Whether one is above the other, beyond chance; None where the seeds cannot say.

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


def paired(one: Sequence[float], other: Sequence[float]) -> tuple[float, float, float]:
    """The mean difference of pairs of the same seed, and its 95 % interval (Student's t).

    >>> [round(value, 2) for value in paired([3.0, 4.0, 5.0], [1.0, 2.0, 4.0])]
    [1.67, 0.23, 3.1]
    """
    found = sampled([a - b for a, b in zip(one, other, strict=True)])
    if found is None:
        raise ValueError("an interval needs two seeds or more that both have finished")
    reach = float(stats.t.ppf(1 - LEVEL / 2, found.num_seeds - 1)) * found.sd / found.num_seeds**0.5
    return found.mean, found.mean - reach, found.mean + reach


def _welch(one: Sample, other: Sample, alternative: str) -> float:
    if one.sd == other.sd == 0:  # the test has nothing to divide by
        same = one.mean == other.mean
        agrees = (one.mean > other.mean) == (alternative == "greater")
        return 1.0 if same or (alternative != "two-sided" and not agrees) else 0.0
    return float(
        stats.ttest_ind_from_stats(*one, *other, equal_var=False, alternative=alternative).pvalue
    )
