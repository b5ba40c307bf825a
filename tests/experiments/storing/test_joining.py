"""Runs of equal settings that were made apart become one; others stay apart."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from lamaml import load_run, load_runs
from lamaml.errors import InvalidArgument
from lamaml.experiments.storing.results import Run

Part = Callable[..., Path]


@pytest.fixture
def part(small_run: Run, tmp_path: Path) -> Part:
    """Returns a function that makes a run folder with one seed of the small run."""

    def make(name: str, seed: int, **changes: object) -> Path:
        folder = tmp_path / "array" / name
        shutil.copytree(small_run.folder, folder)
        shutil.rmtree(folder / f"seed-{1 - seed}")
        settings = json.loads((folder / "settings.json").read_text())
        settings |= {"seeds": [seed], **changes}
        (folder / "settings.json").write_text(json.dumps(settings))
        return folder

    return make


def test_the_jobs_of_an_array_are_one_run(small_run: Run, part: Part) -> None:
    part("job-1", 1), part("job-0", 0)
    found = load_run(part("job-2", 1).parent)  # job 2 repeats job 1
    assert found.summary.ra == small_run.summary.ra
    assert found.summary.seeds == [0, 1]
    assert [folder.name for folder in found.folders] == ["job-0", "job-1"]


def test_a_seed_that_has_ended_is_preferred(small_run: Run, part: Part) -> None:
    unfinished = part("a", 0)
    (unfinished / "seed-0/status.json").write_text('{"status": "interrupted", "message": ""}')
    found = load_run(unfinished, part("b", 0))
    assert found.summary.statuses == ["finished"]
    assert found.summary.ra.values == small_run.summary.ra.values[:1]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"num_tasks": 3}, "num_tasks 2 there, 3 here"),
        ({"split": "validation"}, "split None there, validation here"),
        ({"preset": "paper"}, "preset authors there, paper here"),
    ],
)
def test_other_settings_are_other_runs(part: Part, changes: dict, words: str) -> None:
    folders = part("a", 0), part("b", 1, **changes)
    assert len(load_runs(*folders)) == 2
    with pytest.raises(InvalidArgument, match=words):
        load_run(*folders)


def test_a_seed_with_two_results_keeps_its_runs_apart(part: Part) -> None:
    other = part("b", 0)
    (other / "seed-0/status.json").write_text('{"status": "diverged", "message": ""}')
    folders = part("a", 0), other
    assert len(load_runs(*folders)) == 2
    with pytest.raises(InvalidArgument, match="a seed of both has different results"):
        load_run(*folders)


def test_a_frame_has_a_row_per_run(small_run: Run, part: Part) -> None:
    pytest.importorskip("pandas")
    recipe = small_run.settings.recipe
    varied = dict(recipe.settings) | {"hyper_rate": 0.5}
    runs = load_runs(small_run.folder, part("b", 0, settings=varied, changed=["hyper_rate"]))
    frame = runs.to_frame()
    assert list(frame["hyper_rate"]) == [0.3, 0.5]
    assert frame["ra"][0] == small_run.summary.ra.mean
    assert frame["ra_sd"][0] == small_run.summary.ra.sd
    assert frame["ra_sd"].isna()[1]  # of one seed
    assert frame.columns.is_unique
    assert list(frame["finished"]) == [2, 1]
