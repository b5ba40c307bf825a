"""Evaluation counts every row once, whatever the number of rows."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lamaml.evaluation import evaluator
from lamaml.evaluation.accuracy import SLICE, row_tasks
from lamaml.types import Examples, Learner, Model, Stream


class State(NamedTuple):
    params: jax.Array


def unused(*_):
    raise AssertionError("evaluation must not train")


LEARNER = Learner(unused, unused)
MODEL = Model(unused, lambda params, x: x * params)  # a row is its own logits
STATE = State(jnp.ones(()))


def stream(classes_per_task=None, preprocess=lambda x: x):
    return Stream("toy", (), 4, classes_per_task, preprocess)


def examples(num_rows, num_right, num_classes=4):
    """Rows of which exactly so many are answered right: the last ones, where slices are cut."""
    y = np.arange(num_rows, dtype=np.int32) % num_classes
    answer = np.where(np.arange(num_rows) < num_rows - num_right, (y + 1) % num_classes, y)
    return Examples(np.eye(num_classes, dtype=np.float32)[answer], y)


SIZES = [1, 2, SLICE - 1, SLICE, SLICE + 1, 2 * SLICE, 2 * SLICE + 7]
SHARED = evaluator(MODEL, LEARNER, stream())


@pytest.mark.parametrize("size", SIZES)
def test_every_row_counts_once(size):
    for right in {0, 1, size // 2, size - 1, size}:
        assert SHARED(STATE, examples(size, right), 0) == right / size


@pytest.mark.parametrize("size", [1, SLICE - 1, SLICE, SLICE + 1])
def test_the_rows_that_fill_up_a_slice_are_never_right(size):
    """A predictor that always answers class 0, the label of a row of zeros."""
    y = np.ones(size, np.int32)
    always_0 = np.tile(np.eye(4, dtype=np.float32)[0], (size, 1))
    assert SHARED(STATE, Examples(always_0, y), 0) == 0.0


def test_compiled_once_for_every_size():
    traces = []

    def preprocess(x):
        traces.append(x.shape)
        return x

    scores = evaluator(MODEL, LEARNER, stream(preprocess=preprocess))
    for size in SIZES:
        scores(STATE, examples(size, 1), 0)
    assert traces == [(SLICE, 4)]


def test_rows_are_preprocessed():
    scores = evaluator(MODEL, LEARNER, stream(preprocess=lambda x: -x))
    rows = examples(8, 8)
    assert scores(STATE, Examples(-rows.x, rows.y), 0) == 1.0


def test_a_task_may_answer_only_with_its_own_outputs():
    x = np.tile(np.array([[9.0, 0.0, 1.0, 0.0]], np.float32), (6, 1))  # class 0, else class 2
    y = np.full(6, 2, np.int32)
    assert SHARED(STATE, Examples(x, y), 1) == 0.0
    assert evaluator(MODEL, LEARNER, stream(2))(STATE, Examples(x, y), 1) == 1.0


def test_of_heads_the_task_of_a_row_is_its_classs():
    """So that a joint stream, one task of all classes, is scored head by head."""
    x = np.tile(np.array([[5.0, 4.0, 3.0, 2.0]], np.float32), (4, 1))
    y = np.array([0, 1, 2, 3], np.int32)
    assert evaluator(MODEL, LEARNER, stream(2))(STATE, Examples(x, y), 0) == 0.5
    np.testing.assert_array_equal(row_tasks(y, 7, 2), [0, 0, 1, 1])
    np.testing.assert_array_equal(row_tasks(y, 7, None), [7, 7, 7, 7])


def test_a_learner_may_answer_for_itself():
    def predict(state, x, task):
        return jnp.argmin(x, axis=-1) + 0 * task

    scores = evaluator(MODEL, LEARNER._replace(predict=predict), stream())
    rows = examples(8, 8)
    assert scores(STATE, Examples(-rows.x, rows.y), 0) == 1.0
    assert scores(STATE, rows, 0) < 1.0


def test_the_weights_scored_are_the_states():
    assert SHARED(State(jnp.ones(())), examples(5, 5), 0) == 1.0
    assert SHARED(State(-jnp.ones(())), examples(5, 5), 0) == 0.0
