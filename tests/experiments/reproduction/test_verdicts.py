"""Ours beside the paper's: the test, and the claims made with it."""

import numpy as np
import pytest
from scipy import stats

from lamaml.experiments.reporting.statistics import (
    Sample,
    higher,
    paired_difference,
    sample,
    verdict,
)
from lamaml.experiments.reproduction.claims import CLAIMS, judged, order
from lamaml.experiments.reproduction.targets import TARGETS

SETUPS = ("multiple", "single")


def cell(row: str, column: str, *values: float, **more):
    return {"row": row, "column": column, "ra": {"values": list(values)}, **more}


def test_welch_from_the_values_themselves() -> None:
    ours, theirs = [75.1, 76.2, 75.5, 75.9, 74.8], [77.0, 77.9, 76.8, 78.1, 77.2]
    expected = stats.ttest_ind(ours, theirs, equal_var=False).pvalue
    found = verdict(sample(ours), sample(theirs))
    assert found.p == pytest.approx(expected)
    assert found.word == "below"
    assert verdict(sample(theirs), sample(ours)).word == "above"
    assert verdict(sample(ours), sample(ours)).word == "within"


def test_one_seed_is_no_verdict() -> None:
    assert sample([70.0]) is sample([70.0, None]) is None
    assert verdict(sample([70.0]), Sample(77.0, 1.0, 5)).word == "–"
    assert verdict(Sample(77.0, 1.0, 5), None).p is None


def test_seeds_that_agree_to_the_digit() -> None:
    assert verdict(Sample(70.0, 0.0, 5), Sample(70.0, 0.0, 5)).word == "within"
    assert verdict(Sample(71.0, 0.0, 5), Sample(70.0, 0.0, 5)).word == "above"
    assert higher(Sample(71.0, 0.0, 2), Sample(70.0, 0.0, 2)) is True
    assert higher(Sample(70.0, 0.0, 2), Sample(71.0, 0.0, 2)) is False
    assert higher(Sample(70.0, 0.0, 2), Sample(70.0, 0.0, 2)) is None


def test_a_paired_interval_covers_the_truth_19_times_in_20() -> None:
    generator = np.random.default_rng(0)
    covered = 0
    for _ in range(400):
        shared = generator.normal(0, 5, 6)
        _, low, high = paired_difference(shared + 1 + generator.normal(0, 1, 6), shared)
        covered += low < 1 < high
    assert 0.92 < covered / 400 < 0.98


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
        return judged("table1" if columns[0] == "Rotations" else "table3", cells)[number]["verdict"]

    assert verdict_of(0, columns, MER=better, GEM=wild) == "fail"
    assert verdict_of(0, columns, GEM=wild, Online=(50.0, 51.0, 52.0)) == "pass"
    assert verdict_of(0, columns[:2], GEM=wild) == "not enough data"
    images = [f"{data}, {how}" for data in ("CIFAR-100", "TinyImagenet") for how in SETUPS]
    assert verdict_of(2, tuple(images), ER=(60.0, 61.0, 62.0)) == "pass"
    assert verdict_of(2, tuple(images), ER=(60.0, 61.0, 62.0), GEM=wild) == "not enough data"
    assert verdict_of(2, tuple(images), ER=better) == "fail"


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.text[:30])
def test_without_cells_nothing_is_claimed(claim) -> None:
    assert claim.target in TARGETS
    assert claim.check([])[0] is None


def test_time_alignment_and_robustness() -> None:
    pair = {"La-MAML": [10.0, 12.0], "MER": [100.0, 90.0]}
    fast = [
        cell(row, column, 1.0, train_seconds=seconds)
        for column in ("Rotations", "Permutations")
        for row, seconds in pair.items()
    ]
    assert judged("table2", fast)[0]["verdict"] == "pass"
    slow = [c | {"train_seconds": [50.0]} if c["row"] == "La-MAML" else c for c in fast]
    assert judged("table2", slow)[0]["verdict"] == "fail"

    aligned = {"ER": 0.002, "C-MAML": 0.02, "Sync": 0.03, "La-MAML": 0.025}
    for number, name in enumerate(("alignment_replayed", "alignment")):
        cells = [cell(r, "CIFAR-100", measured={name: [v]}) for r, v in aligned.items()]
        verdicts = [claim["verdict"] for claim in judged("table4", cells)]
        assert verdicts[number] == "pass"
        assert verdicts[1 - number] == "not enough data"
        cells[1]["measured"] = {name: [0.01]}
        assert judged("table4", cells)[number]["verdict"] == "fail"

    rates = {0.003: 55.0, 0.03: 58.0, 0.3: 60.0}
    cells = [
        {
            "learner": "la_maml",
            "changed": {"hyper_rate": rate},
            "ra": {"mean": ra},
            "statuses": ["finished"],
        }
        for rate, ra in rates.items()
    ]
    assert judged("figure-robustness", cells)[0]["verdict"] == "pass"
    cells[0]["ra"] = {"mean": 50.0}
    assert judged("figure-robustness", cells)[0]["verdict"] == "fail"
    assert judged("figure-robustness", cells[1:2])[0]["verdict"] == "not enough data"
    cells[0]["ra"], cells[1] = (
        {"mean": 58.0},
        cells[1] | {"statuses": ["diverged"], "ra": {"mean": None}},
    )
    found = judged("figure-robustness", cells)[0]
    assert (found["verdict"], found["numbers"]) == ("fail", "η 0.003: 58.0, η 0.03: *, η 0.3: 60.0")
