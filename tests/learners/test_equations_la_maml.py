"""La-MAML: rates that grow with alignment, and a step by the new ones."""

import itertools

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

from lamaml.learners import la_maml
from lamaml.learners.gradients import global_norm
from lamaml.learners.inner_loop import META_LOSSES, meta_gradient

KEY = jax.random.key(0)
ORDERS = pytest.mark.parametrize("first_order", [True, False], ids=["first", "second"])


def linear_learner(**changes):
    settings = {
        "initial_rate": 0.3,
        "hyper_rate": 0.1,
        "inner_steps": 1,
        "memory_size": 1,
        "replay_size": 1,
        "max_norm": None,
    }
    return la_maml(linear, **(settings | changes))


def linear_update(inner, outer, *, rates=None, steps=1, **changes):
    """One update from θ = 0 with ∇ℓ = inner and, by the remembered row, ∇L = outer."""
    inner, outer = np.asarray(inner, float), np.asarray(outer, float)
    rows = batch_of([inner] * steps)
    learner = linear_learner(inner_steps=steps, **changes)
    state = remembering(
        learner.init(jnp.zeros(len(inner)), rows), [(steps + 1) * outer - steps * inner]
    )
    if rates is not None:
        state = state._replace(rates=jnp.asarray(rates, float))
    return state, learner.update(state, rows, KEY)[0]


@ORDERS
@pytest.mark.parametrize("meta_loss", META_LOSSES)
def test_linear_losses(meta_loss, first_order):
    """α' = α + η·(K, (K + 1)/2 or K(K + 1)/2)·u ⊙ w, then θ' = θ − max(0, α') ⊙ ∇."""
    u, w, steps = np.array([1.0, -2.0, 0.5]), np.array([3.0, 1.0, 0.25]), 4
    _, after = linear_update(u, w, steps=steps, meta_loss=meta_loss, first_order=first_order)
    travelled = {"last": steps, "mean": (steps + 1) / 2, "sum": steps * (steps + 1) / 2}[meta_loss]
    rates = 0.3 + 0.1 * travelled * u * w
    np.testing.assert_allclose(after.rates, rates, rtol=1e-5)
    times = steps if meta_loss == "sum" else 1
    np.testing.assert_allclose(after.params, -np.maximum(0, rates) * times * w, rtol=1e-5)


def test_rates_rise_with_alignment_fall_with_interference_and_else_stay():
    _, after = linear_update([1.0, 1.0, 1.0, 0.0], [2.0, -2.0, 0.0, 2.0])
    assert float(after.rates[0]) > np.float32(0.3) > float(after.rates[1])
    assert (np.asarray(after.rates[2:]) == np.float32(0.3)).all()


def test_a_rate_that_is_not_positive_leaves_its_weight_bit_identical():
    """α' of the very same update counts: the second rate was positive before it."""
    learner = la_maml(network, initial_rate=0.1, hyper_rate=0.1, inner_steps=2, memory_size=4)
    params, batch = network_params(), network_batch(1)
    state = learner.init(params, batch)
    rates = jax.tree.map(jnp.copy, state.rates)
    rates["head"]["bias"] = jnp.array([-1.0, 0.1, -1.0, 0.1, -1.0, 0.1])
    after, _ = learner.update(state._replace(rates=rates), batch, KEY)
    still, moved = after.params["head"]["bias"][::2], after.params["head"]["bias"][1::2]
    np.testing.assert_array_equal(still, params["head"]["bias"][::2])
    assert (moved != params["head"]["bias"][1::2]).all()

    before, after = linear_update([1.0, 1.0], [-5.0, 5.0])  # α' = 0.3 ∓ 0.5
    assert float(before.rates[0]) > 0 > float(after.rates[0])
    assert float(after.params[0]) == 0.0
    assert float(after.params[1]) == pytest.approx(-0.8 * 5.0)


@ORDERS
def test_a_negative_rate_recovers_where_the_inner_loop_uses_it_as_it_is(first_order):
    _, after = linear_update([1.0], [5.0], rates=[-0.2], first_order=first_order)
    assert float(after.rates[0]) == pytest.approx(0.3)
    assert float(after.params[0]) == pytest.approx(-0.3 * 5.0)


@ORDERS
def test_a_rate_at_or_below_0_is_dead_where_the_inner_loop_clips_it(first_order):
    learner = linear_learner(clip_inner_rates=True, first_order=first_order)
    rows = batch_of([[1.0, 1.0, 1.0]])
    state = learner.init(jnp.zeros(3), rows)._replace(rates=jnp.array([-0.2, 0.0, 0.2]))
    for step in range(3):
        state, _ = learner.update(state, rows, jax.random.key(step))
    assert (np.asarray(state.rates[:2]) == np.float32([-0.2, 0.0])).all()
    assert (np.asarray(state.params[:2]) == 0).all()
    assert float(state.rates[2]) == pytest.approx(0.5)


def test_rates_are_stored_as_they_are_not_cut_at_0():
    _, after = linear_update([1.0], [-10.0])
    assert float(after.rates[0]) == pytest.approx(0.3 - 1.0)


def test_an_update_is_the_two_equations_on_the_gradients_at_the_old_rates():
    """Both gradients clipped on their own, each by one norm over all its leaves."""
    settings = {"inner_steps": 2, "first_order": True}
    learner = la_maml(
        network, initial_rate=0.1, hyper_rate=0.3, memory_size=8, max_norm=0.05, **settings
    )
    update, held, new = jax.jit(learner.update), network_batch(1), network_batch(2)
    before, _ = update(learner.init(network_params(), held), held, KEY)
    after, info = update(before, new, KEY)
    # The memory holds the six rows of the first batch, of eight: all of them are drawn.
    joined = type(new)(*(jnp.concatenate(pair) for pair in zip(held[:4], new[:4], strict=True)))
    ahead = meta_gradient(network, before.params, before.rates, new, joined, **settings)

    def clipped(tree):
        scale = min(1.0, 0.05 / float(global_norm(tree)))
        return jax.tree.map(lambda g: g * scale, tree)

    rates = jax.tree.map(lambda r, g: r - 0.3 * g, before.rates, clipped(ahead.rates))
    params = jax.tree.map(
        lambda p, r, g: p - jnp.maximum(0, r) * g, before.params, rates, clipped(ahead.params)
    )
    assert_close(after.rates, rates, rtol=1e-5, atol=1e-6)
    assert_close(after.params, params, rtol=1e-5, atol=1e-6)
    assert float(info["loss"]) == pytest.approx(float(ahead.loss), rel=1e-5)
    assert float(global_norm(ahead.params)) > 0.05  # so that the case is one of clipping


@pytest.mark.parametrize("max_norm", [0.01, 2.0])
def test_rates_move_by_at_most_hyper_rate_times_max_norm(max_norm):
    _, after = linear_update([100.0, -30.0, 7.0], [50.0, 60.0, -9.0], max_norm=max_norm)
    moved = np.linalg.norm(np.asarray(after.rates, float) - 0.3)
    assert moved == pytest.approx(0.1 * max_norm, rel=1e-4)  # at the bound, so it is tight
    _, after = linear_update([0.01], [0.01], max_norm=max_norm)
    assert abs(float(after.rates[0]) - 0.3) < 0.1 * max_norm


def test_rates_go_on_from_where_they_are_whatever_the_task():
    learner = la_maml(
        network, initial_rate=0.1, hyper_rate=0.3, inner_steps=2, memory_size=8, first_order=True
    )
    update, state, seen = jax.jit(learner.update), None, []
    for task in range(3):
        batch = network_batch(task)
        batch = batch._replace(task=jnp.full(6, task), y=2 * task + batch.y % 2)
        state = learner.init(network_params(), batch) if state is None else state
        state, info = update(state, batch, jax.random.key(task))
        seen.append(np.array(state.rates["hidden_1"]["weight"]))
    assert (seen[0] != np.float32(0.1)).any()
    for before, after in itertools.pairwise(seen):
        limit = 0.3 * 2.0
        assert 0 < np.linalg.norm(after - before) <= limit
    rates = np.concatenate([leaf.ravel() for leaf in jax.tree.leaves(state.rates)])
    assert float(info["rates_at_zero"]) == pytest.approx((rates <= 0).mean())
    assert float(info["rate_mean"]) == pytest.approx(np.maximum(rates, 0).mean(), rel=1e-5)


def test_rows_are_pushed_in_their_first_glance_only():
    learner = linear_learner(memory_size=4)
    rows = batch_of([[1.0], [2.0]])
    state, _ = learner.update(learner.init(jnp.zeros(1), rows), rows, KEY)
    assert int(state.memory.num_seen) == 2
    again, _ = learner.update(state, rows._replace(first=False, last=True), KEY)
    assert_same_bits(again.memory, state.memory)


def test_the_first_glance_does_not_replay_its_own_batch():
    """An empty memory: L is the batch's own, so α' = α + η·u², though the row is pushed too."""
    learner = linear_learner()
    rows = batch_of([[2.0]])
    after, _ = learner.update(learner.init(jnp.zeros(1), rows), rows, KEY)
    assert float(after.rates[0]) == pytest.approx(0.3 + 0.1 * 4.0)
    assert int(after.memory.num_seen) == 1
