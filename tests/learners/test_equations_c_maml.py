"""C-MAML: a gradient step on the mean meta-loss of the fast weights."""

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
    quadratic,
    remembering,
)

from lamaml.learners import c_maml


@pytest.mark.parametrize("first_order", [True, False], ids=["first", "second"])
def test_the_quadratic_closed_form_of_the_last_step(first_order):
    """θ' = θ − β(1 − αa)^K·A(θ_K − C), without the power in first order."""
    a, c, alpha, beta, theta, steps = 0.8, 0.5, 0.3, 0.1, 2.0, 3
    rows, old = [(a, c)] * steps, (2.4, -1.0)
    # b_m is the remembered row and those of b: their mean is a parabola again.
    top = (steps * a + old[0]) / (steps + 1)  # A
    middle = (steps * a * c + old[0] * old[1]) / (steps + 1) / top  # C
    learner = compiled(
        c_maml,
        quadratic,
        inner_rate=alpha,
        outer_rate=beta,
        inner_steps=steps,
        memory_size=1,
        replay_size=1,
        first_order=first_order,
        meta_loss="last",
        max_norm=None,
    )
    state = remembering(learner.init(jnp.array(theta), batch_of(rows)), [old])
    after, _ = learner.update(state, batch_of(rows), KEY)
    ahead = c + (1 - alpha * a) ** steps * (theta - c)  # θ_K
    slope = top * (ahead - middle) * (1 if first_order else (1 - alpha * a) ** steps)
    assert float(after.params) == pytest.approx(theta - beta * slope, rel=1e-5)


THETA = np.array([1.5, -0.7])
LEARNER = compiled(
    c_maml,
    bowl,
    inner_rate=0.1,
    outer_rate=0.2,
    inner_steps=2,
    memory_size=8,
    first_order=True,
    max_norm=None,
)


def start():
    return LEARNER.init(jnp.asarray(THETA), batch_of(BOWLS))


def by_hand(theta, batch, meta_batch):
    """θ after one first-order update, in NumPy: two inner steps of three rows each."""
    fast, total = theta, np.zeros(2)
    for rows in (batch[:3], batch[3:]):
        fast = fast - 0.1 * bowl_slope(fast, rows)
        total += bowl_slope(fast, meta_batch) / 2
    return theta - 0.2 * total


def test_the_first_glance_does_not_replay_its_own_batch():
    """Rows are drawn before they are pushed: of an empty memory nothing is replayed."""
    state, _ = LEARNER.update(start(), batch_of(BOWLS), KEY)
    np.testing.assert_allclose(state.params, by_hand(THETA, BOWLS, BOWLS), rtol=1e-5)
    assert int(state.memory.num_seen) == 6


def test_a_later_glance_replays_what_an_earlier_one_pushed():
    """Six rows seen, six other ones come: the meta-loss is the mean over all twelve."""
    state, _ = LEARNER.update(start(), batch_of(BOWLS), KEY)
    new = BOWLS[::-1] + 0.1
    again, _ = LEARNER.update(state, batch_of(new, first=False), KEY)
    expected = by_hand(np.asarray(state.params, float), new, np.vstack([new, BOWLS]))
    np.testing.assert_allclose(again.params, expected, rtol=1e-5)
    assert_same_bits(again.memory, state.memory)


@pytest.mark.parametrize("last", [True, False])
def test_rows_are_pushed_in_their_first_glance_only(last):
    state = start()
    after, _ = LEARNER.update(state, batch_of(BOWLS, first=False, last=last), KEY)
    assert_same_bits(after.memory, state.memory)
    after, _ = LEARNER.update(state, batch_of(BOWLS, first=True, last=last), KEY)
    assert int(after.memory.num_seen) == 6


def test_meta_gradients_are_clipped_by_norm_and_inner_ones_by_element():
    """The inner slopes (30, 40) are clamped to (5, 5); the meta-gradient (30, 40) to norm 2."""
    learner = compiled(
        c_maml,
        linear,
        inner_rate=0.5,
        outer_rate=1.0,
        inner_steps=1,
        memory_size=1,
        max_norm=2.0,
        inner_clamp=5.0,
    )
    batch = batch_of([[30.0, 40.0]])
    state, info = learner.update(learner.init(jnp.zeros(2), batch), batch, KEY)
    np.testing.assert_allclose(state.params, [-1.2, -1.6], rtol=1e-6)
    assert float(info["gradient_norm"]) == pytest.approx(50.0)
    assert float(info["loss"]) == pytest.approx(-0.5 * 5 * (30 + 40))  # L(θ − ½·(5, 5))
