"""Sync La-MAML: rates learned beside the weights, neither step seeing the other."""

import jax.numpy as jnp
import numpy as np
import pytest
from problems import (
    BOWLS,
    CURVED_PARAMS,
    KEY,
    assert_same_bits,
    batch_of,
    bowl,
    bowl_slope,
    compiled,
    linear,
    posed,
)

from lamaml.learners import sync_la_maml

THETA = np.array([1.5, -0.7])
RATES = np.array([0.3, 0.05])
CLIP = 0.5


def after_one_update(outer_rate=0.2, hyper_rate=0.3):
    learner = compiled(
        sync_la_maml,
        bowl,
        initial_rate=0.1,
        outer_rate=outer_rate,
        hyper_rate=hyper_rate,
        inner_steps=2,
        memory_size=8,
        first_order=True,
        max_norm=CLIP,
    )
    state = learner.init(jnp.asarray(THETA), batch_of(BOWLS))
    return learner.update(state._replace(rates=jnp.asarray(RATES)), batch_of(BOWLS), KEY)[0]


def test_both_are_steps_along_their_own_clipped_gradient_at_the_old_values():
    fast, travelled, by_theta, by_rates = THETA, np.zeros(2), np.zeros(2), np.zeros(2)
    for rows in (BOWLS[:3], BOWLS[3:]):
        slope = bowl_slope(fast, rows)
        fast, travelled = fast - RATES * slope, travelled + slope
        by_theta += bowl_slope(fast, BOWLS) / 2
        by_rates -= bowl_slope(fast, BOWLS) * travelled / 2
    lengths = np.linalg.norm(by_theta), np.linalg.norm(by_rates)
    assert min(lengths) > CLIP  # so that the case is one of clipping, by two different factors
    after = after_one_update()
    np.testing.assert_allclose(after.params, THETA - 0.2 * by_theta * CLIP / lengths[0], rtol=1e-5)
    np.testing.assert_allclose(after.rates, RATES - 0.3 * by_rates * CLIP / lengths[1], rtol=1e-5)


def test_the_step_of_the_weights_ignores_the_step_of_the_rates():
    usual, other = after_one_update(), after_one_update(hyper_rate=0.0)
    assert_same_bits(usual.params, other.params)
    assert (usual.rates != other.rates).all()


def test_the_step_of_the_rates_ignores_the_step_of_the_weights():
    usual, other = after_one_update(), after_one_update(outer_rate=0.01)
    assert_same_bits(usual.rates, other.rates)
    assert (usual.params != other.params).all()


def test_rows_are_pushed_in_their_first_glance_only():
    learner = linear_learner()
    state, rows = posed(learner, [1.0] * 4, [1.0] * 4)
    after, _ = learner.update(state, rows._replace(first=False, last=True), KEY)
    assert_same_bits(after.memory, state.memory)
    after, _ = learner.update(state, rows._replace(first=True, last=False), KEY)
    assert int(after.memory.num_seen) == int(state.memory.num_seen) + 2


def test_there_is_one_rate_a_weight():
    rates = linear_learner(initial_rate=0.25).init(CURVED_PARAMS, batch_of(BOWLS)).rates
    assert_same_bits(rates, {"w": jnp.array([0.25, 0.25]), "b": jnp.array(0.25)})


def linear_learner(**changes):
    settings = {"initial_rate": 0.0, "outer_rate": 0.1, "hyper_rate": 0.2, "inner_steps": 2}
    settings |= {"memory_size": 1, "replay_size": 1, "max_norm": None}
    return compiled(sync_la_maml, linear, **(settings | changes))


@pytest.mark.parametrize("first_order", [True, False], ids=["first", "second"])
def test_from_rates_of_0_weights_take_an_sgd_step_and_rates_an_aligned_one(first_order):
    """α moves by +η·(K + 1)/2·∇L ⊙ ḡ, all inner gradients being ḡ."""
    inner, outer = np.array([1.0, -2.0, 0.5, 3.0]), np.array([4.0, 1.0, 0.0, 0.5])
    learner = linear_learner(first_order=first_order)
    state, rows = posed(learner, inner, outer, params=np.ones(4, np.float32))
    after, info = learner.update(state, rows, KEY)
    np.testing.assert_allclose(after.params, 1 - 0.1 * outer, rtol=1e-6)
    np.testing.assert_allclose(after.rates, 0.2 * (2 + 1) / 2 * outer * inner, rtol=1e-5)
    assert float(info["loss"]) == pytest.approx(outer.sum(), rel=1e-6)  # at θ itself


def test_a_negative_rate_climbs_in_the_look_ahead_and_not_in_the_meta_step():
    learner = linear_learner(first_order=True)
    state, rows = posed(learner, [1.0] * 4, [1.0] * 4, rates=[-0.5, 0.5, -0.5, 0.5])
    after, info = learner.update(state, rows, KEY)
    np.testing.assert_allclose(after.params, [-0.1] * 4, rtol=1e-6)
    np.testing.assert_allclose(after.rates, [-0.2, 0.8, -0.2, 0.8], rtol=1e-6)
    assert float(info["loss"]) == pytest.approx(0.0, abs=1e-6)  # what two gain the others lose


def test_a_rate_at_or_below_0_is_dead_where_the_look_ahead_clips_it():
    learner = linear_learner(clip_inner_rates=True)
    state, rows = posed(learner, [1.0] * 4, [1.0] * 4, rates=[-0.5, 0.0, 0.5, 0.5])
    after, info = learner.update(state, rows, KEY)
    assert after.rates[:2].tolist() == [-0.5, 0.0]
    np.testing.assert_allclose(after.rates[2:], 0.8, rtol=1e-6)
    np.testing.assert_allclose(after.params, [-0.1] * 4, rtol=1e-6)
    assert float(info["loss"]) == pytest.approx(-1.5)  # two weights look ahead: −½·(1 + 2)·½·2
