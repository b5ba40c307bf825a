"""MER's two algorithms: Reptile identities, and the steps they are made of."""

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
)

from lamaml.errors import InvalidArgument
from lamaml.learners import mer, mer_single, online
from lamaml.learners.mer import replay_batches
from lamaml.memory import Reservoir
from lamaml.types import Batch

SIZES = {"memory_size": 8, "replay_size": 3}

GRADIENT = jax.jit(jax.value_and_grad(network))


def sized(builder, loss, **settings):
    return compiled(builder, loss, **{**SIZES, **settings})


def after(learner, batch, params=None, memory=None):
    state = learner.init(network_params() if params is None else params, batch)
    if memory is not None:
        state = state._replace(memory=memory)
    return learner.update(state, batch, KEY)


def full_memory(rows):
    return Reservoir(rows.x, rows.y, rows.task, jnp.int32(len(rows.y)))


def test_one_example_and_nothing_to_replay_is_a_shortened_step():
    """θ' = θ − γβα∇ℓ."""
    learner = sized(mer, network, inner_rate=0.2, within_rate=0.5, across_rate=0.4, num_batches=1)
    batch, params = network_batch(0, num_rows=1), network_params()
    value, gradient = GRADIENT(params, batch)
    state, info = after(learner, batch)
    assert_close(state.params, jax.tree.map(lambda p, g: p - 0.4 * 0.5 * 0.2 * g, params, gradient))
    np.testing.assert_allclose(info["loss"], value, rtol=1e-6)


def test_rates_of_one_are_sequential_sgd():
    """β = γ = 1, nothing replayed, one batch: SGD on one row after another."""
    settings = {"inner_rate": 0.2, "within_rate": 1.0, "across_rate": 1.0, "num_batches": 1}
    learner = sized(mer, network, replay_size=0, **settings)
    batch = network_batch(1)
    plain = online(network, learning_rate=0.2)
    update, state = jax.jit(plain.update), plain.init(network_params(), batch)
    for row in range(len(batch.y)):
        state, _ = update(state, Batch(*(field[row : row + 1] for field in batch[:4])), KEY)
    assert_close(after(learner, batch)[0].params, state.params, rtol=1e-5)


def test_an_across_rate_of_one_keeps_the_whole_way_and_of_zero_none():
    rows = network_batch(0, num_rows=3)
    batches = Batch(*(jnp.stack([field, field]) for field in rows[:4]), *jnp.ones((2, 2), bool))

    def learn(params, batches, across_rate):
        rates = {"inner_rate": 0.1, "within_rate": 0.5, "across_rate": across_rate}
        return replay_batches(network, params, batches, **rates)[0]

    learn = jax.jit(learn)
    whole, half, none = (learn(network_params(), batches, rate) for rate in (1.0, 0.5, 0.0))
    assert_same_bits(none, network_params())
    assert_close(half, jax.tree.map(lambda a, b: (a + b) / 2, whole, none), rtol=1e-5)
    # An across rate of 1 is no step at all: the same as the two batches one by one.
    step = network_params()
    for number in range(2):
        step = learn(step, jax.tree.map(lambda field, n=number: field[n : n + 1], batches), 1.0)
    assert_close(whole, step, rtol=1e-5)


@pytest.mark.parametrize("num_batches", [1, 4])
def test_a_constant_gradient_is_followed_for_every_row_of_every_batch(num_batches):
    """θ' = θ − γβαsk·u, with k rows a batch, the example among them."""
    learner = sized(
        mer, linear, inner_rate=0.2, within_rate=0.5, across_rate=0.3, num_batches=num_batches
    )
    slope = np.array([1.0, -2.0])
    batch = batch_of([slope])
    memory = full_memory(batch_of(np.tile(slope, (8, 1))))
    state, _ = after(learner, batch, jnp.zeros(2), memory)
    np.testing.assert_allclose(state.params, -0.3 * 0.5 * 0.2 * num_batches * 4 * slope, rtol=1e-5)


def test_the_single_batch_is_the_same_but_for_the_place_of_the_example():
    """Algorithm 6 with γ is Algorithm 1 with s = 1, β = γ and γ = 1: order apart."""
    slope = np.array([1.0, -2.0])
    batch, memory = batch_of([slope]), full_memory(batch_of([[3.0, 1.0]] * 8))
    single = sized(mer_single, linear, inner_rate=0.2, across_rate=0.3)
    first = sized(mer, linear, inner_rate=0.2, within_rate=0.3, across_rate=1.0, num_batches=1)
    ours, theirs = (after(learner, batch, jnp.zeros(2), memory)[0] for learner in (single, first))
    np.testing.assert_allclose(ours.params, theirs.params, rtol=1e-6)


def test_the_example_comes_first_in_algorithm_1_and_last_in_algorithm_6():
    """A network, whose result depends on the order: all three rows of the memory are replayed."""
    batch, replayed = network_batch(0, num_rows=1), network_batch(5, num_rows=1)
    memory = full_memory(
        jax.tree.map(lambda a: a.repeat(3, axis=0), replayed._replace(first=None, last=None))
    )

    def by_hand(order):
        params = network_params()
        for row in order:
            _, gradient = GRADIENT(params, row)
            params = jax.tree.map(lambda p, g: p - 0.2 * g, params, gradient)
        return jax.tree.map(lambda w, p: w + 0.3 * (p - w), network_params(), params)

    sizes = {"memory_size": 3, "inner_rate": 0.2}
    first = sized(mer, network, within_rate=0.3, across_rate=1.0, num_batches=1, **sizes)
    last = sized(mer_single, network, across_rate=0.3, **sizes)
    for learner, order in ((first, [batch, *[replayed] * 3]), (last, [*[replayed] * 3, batch])):
        assert_close(after(learner, batch, memory=memory)[0].params, by_hand(order), rtol=1e-5)
    gap = jax.tree.map(
        lambda a, b: jnp.abs(a - b).max(), by_hand([batch, replayed]), by_hand([replayed, batch])
    )
    assert max(jax.tree.leaves(gap)) > 1e-4


@pytest.mark.parametrize("builder", [mer, mer_single])
def test_every_single_step_is_clipped(builder):
    extra = {"within_rate": 1.0, "num_batches": 2} if builder is mer else {}
    learner = sized(builder, linear, inner_rate=0.1, across_rate=1.0, max_norm=2.0, **extra)
    batch, memory = batch_of([[30.0, 40.0]]), full_memory(batch_of([[0.3, 0.4]] * 8))
    state, _ = after(learner, batch, jnp.zeros(2), memory)
    passes = 2 if builder is mer else 1
    expected = -0.1 * passes * (2.0 + 3 * 0.5) * np.array([0.6, 0.8])
    np.testing.assert_allclose(state.params, expected, rtol=1e-5)


@pytest.mark.parametrize("builder", [mer, mer_single])
def test_rows_are_learned_one_after_another_and_padding_is_skipped(builder):
    extra = {"within_rate": 0.5, "num_batches": 2} if builder is mer else {}
    learner = sized(builder, network, inner_rate=0.1, across_rate=0.5, replay_size=0, **extra)
    batch = network_batch(0, num_rows=4)
    padded = batch._replace(weight=jnp.array([1.0, 0.0, 1.0, 0.0]))
    state, info = after(learner, padded)
    short = batch._replace(
        **{name: getattr(batch, name)[::2] for name in ("x", "y", "task", "weight")}
    )
    expected, values = after(learner, short)
    assert_close(state.params, expected.params)
    np.testing.assert_allclose(info["loss"], values["loss"], rtol=1e-6)
    assert int(state.memory.num_seen) == 2


@pytest.mark.parametrize("builder", [mer, mer_single])
def test_padding_replays_nothing_either(builder):
    extra = {"within_rate": 0.5, "num_batches": 2} if builder is mer else {}
    learner = sized(builder, network, inner_rate=0.1, across_rate=0.5, **extra)
    batch = network_batch(0, num_rows=2)._replace(weight=jnp.zeros(2))
    state, info = after(learner, batch, memory=full_memory(network_batch(3, num_rows=8)))
    assert_same_bits(state.params, network_params())
    assert float(info["loss"]) == 0


@pytest.mark.parametrize("builder", [mer, mer_single])
def test_an_example_is_pushed_after_it_is_learned_and_in_its_last_glance(builder):
    extra = {"within_rate": 0.5, "num_batches": 2} if builder is mer else {}
    learner = sized(builder, network, inner_rate=0.1, across_rate=0.5, **extra)
    batch = network_batch(0, num_rows=4)
    assert int(after(learner, batch._replace(last=False))[0].memory.num_seen) == 0
    memory = after(learner, batch)[0].memory
    assert int(memory.num_seen) == 4
    np.testing.assert_array_equal(memory.y[:4], batch.y)


@pytest.mark.parametrize(
    ("builder", "wrong"),
    [
        *((mer, name) for name in ("inner_rate", "within_rate", "across_rate", "num_batches")),
        *(
            (builder, name)
            for builder in (mer, mer_single)
            for name in ("memory_size", "replay_size", "max_norm")
        ),
        (mer_single, "inner_rate"),
        (mer_single, "across_rate"),
    ],
)
def test_settings_out_of_range_are_named(builder, wrong):
    settings = {"inner_rate": 0.1, "across_rate": 1.0, **SIZES}
    settings |= {"within_rate": 1.0, "num_batches": 2} if builder is mer else {}
    with pytest.raises(InvalidArgument, match=wrong):
        builder(linear, **{**settings, wrong: -1})
