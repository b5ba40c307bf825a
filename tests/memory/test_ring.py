"""The rings hold the last rows of each task, and give back those of past tasks only."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamaml.errors import InvalidArgument
from lamaml.memory import empty_ring, push_to_ring, rows_before, rows_of
from lamaml.types import Batch

KEY = jax.random.key(0)
PUSH = jax.jit(push_to_ring)
BEFORE = jax.jit(rows_before, static_argnums=2)
TASKS, EACH = 3, 4


def rows(numbers, tasks, weight=None):
    """Rows that are told apart by a number from 1 on."""
    y = jnp.asarray(numbers, jnp.int32)
    x = jnp.stack([y, 10 * y], axis=1).astype(jnp.float32)
    weight = jnp.ones(len(y)) if weight is None else jnp.asarray(weight, float)
    return Batch(x, y, jnp.asarray(tasks, jnp.int32), weight)


def rings(*batches):
    memory = empty_ring(rows([0], [0]), TASKS * EACH, TASKS)
    for batch in batches:
        memory = PUSH(memory, batch)
    return memory


def numbers(batch, task=None):
    """The numbers of the rows that count, after a look that their parts belong together."""
    present = np.asarray(batch.weight) > 0
    y = np.asarray(batch.y)[present]
    np.testing.assert_array_equal(np.asarray(batch.x)[present], np.stack([y, 10 * y], axis=1))
    if task is not None:
        assert (np.asarray(batch.task) == task).all()
    return sorted(y.tolist())


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.lists(st.tuples(st.integers(0, TASKS - 1), st.booleans()), min_size=6, max_size=6))
)
def test_a_ring_holds_exactly_the_last_rows_of_its_task(stream):
    """Six rows a batch, more than a ring holds, of any tasks, some of them padding."""
    count, offered, batches = 0, {task: [] for task in range(TASKS)}, []
    for batch in stream:
        labels = range(count + 1, count + len(batch) + 1)
        count += len(batch)
        batches.append(
            rows(labels, [task for task, _ in batch], [float(real) for _, real in batch])
        )
        for label, (task, real) in zip(labels, batch, strict=True):
            offered[task] += [label] if real else []
    memory = rings(*batches)
    for task in range(TASKS):
        assert numbers(rows_of(memory, task), task) == offered[task][-EACH:]
        assert int(memory.num_seen[task]) == len(offered[task])


def test_nothing_is_pushed_in_later_glances_nor_for_tasks_beyond_the_last():
    memory = rings(rows([1, 2], [0, 1]))
    for batch, when in ((rows([3], [0]), False), (rows([4], [TASKS]), True)):
        after = push_to_ring(memory, batch, when=jnp.array(when))
        jax.tree.map(np.testing.assert_array_equal, after, memory)


def test_rows_before_a_task_are_those_of_earlier_tasks():
    memory = rings(rows([1, 2, 3], [0, 0, 1]), rows([4], [2]))
    past = BEFORE(memory, 2, None, KEY)
    assert numbers(past) == [1, 2, 3]
    tasks = np.asarray(past.task)[np.asarray(past.weight) > 0]
    assert dict(zip(np.asarray(past.y)[np.asarray(past.weight) > 0], tasks, strict=True)) == {
        1: 0,
        2: 0,
        3: 1,
    }
    assert numbers(BEFORE(memory, 0, None, KEY)) == []


def test_a_draw_from_the_past_takes_each_row_at_most_once_and_all_alike():
    memory = rings(rows(range(1, 5), [0] * 4), rows(range(5, 8), [1] * 3), rows([9], [2]))
    draws = jax.vmap(lambda key: rows_before(memory, 2, 3, key))(jax.random.split(KEY, 2000))
    assert draws.weight.all()
    drawn = np.sort(np.asarray(draws.y), axis=1)
    assert (np.diff(drawn, axis=1) > 0).all()
    counts = np.bincount(drawn.ravel(), minlength=10)
    assert set(np.flatnonzero(counts)) == set(range(1, 8))
    # Each of 7 rows is in a draw of 3 with probability 3/7: within five standard deviations.
    expected, spread = 2000 * 3 / 7, np.sqrt(2000 * 3 / 7 * 4 / 7)
    assert np.abs(counts[1:8] - expected).max() < 5 * spread


def test_a_draw_of_more_than_there_is_is_everything():
    memory = rings(rows([1, 2], [0, 0]))
    assert numbers(BEFORE(memory, 1, 5, KEY)) == [1, 2]
    assert numbers(BEFORE(memory, 1, 100, KEY)) == [1, 2]


@pytest.mark.parametrize(
    ("memory_size", "num_tasks", "named"), [(2, 3, "memory_size"), (2, 0, "num_tasks")]
)
def test_every_task_needs_a_row(memory_size, num_tasks, named):
    with pytest.raises(InvalidArgument, match=named):
        empty_ring(rows([0], [0]), memory_size, num_tasks)
