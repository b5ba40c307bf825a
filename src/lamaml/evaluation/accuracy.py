"""Test accuracy, computed in compiled slices of one size."""

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
        tasks = row_tasks(examples.y, task, stream.classes_per_task)
        correct = []
        for start in range(0, len(examples), SLICE):
            rows = slice(start, start + SLICE)
            # No prediction equals −1, the label of padding.
            x, y = pad_rows(examples.x[rows], SLICE), pad_rows(examples.y[rows], SLICE, -1)
            correct.append(count_correct(state, x, y, pad_rows(tasks[rows], SLICE)))
        return sum(int(count) for count in correct) / len(examples)

    return accuracy


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


def _largest_logit(model: Model, classes_per_task: int | None) -> Predict:
    def predict(state: State, x: jax.Array, task: jax.Array) -> jax.Array:
        logits = model.apply(state.params, x)
        heads = task_heads(logits.shape[-1], classes_per_task)
        return jnp.argmax(head_mask(logits, task, heads), axis=-1)

    return predict
