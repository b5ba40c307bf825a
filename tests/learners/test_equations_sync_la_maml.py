"""Sync La-MAML: rates learned beside the weights, neither step seeing the other."""

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
    remembering,
)

from lamaml.learners import sync_la_maml
from lamaml.learners.gradients import global_norm
from lamaml.learners.inner_loop import meta_gradient

KEY = jax.random.key(0)


def network_learner(**changes):
    settings = {"initial_rate": 0.1, "outer_rate": 0.2, "hyper_rate": 0.3, "first_order": True}
    return sync_la_maml(network, inner_steps=2, memory_size=8, **(settings | changes))


def after_two_updates(**changes):
    learner = network_learner(**changes)
    update = jax.jit(learner.update)
    state, _ = update(learner.init(network_params(), network_batch(1)), network_batch(1), KEY)
    return state, update(state, network_batch(2, first=False), KEY)[0]


def test_the_step_of_the_weights_ignores_the_step_of_the_rates():
    slow, fast = (after_two_updates(hyper_rate=rate)[0] for rate in (0.0, 0.5))
    assert_same_bits(slow.params, fast.params)
    assert (slow.rates["head"]["bias"] != fast.rates["head"]["bias"]).any()


def test_the_step_of_the_rates_ignores_the_step_of_the_weights():
    slow, fast = (after_two_updates(outer_rate=rate)[0] for rate in (0.01, 0.5))
    assert_same_bits(slow.rates, fast.rates)
    assert (slow.params["head"]["bias"] != fast.params["head"]["bias"]).any()


def test_both_are_steps_along_the_clipped_gradients_at_the_old_values():
    before, after = after_two_updates(max_norm=0.05)
    # The memory holds the six rows of the first batch, of eight: all of them are drawn.
    held = network_batch(1)
    new = network_batch(2)
    joined = type(new)(*(jnp.concatenate(pair) for pair in zip(held[:4], new[:4], strict=True)))
    ahead = meta_gradient(
        network, before.params, before.rates, new, joined, inner_steps=2, first_order=True
    )
    for old, new_tree, gradient, rate in (
        (before.params, after.params, ahead.params, 0.2),
        (before.rates, after.rates, ahead.rates, 0.3),
    ):
        scale = rate * min(1.0, 0.05 / float(global_norm(gradient)))
        expected = jax.tree.map(lambda p, g, s=scale: p - s * g, old, gradient)
        assert_close(new_tree, expected, rtol=1e-5, atol=1e-6)
    assert float(global_norm(ahead.params)) > 0.05  # so that the case is one of clipping


def test_there_is_one_rate_a_weight():
    params = network_params()
    rates = network_learner(initial_rate=0.25).init(params, network_batch(1)).rates
    assert jax.tree.map(jnp.shape, rates) == jax.tree.map(jnp.shape, params)
    assert all((leaf == 0.25).all() for leaf in jax.tree.leaves(rates))


@pytest.mark.parametrize("first_order", [True, False])
@pytest.mark.parametrize("steps", [1, 4])
def test_from_rates_of_0_the_weights_take_an_sgd_step_and_the_rates_an_aligned_one(
    steps, first_order
):
    """α moves by +η·(K + 1)/2·∇L ⊙ ḡ, all inner gradients being ḡ."""
    inner, old = np.array([1.0, -2.0, 0.5]), np.array([4.0, 1.0, 0.0])
    rows = batch_of([inner] * steps)
    learner = sync_la_maml(
        linear,
        initial_rate=0.0,
        outer_rate=0.1,
        hyper_rate=0.2,
        inner_steps=steps,
        memory_size=1,
        replay_size=1,
        first_order=first_order,
        max_norm=None,
    )
    state = remembering(learner.init(jnp.ones(3), rows), [old])
    after, info = learner.update(state, rows, KEY)
    outer = (steps * inner + old) / (steps + 1)
    np.testing.assert_allclose(after.params, 1 - 0.1 * outer, rtol=1e-6)
    np.testing.assert_allclose(after.rates, 0.2 * (steps + 1) / 2 * outer * inner, rtol=1e-5)
    assert float(info["loss"]) == pytest.approx(outer.sum(), rel=1e-6)  # at θ itself


def test_the_weights_move_at_the_outer_rate_even_where_rates_are_negative():
    """There is no max(0, α) in the meta-step, and α itself drives the fast updates: an ascent."""
    learner = sync_la_maml(
        linear, initial_rate=0.1, outer_rate=0.1, hyper_rate=0.1, inner_steps=1, memory_size=1
    )
    rows = batch_of([[1.0, 1.0]])
    state = learner.init(jnp.zeros(2), rows)._replace(rates=jnp.array([-0.5, 0.5]))
    after, info = learner.update(state, rows, KEY)
    np.testing.assert_allclose(after.params, [-0.1, -0.1], rtol=1e-6)
    assert float(info["loss"]) == pytest.approx(0.5 - 0.5, abs=1e-6)
    np.testing.assert_allclose(after.rates, [-0.4, 0.6], rtol=1e-6)


def test_rates_at_or_below_0_are_dead_where_the_inner_loop_clips_them():
    learner = sync_la_maml(
        linear,
        initial_rate=0.1,
        outer_rate=0.1,
        hyper_rate=0.1,
        inner_steps=1,
        memory_size=1,
        clip_inner_rates=True,
    )
    rows = batch_of([[1.0, 1.0]])
    state = learner.init(jnp.zeros(2), rows)._replace(rates=jnp.array([-0.5, 0.5]))
    after, info = learner.update(state, rows, KEY)
    assert float(after.rates[0]) == -0.5
    assert float(after.rates[1]) == pytest.approx(0.6)
    assert float(info["loss"]) == pytest.approx(-0.5)  # only the second weight looked ahead


def test_rows_are_pushed_in_their_first_glance_only():
    first, second = after_two_updates()
    assert int(first.memory.num_seen) == 6
    assert_same_bits(first.memory, second.memory)
