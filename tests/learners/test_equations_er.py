"""Experience replay: one SGD step on new and replayed rows."""

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

from lamaml.learners import er

KEY = jax.random.key(0)
RATE = 0.3
LEARNER = er(network, learning_rate=RATE, memory_size=8, replay_size=4, max_norm=None)
UPDATE = jax.jit(LEARNER.update)


def sgd(params, batch, rate=RATE):
    return jax.tree.map(lambda p, g: p - rate * g, params, jax.grad(network)(params, batch))


def filled(num_rows=8, seed=5):
    """A state whose memory holds the rows of a batch."""
    rows = network_batch(seed, num_rows)
    state, _ = UPDATE(LEARNER.init(network_params(), rows), rows, KEY)
    return state._replace(params=network_params()), rows


def test_with_an_empty_memory_it_is_sgd_on_the_batch():
    batch, params = network_batch(1), network_params()
    state, info = UPDATE(LEARNER.init(params, batch), batch, KEY)
    assert_close(state.params, sgd(params, batch))
    assert float(info["loss"]) == pytest.approx(float(network(params, batch)), rel=1e-6)


def test_a_step_is_the_mean_gradient_of_the_union():
    """With as many rows drawn as are held the union is known, whatever the draw."""
    learner = er(linear, learning_rate=0.5, memory_size=2, replay_size=2, max_norm=None)
    new, old = [[1.0, 0.0], [0.0, 2.0], [4.0, 1.0]], [[10.0, 0.0], [0.0, 20.0]]
    state = learner.init(jnp.zeros(2), batch_of(new))
    state, _ = learner.update(remembering(state, old), batch_of(new), KEY)
    np.testing.assert_allclose(state.params, -0.5 * np.mean(new + old, axis=0), rtol=1e-6)


def test_a_filling_memory_gives_the_rows_it_has():
    learner = er(linear, learning_rate=0.5, memory_size=5, replay_size=4, max_norm=None)
    state = learner.init(jnp.zeros(1), batch_of([[1.0]]))
    for value in (1.0, 3.0, 8.0):
        state, _ = learner.update(state, batch_of([[value]]), KEY)
    # −½ · (mean{1} + mean{1, 3} + mean{1, 3, 8}): each batch joins all that came before
    np.testing.assert_allclose(state.params, [-0.5 * (1 + 2 + 4)], rtol=1e-6)


def test_the_order_inside_a_batch_does_not_matter():
    state, _ = filled()
    batch = network_batch(1)
    order = jnp.array([3, 0, 5, 1, 4, 2])
    shuffled = batch._replace(x=batch.x[order], y=batch.y[order], task=batch.task[order])
    (one, _), (other, _) = (UPDATE(state, b, KEY) for b in (batch, shuffled))
    assert_close(one.params, other.params, atol=1e-6)


def test_rows_are_pushed_after_the_step_that_learns_from_them():
    """Else the first update would replay its own batch; here its weights are those of plain SGD."""
    batch, params = network_batch(1, 4), network_params()
    state, _ = UPDATE(LEARNER.init(params, batch), batch, KEY)
    assert int(state.memory.num_seen) == 4
    np.testing.assert_array_equal(state.memory.x[:4], batch.x)
    assert_close(state.params, sgd(params, batch))


@pytest.mark.parametrize("first", [True, False])
def test_rows_are_pushed_in_their_last_glance_only(first):
    state, _ = filled()
    batch = network_batch(1, first=first, last=False)
    after, _ = UPDATE(state, batch, KEY)
    assert_same_bits(after.memory, state.memory)
    after, _ = UPDATE(state, batch._replace(last=True), KEY)
    assert int(after.memory.num_seen) == int(state.memory.num_seen) + 6


def test_the_gradient_is_clipped_to_its_norm():
    learner = er(linear, learning_rate=1.0, memory_size=2, max_norm=2.0)
    batch = batch_of([[30.0, 40.0]])
    state, info = learner.update(learner.init(jnp.zeros(2), batch), batch, KEY)
    np.testing.assert_allclose(state.params, [-1.2, -1.6], rtol=1e-6)
    assert float(info["gradient_norm"]) == pytest.approx(50.0)  # told before clipping


def test_the_key_decides_what_is_replayed():
    state, _ = filled()
    heads = {
        float(UPDATE(state, network_batch(1), jax.random.key(k))[0].params["head"]["bias"][0])
        for k in range(4)
    }
    assert len(heads) > 1
