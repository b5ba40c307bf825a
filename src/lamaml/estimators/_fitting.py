"""Learning from the checked rows of a call: the core of `fit` and `partial_fit`."""

import math
from dataclasses import replace

import jax
import numpy as np

from lamaml._trees import pad_rows
from lamaml.errors import Diverged, require
from lamaml.estimators import _compiled, _holdout
from lamaml.estimators._budget import (
    convert_state,
    holdout_size,
    largest_memory_size,
    set_memory_size,
)
from lamaml.estimators._config import Config, choose_batch_size, choose_num_outputs, smallest_batch
from lamaml.estimators._labels import Labels, TaskId
from lamaml.estimators._prediction import score_rows
from lamaml.estimators._rows import Rows, holds_exactly
from lamaml.estimators._scaling import add_to_moments
from lamaml.estimators._state import FittedState, LastBatch, make_loss_inputs
from lamaml.types import Batch


def fit_rows(
    fitted: FittedState, rows: Rows, labels: Labels, task: TaskId, held_out: float
) -> FittedState:
    """Return the state after one pass over the rows of a call, a fraction of them held out.

    Args:
      fitted: the state before the call.
      rows: in the order of the stream.
      labels: with the classes and the task of these rows.
      task: of all rows.
      held_out: fraction of the stream to hold out.
    """
    fraction = held_out if len(fitted.holdout.y) else 0.0
    is_held_out = _holdout.choose_held_out(rows.size, fitted.num_rows, fraction)
    if is_held_out.any():
        is_held_out &= _is_known(fitted.labels, task, rows, fitted.config.is_regression)
    positions = fitted.num_rows + np.arange(rows.size)
    fitted = grow_if_needed(fitted, rows, labels, task)
    if not is_held_out.any():
        fitted = run_updates(update_statistics(fitted, rows), rows, positions)
    else:
        new = rows.take(~is_held_out)
        fitted = run_updates(update_statistics(fitted, new), new, positions[~is_held_out])
        fitted = _hold_out(fitted, rows.take(is_held_out), positions[is_held_out])
    return replace(fitted, num_rows=fitted.num_rows + rows.size)


def _is_known(labels: Labels, task: TaskId, rows: Rows, is_regression: bool) -> np.ndarray:
    """Return which rows are of a class that their task has learned from before this call."""
    if task not in labels.tasks:
        return np.zeros(rows.size, bool)
    if is_regression:
        return np.ones(rows.size, bool)
    seen = labels.heads[labels.tasks.index(task)]
    return (rows.y < len(seen)) & seen[np.minimum(rows.y, len(seen) - 1)]


def grow_if_needed(fitted: FittedState, rows: Rows, labels: Labels, task: TaskId) -> FittedState:
    """Return the state with an output per class, a dtype that holds the rows, and the new task."""
    before, seed = fitted.config, fitted.seed
    index = labels.tasks.index(task)
    num_tasks = dict(before.settings).get("num_tasks")
    if num_tasks is not None:
        allowed = f"at least {index + 1}, for task {task!r}"
        require(index < num_tasks, "learner_options['num_tasks']", num_tasks, allowed)
    config = _config_for(fitted, rows, labels)
    state, holdout = fitted.learner_state, fitted.holdout
    if index != fitted.task and _compiled.has_end_task(before):
        key = _compiled.key_data(seed, _compiled.Purpose.END_TASK, fitted.task)
        state = _compiled.end_task(before, state, fitted.loss_inputs, key)
    if config != before:
        state = convert_state(state, config, seed)
        size, budget = len(holdout.y), fitted.memory_budget
        if size and budget is not None:
            size = min(size, holdout_size(largest_memory_size(config, budget, True)))
        holdout = _holdout.resize_holdout(holdout, size, np.dtype(config.dtype), fitted.seed)
    return replace(
        fitted, config=config, learner_state=state, holdout=holdout, labels=labels, task=index
    )


def _config_for(fitted: FittedState, rows: Rows, labels: Labels) -> Config:
    config, budget = fitted.config, fitted.memory_budget
    dtype = config.dtype if holds_exactly(config.dtype, rows.x) else "float32"
    outputs, needed = config.num_outputs, len(labels.classes)
    if needed > outputs:
        outputs = choose_num_outputs(config.network, config.input_shape, needed)
    if dtype == config.dtype and outputs == config.num_outputs:
        return config
    config = replace(config, dtype=dtype, num_outputs=outputs)
    if budget is None:
        return config
    return set_memory_size(config, largest_memory_size(config, budget, len(fitted.holdout.y) > 0))


def update_statistics(fitted: FittedState, rows: Rows) -> FittedState:
    """Return the state with these rows in the running statistics, and new inputs of the loss."""
    inputs, targets = fitted.input_moments, fitted.target_moments
    if fitted.is_scaled and rows.size:
        inputs = add_to_moments(inputs, rows.x)
    if fitted.config.is_regression and rows.size:
        targets = add_to_moments(targets, rows.y.reshape(rows.size, -1))
    loss_inputs = make_loss_inputs(fitted.config, fitted.labels, inputs, targets)
    return replace(fitted, input_moments=inputs, target_moments=targets, loss_inputs=loss_inputs)


def run_updates(
    fitted: FittedState, rows: Rows, positions: np.ndarray | None = None
) -> FittedState:
    """Return the state after all glances at all rows.

    Args:
      fitted: the state before.
      rows: in the order in which they are learned from.
      positions: of the rows in the stream; None in a later pass, in which no row is stored.

    Raises:
      Diverged: a loss, weight or learning rate is not finite.
    """
    if not rows.size:
        return fitted
    config, num_updates, glances = fitted.config, fitted.num_updates, fitted.config.glances
    is_first = positions is not None
    size = choose_batch_size(config, rows.size)
    inputs = fitted.loss_inputs if rows.size <= size else jax.device_put(fitted.loss_inputs)
    state, memories = _compiled.split_memories(fitted.learner_state)
    memories = jax.tree.map(np.array, memories)  # a copy: updates overwrite them
    is_finite: bool | jax.Array = True
    numbers = np.zeros(rows.size, np.int64) if positions is None else positions
    for start in range(0, rows.size, size):
        part = slice(start, start + size)
        new = rows if rows.size <= size else _reweighted(rows.take(part))
        batch = _pad_batch(config, new, fitted.task, numbers[part], size)
        for glance in range(glances):
            key = _compiled.key_data(fitted.seed, _compiled.Purpose.UPDATE, num_updates)
            batch = batch.at_glance(glance, glances, is_first_pass=is_first)
            state, memories, is_finite = _compiled.update(
                config, state, memories, inputs, batch, is_finite, key
            )
            num_updates += 1
    numbers_learned = jax.tree.leaves(_compiled.network_shaped(state))
    # A sum is finite only if its numbers are. `np.sum` itself would take twice as long.
    sums = (np.add.reduce(np.asarray(numbers), axis=None) for numbers in numbers_learned)
    if not is_finite or not all(map(math.isfinite, sums)):
        advice = "lower the learning rates in learner_options"
        raise Diverged(
            f"{config.learner_name} diverged; the previous state was restored: {advice}"
            f"{'' if fitted.is_scaled else ', or set scale=True'}"
        )
    last = rows.take(slice(-smallest_batch(config), None))
    return replace(
        fitted,
        learner_state=state._replace(**memories),
        num_updates=num_updates,
        last_batch=LastBatch(last.x.copy(), last.y.copy(), last.weight.copy(), fitted.task),
    )


def _pad_batch(config: Config, rows: Rows, task: int, positions: np.ndarray, size: int) -> Batch:
    """Return the rows padded to the size of a batch, in the dtype they are stored in."""
    return Batch(
        x=pad_rows(rows.x.astype(config.dtype, copy=False), size),  # type: ignore[arg-type]
        y=pad_rows(rows.y, size),  # type: ignore[arg-type]
        task=np.full(size, task, np.int32),  # type: ignore[arg-type]
        weight=pad_rows(rows.weight, size),  # type: ignore[arg-type]
        position=pad_rows((positions % 2**31).astype(np.int32), size),  # type: ignore[arg-type]
        scale=np.full(size, rows.mean_weight, np.float32),  # type: ignore[arg-type]
    )


def _reweighted(rows: Rows) -> Rows:
    """Return some rows of a call with their weights relative to the mean of these rows."""
    mean = float(rows.weight.mean())
    if mean in (0.0, 1.0):
        return rows
    return rows._replace(weight=rows.weight / np.float32(mean), mean_weight=rows.mean_weight * mean)


def _hold_out(fitted: FittedState, rows: Rows, positions: np.ndarray) -> FittedState:
    task = fitted.labels.tasks[fitted.task]

    def score(new: Rows) -> np.ndarray:
        return score_rows(fitted, new.x, new.y, task)

    holdout = _holdout.add_rows(fitted.holdout, rows, positions, fitted.task, score, fitted.seed)
    return replace(fitted, holdout=holdout)
