"""C-MAML: a gradient step on the mean meta-loss of the fast weights."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems import (
    assert_close,
    assert_same_bits,
    batch_of,
    linear,
    network,
    network_batch,
    network_params,
    quadratic,
    remembering,
)

from lamaml.learners import c_maml

KEY = jax.random.key(0)
ORDERS = pytest.mark.parametrize("first_order", [True, False], ids=["first", "second"])


@ORDERS
@pytest.mark.parametrize("steps", [1, 3])
def test_the_quadratic_closed_form_of_the_last_step(steps, first_order):
    """θ' = θ − β(1 − αa)^K·A(θ_K − C), without the power in first order."""
    a, c, top, middle, alpha, beta, theta = 0.8, 0.5, 1.5, -1.0, 0.3, 0.1, 2.0
    # b_m = one remembered row and the rows of b: their mean is a parabola again.
    rows, old = [(a, c)] * steps, (2.4, -1.0)
    weight = 1 / (steps + 1)
    top = weight * (steps * a + old[0])
    middle = weight * (steps * a * c + old[0] * old[1]) / top
    learner = c_maml(
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


@ORDERS
@pytest.mark.parametrize(("meta_loss", "times"), [("mean", 1), ("last", 1), ("sum", 3)])
def test_linear_losses_take_the_same_step_in_both_orders(first_order, meta_loss, times):
    rows, old = [[1.0, 2.0], [3.0, -1.0], [0.5, 0.5]], [[4.0, 4.0]]
    learner = c_maml(
        linear,
        inner_rate=0.5,
        outer_rate=0.1,
        inner_steps=3,
        memory_size=1,
        replay_size=1,
        first_order=first_order,
        meta_loss=meta_loss,
        max_norm=None,
    )
    state = remembering(learner.init(jnp.zeros(2), batch_of(rows)), old)
    after, _ = learner.update(state, batch_of(rows), KEY)
    np.testing.assert_allclose(after.params, -0.1 * times * np.mean(rows + old, axis=0), rtol=1e-6)


LEARNER = c_maml(
    network, inner_rate=0.1, outer_rate=0.2, inner_steps=2, memory_size=8, first_order=True
)
UPDATE = jax.jit(LEARNER.update)


def filled():
    rows = network_batch(5, 8)
    state, _ = UPDATE(LEARNER.init(network_params(), rows), rows, KEY)
    return state


def test_the_first_glance_does_not_replay_its_own_batch():
    """Rows are drawn before they are pushed: of an empty memory nothing is replayed."""
    batch, params = network_batch(1), network_params()
    state, info = UPDATE(LEARNER.init(params, batch), batch, KEY)

    def step(params, rows):
        gradient = jax.grad(network)(params, rows)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient)

    fast, losses, slopes = params, [], []
    for start in (0, 3):
        fast = step(fast, type(batch)(*(part[start : start + 3] for part in batch[:4])))
        value, slope = jax.value_and_grad(network)(fast, batch)
        losses.append(value)
        slopes.append(slope)
    assert float(info["loss"]) == pytest.approx(float(sum(losses) / 2), rel=1e-6)
    expected = jax.tree.map(lambda p, a, b: p - 0.2 * (a + b) / 2, params, *slopes)
    assert_close(state.params, expected)
    assert int(state.memory.num_seen) == 6


def test_later_glances_may_replay_it():
    batch = network_batch(1)
    state, _ = UPDATE(LEARNER.init(network_params(), batch), batch, KEY)
    later = batch._replace(first=False)
    again, _ = UPDATE(state, later, KEY)
    fresh = state._replace(memory=LEARNER.init(state.params, batch).memory)
    without, _ = UPDATE(fresh, later, KEY)
    # Six rows twice weigh as six once: the same losses, so the same weights, to rounding.
    assert_close(again.params, without.params, atol=1e-6)
    assert_same_bits(again.memory, state.memory)


@pytest.mark.parametrize("last", [True, False])
def test_rows_are_pushed_in_their_first_glance_only(last):
    state = filled()
    batch = network_batch(1, first=False, last=last)
    after, _ = UPDATE(state, batch, KEY)
    assert_same_bits(after.memory, state.memory)
    after, _ = UPDATE(state, batch._replace(first=True), KEY)
    assert int(after.memory.num_seen) == int(state.memory.num_seen) + 6


def test_the_meta_gradient_is_clipped_to_its_norm():
    learner = c_maml(linear, inner_rate=0.5, outer_rate=1.0, inner_steps=1, memory_size=1)
    batch = batch_of([[30.0, 40.0]])
    state, info = learner.update(learner.init(jnp.zeros(2), batch), batch, KEY)
    np.testing.assert_allclose(state.params, [-1.2, -1.6], rtol=1e-6)
    assert float(info["gradient_norm"]) == pytest.approx(50.0)


@ORDERS
def test_inner_gradients_are_clamped_element_by_element(first_order):
    """ℓ of slope 9 clamped to 2, then a parabola's slope at where that leads."""
    learner = c_maml(
        quadratic,
        inner_rate=0.5,
        outer_rate=0.1,
        inner_steps=1,
        memory_size=1,
        first_order=first_order,
        max_norm=None,
        inner_clamp=2.0,
    )
    batch = batch_of([(1.0, 0.0)])
    state, _ = learner.update(learner.init(jnp.array(9.0), batch), batch, KEY)
    # θ₁ = 9 − ½·2 = 8; a saturated clamp has no derivative, so both orders give L'(8) = 8.
    assert float(state.params) == pytest.approx(9.0 - 0.1 * 8.0, rel=1e-6)
