"""The run folder: what is in it, and how damage shows."""

import json
import shutil
import statistics
from pathlib import Path

import numpy as np
import pytest

from lamaml.errors import DataCorrupt, DataUnavailable
from lamaml.evaluation import metrics
from lamaml.experiments.storing.results import Run, find_runs, read_run, summary

SEED_FILES = {
    "rates",
    *("accuracy.json", "diagnostics.jsonl", "facts.json", "status.json"),
    *(f"checkpoint-0000{task}-000000000.safetensors" for task in (1, 2)),
}


@pytest.fixture
def copy(small_run: Run, tmp_path: Path) -> Path:
    """A run folder to damage."""
    return Path(shutil.copytree(small_run.folder, tmp_path / "copy"))


def test_a_run_leaves_these_files(small_run: Run) -> None:
    found = {path.name for path in small_run.folder.iterdir()}
    assert found == {"settings.json", "environment.json", "summary.json", "seed-0", "seed-1"}
    for seed in small_run.seeds:
        assert {path.name for path in seed.folder.iterdir()} == SEED_FILES


def test_settings_and_environment(small_run: Run) -> None:
    assert small_run.settings["settings"]["hyper_rate"] == 0.3
    assert small_run.settings["seeds"] == [0, 1]
    assert (small_run.settings["num_tasks"], small_run.settings["num_samples"]) == (2, 30)
    assert set(small_run.environment["versions"]) == {"lamaml", "jax", "jaxlib", "numpy", "python"}
    assert {"platform", "cpus", "revision", "dirty"} <= set(small_run.environment)


def test_matrix_gives_the_metrics(small_run: Run) -> None:
    for seed in small_run.seeds:
        baseline = np.array(json.loads((seed.folder / "accuracy.json").read_text())["baseline"])
        assert metrics(seed.matrix, baseline)._asdict() == pytest.approx(seed.metrics)


def test_every_update_has_its_diagnostics(small_run: Run) -> None:
    found = small_run.seeds[0].diagnostics()
    assert {"loss", "rate_mean", "rates_at_zero"} <= set(found)
    assert all(values.shape == (30,) and np.isfinite(values).all() for values in found.values())


def test_summary_is_over_seeds_in_percent(small_run: Run) -> None:
    found = summary(small_run)
    values = [100 * seed.metrics["ra"] for seed in small_run.seeds]
    assert found["ra"]["values"] == values
    assert found["ra"]["mean"] == pytest.approx(sum(values) / 2)
    assert found["ra"]["sd"] == pytest.approx(statistics.stdev(values))
    assert found["ms_per_update"] == pytest.approx(1000 * found["seconds"]["train"] / 30)
    assert json.loads((small_run.folder / "summary.json").read_text()) == found


def test_a_seed_that_diverged_has_no_value(copy: Path) -> None:
    message = "the loss is nan at task 1, update 3"
    ending = {"status": "diverged", "message": message, "task": 1, "update": 3}
    (copy / "seed-1/status.json").write_text(json.dumps(ending))
    found = summary(read_run(copy))
    assert found["statuses"] == ["finished", "diverged"]
    assert found["diverged_at"] == [None, {"task": 1, "update": 3}]
    assert found["ra"]["values"][1] is None
    assert found["ra"]["sd"] is None
    assert found["ra"]["mean"] == found["ra"]["values"][0]


def test_a_seed_that_never_began(copy: Path) -> None:
    shutil.rmtree(copy / "seed-0")
    shutil.rmtree(copy / "seed-1")
    found = summary(read_run(copy))
    assert found["ra"] == {"mean": None, "sd": None, "values": [None, None]}
    assert found["ms_per_update"] is None


def test_a_half_written_line_is_left_out(copy: Path) -> None:
    path = copy / "seed-0/diagnostics.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - 20])
    assert read_run(copy).seeds[0].diagnostics()["loss"].shape == (29,)
    path.write_bytes(whole[:20])
    assert read_run(copy).seeds[0].diagnostics() == {}


def test_lines_of_several_updates_are_read_as_well(copy: Path) -> None:
    path = copy / "seed-0/diagnostics.jsonl"
    path.write_text('{"task":0,"update":2,"loss":[1.5,null]}\n{"task":0,"update":3,"loss":[0.5]}\n')
    found = read_run(copy).seeds[0].diagnostics()["loss"]
    np.testing.assert_array_equal(found, [1.5, np.nan, 0.5])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("settings.json", "{"),
        ("settings.json", '{"seeds": [0, 1]}'),
        ("environment.json", "[]"),
        ("seed-0/status.json", '{"status": "finished", "message": ""}'),
        ("seed-0/accuracy.json", '{"matrix": [[0.5, 0.5]], "ra": 1, "bti": 0, "la": 1, "fwt": 0}'),
        ("seed-0/accuracy.json", '{"matrix": "none"}'),
        ("seed-0/accuracy.json", None),
        ("environment.json", None),
    ],
)
def test_damage_names_the_file(copy: Path, name: str, content: str | None) -> None:
    if content is None:
        (copy / name).unlink()
    else:
        (copy / name).write_text(content)
    with pytest.raises(DataCorrupt, match=name):
        read_run(copy)


def test_a_damaged_line_names_the_file(copy: Path) -> None:
    (copy / "seed-0/diagnostics.jsonl").write_text("{\n")
    with pytest.raises(DataCorrupt, match=r"diagnostics\.jsonl"):
        read_run(copy).seeds[0].diagnostics()


def test_finding_runs(small_run: Run, tmp_path: Path) -> None:
    assert find_runs(small_run.folder) == [small_run.folder]
    assert find_runs(small_run.folder.parent) == [small_run.folder]
    with pytest.raises(DataUnavailable, match="not a run folder"):
        find_runs(tmp_path)
