"""Answers to rows, in compiled blocks."""

from collections.abc import Callable

import jax
import numpy as np

from lamaml.errors import InvalidArgument, unknown_name
from lamaml.estimators import _compiled
from lamaml.estimators._config import answers_itself
from lamaml.estimators._labels import TaskId
from lamaml.estimators._rows import padded, smallest
from lamaml.estimators._state import Learned


def outputs_for(learned: Learned, x: np.ndarray) -> np.ndarray:
    """The network's outputs for float32 rows."""
    design, params, view = learned.design, learned.state.params, learned.view
    return _in_blocks(x, lambda rows, num: _compiled.outputs(design, params, view, rows, num))


def open_outputs(learned: Learned, task: TaskId) -> np.ndarray:
    """Which outputs may be answered with: a task's classes, or without one every class seen."""
    if task is None:
        return learned.view.answers
    known = learned.labels.tasks
    if task not in known:
        texts = [name for name in known if isinstance(name, str)]
        if isinstance(task, str) and texts:
            raise unknown_name("task", task, texts)
        names = ", ".join(repr(name) for name in known if name is not None)
        raise InvalidArgument(f"unknown task {task!r}: {names or 'no task was named yet'}")
    return learned.view.heads[known.index(task)]


def chosen_outputs(learned: Learned, x: np.ndarray, task: TaskId = None) -> np.ndarray:
    """The output each row is answered with."""
    answers = open_outputs(learned, task)
    design, seed = learned.design, np.uint32(learned.seed)
    if not answers_itself(design.learner):
        return np.where(answers, outputs_for(learned, x), -np.inf).argmax(axis=1)
    place = learned.task if task is None else learned.labels.tasks.index(task)
    view = learned.view._replace(answers=answers)
    state = learned.state
    if _compiled.consolidates(design):  # what it answers from comes at a task's end: as if one did
        state = _compiled.conclude(design, state, view, seed, np.uint32(learned.task))
    return _in_blocks(
        x, lambda rows, num: _compiled.answers(design, state, view, rows, num, np.int32(place))
    )


def targets_for(learned: Learned, x: np.ndarray) -> np.ndarray:
    """The answers of a regression, in the units of the targets."""
    centre, deviation = learned.view.target.astype(np.float64)
    return centre + deviation * outputs_for(learned, x)[:, 0]


def scores_of(learned: Learned, x: np.ndarray, y: np.ndarray, task: TaskId) -> np.ndarray:
    """Each row's score as a float32: 1 for the right class, else 0; or its absolute error."""
    if learned.design.is_regression:
        return np.abs(targets_for(learned, x) - y).astype(np.float32)
    return (chosen_outputs(learned, x, task) == y).astype(np.float32)


def _in_blocks(x: np.ndarray, answer: Callable[[np.ndarray, np.int32], jax.Array]) -> np.ndarray:
    answers = []
    most = _compiled.BLOCK * _compiled.BLOCKS[-1]
    for start in range(0, len(x), most):
        rows = x[start : start + most]
        num_blocks = -(-len(rows) // _compiled.BLOCK)
        room = _compiled.BLOCK * smallest(_compiled.BLOCKS, num_blocks)
        answers.append(np.asarray(answer(padded(rows, room), np.int32(num_blocks)))[: len(rows)])
    return answers[0] if len(answers) == 1 else np.concatenate(answers)
