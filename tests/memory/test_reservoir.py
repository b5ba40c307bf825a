"""The reservoir is a uniform sample of what it was offered, and a draw from it a uniform one."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lamaml.errors import InvalidArgument
from lamaml.memory import Reservoir, empty_reservoir, push, sample
from lamaml.types import Batch

KEY = jax.random.key(0)
PUSH = jax.jit(push)
SAMPLE = jax.jit(sample, static_argnums=1)


@jax.jit
def push_with(drawn, memory, batch):
    """`push` with these draws in the place of random ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jax.random, "randint", lambda *_: drawn)
        return push(memory, batch, KEY)


def rows(numbers, weight=None):
    """Rows that are told apart by a number from 1 on: an empty slot holds 0."""
    y = jnp.asarray(numbers, jnp.int32)
    x = jnp.stack([y, 10 * y], axis=1).astype(jnp.float32)
    return Batch(x, y, 2 * y, jnp.ones(len(y)) if weight is None else jnp.asarray(weight, float))


def memory_of(size, numbers=()):
    empty = empty_reservoir(rows([0]), size)
    return PUSH(empty, rows(numbers), KEY) if len(numbers) else empty


def held(memory):
    """The numbers of the rows held, after a look that their parts belong together."""
    y = np.asarray(memory.y)
    np.testing.assert_array_equal(memory.x, np.stack([y, 10 * y], axis=1))
    np.testing.assert_array_equal(memory.task, 2 * y)
    return sorted(y[y > 0].tolist())


def inclusion(size, num_rows, extra):
    """The exact probability that each row is held, over every possible vector of draws.

    The n-th draw is taken from {0, …, n − 1 + extra}; extra = 1 is the authors' mistake. The first
    `size` draws are not used by the algorithm and are fixed.
    """
    ranges = [range(1)] * size + [range(n + extra) for n in range(size + 1, num_rows + 1)]
    draws = jnp.array(list(itertools.product(*ranges)))

    def kept(drawn):
        memory = push_with(drawn, memory_of(size), rows(range(1, num_rows + 1)))
        return (memory.y[None, :] == jnp.arange(1, num_rows + 1)[:, None]).any(axis=1)

    return np.asarray(jax.jit(jax.vmap(kept))(draws), np.float64).mean(axis=0)


@pytest.mark.parametrize(("size", "num_rows"), [(1, 5), (2, 6), (3, 6), (4, 4)])
def test_every_row_is_held_with_probability_exactly_m_over_n(size, num_rows):
    share = inclusion(size, num_rows, extra=0)
    np.testing.assert_allclose(share, size / num_rows, rtol=1e-12)


def test_the_authors_draw_from_one_value_too_many_favours_the_first_rows():
    share = inclusion(size=2, num_rows=6, extra=1)
    np.testing.assert_allclose(share, [3 / 7] * 2 + [2 / 7] * 4, rtol=1e-12)


def test_draws_are_asked_for_below_the_number_of_each_row(monkeypatch):
    """Together with the enumeration: the draws it runs through are the ones that can happen."""
    asked = []

    def record(key, shape, low, high):
        asked.append((low, np.asarray(high)))
        return jnp.zeros(shape, jnp.int32)

    memory = memory_of(3, range(1, 6))
    monkeypatch.setattr(jax.random, "randint", record)
    push(memory, rows(range(6, 10)), KEY)  # not compiled, so that the bounds are numbers
    ((low, high),) = asked
    assert low == 0
    np.testing.assert_array_equal(high, [6, 7, 8, 9])


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 11), min_size=12, max_size=12))
def test_a_batch_is_pushed_as_its_rows_are_one_at_a_time(draws):
    drawn = [draw % number for number, draw in enumerate(draws, start=1)]
    together = push_with(jnp.asarray(drawn), memory_of(3), rows(range(1, 13)))
    slots = [0] * 3
    for number, slot in enumerate(drawn, start=1):
        slot = number - 1 if number <= 3 else slot
        if slot < 3:
            slots[slot] = number
    np.testing.assert_array_equal(together.y, slots)
    held(together)
    assert int(together.num_seen) == 12


def test_one_at_a_time_through_push_itself_is_the_same_too():
    drawn = jnp.array([0, 0, 0, 1, 1, 4, 0, 1])
    together = push_with(drawn, memory_of(3), rows(range(1, 9)))
    alone = memory_of(3)
    for number in range(1, 9):
        alone = push_with(drawn[number - 1 : number], alone, rows([number]))
    jax.tree.map(np.testing.assert_array_equal, together, alone)
    assert held(together) == [3, 7, 8]


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 5), st.lists(st.lists(st.booleans(), min_size=4, max_size=4), max_size=6))
def test_it_never_holds_more_than_m_rows_nor_padding_nor_a_row_twice(size, weights):
    memory, offered = memory_of(size), []
    for step, weight in enumerate(weights):
        numbers = [4 * step + i + 1 for i in range(4)]
        memory = PUSH(memory, rows(numbers, weight), jax.random.key(step))
        offered += [number for number, real in zip(numbers, weight, strict=True) if real]
        kept = held(memory)
        assert len(memory.y) == size
        assert len(kept) == len(set(kept)) == min(size, len(offered))
        assert set(kept) <= set(offered)
        assert int(memory.num_seen) == len(offered)


def test_padding_moves_no_row_to_another_slot():
    padded = PUSH(memory_of(4), rows([1, 9, 2, 9, 3], [1, 0, 1, 0, 1]), KEY)
    np.testing.assert_array_equal(padded.y, [1, 2, 3, 0])


@pytest.mark.parametrize("when", [False, jnp.array(False)])
def test_not_when_changes_no_bit(when):
    for memory in (memory_of(3), memory_of(3, [1, 2]), memory_of(3, range(1, 8))):
        after = PUSH(memory, rows(range(20, 25)), KEY, when=when)
        jax.tree.map(np.testing.assert_array_equal, memory, after)
        dtypes = ([leaf.dtype for leaf in jax.tree.leaves(part)] for part in (memory, after))
        assert next(dtypes) == next(dtypes)


def test_what_is_given_is_not_written_to():
    memory = memory_of(2, [1, 2])
    before = jax.tree.map(np.array, memory)
    PUSH(memory, rows([3, 4, 5]), KEY)
    jax.tree.map(np.testing.assert_array_equal, memory, before)


def test_rows_are_kept_in_their_own_dtype():
    batch = Batch(
        jnp.ones((1, 2), jnp.uint8), jnp.ones(1, jnp.int32), jnp.zeros(1, int), jnp.ones(1)
    )
    memory = PUSH(empty_reservoir(batch, 2), batch, KEY)
    assert memory.x.dtype == jnp.uint8
    assert memory.x.shape == (2, 2)


def test_the_key_decides_what_is_kept():
    kept = {
        tuple(held(PUSH(memory_of(3), rows(range(1, 41)), jax.random.key(k)))) for k in range(5)
    }
    assert len(kept) > 1


@pytest.mark.parametrize("size", [0, -1])
def test_room_for_nothing_is_refused(size):
    with pytest.raises(InvalidArgument, match=f"memory_size = {size}: must be at least 1"):
        empty_reservoir(rows([0]), size)


@pytest.mark.parametrize("num_held", [0, 1, 3, 5, 9])
def test_a_draw_holds_no_row_twice_and_weighs_what_is_not_there_with_0(num_held):
    memory = memory_of(5, range(1, num_held + 1))
    for seed in range(10):
        batch = SAMPLE(memory, 3, jax.random.key(seed))
        assert batch.y.shape == batch.weight.shape == (3,)
        drawn = np.asarray(batch.y)[np.asarray(batch.weight) > 0].tolist()
        assert len(drawn) == len(set(drawn)) == min(3, num_held)
        assert set(drawn) <= set(held(memory))
        assert set(np.asarray(batch.weight).tolist()) <= {0.0, 1.0}
        np.testing.assert_array_equal(batch.x[:, 1], 10 * batch.y)
        np.testing.assert_array_equal(batch.task, 2 * batch.y)


def test_a_draw_larger_than_the_memory_is_all_of_it():
    memory = memory_of(3, [1, 2, 3])
    batch = SAMPLE(memory, 10, KEY)
    assert sorted(batch.y.tolist()) == [1, 2, 3]
    assert batch.weight.tolist() == [1, 1, 1]


def test_a_draw_of_nothing_is_empty():
    assert SAMPLE(memory_of(3, [1, 2]), 0, KEY).y.shape == (0,)


def test_every_pair_of_rows_is_drawn_equally_often():
    memory = memory_of(6, range(1, 6))  # five rows and a free slot
    keys = jax.random.split(jax.random.key(7), 4000)
    drawn = jax.jit(jax.vmap(lambda key: sample(memory, 2, key).y))(keys)
    pairs = [tuple(sorted(pair)) for pair in np.asarray(drawn).tolist()]
    counts = [pairs.count(pair) for pair in itertools.combinations(range(1, 6), 2)]
    assert sum(counts) == 4000
    assert stats.chisquare(counts).pvalue > 0.01


def test_pushes_of_many_batches_are_uniform_too():
    """Through the real draws: 40 rows in batches of 8, 5 slots, each row kept 1 time in 8."""

    def kept(key):
        def step(memory, inputs):
            numbers, key = inputs
            return push(memory, rows(numbers), key), None

        numbers = jnp.arange(1, 41).reshape(5, 8)
        keys = jax.random.split(key, 5)
        memory: Reservoir = jax.lax.scan(step, empty_reservoir(rows([0]), 5), (numbers, keys))[0]
        return memory.y

    y = np.asarray(jax.jit(jax.vmap(kept))(jax.random.split(jax.random.key(3), 4000)))
    assert (y > 0).all()
    assert stats.chisquare(np.bincount(y.reshape(-1), minlength=41)[1:]).pvalue > 0.01
