"""Predictions of a fitted state, computed in blocks of rows."""

from collections.abc import Callable

import jax
import numpy as np

from lamaml._trees import pad_rows
from lamaml.errors import InvalidArgument, unknown_name
from lamaml.estimators import _compiled
from lamaml.estimators._labels import TaskId
from lamaml.estimators._state import FittedState


def network_outputs(fitted: FittedState, x: np.ndarray) -> np.ndarray:
    """Return the outputs for float32 rows: of the network, or of a learner that has its own."""
    config, params, inputs = fitted.config, fitted.learner_state.params, fitted.loss_inputs
    if _compiled.has_outputs(config):
        state = fitted.learner_state
        open_to_all = inputs._replace(
            heads=np.broadcast_to(inputs.heads.any(0), inputs.heads.shape)
        )
        return _in_blocks(
            x, lambda rows: _compiled.learner_outputs(config, state, open_to_all, rows)
        )
    return _in_blocks(x, lambda rows: _compiled.network_outputs(config, params, inputs, rows))


def allowed_outputs(fitted: FittedState, task: TaskId) -> np.ndarray:
    """Return which outputs may be predicted: those of a task's classes, or of all classes seen."""
    heads = fitted.loss_inputs.heads
    if task is None:
        return np.asarray(heads.any(axis=0))
    known = fitted.labels.tasks
    if task not in known:
        texts = [name for name in known if isinstance(name, str)]
        if isinstance(task, str) and texts:
            raise unknown_name("task", task, texts)
        names = ", ".join(repr(name) for name in known if name is not None)
        raise InvalidArgument(f"unknown task {task!r}: {names or 'no task was named yet'}")
    return heads[known.index(task)]


def predict_outputs(fitted: FittedState, x: np.ndarray, task: TaskId = None) -> np.ndarray:
    """Return the output of the predicted class of each row."""
    allowed = allowed_outputs(fitted, task)
    config, inputs, state = fitted.config, fitted.loss_inputs, fitted.learner_state
    if not _compiled.has_predict(config):
        return np.where(allowed, network_outputs(fitted, x), -np.inf).argmax(axis=1)
    if _compiled.has_end_task(config):  # such learners predict from what the end of a task stores
        key = _compiled.key_data(fitted.seed, _compiled.Purpose.END_TASK, fitted.task)
        state = _compiled.end_task(config, state, inputs, key)
    index = np.int32(fitted.task if task is None else fitted.labels.tasks.index(task))
    if task is None:
        inputs = inputs._replace(heads=np.tile(allowed, (len(inputs.heads), 1)))
    return _in_blocks(
        x, lambda rows: _compiled.learner_predictions(config, state, inputs, rows, index)
    )


def predict_targets(fitted: FittedState, x: np.ndarray) -> np.ndarray:
    """Return the predicted targets of a regression, in their unit, less the offset."""
    inputs = fitted.loss_inputs
    deviation = inputs.target_deviation.astype(np.float64)
    num_targets = fitted.config.num_targets
    outputs = network_outputs(fitted, x)[:, :num_targets]
    targets = inputs.target_centre + deviation * outputs
    return targets if num_targets > 1 else targets[:, 0]


def score_rows(fitted: FittedState, x: np.ndarray, y: np.ndarray, task: TaskId) -> np.ndarray:
    """Return the score of each row as float32: 1 or 0 for a class, the absolute error else."""
    if fitted.config.is_regression:
        errors = np.abs(predict_targets(fitted, x) - y).reshape(len(x), -1)
        return errors.mean(axis=1).astype(np.float32)
    return (predict_outputs(fitted, x, task) == y).astype(np.float32)


def _in_blocks(x: np.ndarray, compute: Callable[[np.ndarray], jax.Array]) -> np.ndarray:
    """Return the results of all rows: whole chunks first, then blocks, the last one padded.

    No rows are one block of padding: the results have their shape.
    """
    in_chunks = len(x) - len(x) % _compiled.CHUNK
    results = [
        compute(x[start : start + _compiled.CHUNK])
        for start in range(0, in_chunks, _compiled.CHUNK)
    ]
    results += [
        compute(pad_rows(x[start : start + _compiled.BLOCK], _compiled.BLOCK))
        for start in range(in_chunks, max(len(x), 1), _compiled.BLOCK)
    ]
    return np.concatenate([np.asarray(result) for result in results])[: len(x)]
