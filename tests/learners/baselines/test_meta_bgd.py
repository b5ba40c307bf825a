"""Meta-BGD: closed forms of its two updates, and what it becomes when there is no doubt."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems import (
    KEY,
    assert_close,
    assert_same_bits,
    batch_of,
    compiled,
    linear,
    network,
    network_batch,
    network_params,
    quadratic,
)

from lamaml.errors import InvalidArgument
from lamaml.learners import c_maml, meta_bgd

SETTINGS = {"learning_rate": 2.0, "initial_std": 0.1, "inner_steps": 2, "memory_size": 4}


def sized(loss, **settings):
    return compiled(meta_bgd, loss, **{**SETTINGS, **settings})


def expected_std(std, curvature):
    """σ√(1 + (σE₂/2)²) − σ²E₂/2, as the paper writes it."""
    return std * np.sqrt(1 + (std * curvature / 2) ** 2) - std**2 * curvature / 2


def test_a_constant_gradient_moves_the_mean_by_its_variance_times_the_batch():
    """μ' = μ − ησ²|b|u, whatever the noise; |b| counts the rows that are not padding."""
    learner = sized(linear, num_monte_carlo=3, max_norm=None)
    slope = np.array([0.5, -1.0, 2.0])
    rows = batch_of(np.tile(slope, (4, 1)), weight=[1, 1, 1, 0])
    state, _ = learner.update(learner.init(jnp.zeros(3), rows), rows, KEY)
    np.testing.assert_allclose(state.params, -2.0 * 0.1**2 * 3 * slope, rtol=1e-5)


def test_the_std_follows_its_closed_form_and_stays_positive():
    """A constant gradient u: E₂ = |b|·u·mean ε, so σ tells the noise that was drawn."""
    learner = sized(linear, num_monte_carlo=1, max_norm=None)
    slope = 100.0 * np.array([1.0, -1.0, 0.0])
    rows = batch_of([slope, slope])
    before = learner.init(jnp.zeros(3), rows)
    for seed in range(5):
        state, _ = learner.update(before, rows, jax.random.key(seed))
        stds = np.asarray(state.stds, np.float64)
        assert (stds > 0).all()
        assert stds[2] == np.float32(0.1)  # E₂ = 0 leaves σ
        # σ' = σ·exp(−asinh(σE₂/2)), solved for E₂ and put into the paper's form.
        curvature = np.sinh(-np.log(stds / 0.1)) * 2 / 0.1
        np.testing.assert_allclose(expected_std(0.1, curvature), stds, rtol=1e-5)
        noise = curvature[:2] / (2 * slope[:2])
        assert (np.abs(noise) < 6).all()  # standard normal
        assert ((stds[:2] < 0.1) == (curvature[:2] > 0)).all()


def test_noise_is_standard_normal_and_its_own_for_every_weight():
    learner = sized(linear, num_monte_carlo=1, max_norm=None)
    rows = batch_of(np.ones((2, 2000)))
    state, _ = learner.update(learner.init(jnp.zeros(2000), rows), rows, KEY)
    noise = np.sinh(-np.log(np.asarray(state.stds, np.float64) / 0.1)) * 2 / 0.1 / 2
    assert abs(noise.mean()) < 5 / np.sqrt(2000)
    assert abs(noise.std() - 1) < 5 / np.sqrt(4000)


def test_a_bowl_makes_it_more_certain():
    """α = 0, ½a(θ − c)², many samples: E₂ → |b|aσ, so that σ falls at every update."""
    learner = sized(
        quadratic, inner_rate=0.0, num_monte_carlo=3000, max_norm=None, learning_rate=1e-6
    )
    rows = batch_of([[4.0, 0.0]] * 2)
    state = learner.init(jnp.array(0.3), rows)
    for seed in range(3):
        std = float(state.stds)
        state, _ = learner.update(state, rows, jax.random.key(seed))
        np.testing.assert_allclose(state.stds, expected_std(std, 2 * 4.0 * std), rtol=0.02)
        assert float(state.stds) < std


@pytest.mark.parametrize("first_order", [True, False], ids=["first", "second"])
def test_without_doubt_it_is_c_maml(first_order):
    """σ → 0 with ησ² fixed: C-MAML with β = ησ²|b|."""
    std, batch = 1e-5, network_batch(0)
    shared = {"inner_rate": 0.2, "inner_steps": 3, "first_order": first_order, "max_norm": 0.5}
    rate = 0.1 / (std**2 * 6)
    doubting = sized(network, learning_rate=rate, initial_std=std, num_monte_carlo=1, **shared)
    certain = compiled(c_maml, network, outer_rate=0.1, memory_size=4, **shared)
    states = [
        learner.update(learner.init(network_params(), batch), batch, KEY)
        for learner in (doubting, certain)
    ]
    assert_close(states[0][0].params, states[1][0].params, rtol=1e-3, atol=2e-5)
    np.testing.assert_allclose(states[0][1]["loss"], states[1][1]["loss"], rtol=1e-3)


def test_each_gradient_is_clipped_before_it_is_multiplied():
    learner = sized(linear, num_monte_carlo=2, max_norm=1.0)
    rows = batch_of([[30.0, 40.0]] * 2)
    state, info = learner.update(learner.init(jnp.zeros(2), rows), rows, KEY)
    np.testing.assert_allclose(state.params, -2.0 * 0.1**2 * 2 * np.array([0.6, 0.8]), rtol=1e-5)
    np.testing.assert_allclose(info["gradient_norm"], 2.0, rtol=1e-5)


def test_replay_is_drawn_anew_for_every_sample():
    """Two remembered slopes, one replayed a sample: with many samples both count."""
    learner = sized(linear, num_monte_carlo=60, replay_size=1, max_norm=None)
    rows = batch_of([[0.0, 0.0]])
    state = learner.init(jnp.zeros(2), rows)
    memory = state.memory._replace(
        x=jnp.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0]]), num_seen=jnp.int32(2)
    )
    state, _ = learner.update(state._replace(memory=memory), rows, KEY)
    # L = ½(0 + one slope): each mean gradient is between 0 and ½, and they sum to ½.
    shares = np.asarray(state.params) / (-2.0 * 0.1**2)
    assert (shares > 0.1).all()
    np.testing.assert_allclose(shares.sum(), 0.5, rtol=1e-5)


def test_rows_are_pushed_once_and_in_their_first_glance():
    learner = sized(linear, num_monte_carlo=3)
    rows = batch_of([[1.0, 2.0], [3.0, 4.0]], last=False)
    state, _ = learner.update(learner.init(jnp.zeros(2), rows), rows, KEY)
    assert int(state.memory.num_seen) == 2
    state, _ = learner.update(state, rows._replace(first=False, last=True), KEY)
    assert int(state.memory.num_seen) == 2


def test_a_batch_of_padding_changes_nothing():
    learner = sized(network)
    batch = network_batch(0)._replace(weight=jnp.zeros(6))
    before = learner.init(network_params(), batch)
    state, _ = learner.update(before, batch, KEY)
    assert_same_bits(state, before)


@pytest.mark.parametrize(
    "wrong",
    [
        {"learning_rate": 0},
        {"initial_std": 0},
        {"num_monte_carlo": 0},
        {"inner_rate": -1},
        {"inner_steps": 0},
        {"memory_size": 0},
        {"replay_size": -1},
        {"max_norm": 0},
        {"meta_loss": "median"},
        {"inner_clamp": 0},
    ],
)
def test_settings_out_of_range_are_named(wrong):
    with pytest.raises(InvalidArgument, match=next(iter(wrong))):
        meta_bgd(linear, **{**SETTINGS, **wrong})
