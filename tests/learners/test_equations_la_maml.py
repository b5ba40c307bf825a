"""La-MAML: rates that grow with alignment, and a step by the new ones."""

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
    posed,
)

from lamaml.learners import la_maml

ORDERS = pytest.mark.parametrize("first_order", [True, False], ids=["first", "second"])
RATE, HYPER = 0.3, 0.1
TRAVELLED = 1.5  # (K + 1)/2 for the mean over K = 2 steps


def linear_learner(**changes):
    settings = {"initial_rate": RATE, "hyper_rate": HYPER, "inner_steps": 2, "first_order": True}
    settings |= {"memory_size": 1, "replay_size": 1, "max_norm": None}
    return compiled(la_maml, linear, **(settings | changes))


def update(inner, outer, rates=None, **changes):
    """One update from θ = 0, of linear losses with these slopes."""
    learner = linear_learner(**changes)
    state, rows = posed(learner, inner, outer, rates=rates)
    return learner.update(state, rows, KEY)[0]


@ORDERS
def test_linear_losses(first_order):
    """α' = α + η·(K + 1)/2·u ⊙ w, then θ' = θ − max(0, α') ⊙ w."""
    u, w = np.array([1.0, -2.0, 0.5, 0.0]), np.array([3.0, 2.0, 0.25, 7.0])
    after = update(u, w, first_order=first_order)
    rates = RATE + HYPER * TRAVELLED * u * w
    assert rates.min() < 0
    np.testing.assert_allclose(after.rates, rates, rtol=1e-5)
    np.testing.assert_allclose(after.params, -np.maximum(0, rates) * w, rtol=1e-5)


def test_rates_rise_with_alignment_fall_with_interference_and_else_stay():
    after = update([1.0, 1.0, 1.0, 0.0], [2.0, -2.0, 0.0, 2.0])
    assert float(after.rates[0]) > np.float32(RATE) > float(after.rates[1])
    assert (np.asarray(after.rates[2:]) == np.float32(RATE)).all()


def test_a_rate_that_is_not_positive_leaves_its_weight_bit_identical():
    """The rate after this very update decides: the first two were positive before it."""
    start = jnp.array([0.1, 0.2, 0.3, 0.7])
    learner = linear_learner()
    rates = [RATE, HYPER * TRAVELLED * 5.0, -0.2, RATE]  # the second becomes 0 but for rounding
    state, rows = posed(learner, [1.0] * 4, [-5.0, -5.0, 1.0, 5.0], params=start, rates=rates)
    after, _ = learner.update(state, rows, KEY)
    assert float(after.rates[0]) < 0
    assert float(after.rates[2]) < 0
    still = np.asarray(after.rates) <= 0
    np.testing.assert_array_equal(after.params[still], start[still])
    assert (after.params[~still] != start[~still]).all()


@ORDERS
def test_a_negative_rate_recovers_where_the_look_ahead_uses_it_as_it_is(first_order):
    after = update([1.0] * 4, [5.0] * 4, rates=[-0.2] * 4, first_order=first_order)
    np.testing.assert_allclose(after.rates, -0.2 + HYPER * TRAVELLED * 5.0, rtol=1e-5)
    np.testing.assert_allclose(after.params, -after.rates * 5.0, rtol=1e-6)


@ORDERS
def test_a_rate_at_or_below_0_is_dead_where_the_look_ahead_clips_it(first_order):
    learner = linear_learner(clip_inner_rates=True, first_order=first_order)
    state, rows = posed(learner, [1.0] * 4, [1.0] * 4, rates=[-0.2, 0.0, 0.2, 0.2])
    for seed in range(3):
        state, _ = learner.update(state, rows, jax.random.key(seed))
    assert (np.asarray(state.rates[:2]) == np.float32([-0.2, 0.0])).all()
    assert (np.asarray(state.params[:2]) == 0).all()
    np.testing.assert_allclose(state.rates[2:], 0.2 + 3 * HYPER * TRAVELLED, rtol=1e-5)


def test_rates_are_stored_as_they_are_not_cut_at_0():
    after = update([1.0] * 4, [-10.0] * 4)
    np.testing.assert_allclose(after.rates, RATE - HYPER * TRAVELLED * 10.0, rtol=1e-5)


def test_rates_move_by_at_most_hyper_rate_times_max_norm():
    after = update([100.0, -30.0, 7.0, 1.0], [50.0, 60.0, -9.0, 0.0], max_norm=2.0)
    moved = np.linalg.norm(np.asarray(after.rates, float) - RATE)
    assert moved == pytest.approx(HYPER * 2.0, rel=1e-4)  # one norm over all rates, and tight
    after = update([0.1] * 4, [0.1] * 4, max_norm=2.0)
    np.testing.assert_allclose(after.rates, RATE + HYPER * TRAVELLED * 0.01, rtol=1e-6)


def test_rows_are_pushed_in_their_first_glance_only():
    learner = linear_learner()
    state, rows = posed(learner, [1.0] * 4, [1.0] * 4)
    after, _ = learner.update(state, rows._replace(first=False, last=True), KEY)
    assert_same_bits(after.memory, state.memory)
    after, _ = learner.update(state, rows._replace(first=True, last=False), KEY)
    assert int(after.memory.num_seen) == int(state.memory.num_seen) + 2


THETA, RATES, CLIP = np.array([1.5, -0.7]), np.array([0.3, 0.05]), 0.5
BOWL = compiled(
    la_maml,
    bowl,
    initial_rate=0.1,
    hyper_rate=0.4,
    inner_steps=2,
    memory_size=8,
    first_order=True,
    max_norm=CLIP,
)


def equations(theta, rates, batch, meta_batch):
    """(a) and (b) of the paper's Algorithm 1, in NumPy, both gradients at the old rates."""
    fast, travelled, by_theta, by_rates = theta, np.zeros(2), np.zeros(2), np.zeros(2)
    for rows in (batch[:3], batch[3:]):
        slope = bowl_slope(fast, rows)
        fast, travelled = fast - rates * slope, travelled + slope
        by_theta += bowl_slope(fast, meta_batch) / 2
        by_rates -= bowl_slope(fast, meta_batch) * travelled / 2
    lengths = np.linalg.norm(by_theta), np.linalg.norm(by_rates)
    rates = rates - 0.4 * by_rates * min(1, CLIP / lengths[1])
    return theta - np.maximum(0, rates) * by_theta * min(1, CLIP / lengths[0]), rates, lengths


def test_an_update_is_the_two_equations():
    """With an empty memory b_m is b alone, though b is pushed; then it is all twelve rows."""
    state = BOWL.init(jnp.asarray(THETA), batch_of(BOWLS))._replace(rates=jnp.asarray(RATES))
    first, info = BOWL.update(state, batch_of(BOWLS), KEY)
    theta, rates, lengths = equations(THETA, RATES, BOWLS, BOWLS)
    assert min(lengths) > CLIP  # so that both are clipped, by different factors
    np.testing.assert_allclose(first.params, theta, rtol=1e-5)
    np.testing.assert_allclose(first.rates, rates, rtol=1e-5)
    assert float(info["gradient_norm"]) == pytest.approx(lengths[0], rel=1e-5)
    assert float(info["rate_mean"]) == pytest.approx(np.maximum(rates, 0).mean(), rel=1e-5)

    new = BOWLS[::-1] + 0.1
    second, _ = BOWL.update(first, batch_of(new), KEY)
    before = np.asarray(first.params, float), np.asarray(first.rates, float)
    theta, rates, _ = equations(*before, new, np.vstack([new, BOWLS]))
    np.testing.assert_allclose(second.params, theta, rtol=1e-5)
    np.testing.assert_allclose(second.rates, rates, rtol=1e-5)


def test_rates_go_on_from_where_they_are_when_the_task_changes():
    batch = batch_of(BOWLS)
    state = BOWL.init(jnp.asarray(THETA), batch)._replace(rates=jnp.asarray(RATES))
    same, _ = BOWL.update(state, batch, KEY)
    changed, _ = BOWL.update(state, batch._replace(task=batch.task + 1), KEY)
    assert_same_bits(same.rates, changed.rates)
    assert (same.rates != jnp.asarray(RATES, jnp.float32)).all()
