"""The run folder: what is in it, and how damage shows."""

import json
import shutil
import statistics
import sys
from pathlib import Path

import numpy as np
import pytest

from lamaml._records import to_json
from lamaml.errors import DataCorrupt, DataUnavailable, LamamlError
from lamaml.evaluation import metrics
from lamaml.experiments.reporting.tables import describe
from lamaml.experiments.running.run import run
from lamaml.experiments.storing.environment import Environment
from lamaml.experiments.storing.records import METRICS
from lamaml.experiments.storing.results import Run, find_runs, read_run

SEED_FILES = {
    "confusion.json",
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
    settings, environment = small_run.settings, small_run.environment
    assert settings.recipe.settings["hyper_rate"] == 0.3
    assert settings.seeds == [0, 1]
    assert (settings.num_tasks, settings.num_samples) == (2, 30)
    assert set(environment.versions) == {"lamaml", "jax", "jaxlib", "numpy", "python"}
    assert environment.platform
    assert environment == Environment.here()


def test_matrix_gives_the_metrics(small_run: Run) -> None:
    for seed in small_run.seeds:
        baseline = np.array(json.loads((seed.folder / "accuracy.json").read_text())["baseline"])
        assert metrics(seed.matrix, baseline)._asdict() == pytest.approx(seed.metrics._asdict())


def test_answers_and_memory_of_a_seed(small_run: Run) -> None:
    for seed in small_run.seeds:
        assert seed.confusion.shape == (10, 10)
        assert seed.confusion.sum() == 2 * 400  # two tasks with the same test images
        assert seed.confusion.trace() / 800 == pytest.approx(seed.metrics.ra)
        assert 2**20 < seed.status.peak_memory < 2**40
    assert len(small_run.summary.class_accuracy) == 10
    assert small_run.confusion.sum() == 1600


def test_a_run_from_before_these_metrics(small_run: Run, copy: Path) -> None:
    """They follow from the matrix; answers and memory are unknown."""
    for seed in ("seed-0", "seed-1"):
        for name, later in (("accuracy", ("fm", "mf", "aaa")), ("status", ("peak_memory",))):
            path = copy / seed / f"{name}.json"
            known = json.loads(path.read_text())
            path.write_text(json.dumps({k: v for k, v in known.items() if k not in later}))
        (copy / seed / "confusion.json").unlink()
    old = read_run(copy)
    assert [seed.metrics for seed in old.seeds] == [seed.metrics for seed in small_run.seeds]
    assert old.confusion is None
    assert old.summary.class_accuracy == []
    assert old.summary.peak_memory == [None, None]


def test_every_update_has_its_diagnostics(small_run: Run) -> None:
    found = small_run.seeds[0].diagnostics()
    assert {"loss", "rate_mean", "rates_at_zero"} <= set(found)
    assert all(values.shape == (30,) and np.isfinite(values).all() for values in found.values())


def test_summary_is_over_seeds_in_percent(small_run: Run) -> None:
    found = small_run.summary
    values = [100 * seed.metrics.ra for seed in small_run.seeds]
    assert found.ra.values == values
    assert found.ra.mean == pytest.approx(sum(values) / 2)
    assert found.ra.sd == pytest.approx(statistics.stdev(values))
    assert found.ms_per_update == pytest.approx(1000 * found.seconds.train / 30)
    assert json.loads((small_run.folder / "summary.json").read_text()) == to_json(found)


def test_the_matrix_is_the_mean_over_finished_seeds(small_run: Run, copy: Path) -> None:
    both = [seed.matrix for seed in small_run.seeds]
    np.testing.assert_array_equal(small_run.matrix, np.mean(both, axis=0))
    (copy / "seed-1/status.json").write_text('{"status": "diverged", "message": ""}')
    np.testing.assert_array_equal(read_run(copy).matrix, both[0])
    (copy / "seed-0/status.json").write_text('{"status": "diverged", "message": ""}')
    assert read_run(copy).matrix.shape == (0, 0)


def test_a_frame_has_a_row_per_seed(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    (copy / "seed-1/status.json").write_text('{"status": "diverged", "message": ""}')
    run = read_run(copy)
    frame = run.to_frame()
    assert list(frame) == ["seed", "status", *METRICS, "seconds", "peak_memory"]
    assert list(frame["status"]) == ["finished", "diverged"]
    assert frame["ra"][0] == run.summary.ra.values[0]
    assert np.isnan(frame["ra"][1])
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(LamamlError, match="pip install pandas"):
        run.to_frame()


def test_a_seed_that_diverged_has_no_value(copy: Path) -> None:
    message = "the loss is nan at task 1, update 3"
    ending = {"status": "diverged", "message": message, "task": 1, "update": 3}
    (copy / "seed-1/status.json").write_text(json.dumps(ending))
    found = read_run(copy).summary
    assert found.statuses == ["finished", "diverged"]
    assert to_json(found)["diverged_at"] == [None, {"task": 1, "update": 3}]
    assert found.ra.values[1] is None
    assert found.ra.sd is None
    assert found.ra.mean == found.ra.values[0]


def test_a_seed_that_never_began(copy: Path) -> None:
    shutil.rmtree(copy / "seed-0")
    shutil.rmtree(copy / "seed-1")
    found = to_json(read_run(copy).summary)
    assert found["ra"] == {"mean": None, "sd": None, "values": [None, None]}
    assert found["ms_per_update"] is None
    assert found["seconds"] == {"compile": None, "train": None, "evaluate": None}


def test_a_half_written_line_is_left_out(copy: Path) -> None:
    path = copy / "seed-0/diagnostics.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - 20])
    assert read_run(copy).seeds[0].diagnostics()["loss"].shape == (29,)
    path.write_bytes(whole[:20])
    assert read_run(copy).seeds[0].diagnostics() == {}


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


def test_accuracy_on_validation_rows_is_another_and_says_so(tmp_path):
    def found(split):
        return run(
            "digits_rotations", "online", num_tasks=2, num_samples=30,
            out=tmp_path / split, progress=False, split=split,
        )  # fmt: skip

    test, validation = found("test"), found("validation")
    assert read_run(tmp_path / "validation").settings.split == "validation"
    assert (test.matrix != validation.matrix).any()
    assert "on validation rows" in describe(validation.summary)
    assert "rows" not in describe(test.summary)
