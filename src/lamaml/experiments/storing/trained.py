"""The model of a finished or interrupted run: it predicts, keeps learning and saves its weights."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from safetensors.numpy import save

from lamaml._io import atomic_write, writing
from lamaml._trees import pad_rows
from lamaml.errors import DataUnavailable, Diverged, InvalidArgument, require
from lamaml.evaluation.accuracy import SLICE, row_tasks
from lamaml.experiments.recipes.load import Experiment
from lamaml.experiments.storing.checkpoints import newest_good
from lamaml.experiments.storing.origin import origin_of
from lamaml.experiments.storing.records import RunSettings
from lamaml.models import head_mask, task_heads
from lamaml.training import Checkpoint
from lamaml.training.keys import RunKeys, keys_from_seed
from lamaml.training.loop import initial_state
from lamaml.types import Batch, Params

Tasks = int | np.ndarray
"""A task for all rows, or one per row; counted from 0."""


def trained_model(settings: RunSettings, seed: int, folder: Path) -> "TrainedModel":
    """The model in the newest good checkpoint of a seed.

    Args:
      settings: of the run.
      seed: one of the run's.
      folder: of the seed. It is only read.

    Raises:
      DataUnavailable: there is no checkpoint yet.
      Mismatch: the stream's rows have changed since.
    """
    experiment = settings.experiment(seed)
    stream = experiment.stream
    found = newest_good(
        folder,
        lambda: initial_state(stream, experiment.model, experiment.learner, seed),
        len(stream.tasks),
        origin_of(settings, seed, stream),
        resuming=False,
    )
    if found.checkpoint is None:
        reasons = "".join(f"; {note}" for note in found.notes)
        raise DataUnavailable(f"{folder} has no checkpoint to read a model from{reasons}")
    return TrainedModel(experiment, seed, found.checkpoint)


class TrainedModel:
    """A network with the learner that trained it.

    Rows are given as the stream stores them; its preprocessing is applied.

    Attributes:
      checkpoint: where the model was read from, with its accuracy matrix.
      state: of the learner.
    """

    def __init__(self, experiment: Experiment, seed: int, checkpoint: Checkpoint) -> None:
        self.checkpoint, self.state = checkpoint, checkpoint.state
        self._stream = experiment.stream
        self._schedule, self._key = experiment.schedule, keys_from_seed(RunKeys, seed).update
        self._num_fitted = 0  # updates made by partial_fit
        self._row_shape = self._stream.tasks[0].train.x.shape[1:]
        model, stream, learner = experiment.model, experiment.stream, experiment.learner
        heads = task_heads(stream.num_classes, stream.classes_per_task)

        def logits(params: Params, x: jax.Array) -> jax.Array:
            return model.apply(params, stream.preprocess(x))[:, : stream.num_classes]

        def masked(params: Params, x: jax.Array, task: jax.Array) -> jax.Array:
            return head_mask(logits(params, x), task, heads)

        def update(state: Any, x: jax.Array, batch: Batch, key: jax.Array) -> Any:
            augmenting, updating = jax.random.split(key)
            rows = stream.augment(x, augmenting) if stream.augment else stream.preprocess(x)
            return learner.update(state, batch._replace(x=rows), updating)

        self._logits, self._masked = jax.jit(logits), jax.jit(masked)
        self._update = jax.jit(update)
        own = learner.predict
        self._own_predict: Callable[..., jax.Array] | None = own and jax.jit(
            lambda state, x, task: own(state, stream.preprocess(x), task)
        )

    def predict(self, x: Any, task: Tasks | None = None) -> np.ndarray:
        """The class of each row.

        Args:
          x: rows as the stream stores them.
          task: of the rows. With it, only the classes of the task are considered, where tasks own
            their classes. Learners with a prediction rule of their own need it.

        Raises:
          InvalidArgument: rows or tasks do not fit the stream.
        """
        if self._own_predict is None:
            return np.argmax(self.predict_logits(x, task), axis=1)
        if task is None and self._stream.scenario == "class":
            task = 0  # no learner of such a stream is told more
        if task is None:
            raise InvalidArgument("task = None: this learner predicts by task; say which")
        own, state = self._own_predict, self.state
        return self._sliced(lambda *rows: own(state, *rows), self._rows(x), self._tasks(task, x))

    def predict_logits(self, x: Any, task: Tasks | None = None) -> np.ndarray:
        """The network's output for each row and class; classes outside the task's are at −1e30.

        Args:
          x: rows as the stream stores them.
          task: of the rows; None to consider every class.

        Raises:
          InvalidArgument: rows or tasks do not fit the stream.
        """
        params, rows = self.state.params, self._rows(x)
        if task is None:
            return self._sliced(lambda part: self._logits(params, part), rows)
        tasks = self._tasks(task, x)
        return self._sliced(lambda part, t: self._masked(params, part, t), rows, tasks)

    def partial_fit(self, x: Any, y: Any, task: int | None = None) -> "TrainedModel":
        """Continue training on labelled rows, in batches and glances as the run did.

        Args:
          x: rows as the stream stores them.
          y: the class of each row.
          task: of the rows; None for the stream's last. Where tasks own their classes, the class of
            a row decides.

        Raises:
          InvalidArgument: rows, classes or the task do not fit the stream.
          Diverged: training left the finite numbers; the state is unchanged.
        """
        rows, labels, last = self._rows(x), np.asarray(y), len(self._stream.tasks) - 1
        require(labels.shape == (len(rows),), "y", labels.shape, f"of shape ({len(rows)},)")
        classes = f"from 0 to {self._stream.num_classes - 1}"
        fits = bool(((labels >= 0) & (labels < self._stream.num_classes)).all())
        require(fits, "y", labels, f"classes {classes}")
        number = last if task is None else task
        require(0 <= number <= last, "task", number, f"from 0 to {last}")
        number = 0 if self._stream.is_task_free else number
        tasks = row_tasks(labels, number, self._stream.classes_per_task)
        state, count, size = self.state, self._num_fitted, self._schedule.batch_size
        for start in range(0, len(rows), size):
            part = slice(start, start + size)
            padded, given = pad_rows(rows[part], size), len(labels[part])
            batch = Batch(
                jnp.zeros(0),
                jnp.asarray(pad_rows(labels[part].astype(np.int32), size)),
                jnp.asarray(pad_rows(tasks[part], size)),
                jnp.asarray(np.arange(size) < given, jnp.float32),
            )
            for glance in range(self._schedule.glances):
                # The number of tasks is no task: no key of the run is used again.
                key = jax.random.fold_in(jax.random.fold_in(self._key, last + 1), count)
                first, final = glance == 0, glance == self._schedule.glances - 1
                batch = batch._replace(first=jnp.array(first), last=jnp.array(final))
                state, info = self._update(state, padded, batch, key)
                count += 1
                if not np.isfinite(info["loss"]):
                    raise Diverged(f"the loss is {info['loss']}; the state is unchanged")
        if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(state) if _inexact(leaf)):
            raise Diverged("the state is not finite; the previous one is kept")
        self.state, self._num_fitted = state, count
        return self

    def save_weights(self, path: str | Path) -> Path:
        """Write the network's weights, named by their path ("layer.w"), and return the file's path.

        Args:
          path: ends in `.safetensors` or `.npz`.

        Raises:
          InvalidArgument: the path has another ending.
          Unwritable: the disk is full or the folder read-only.
        """
        path = Path(path)
        allowed = "a file that ends in .safetensors or .npz"
        require(path.suffix in (".safetensors", ".npz"), "path", str(path), allowed)
        leaves, _ = jax.tree_util.tree_flatten_with_path(self.state.params)
        name = jax.tree_util.keystr
        weights = {name(way, simple=True, separator="."): np.asarray(leaf) for way, leaf in leaves}
        with writing(path), atomic_write(path) as file:
            if path.suffix == ".npz":
                np.savez(file, **weights)  # type: ignore[arg-type]
            else:
                file.write(save(weights))
        return path

    def _rows(self, x: Any) -> np.ndarray:
        rows = np.asarray(x)
        allowed = f"rows of shape {self._row_shape}"
        require(rows.shape[1:] == self._row_shape and rows.ndim > 0, "x", rows.shape, allowed)
        return rows

    def _tasks(self, task: Tasks, x: Any) -> np.ndarray:
        tasks = np.broadcast_to(np.asarray(task, np.int32), len(x))
        last = len(self._stream.tasks) - 1
        fits = bool(((tasks >= 0) & (tasks <= last)).all())
        require(fits, "task", task, f"from 0 to {last}")
        return tasks

    @staticmethod
    def _sliced(function: Callable[..., jax.Array], *arrays: np.ndarray) -> np.ndarray:
        """Apply a function to slices of rows, padded so that few sizes are compiled."""
        num_rows, found = len(arrays[0]), []
        for start in range(0, max(num_rows, 1), SLICE):
            parts = [array[start : start + SLICE] for array in arrays]
            size = min(SLICE, 1 << max(len(parts[0]) - 1, 0).bit_length())
            padded = [pad_rows(part, size) for part in parts]
            found.append(np.asarray(function(*padded))[: len(parts[0])])
        return np.concatenate(found)


def _inexact(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jnp.inexact)
