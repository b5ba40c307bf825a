"""Outcomes: what is stored, what is shown, and which partial runs a full one replaces."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from cell_results import cell

from lamaml.errors import DataCorrupt
from lamaml.experiments.reproduction.claims import judge
from lamaml.experiments.reproduction.outcomes import Outcome, read_outcomes, without_replaced
from lamaml.experiments.reproduction.results import CellResult, Measured
from lamaml.experiments.reproduction.tables import tables

STORED = Path(__file__).parents[3] / "docs/results"


def outcome(*cells: CellResult, target: str = "table1") -> Outcome:
    rest = ([], judge(target, cells), ["lamaml 0.1.0"], f"lamaml reproduce {target}")
    return Outcome(target, "A table", "full", "the paper's protocol", cells, *rest)


@pytest.mark.parametrize("path", sorted(STORED.glob("*.json")), ids=lambda path: path.stem[:40])
def test_stored_outcomes_are_written_as_they_were_read(path: Path, tmp_path: Path) -> None:
    read_outcomes(STORED)[path.stem].write(tmp_path / path.name)
    assert (tmp_path / path.name).read_bytes() == path.read_bytes()


def test_measured_values_and_curves_are_read_back() -> None:
    for measured in (
        Measured({}),
        Measured({"alignment": [0.1, 0.2]}),
        Measured({}, [3, 6], {"accuracy_inner": [[0.1, 0.2]]}),
    ):
        assert Measured.from_json(measured.to_json()) == measured


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "table1.json").write_text(json.dumps({"target": "table1"}))
    with pytest.raises(DataCorrupt, match=r"table1\.json"):
        read_outcomes(tmp_path)


def test_a_partial_outcome_is_replaced_by_a_full_one() -> None:
    full = outcome(cell("La-MAML", "Rotations", 76.0), cell("ER", "Rotations", 70.0))
    parts = {
        "tasks": outcome(replace(cell("La-MAML", "Rotations", 80.0), num_tasks=5)),
        "rows": outcome(replace(cell("ER", "Rotations", 80.0), num_samples=500)),
    }
    more = outcome(
        replace(cell("La-MAML", "Rotations", 80.0), num_tasks=5),
        replace(cell("MER", "Rotations", 80.0), num_tasks=5),
    )
    other = outcome(
        replace(cell("La-MAML", "Rotations", 80.0), num_tasks=5), target="figure-lookahead"
    )
    found = without_replaced({"full": full, **parts, "more": more, "other": other})
    assert list(found) == ["full", "more", "other"]
    assert list(without_replaced(parts)) == ["tasks", "rows"]


def test_one_seed_of_the_papers_size_shows_the_difference_without_a_verdict() -> None:
    one = cell("La-MAML", "Rotations", 76.0, paper={"ra": [77.42, 0.65]}, verdicts={"ra": "–"})
    assert one.is_paper_size
    (row,) = tables(outcome(one))[0].rows
    assert row[3:7] == ["76.00", "77.42 ± 0.65", "−1.42", "–"]
    (row,) = tables(outcome(replace(one, num_tasks=5)))[0].rows
    assert row[3:7] == ["76.00", "77.42 ± 0.65", "–", "–"]


def test_a_part_of_an_archive_is_not_the_papers_experiment() -> None:
    whole = cell("La-MAML", "Rotations", 76.0)
    assert whole.is_paper_size
    assert not replace(whole, ms_per_update=4.0 * 2250 / 270).is_paper_size  # fewer updates
    assert not replace(whole, ms_per_update=None).is_paper_size
    assert not replace(whole, num_tasks=5).is_paper_size
    assert not replace(whole, changed={"hyper_rate": 0.1}).is_paper_size
    assert not replace(whole, cut={"glances": 1}).is_paper_size
