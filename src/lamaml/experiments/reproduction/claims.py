"""The claims that the paper makes in words, each judged by the cells: pass, fail, not enough data.

An order of two methods passes or fails only where the seeds tell the methods apart (Welch's test,
one-sided, at 5 %). Ratios and ranges are compared with the numbers that the paper gives. Digits in
place of the paper's data carry no verdict: not judged.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from lamaml.experiments.reporting.statistics import Sample, higher, sample
from lamaml.experiments.reproduction.results import CellResult

Cells = Sequence[CellResult]
Check = Callable[[Cells], tuple[bool | None, str]]
"""(cells) -> whether the claim holds, None if that is unknown, and the numbers behind it."""

NOT_JUDGED = "not judged"
WORDS = {True: "pass", False: "fail", None: "not enough data"}


class Claim(NamedTuple):
    """A statement of the paper about a target."""

    target: str
    text: str
    check: Check


class Judgement(NamedTuple):
    """A claim, its verdict (pass, fail, not enough data, not judged), and the numbers behind it."""

    claim: str
    verdict: str
    numbers: str


def judge(target: str, cells: Cells) -> list[Judgement]:
    """Returns the claims about a target, judged by its cells."""
    found = []
    for claim in CLAIMS:
        if claim.target == target:
            holds, numbers = claim.check(cells)
            other_data = any(cell.is_stand_in for cell in cells)
            verdict = NOT_JUDGED if other_data else WORDS[holds]
            found.append(Judgement(claim.text, verdict, numbers))
    return found


def order(*rows: str, columns: Sequence[str]) -> Check:
    """Returns a check that RA falls from each method to the next, in every column."""

    def check(cells: Cells) -> tuple[bool | None, str]:
        found = {column: [_ra(cells, row, column) for row in rows] for column in columns}
        answers = [higher(one, other) for line in found.values() for one, other in pairwise(line)]
        means = {column: _means(cells, rows, column) for column in columns}
        shown = [f"{column}: {_show(line)}" for column, line in means.items() if line]
        return _all(answers), "; ".join(shown)

    return check


def _against(
    best: str,
    others: Sequence[str],
    columns: Sequence[str],
    holds: Callable[[Sample, Sample], bool | None],
) -> Check:
    """Returns a check of one method beside each other method that was run, in every column.

    Args:
      best: the method.
      others: the methods it is compared with.
      columns: the data.
      holds: (RA of the method, RA of another) -> whether the claim holds, None if unknown.
    """

    def check(cells: Cells) -> tuple[bool | None, str]:
        answers: list[bool | None] = []
        shown = []
        for column in columns:
            ours = _ra(cells, best, column)
            known = [found for row in others if (found := _ra(cells, row, column))]
            answers += [holds(ours, found) for found in known] if ours and known else [None]
            mine, theirs = _means(cells, (best,), column), _means(cells, others, column)
            if mine and theirs:
                strongest = max(theirs, key=theirs.__getitem__)
                shown.append(f"{column}: {_show(mine | {strongest: theirs[strongest]})}")
        return _all(answers), "; ".join(shown)

    return check


def _not_lower(one: Sample, other: Sample) -> bool:
    """Whether the other is not significantly higher."""
    return higher(other, one) is not True


def _faster(cells: Cells) -> tuple[bool | None, str]:
    """Training time of La-MAML as a share of MER's."""
    shares = []
    for column in ("Rotations", "Permutations"):
        pair = [_one(cells, row, column) for row in ("La-MAML", "MER")]
        times = [cell.mean_train_seconds for cell in pair if cell and cell.train_seconds]
        if len(times) == 2 and times[0] and times[1]:
            shares.append((column, times[0] / times[1]))
    shown = ", ".join(f"{column} {100 * share:.0f} %" for column, share in shares)
    return (_all([share < 0.2 for _, share in shares]), shown)


def _aligned(name: str) -> Check:
    """Returns a check that every variant has ten times ER's cosine."""

    def check(cells: Cells) -> tuple[bool | None, str]:
        answers: list[bool | None] = []
        shown = []
        for data in dict.fromkeys(cell.column for cell in cells):
            means = {
                cell.row: statistics.fmean(cell.measured.values[name])
                for cell in cells
                if cell.column == data and cell.measured.values.get(name)
            }
            base = means.pop("ER", None)
            if base is None or not means:
                answers.append(None)
                continue
            answers += [value >= 10 * base > 0 or base <= 0 < value for value in means.values()]
            words = [f"{row} {_number(value, 4)}" for row, value in {"ER": base, **means}.items()]
            shown.append(f"{data}: {', '.join(words)}")
        return _all(answers), "; ".join(shown)

    return check


def _insensitive(cells: Cells) -> tuple[bool | None, str]:
    """RA of La-MAML over η from .003 to .3."""
    varied = {
        cell.changed["hyper_rate"]: cell
        for cell in cells
        if cell.learner == "la_maml"
        and list(cell.changed) == ["hyper_rate"]
        and 0.003 <= cell.changed["hyper_rate"] <= 0.3
    }
    found = {rate: cell.ra.mean for rate, cell in varied.items()}
    known = {rate: ra for rate, ra in found.items() if ra is not None}
    shown = ", ".join(
        f"η {rate:g}: {'*' if ra is None else _number(ra, 1)}" for rate, ra in found.items()
    )
    if any("diverged" in cell.statuses for cell in varied.values()):
        return False, shown
    if not {0.003, 0.3} <= set(known):
        return None, shown
    return max(known.values()) - min(known.values()) <= 6.0, shown


def _stays_positive(cells: Cells) -> tuple[bool | None, str]:
    """Mean cosine over seeds, after every task."""
    curves = {cell.row: cell.measured.mean_curve("inter_task_cosine_trunk") for cell in cells}
    means = {row: curve for row, curve in curves.items() if curve.size}
    shown = "; ".join(
        f"{row}: {_number(curve.min(), 3)} to {_number(curve.max(), 3)}"
        for row, curve in means.items()
    )
    return _all([bool(curve.min() > 0) for curve in means.values()]), shown


def _resistant(cells: Cells) -> tuple[bool | None, str]:
    """Points of RA that inner updates cost, in the first and in the last fifth of the run."""
    answers, shown = [], []
    for cell in cells:
        inner, after = (
            cell.measured.mean_curve(name) for name in ("accuracy_inner", "accuracy_after")
        )
        if len(inner) < 10:
            continue
        lost, fifth = 100 * (after - inner), len(inner) // 5
        first, last = np.mean(lost[:fifth]), np.mean(lost[-fifth:])
        answers.append(bool(first > 0 and last < first))
        shown.append(f"{cell.row}: {first:.1f} points at first, {last:.1f} at the end")
    return _all(answers), "; ".join(shown)


def _both(cells: Cells, *pairs: tuple[str, str]) -> tuple[bool | None, str]:
    found = [order(*pair, columns=("CIFAR-100, multiple",))(cells) for pair in pairs]
    return _all([holds for holds, _ in found]), "; ".join(shown for _, shown in found if shown)


def _one(cells: Cells, row: str, column: str) -> CellResult | None:
    return next((c for c in cells if (c.row, c.column) == (row, column)), None)


def _ra(cells: Cells, row: str, column: str) -> Sample | None:
    cell = _one(cells, row, column)
    return sample(cell.ra.values) if cell else None


def _all(answers: Sequence[bool | None]) -> bool | None:
    """Returns True if all hold, False if one does not, else None."""
    if False in answers:
        return False
    return None if None in answers or not answers else True


def _means(cells: Cells, rows: Sequence[str], column: str) -> dict[str, float]:
    """Returns the mean RA of the methods that were run, even with one seed."""
    found = {row: _one(cells, row, column) for row in rows}
    return {row: cell.ra.mean for row, cell in found.items() if cell and cell.ra.mean is not None}


def _show(means: Mapping[str, float]) -> str:
    return ", ".join(f"{row} {_number(mean, 1)}" for row, mean in means.items())


def _number(value: float, digits: int) -> str:
    return f"{value:.{digits}f}".replace("-", "−")


_BASELINES = ("Online", "EWC", "ER", "iCaRL", "GEM", "A-GEM", "MER", "Meta-BGD")
_MNIST = ("Rotations", "Permutations", "Many")
_SINGLE = ("CIFAR-100, single", "TinyImagenet, single")
_MULTIPLE = ("CIFAR-100, multiple", "TinyImagenet, multiple")

CLAIMS = (
    Claim(
        "table1",
        "La-MAML achieves comparable or better performance than the baselines on all benchmarks",
        _against("La-MAML", _BASELINES, _MNIST, _not_lower),
    ),
    Claim(
        "table1",
        "MER retains more than GEM, GEM more than Online on Rotations",
        order("MER", "GEM", "Online", columns=("Rotations",)),
    ),
    Claim("table2", "La-MAML takes less than 20 % of MER's training time", _faster),
    Claim(
        "table3",
        "La-MAML performs best, followed by Sync, then C-MAML",
        order("La-MAML", "Sync", "C-MAML", columns=(*_MULTIPLE, *_SINGLE)),
    ),
    Claim(
        "table3",
        "Modulated learning rates help ER: La-ER retains more than ER",
        order("La-ER", "ER", columns=(*_MULTIPLE, *_SINGLE)),
    ),
    Claim(
        "table3",
        "La-MAML retains more than every baseline in both setups",
        _against("La-MAML", _BASELINES, (*_MULTIPLE, *_SINGLE), higher),
    ),
    Claim(
        "table3",
        "Training on all tasks at once is the upper bound: IID retains more than La-MAML",
        order("IID", "La-MAML", columns=_MULTIPLE),
    ),
    Claim(
        "table4",
        "The variants have an order of magnitude higher alignment than ER",
        _aligned("alignment_replayed"),
    ),
    Claim(
        "table4",
        "They have it with rows of earlier tasks alone",
        _aligned("alignment"),
    ),
    Claim(
        "figure-intertask",
        "Alignment among old tasks stays positive as tasks are added",
        _stays_positive,
    ),
    Claim(
        "figure-lookahead",
        "Inner updates forget at first, and less as training goes on",
        _resistant,
    ),
    Claim(
        "figure-robustness",
        "η from .003 to .3 moves La-MAML's RA by only 6 points",
        _insensitive,
    ),
    Claim(
        "figure-time",
        "GEM and A-GEM retain less than La-MAML",
        lambda cells: _both(cells, ("La-MAML", "GEM"), ("La-MAML", "A-GEM")),
    ),
)
