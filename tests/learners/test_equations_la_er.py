"""La-ER: ER's gradient, at rates that looked ahead."""

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
    posed,
)

from lamaml.learners import la_er

THETA, RATES, CLIP = np.array([1.5, -0.7]), np.array([0.3, 0.05]), 0.5


def bowl_learner(**changes):
    settings = {"initial_rate": 0.1, "hyper_rate": 0.4, "inner_steps": 2, "memory_size": 8}
    return compiled(la_er, bowl, max_norm=CLIP, **(settings | changes))


def updated(learner, rates=RATES):
    state = learner.init(jnp.asarray(THETA), batch_of(BOWLS))
    return learner.update(state._replace(rates=jnp.asarray(rates)), batch_of(BOWLS), KEY)


def test_the_rate_gradient_is_the_last_slope_times_the_gradients_on_the_way():
    """∇α = −L'(θ_K) ⊙ Σ g_i; then θ' = θ − max(0, α') ⊙ clip(∇L(θ)) at the old θ."""
    fast, travelled = THETA, np.zeros(2)
    for rows in (BOWLS[:3], BOWLS[3:]):
        slope = bowl_slope(fast, rows)
        fast, travelled = fast - RATES * slope, travelled + slope
    by_rates, by_theta = -bowl_slope(fast, BOWLS) * travelled, bowl_slope(THETA, BOWLS)
    lengths = np.linalg.norm(by_theta), np.linalg.norm(by_rates)
    assert min(lengths) > CLIP  # so that both are clipped, by different factors
    rates = RATES - 0.4 * by_rates * CLIP / lengths[1]
    after, info = updated(bowl_learner())
    np.testing.assert_allclose(after.rates, rates, rtol=1e-5)
    expected = THETA - np.maximum(0, rates) * by_theta * CLIP / lengths[0]
    np.testing.assert_allclose(after.params, expected, rtol=1e-5)
    assert float(info["gradient_norm"]) == pytest.approx(lengths[0], rel=1e-5)


def test_the_gradient_of_the_weights_does_not_depend_on_the_inner_steps():
    one, three = (updated(bowl_learner(hyper_rate=0.0, inner_steps=steps))[0] for steps in (1, 3))
    np.testing.assert_allclose(one.params, three.params, rtol=1e-6)
    assert (one.params != jnp.asarray(THETA, jnp.float32)).all()


def test_rates_that_are_all_not_positive_freeze_the_weights():
    after, info = updated(bowl_learner(), rates=[-5.0, -5.0])
    assert float(info["rates_at_zero"]) == 1.0
    assert_same_bits(after.params, jnp.asarray(THETA, jnp.float32))


def test_rows_are_pushed_in_their_last_glance_only():
    learner = bowl_learner()
    state = learner.init(jnp.asarray(THETA), batch_of(BOWLS))
    after, _ = learner.update(state, batch_of(BOWLS, first=True, last=False), KEY)
    assert_same_bits(after.memory, state.memory)
    after, _ = learner.update(state, batch_of(BOWLS, first=False, last=True), KEY)
    assert int(after.memory.num_seen) == 6


def linear_learner(**changes):
    settings = {"initial_rate": 0.3, "hyper_rate": 0.1, "memory_size": 1, "replay_size": 1}
    return compiled(la_er, linear, max_norm=None, **(settings | changes))


def test_one_step_of_linear_losses():
    """θ' = θ − max(0, α + ηuw)·w, for slopes that agree, oppose and do not meet."""
    learner = linear_learner(inner_steps=1)
    u, w = np.array([1.0, 2.0, 0.0, 1.0]), np.array([2.0, -3.0, 4.0, -1.0])
    state, rows = posed(learner, u, w, params=np.ones(4, np.float32))
    after, _ = learner.update(state, rows, KEY)
    rates = 0.3 + 0.1 * u * w
    assert rates.min() < 0
    np.testing.assert_allclose(after.rates, rates, rtol=1e-5)
    np.testing.assert_allclose(after.params, 1 - np.maximum(0, rates) * w, rtol=1e-6)


def test_inner_gradients_are_clamped():
    learner = linear_learner(inner_steps=2, inner_clamp=2.0)
    state, rows = posed(learner, [5.0, -1.0, -3.0, 0.0], [1.0] * 4)
    after, _ = learner.update(state, rows, KEY)
    np.testing.assert_allclose(after.rates, 0.3 + 0.1 * 2 * np.array([2, -1, -2, 0]), rtol=1e-5)
