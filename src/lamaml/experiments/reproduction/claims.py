"""What the paper says in words, each checked for itself: pass, fail or not enough data.

An order of two methods passes, or fails, only where the seeds tell them apart (Welch's test,
one-sided, at 5 %). Ratios and ranges are compared with the numbers the paper gives.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from lamaml.experiments.reporting.statistics import Sample, higher, sample

Cells = Sequence[Mapping[str, Any]]
WORDS = {True: "pass", False: "fail", None: "not enough data"}


class Claim(NamedTuple):
    """A sentence of the paper.

    Attributes:
      target: the table or figure it is about.
      text: what it says.
      check: (cells) -> whether it holds, None if that is not known, and the numbers behind it.
    """

    target: str
    text: str
    check: Callable[[Cells], tuple[bool | None, str]]


def judged(target: str, cells: Cells) -> list[dict[str, str]]:
    """The claims about a target, as the cells bear them out."""
    found = []
    for claim in CLAIMS:
        if claim.target == target:
            holds, numbers = claim.check(cells)
            found.append({"claim": claim.text, "verdict": WORDS[holds], "numbers": numbers})
    return found


def _one(cells: Cells, row: str, column: str) -> Mapping[str, Any] | None:
    return next((c for c in cells if (c["row"], c["column"]) == (row, column)), None)


def _ra(cells: Cells, row: str, column: str) -> Sample | None:
    cell = _one(cells, row, column)
    return sample(cell["ra"]["values"]) if cell else None


def _known(values: Sequence[bool | None]) -> bool | None:
    """All, if every one holds; not, if one does not."""
    if False in values:
        return False
    return None if None in values or not values else True


def _show(*pairs: tuple[str, Sample | None], digits: int = 1) -> str:
    known = [f"{name} {_number(found.mean, digits)}" for name, found in pairs if found]
    return ", ".join(known)


def _number(value: float, digits: int) -> str:
    return f"{value:.{digits}f}".replace("-", "−")


def order(*rows: str, columns: Sequence[str]) -> Callable[[Cells], tuple[bool | None, str]]:
    """The first method has the highest RA, and so on, in every column."""

    def check(cells: Cells) -> tuple[bool | None, str]:
        found = {c: [(row, _ra(cells, row, c)) for row in rows] for c in columns}
        answers = [
            higher(one, other) for line in found.values() for (_, one), (_, other) in pairwise(line)
        ]
        shown = [f"{column}: {_show(*line)}" for column, line in found.items() if _show(*line)]
        return _known(answers), "; ".join(shown)

    return check


def _against(
    best: str, others: Sequence[str], columns: Sequence[str], holds: Callable[..., bool | None]
) -> Callable[[Cells], tuple[bool | None, str]]:
    """The named method beside each of the others there are, in every column.

    Args:
      best: the method.
      others: it is compared with.
      columns: in each of these.
      holds: (its RA, another's) -> whether that is as claimed, or None.
    """

    def check(cells: Cells) -> tuple[bool | None, str]:
        answers: list[bool | None] = []
        shown = []
        for column in columns:
            ours = _ra(cells, best, column)
            known = [(row, found) for row in others if (found := _ra(cells, row, column))]
            if ours is None or not known:
                answers.append(None)
                continue
            answers += [holds(ours, found) for _, found in known]
            shown.append(f"{column}: {_show((best, ours), max(known, key=lambda k: k[1].mean))}")
        return _known(answers), "; ".join(shown)

    return check


def _not_lower(one: Sample, other: Sample) -> bool:
    """Whether the other is not, beyond chance, above."""
    return higher(other, one) is not True


def _faster(cells: Cells) -> tuple[bool | None, str]:
    """Training seconds of La-MAML as a share of MER's."""
    shares = []
    for column in ("Rotations", "Permutations"):
        pair = [_one(cells, row, column) for row in ("La-MAML", "MER")]
        if all(cell and cell["train_seconds"] for cell in pair):
            ours, theirs = (statistics.fmean(c["train_seconds"]) for c in pair if c)
            shares.append((column, ours / theirs))
    shown = ", ".join(f"{column} {100 * share:.0f} %" for column, share in shares)
    return (_known([share < 0.2 for _, share in shares]), shown)


def _aligned(name: str) -> Callable[[Cells], tuple[bool | None, str]]:
    """Ten times ER's cosine, for every variant."""

    def check(cells: Cells) -> tuple[bool | None, str]:
        answers: list[bool | None] = []
        shown = []
        for data in dict.fromkeys(cell["column"] for cell in cells):
            means = {
                cell["row"]: statistics.fmean(cell["measured"][name])
                for cell in cells
                if cell["column"] == data and cell["measured"].get(name)
            }
            base = means.pop("ER", None)
            if base is None or not means:
                answers.append(None)
                continue
            answers += [value >= 10 * base > 0 or base <= 0 < value for value in means.values()]
            words = [f"{row} {_number(value, 4)}" for row, value in {"ER": base, **means}.items()]
            shown.append(f"{data}: {', '.join(words)}")
        return _known(answers), "; ".join(shown)

    return check


def _insensitive(cells: Cells) -> tuple[bool | None, str]:
    """RA of La-MAML over η from .003 to .3."""
    varied = [
        cell
        for cell in cells
        if cell["learner"] == "la_maml"
        and list(cell["changed"]) == ["hyper_rate"]
        and 0.003 <= cell["changed"]["hyper_rate"] <= 0.3
    ]
    found = {cell["changed"]["hyper_rate"]: cell["ra"]["mean"] for cell in varied}
    known = [ra for ra in found.values() if ra is not None]
    shown = ", ".join(
        f"η {rate:g}: {'*' if ra is None else _number(ra, 1)}" for rate, ra in found.items()
    )
    if any("diverged" in cell["statuses"] for cell in varied):
        return False, shown
    if not {0.003, 0.3} <= {rate for rate, ra in found.items() if ra is not None}:
        return None, shown
    return max(known) - min(known) <= 6.0, shown


def _stays_positive(cells: Cells) -> tuple[bool | None, str]:
    """The mean over seeds, after every task."""
    means = {
        cell["row"]: [
            statistics.fmean(point) for point in zip(*cell["measured"][_COSINE], strict=True)
        ]
        for cell in cells
        if cell["measured"]
    }
    shown = "; ".join(
        f"{row}: {_number(min(m), 3)} to {_number(max(m), 3)}" for row, m in means.items() if m
    )
    return _known([min(m) > 0 for m in means.values() if m]), shown


def _resistant(cells: Cells) -> tuple[bool | None, str]:
    """What inner updates cost, in the first and in the last fifth of the run."""
    answers, shown = [], []
    for cell in cells:
        curves = [cell["measured"].get(name) for name in ("accuracy_inner", "accuracy_after")]
        if not curves[0] or len(curves[0][0]) < 10:
            continue
        inner, after = (
            [statistics.fmean(point) for point in zip(*curve, strict=True)] for curve in curves
        )
        lost = [100 * (high - low) for low, high in zip(inner, after, strict=True)]
        fifth = len(lost) // 5
        first, last = statistics.fmean(lost[:fifth]), statistics.fmean(lost[-fifth:])
        answers.append(first > 0 and last < first)
        shown.append(f"{cell['row']}: {first:.1f} points at first, {last:.1f} at the end")
    return _known(answers), "; ".join(shown)


_COSINE = "inter_task_cosine_trunk"
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


def _both(cells: Cells, *pairs: tuple[str, str]) -> tuple[bool | None, str]:
    found = [order(*pair, columns=("CIFAR-100, multiple",))(cells) for pair in pairs]
    return _known([holds for holds, _ in found]), "; ".join(shown for _, shown in found if shown)
