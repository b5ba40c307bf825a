"""A run gives its model back: it predicts as it was evaluated, learns on, and saves its weights."""

import shutil
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
import pytest
from safetensors.numpy import load_file

from lamaml.errors import DataUnavailable, Diverged, InvalidArgument
from lamaml.experiments.recipes.load import realize
from lamaml.experiments.running.plan import Plan
from lamaml.experiments.storing.results import Run, read_run
from lamaml.experiments.storing.trained import TrainedModel
from lamaml.types import Stream
from plans import execute


def stream_of(run: Run, seed: int = 0) -> Stream:
    settings = run.settings
    sizes = {"num_tasks": settings.num_tasks, "num_samples": settings.num_samples}
    return realize(settings.recipe, seed, **sizes).stream


@pytest.fixture
def model(small_run: Run) -> TrainedModel:
    return small_run.model()


def weights(model: TrainedModel) -> list[bytes]:
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(model.state.params)]


@pytest.mark.parametrize("seed", [0, 1])
def test_predictions_give_the_last_row_of_the_matrix(small_run: Run, seed: int) -> None:
    model, stream = small_run.model(seed), stream_of(small_run, seed)
    for number, task in enumerate(stream.tasks):
        right = np.mean(model.predict(task.test.x) == task.test.y)
        assert right == small_run.seeds[seed].matrix[-1, number]
        np.testing.assert_array_equal(
            model.predict(task.test.x), model.predict(task.test.x, task=number)
        )


@pytest.mark.parametrize("learner", ["icarl", "independent"])
def test_a_rule_of_the_learners_own_needs_the_task(
    learner: str, small_plan: Callable[..., Plan], compiled: Path, tmp_path: Path
) -> None:
    (run,) = execute([small_plan(tmp_path / "run", learner, seeds=[0])])
    model, stream = run.model(0), stream_of(run)
    for number, task in enumerate(stream.tasks):
        right = np.mean(model.predict(task.test.x, task=number) == task.test.y)
        assert right == run.seeds[0].matrix[-1, number]
    with pytest.raises(InvalidArgument, match="task = None"):
        model.predict(stream.tasks[0].test.x)


def test_any_number_of_rows_is_answered(model: TrainedModel, small_run: Run) -> None:
    x = stream_of(small_run).tasks[0].test.x
    many = np.concatenate([x] * (1200 // len(x) + 1))[:1200]
    answers = model.predict(many)
    assert answers.shape == (1200,)
    for count in (0, 1, 3, 501):
        np.testing.assert_array_equal(model.predict(many[:count]), answers[:count])
    assert model.predict_logits(many[:7]).shape == (7, 10)


def test_it_goes_on_learning(model: TrainedModel, small_run: Run) -> None:
    task, before = stream_of(small_run).tasks[0], weights(model)
    first = np.mean(model.predict(task.train.x) == task.train.y)
    for _ in range(5):
        assert model.partial_fit(task.train.x, task.train.y, task=0) is model
    assert weights(model) != before
    assert np.mean(model.predict(task.train.x) == task.train.y) > first
    again = small_run.model()
    assert weights(again) == before
    for _ in range(5):
        again.partial_fit(task.train.x, task.train.y, task=0)
    assert weights(again) == weights(model)


def test_an_update_happens_whole_or_not_at_all(model: TrainedModel, small_run: Run) -> None:
    task, before = stream_of(small_run).tasks[0], weights(model)
    x, y = task.train.x[:30].astype(float), task.train.y[:30]
    x[25] = np.nan
    with pytest.raises(Diverged):
        model.partial_fit(x, y)
    assert weights(model) == before


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda x, y: (x[:, :5], y, 0), "x = "),
        (lambda x, y: (x, y[:-1], 0), "y = "),
        (lambda x, y: (x, y + 10, 0), "classes from 0 to 9"),
        (lambda x, y: (x, y, 2), "task = 2"),
    ],
)
def test_rows_that_do_not_fit_are_refused(
    model: TrainedModel, small_run: Run, change: Callable, words: str
) -> None:
    task = stream_of(small_run).tasks[0]
    x, y, number = change(task.train.x, task.train.y)
    with pytest.raises(InvalidArgument, match=words):
        model.partial_fit(x, y, task=number)


@pytest.mark.parametrize("suffix", ["safetensors", "npz"])
def test_weights_are_saved_by_name(model: TrainedModel, tmp_path: Path, suffix: str) -> None:
    path = model.save_weights(tmp_path / f"weights.{suffix}")
    found = load_file(path) if suffix == "safetensors" else dict(np.load(path))
    leaves = jax.tree.leaves(model.state.params)
    assert len(found) == len(leaves)
    assert all("[" not in name for name in found)
    assert sorted(array.tobytes() for array in found.values()) == sorted(weights(model))


def test_weights_have_two_formats(model: TrainedModel, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"\.safetensors or \.npz"):
        model.save_weights(tmp_path / "weights.pickle")


def test_a_damaged_checkpoint_is_passed_over_and_left_alone(small_run: Run, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(small_run.folder, tmp_path / "run"))
    newest = max((folder / "seed-0").glob("checkpoint-*"))
    newest.write_bytes(newest.read_bytes()[:-1])
    before = sorted(folder.rglob("*"))
    run = read_run(folder)
    assert run.model(0).checkpoint.task == 1
    assert sorted(folder.rglob("*")) == before
    for checkpoint in (folder / "seed-0").glob("checkpoint-*"):
        checkpoint.unlink()
    with pytest.raises(DataUnavailable, match="no checkpoint"):
        run.model(0)
    with pytest.raises(InvalidArgument, match="seed = 7"):
        run.model(7)
