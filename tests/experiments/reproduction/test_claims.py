"""The claims of the paper, judged by cells."""

from dataclasses import replace

import pytest
from cell_results import cell, spread

from lamaml.experiments.reproduction.claims import CLAIMS, judge, order
from lamaml.experiments.reproduction.results import CellResult, Measured
from lamaml.experiments.reproduction.targets import TARGETS

SETUPS = ("multiple", "single")


def test_an_order_needs_seeds_that_tell_apart() -> None:
    check = order("A", "B", columns=("x",))
    high, low, near = (70.0, 71.0, 70.5), (60.0, 61.0, 60.5), (70.2, 71.1, 70.0)
    assert check([cell("A", "x", *high), cell("B", "x", *low)])[0] is True
    assert check([cell("A", "x", *low), cell("B", "x", *high)])[0] is False
    assert check([cell("A", "x", *near), cell("B", "x", *high)])[0] is None
    assert check([cell("A", "x", *high)])[0] is None
    assert check([])[0] is None


def test_one_method_beside_every_other() -> None:
    """One that scatters does not hide one that is better; and not lower is not higher."""
    ours, better, wild = (76.0, 76.2, 75.8), (79.0, 79.2, 78.8), (95.0, 70.0, 76.8)
    columns = ("Rotations", "Permutations", "Many")

    def verdict_of(number: int, columns: tuple[str, ...], **others: tuple[float, ...]) -> str:
        cells = [
            cell(row, column, *values)
            for row, values in {"La-MAML": ours, **others}.items()
            for column in columns
        ]
        return judge("table1" if columns[0] == "Rotations" else "table3", cells)[number].verdict

    assert verdict_of(0, columns, MER=better, GEM=wild) == "fail"
    assert verdict_of(0, columns, GEM=wild, Online=(50.0, 51.0, 52.0)) == "pass"
    assert verdict_of(0, columns[:2], GEM=wild) == "not enough data"
    images = [f"{data}, {how}" for data in ("CIFAR-100", "TinyImagenet") for how in SETUPS]
    assert verdict_of(2, tuple(images), ER=(60.0, 61.0, 62.0)) == "pass"
    assert verdict_of(2, tuple(images), ER=(60.0, 61.0, 62.0), GEM=wild) == "not enough data"
    assert verdict_of(2, tuple(images), ER=better) == "fail"


def test_one_seed_shows_its_numbers_without_a_verdict() -> None:
    runs = {"La-MAML": 61.0, "Sync": 59.0, "ER": 47.0, "La-ER": 56.0, "A-GEM": 46.0}
    found = judge("table3", [cell(row, "CIFAR-100, single", ra) for row, ra in runs.items()])
    assert {claim.verdict for claim in found} == {"not enough data"}
    assert [claim.numbers for claim in found] == [
        "CIFAR-100, single: La-MAML 61.0, Sync 59.0",
        "CIFAR-100, single: La-ER 56.0, ER 47.0",
        "CIFAR-100, single: La-MAML 61.0, ER 47.0",
        "",
    ]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.text[:30])
def test_without_cells_nothing_is_claimed(claim) -> None:
    assert claim.target in TARGETS
    assert claim.check([])[0] is None


def test_time_alignment_and_robustness() -> None:
    pair = {"La-MAML": [10.0, 12.0], "MER": [100.0, 90.0]}
    fast = [
        cell(row, column, train_seconds=seconds)
        for column in ("Rotations", "Permutations")
        for row, seconds in pair.items()
    ]
    assert judge("table2", fast)[0].verdict == "pass"
    slow = [replace(c, train_seconds=[50.0]) if c.row == "La-MAML" else c for c in fast]
    assert judge("table2", slow)[0].verdict == "fail"

    aligned = {"ER": 0.002, "C-MAML": 0.02, "Sync": 0.03, "La-MAML": 0.025}
    for number, name in enumerate(("alignment_replayed", "alignment")):
        cells = [cell(r, "CIFAR-100", measured=Measured({name: [v]})) for r, v in aligned.items()]
        verdicts = [claim.verdict for claim in judge("table4", cells)]
        assert verdicts[number] == "pass"
        assert verdicts[1 - number] == "not enough data"
        cells[1] = replace(cells[1], measured=Measured({name: [0.01]}))
        assert judge("table4", cells)[number].verdict == "fail"

    rates = {0.003: 55.0, 0.03: 58.0, 0.3: 60.0}
    cells = [
        cell("La-MAML", f"η = {rate}", ra, changed={"hyper_rate": rate})
        for rate, ra in rates.items()
    ]
    assert judge("figure-robustness", cells)[0].verdict == "pass"
    cells[0] = replace(cells[0], ra=spread(50.0))
    assert judge("figure-robustness", cells)[0].verdict == "fail"
    assert judge("figure-robustness", cells[1:2])[0].verdict == "not enough data"
    cells[0] = replace(cells[0], ra=spread(58.0))
    cells[1] = replace(cells[1], ra=spread(), statuses=["diverged"])
    found = judge("figure-robustness", cells)[0]
    assert (found.verdict, found.numbers) == ("fail", "η 0.003: 58.0, η 0.03: *, η 0.3: 60.0")


def test_curves() -> None:
    def drawn(inner: list[float]) -> CellResult:
        curves = {"accuracy_inner": [inner], "accuracy_after": [[0.5] * 10]}
        measured = Measured({}, list(range(1, 11)), curves)
        return cell("La-MAML", "CIFAR-100", 50.0, measured=measured)

    assert judge("figure-lookahead", [drawn([0.4] * 5 + [0.5] * 5)])[0].verdict == "pass"
    assert judge("figure-lookahead", [drawn([0.5] * 5 + [0.4] * 5)])[0].verdict == "fail"

    def aligned(*cosines: float) -> CellResult:
        measured = Measured({}, [10, 20], {"inter_task_cosine_trunk": [cosines]})
        return cell("La-MAML", "CIFAR-100", 50.0, measured=measured)

    found = judge("figure-intertask", [aligned(0.1, 0.2)])[0]
    assert (found.verdict, found.numbers) == ("pass", "La-MAML: 0.100 to 0.200")
    assert judge("figure-intertask", [aligned(0.1, -0.2)])[0].verdict == "fail"
