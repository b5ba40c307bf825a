"""Test accuracy and counts of answers, computed in compiled slices of one size."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from lamaml._trees import pad_rows
from lamaml.models import head_mask, task_heads
from lamaml.types import Examples, Learner, Model, Preprocess, State, Stream

SLICE = 500  # rows per compiled call: large enough for the matrix product, small enough for a CNN

Evaluator = Callable[[State, Examples, int], float]
"""(state, examples, task) -> accuracy in [0, 1]."""
Predict = Callable[[State, jax.Array, jax.Array], jax.Array]
"""(state, x, task) -> the class of each row."""


def evaluator(model: Model, learner: Learner, stream: Stream) -> Evaluator:
    """Return a function that computes accuracy, counting every row once.

    Args:
      model: the network.
      learner: predicts by its own `predict` if it has one, else by the largest logit of
        `state.params`.
      stream: how rows are preprocessed, and which outputs belong to a task.
    """
    count_correct = _counter(model, learner.predict, stream.preprocess, stream.classes_per_task)

    def accuracy(state: State, examples: Examples, task: int) -> float:
        tasks = told_tasks(stream, examples.y, task)
        correct = []
        for start in range(0, len(examples), SLICE):
            rows = slice(start, start + SLICE)
            # No prediction equals −1, the label of padding.
            x, y = pad_rows(examples.x[rows], SLICE), pad_rows(examples.y[rows], SLICE, -1)
            correct.append(count_correct(state, x, y, pad_rows(tasks[rows], SLICE)))
        return sum(int(count) for count in correct) / len(examples)

    return accuracy


def confusion_matrix(
    model: Model, learner: Learner, stream: Stream, state: State, *, split: str = "test"
) -> np.ndarray:
    """Return N[c, k], the number of rows of class c that are answered k, over all tasks.

    Args:
      model: the network.
      learner: predicts by its own `predict` if it has one.
      stream: its tasks, each task's rows with its own head where tasks own their classes. A task
        that comes back is counted at every visit.
      state: of the learner.
      split: "test" or "validation".
    """
    answer = _answers(model, learner.predict, stream.preprocess, stream.classes_per_task)
    counts = np.zeros((stream.num_classes, stream.num_classes), np.int64)
    for number, task in enumerate(stream.tasks):
        examples: Examples = getattr(task, split)
        tasks = told_tasks(stream, examples.y, number)
        for start in range(0, len(examples), SLICE):
            rows = slice(start, start + SLICE)
            x, told = pad_rows(examples.x[rows], SLICE), pad_rows(tasks[rows], SLICE)
            y = examples.y[rows]
            given = np.asarray(answer(state, x, told))[: len(y)]
            known = given < stream.num_classes  # a network may have more outputs than classes
            np.add.at(counts, (y[known], given[known]), 1)
    return counts


def told_tasks(stream: Stream, y: np.ndarray, task: int) -> np.ndarray:
    """Return the task of each test row as learners are told: 0 where they are not to know it."""
    hidden = stream.is_task_free or stream.scenario == "class"
    return row_tasks(y, 0 if hidden else task, stream.classes_per_task)


def row_tasks(y: np.ndarray, task: int, classes_per_task: int | None) -> np.ndarray:
    """Return the task of each row: by its class where tasks own classes, else the given one."""
    if classes_per_task is None:
        return np.full(len(y), task, np.int32)
    return (y // classes_per_task).astype(np.int32)


@functools.lru_cache(maxsize=8)
def _counter(
    model: Model, predict: Predict | None, preprocess: Preprocess, classes_per_task: int | None
) -> Callable[[State, np.ndarray, np.ndarray, np.ndarray], jax.Array]:
    """Return the compiled count of correct rows, one for all runs of a learner."""
    answer = predict or _largest_logit(model, classes_per_task)

    @jax.jit
    def count_correct(state: State, x: jax.Array, y: jax.Array, task: jax.Array) -> jax.Array:
        return jnp.sum(answer(state, preprocess(x), task) == y)

    return count_correct


@functools.lru_cache(maxsize=8)
def _answers(
    model: Model, predict: Predict | None, preprocess: Preprocess, classes_per_task: int | None
) -> Callable[[State, np.ndarray, np.ndarray], jax.Array]:
    """Return the compiled answers of a learner, one program for all runs."""
    answer = predict or _largest_logit(model, classes_per_task)

    @jax.jit
    def answers(state: State, x: jax.Array, task: jax.Array) -> jax.Array:
        return answer(state, preprocess(x), task)

    return answers


def _largest_logit(model: Model, classes_per_task: int | None) -> Predict:
    def predict(state: State, x: jax.Array, task: jax.Array) -> jax.Array:
        logits = model.apply(state.params, x)
        heads = task_heads(logits.shape[-1], classes_per_task)
        return jnp.argmax(head_mask(logits, task, heads), axis=-1)

    return predict
