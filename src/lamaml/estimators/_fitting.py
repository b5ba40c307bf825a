"""Learning from the rows of a call: what `fit` and `partial_fit` do once these are checked."""

import dataclasses

import numpy as np

from lamaml.errors import Diverged, require
from lamaml.estimators import _compiled, _holdout
from lamaml.estimators._budget import held_out_size, largest_memory, reshaped, with_memory
from lamaml.estimators._config import Design, num_outputs_of
from lamaml.estimators._labels import Labels, TaskId
from lamaml.estimators._prediction import scores_of
from lamaml.estimators._rows import Rows, narrowest, numbered, padded, smallest
from lamaml.estimators._scaling import merged
from lamaml.estimators._state import Learned, view_of
from lamaml.types import Batch


def study(learned: Learned, rows: Rows, labels: Labels, task: TaskId, share: float) -> Learned:
    """Learn from the rows of one call in their order, but for a share that is held out."""
    room = len(learned.held_out.y)
    aside = _holdout.set_aside(rows.size, learned.num_rows, share if room else 0.0)
    if aside.any():
        aside &= _familiar(learned.labels, task, rows, learned.design.is_regression)
    places = learned.num_rows + np.arange(rows.size)
    learned = adapted(learned, rows, labels, task)
    if not aside.any():
        learned = gone_through(with_statistics(learned, rows), rows, places)
    else:
        new = rows.part(~aside)
        learned = gone_through(with_statistics(learned, new), new, places[~aside])
        learned = _with_held_out(learned, rows.part(aside), places[aside])
    return learned._replace(num_rows=learned.num_rows + rows.size)


def _familiar(labels: Labels, task: TaskId, rows: Rows, is_regression: bool) -> np.ndarray:
    """Which rows are of a class their task has learned from: the first ones are not held out."""
    if task not in labels.tasks:
        return np.zeros(rows.size, bool)
    if is_regression:
        return np.ones(rows.size, bool)
    seen = labels.heads[labels.tasks.index(task)]
    return (rows.y < len(seen)) & seen[np.minimum(rows.y, len(seen) - 1)]


def adapted(learned: Learned, rows: Rows, labels: Labels, task: TaskId) -> Learned:
    """Ready for these rows: the head as wide as the classes, the memory's dtype as the numbers."""
    before, seed = learned.design, np.uint32(learned.seed)
    number = labels.tasks.index(task)
    num_tasks = dict(before.settings).get("num_tasks")
    if num_tasks is not None:
        allowed = f"at least {number + 1}, for task {task!r}"
        require(number < num_tasks, "learner_options['num_tasks']", num_tasks, allowed)
    design = _design_for(learned, rows, labels)
    state, aside = learned.state, learned.held_out
    if number != learned.task and _compiled.consolidates(before):
        state = _compiled.conclude(before, state, learned.view, seed, np.uint32(learned.task))
    if design != before:
        state = reshaped(state, design, seed)
        size, budget = len(aside.y), learned.memory_budget
        if size and budget is not None:
            size = min(size, held_out_size(largest_memory(design, budget, True)))
        aside = _holdout.widened(aside, size, np.dtype(design.dtype), learned.seed)
    return learned._replace(design=design, state=state, held_out=aside, labels=labels, task=number)


def _design_for(learned: Learned, rows: Rows, labels: Labels) -> Design:
    design, budget = learned.design, learned.memory_budget
    dtype = narrowest(rows.x, np.dtype(design.dtype))
    outputs, needed = design.num_outputs, len(labels.classes)
    if needed > outputs:
        outputs = num_outputs_of(design.network, design.input_shape, needed)
    if dtype == design.dtype and outputs == design.num_outputs:
        return design
    wider = dataclasses.replace(design, dtype=dtype.name, num_outputs=outputs)
    if budget is None:
        return wider
    return with_memory(wider, largest_memory(wider, budget, len(learned.held_out.y) > 0))


def with_statistics(learned: Learned, rows: Rows) -> Learned:
    """With these rows in the running statistics, and the classes of today open."""
    inputs, targets = learned.inputs, learned.targets
    if learned.is_scaled and rows.size:
        inputs = merged(inputs, rows.x)
    if learned.design.is_regression and rows.size:
        targets = merged(targets, rows.y[:, None])
    view = view_of(learned.design, learned.labels, inputs, targets)
    return learned._replace(inputs=inputs, targets=targets, view=view)


def gone_through(
    learned: Learned, rows: Rows, places: np.ndarray, *, is_first: bool = True
) -> Learned:
    """With all glances at all rows taken, in compiled calls of few sizes.

    Raises:
      Diverged: a loss, weight or rate would no longer be a finite number.
    """
    design, state, updates = learned.design, learned.state, learned.num_updates
    size = design.batch_size
    dtype, seed = np.dtype(design.dtype), np.uint32(learned.seed)
    most = size * _compiled.BATCHES[-1]
    for start in range(0, rows.size, most):
        part = rows.part(slice(start, start + most))
        num_batches = -(-part.size // size)
        room = size * smallest(_compiled.BATCHES, num_batches)
        x = numbered(part.x, places[start : start + most], dtype)
        task = np.full(room, learned.task, np.int32)
        fields = (padded(x, room), padded(part.y, room), task, padded(part.weight, room))
        batch = Batch(*fields, first=is_first)  # type: ignore[arg-type]
        state, finite = _compiled.learn(
            design,
            state,
            learned.view,
            batch,
            np.int32(num_batches),
            seed,
            np.uint32(updates % 2**32),
        )
        if not finite:
            advice = "lower its rates in learner_options"
            raise Diverged(
                f"{design.learner} left the finite numbers and was put back to where it was before"
                f" this call: {advice}{'' if learned.is_scaled else ', or set scale=True'}"
            )
        updates += num_batches * design.glances
    learned = learned._replace(state=state, num_updates=updates)
    if not rows.size:
        return learned
    return learned._replace(last=rows.part(slice(-size, None)).copy(), last_task=learned.task)


def _with_held_out(learned: Learned, rows: Rows, places: np.ndarray) -> Learned:
    task = learned.labels.tasks[learned.task]

    def score(new: Rows) -> np.ndarray:
        return scores_of(learned, new.x, new.y, task)

    kept = _holdout.with_rows(learned.held_out, rows, places, learned.task, score, learned.seed)
    return learned._replace(held_out=kept)
