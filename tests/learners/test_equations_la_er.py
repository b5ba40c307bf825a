"""La-ER: ER's gradient, at rates that looked ahead."""

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

from lamaml.learners import la_er
from lamaml.learners.gradients import global_norm

KEY = jax.random.key(0)


def network_learner(**changes):
    settings = {"initial_rate": 0.1, "hyper_rate": 0.3, "inner_steps": 2, "memory_size": 8}
    return la_er(network, **(settings | changes))


def test_the_gradient_of_the_weights_does_not_depend_on_the_inner_steps():
    found = []
    for steps in (1, 3):
        learner = network_learner(hyper_rate=0.0, inner_steps=steps)
        batch = network_batch(1)
        state, _ = jax.jit(learner.update)(learner.init(network_params(), batch), batch, KEY)
        found.append(state.params)
    assert_close(*found)


def test_the_rate_gradient_is_the_last_slope_times_the_gradients_on_the_way():
    """∇α = −L'(θ_K) ⊙ Σ g_i, then θ' = θ − max(0, α') ⊙ clip(∇L(θ)), by a plain loop."""
    learner = network_learner(max_norm=0.2)
    params, held, new = network_params(), network_batch(1), network_batch(2)
    update = jax.jit(learner.update)
    state, _ = update(learner.init(params, held), held, KEY)
    before = state
    state, info = update(state, new, KEY)
    joined = type(new)(*(jnp.concatenate(pair) for pair in zip(held[:4], new[:4], strict=True)))
    slope_of = jax.jit(jax.grad(network))

    fast, travelled = before.params, jax.tree.map(jnp.zeros_like, params)
    for start in (0, 3):
        rows = type(new)(*(part[start : start + 3] for part in new[:4]))
        gradient = slope_of(fast, rows)
        fast = jax.tree.map(lambda p, r, g: p - r * g, fast, before.rates, gradient)
        travelled = jax.tree.map(jnp.add, travelled, gradient)

    def clipped(tree):
        scale = min(1.0, 0.2 / float(global_norm(tree)))
        return jax.tree.map(lambda g: g * scale, tree)

    by_rates = jax.tree.map(lambda s, g: -s * g, slope_of(fast, joined), travelled)
    rates = jax.tree.map(lambda r, g: r - 0.3 * g, before.rates, clipped(by_rates))
    by_params = slope_of(before.params, joined)
    expected = jax.tree.map(
        lambda p, r, g: p - jnp.maximum(0, r) * g, before.params, rates, clipped(by_params)
    )
    assert_close(state.rates, rates, rtol=1e-5, atol=1e-6)
    assert_close(state.params, expected, rtol=1e-5, atol=1e-6)
    assert float(info["loss"]) == pytest.approx(float(network(before.params, joined)), rel=1e-5)
    assert float(global_norm(by_params)) > 0.2  # so that the case is one of clipping


def test_rates_that_are_all_not_positive_freeze_the_weights():
    learner = network_learner()
    params, batch = network_params(), network_batch(1)
    state = learner.init(params, batch)
    state = state._replace(rates=jax.tree.map(lambda p: jnp.full_like(p, -5.0), params))
    after, info = jax.jit(learner.update)(state, batch, KEY)
    assert float(info["rates_at_zero"]) == 1.0
    assert_same_bits(after.params, params)


def test_one_step_of_linear_losses():
    """θ' = θ − max(0, α + ηuw)·w, for slopes that agree, oppose and do not meet."""
    learner = la_er(
        linear,
        initial_rate=0.3,
        hyper_rate=0.1,
        inner_steps=1,
        memory_size=1,
        replay_size=1,
        max_norm=None,
    )
    u, w = np.array([1.0, 2.0, 0.0, 1.0]), np.array([2.0, -3.0, 4.0, -1.0])
    rows = batch_of([u])
    state = remembering(learner.init(jnp.ones(4), rows), [2 * w - u])
    after, _ = learner.update(state, rows, KEY)
    rates = 0.3 + 0.1 * u * w
    assert rates.min() < 0
    np.testing.assert_allclose(after.rates, rates, rtol=1e-5)
    np.testing.assert_allclose(after.params, 1 - np.maximum(0, rates) * w, rtol=1e-6)


def test_inner_gradients_are_clamped():
    learner = la_er(
        linear,
        initial_rate=0.3,
        hyper_rate=0.1,
        inner_steps=2,
        memory_size=1,
        max_norm=None,
        inner_clamp=2.0,
    )
    rows = batch_of([[5.0], [-1.0]])
    after, _ = learner.update(learner.init(jnp.zeros(1), rows), rows, KEY)
    assert float(after.rates[0]) == pytest.approx(0.3 + 0.1 * 2.0 * (2.0 - 1.0))  # L' = 2, Σg = 1


def test_rows_are_pushed_in_their_last_glance_only():
    learner = network_learner()
    update, batch = jax.jit(learner.update), network_batch(1)
    state = learner.init(network_params(), batch)
    after, _ = update(state, batch._replace(first=True, last=False), KEY)
    assert_same_bits(after.memory, state.memory)
    after, _ = update(state, batch._replace(first=False, last=True), KEY)
    assert int(after.memory.num_seen) == 6
