"""Numbers where people look: written by the real libraries, and read back."""

import csv
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lamaml import run
from lamaml.cli import main
from lamaml.errors import InvalidArgument
from lamaml.experiments.running.loggers import logged
from lamaml.experiments.storing.results import Run

pytestmark = [pytest.mark.usefixtures("compiled"), pytest.mark.filterwarnings("ignore")]


def replay(run: Run, events: list, *names: str) -> None:
    """Sends the events of the small run to loggers."""
    with logged(names, lambda job, event: None) as on_event:
        for job, event in events:
            on_event(job, event)


@pytest.fixture
def clean(small_run: Run) -> Iterator[None]:
    """Without what another test has logged, before and after."""
    (small_run.folder / "log.csv").unlink(missing_ok=True)
    yield
    (small_run.folder / "log.csv").unlink(missing_ok=True)


def test_csv_has_a_line_per_number(small_run: Run, events: list, clean: None) -> None:
    replay(small_run, events, "csv")
    with (small_run.folder / "log.csv").open() as file:
        rows = list(csv.DictReader(file))
    for seed in small_run.seeds:
        mine = [row for row in rows if row["seed"] == str(seed.seed)]
        final = {row["name"]: float(row["value"]) for row in mine if row["name"][:5] == "final"}
        assert final["final/ra"] == 100 * seed.metrics.ra
        losses = [row for row in mine if row["name"] == "loss"]
        assert losses
        # The means of the pieces, weighted by their lengths, are the mean of all updates; the
        # files were complete when the first event was replayed, so there is one piece.
        assert float(losses[0]["value"]) == pytest.approx(seed.diagnostics()["loss"].mean())
        last = [row for row in mine if row["name"] == "accuracy/task_1"][-1]
        assert float(last["value"]) == 100 * seed.matrix[1, 0]
        assert int(last["update"]) == 30


def test_tensorboard_reads_it_back(small_run: Run, events: list) -> None:
    pytest.importorskip("tensorboardX", reason="needs tensorboardX")
    pytest.importorskip("tensorboard", reason="needs tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    replay(small_run, events, "tensorboard")
    found = EventAccumulator(str(small_run.folder / "tensorboard/seed-1")).Reload()
    assert {"loss", "final/ra", "retained_accuracy", "accuracy/task_1"} <= set(
        found.Tags()["scalars"]
    )
    (final,) = found.Scalars("final/ra")
    assert (final.step, final.value) == (30, pytest.approx(100 * small_run.seeds[1].metrics.ra))
    steps = [point.step for point in found.Scalars("retained_accuracy")]
    assert steps == [15, 30]


def test_mlflow_reads_it_back(
    small_run: Run, events: list, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = pytest.importorskip("mlflow", reason="needs MLflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
    replay(small_run, events, "mlflow")
    client = mlflow.MlflowClient()
    experiment = client.get_experiment_by_name("digits_rotations")
    found = client.search_runs([experiment.experiment_id])
    assert sorted(each.data.params["seed"] for each in found) == ["0", "1"]
    for each in found:
        seed = small_run.seeds[int(each.data.params["seed"])]
        assert each.info.status == "FINISHED"
        assert each.data.params["hyper_rate"] == "0.3"
        assert each.data.metrics["final/ra"] == pytest.approx(100 * seed.metrics.ra)
        history = client.get_metric_history(each.info.run_id, "retained_accuracy")
        assert [point.step for point in history] == [15, 30]


def test_wandb_writes_offline(
    small_run: Run, events: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wandb", reason="needs wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    replay(small_run, events, "wandb")
    assert len(list(small_run.folder.glob("wandb/offline-run-*/*.wandb"))) == 2


def test_from_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["run", "digits_rotations", "online", "--tasks", "1", "--samples", "20", "--log", "csv"]
    with pytest.raises(SystemExit) as ending:
        main([*words, "--out", "run", "--json"])
    assert ending.value.code == 0
    assert "final/ra" in Path("run/log.csv").read_text()


@pytest.mark.parametrize(
    ("name", "words"), [("tensorbord", "did you mean 'tensorboard'"), ("mlflow", "pip install")]
)
def test_a_logger_that_cannot_be_leaves_no_folder(
    name: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    options: dict[str, Callable | object] = {"out": tmp_path / "run", "loggers": [name]}
    with pytest.raises(InvalidArgument, match=words):
        run("digits_rotations", "online", progress=False, **options)
    assert list(tmp_path.iterdir()) == []
