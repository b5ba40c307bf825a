"""Experience replay: one SGD step on new and replayed rows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems import (
    BOWLS,
    KEY,
    assert_same_bits,
    batch_of,
    bowl,
    bowl_slope,
    compiled,
    linear,
    remembering,
)

from lamaml.learners import er

RATE = 0.5
LEARNER = compiled(
    er, bowl, learning_rate=RATE, memory_size=4, replay_size=3, max_norm=None
)  # draws three of four
THETA = np.array([1.5, -0.7])
NEW, OLD = BOWLS[:2], BOWLS[2:]


def start():
    return LEARNER.init(jnp.asarray(THETA), batch_of(NEW))


def test_with_an_empty_memory_it_is_sgd_on_the_batch():
    state, info = LEARNER.update(start(), batch_of(NEW), KEY)
    np.testing.assert_allclose(state.params, THETA - RATE * bowl_slope(THETA, NEW), rtol=1e-5)
    norm = np.linalg.norm(bowl_slope(THETA, NEW))
    assert float(info["gradient_norm"]) == pytest.approx(norm, rel=1e-5)


def test_a_filling_memory_gives_every_row_it_has():
    """One mean over b and the two rows held, not two means."""
    state, _ = LEARNER.update(start(), batch_of(OLD[:2]), KEY)
    state, _ = LEARNER.update(state._replace(params=jnp.asarray(THETA)), batch_of(NEW), KEY)
    slope = bowl_slope(THETA, np.vstack([NEW, OLD[:2]]))
    np.testing.assert_allclose(state.params, THETA - RATE * slope, rtol=1e-5)


def test_a_full_memory_gives_the_rows_asked_for_chosen_by_the_key():
    state = remembering(start(), OLD)
    leave_one_out = {
        i: THETA - RATE * bowl_slope(THETA, np.vstack([NEW, np.delete(OLD, i, axis=0)]))
        for i in range(4)
    }
    left_out = set()
    for seed in range(12):
        after, _ = LEARNER.update(state, batch_of(NEW), jax.random.key(seed))
        distance = {i: np.abs(after.params - t).max() for i, t in leave_one_out.items()}
        nearest = min(distance, key=distance.get)
        assert distance[nearest] < 1e-6
        left_out.add(nearest)
    assert left_out == {0, 1, 2, 3}


def test_the_order_inside_a_batch_does_not_matter():
    state = remembering(start(), OLD)
    (one, _), (other, _) = (LEARNER.update(state, batch_of(rows), KEY) for rows in (NEW, NEW[::-1]))
    np.testing.assert_allclose(one.params, other.params, rtol=1e-6)


def test_rows_are_pushed_after_the_step_that_learns_from_them():
    """They are in the memory at its end, and the step was one on the batch alone."""
    state, _ = LEARNER.update(start(), batch_of(NEW), KEY)
    assert int(state.memory.num_seen) == 2
    np.testing.assert_allclose(state.memory.x[:2], NEW, rtol=1e-6)
    np.testing.assert_allclose(state.params, THETA - RATE * bowl_slope(THETA, NEW), rtol=1e-5)


@pytest.mark.parametrize("first", [True, False])
def test_rows_are_pushed_in_their_last_glance_only(first):
    state = start()
    after, _ = LEARNER.update(state, batch_of(NEW, first=first, last=False), KEY)
    assert_same_bits(after.memory, state.memory)
    after, _ = LEARNER.update(state, batch_of(NEW, first=first, last=True), KEY)
    assert int(after.memory.num_seen) == 2


def test_the_gradient_is_clipped_to_its_norm():
    learner = compiled(er, linear, learning_rate=1.0, memory_size=2, max_norm=2.0)
    batch = batch_of([[30.0, 40.0]])
    state, info = learner.update(learner.init(jnp.zeros(2), batch), batch, KEY)
    np.testing.assert_allclose(state.params, [-1.2, -1.6], rtol=1e-6)
    assert float(info["gradient_norm"]) == pytest.approx(50.0)  # told before clipping
