"""Every memory gives back the rows it holds, with their positions where batches carry them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lamaml.errors import InvalidArgument
from lamaml.learners import er, ewc, gem, icarl
from lamaml.memory import (
    add_sets,
    can_resize,
    empty_exemplars,
    empty_reservoir,
    empty_ring,
    empty_task_rows,
    keep,
    kept_rows,
    memories_in,
    push,
    push_to_ring,
    resize,
    rows_before,
    rows_of,
    sample,
    stored_rows,
)
from lamaml.types import Batch

KEY = jax.random.key(0)


def batch(count=4, start=0, with_position=True):
    """Rows whose first input and position are their number."""
    number = jnp.arange(start, start + count)
    position = number.astype(jnp.int32) if with_position else None
    x = jnp.stack([number, -number], axis=1).astype(jnp.float32)
    y, task = (number % 2).astype(jnp.int32), (number % 2).astype(jnp.int32)
    return Batch(x, y, task, jnp.ones(count).at[-1].set(0.0), position=position)


def reservoir(rows):
    return push(empty_reservoir(rows, 8), rows, KEY)


MEMORIES = {
    "reservoir": reservoir,
    "ring": lambda rows: push_to_ring(empty_ring(rows, 8, 2), rows),
    "task rows": lambda rows: keep(empty_task_rows(rows, 8), rows),
    "exemplars": lambda rows: add_sets(empty_exemplars(rows, 8), rows, rows.x, 2),
}
every_memory = pytest.mark.parametrize("name", MEMORIES)


@every_memory
def test_stored_rows_are_those_that_were_written_without_padding(name):
    rows = stored_rows(MEMORIES[name](batch(5)))
    assert sorted(rows.position.tolist()) == [0, 1, 2, 3]
    np.testing.assert_array_equal(rows.x[:, 0], rows.position)
    np.testing.assert_array_equal(rows.y, rows.position % 2)
    np.testing.assert_array_equal(rows.task, rows.position % 2)


@every_memory
def test_without_positions_a_memory_has_no_leaf_for_them(name):
    with_, without = (MEMORIES[name](batch(5, with_position=has)) for has in (True, False))
    assert without.position is None
    assert stored_rows(without).position is None
    assert len(jax.tree.leaves(with_)) == len(jax.tree.leaves(without)) + 1


def test_batches_read_from_memories_carry_positions():
    rows = batch(5)
    ring = MEMORIES["ring"](rows)
    for found in (
        sample(reservoir(rows), 3, KEY),
        rows_of(ring, 1),
        rows_before(ring, 2, 3, KEY),
        kept_rows(MEMORIES["task rows"](rows)),
    ):
        real = np.asarray(found.weight) > 0
        assert real.any()
        np.testing.assert_array_equal(found.x[real, 0], found.position[real])


def test_a_reservoir_shrinks_to_a_uniform_sample():
    full = push(empty_reservoir(batch(), 8), batch(21)._replace(weight=jnp.ones(21)), KEY)
    counts = np.zeros(21)
    for seed in range(300):
        small = resize(full, 3, np.random.default_rng(seed))
        kept = stored_rows(small).position
        assert len(set(kept.tolist())) == len(small.y) == 3
        assert int(small.num_seen) == 21
        counts[kept] += 1
    held = stored_rows(full).position
    assert counts.sum() == counts[held].sum() == 900
    assert np.abs(counts[held] - 900 / 8).max() < 5 * np.sqrt(300 * 3 / 8 * 5 / 8)


def test_a_reservoir_with_free_slots_shrinks_without_losing_rows():
    small = resize(reservoir(batch(3)), 5, np.random.default_rng(0))
    assert len(small.y) == 5
    assert sorted(stored_rows(small).position.tolist()) == [0, 1]
    assert resize(small, 9, np.random.default_rng(0)) is small


def test_only_a_reservoir_can_shrink():
    assert can_resize(reservoir(batch()))
    ring = MEMORIES["ring"](batch())
    assert not can_resize(ring)
    with pytest.raises(InvalidArgument, match="RingBuffer"):
        resize(ring, 2, np.random.default_rng(0))


def test_the_memories_of_a_state_are_found_by_field_even_as_shapes():
    def loss(w, b):
        return jnp.mean((b.x - w) ** 2)

    def apply(w, x):
        return x * w

    learners = [
        (["memory"], er(loss, learning_rate=0.1, memory_size=4)),
        (["memory"], gem(loss, learning_rate=0.1, memory_size=4, num_tasks=2)),
        (["rows"], ewc(loss, learning_rate=0.1, penalty=1.0)),
        (
            ["exemplars", "rows"],
            icarl(loss, apply=apply, heads=None, learning_rate=0.1, memory_size=4, task_size=4),
        ),
    ]
    for names, learner in learners:
        shapes = jax.eval_shape(learner.init, jnp.zeros(2), batch())
        assert list(memories_in(shapes)) == names
