import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lamaml.learners import er, fast_and_slow, online
from lamaml.learners.adam import adam_step
from lamaml.models import cross_entropy, mlp
from lamaml.types import Batch

MODEL = mlp(4, 3, hidden_sizes=(6,))
LOSS = cross_entropy(MODEL)


def batch(seed, size=8):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(size, 4)).astype(np.float32), rng.integers(0, 3, size)
    ones = jnp.ones(size)
    return Batch(jnp.asarray(x), jnp.asarray(y), jnp.zeros(size, jnp.int32), ones)


def learner(**changes):
    settings = {"memory_size": 30, "replay_size": 5} | changes
    return fast_and_slow(LOSS, apply=MODEL.apply, heads=None, **settings)


def run(built, num_batches=6):
    state = built.init(MODEL.init(jax.random.key(0)), batch(0))
    update = jax.jit(built.update)
    for number in range(num_batches):
        state, _ = update(state, batch(number), jax.random.key(number))
    return state


def test_adam_is_optax_adam():
    optax = pytest.importorskip("optax", reason="comes with flax")
    rng = np.random.default_rng(0)
    params = ours = jnp.asarray(rng.normal(size=5), jnp.float32)
    mean = square = jnp.zeros(5)
    reference = optax.adam(0.01)
    state = reference.init(params)
    for count in range(1, 6):
        gradient = jnp.asarray(rng.normal(size=5), jnp.float32)
        ours, mean, square = adam_step(ours, mean, square, count, gradient, 0.01)
        step, state = reference.update(gradient, state)
        params = params + step
    np.testing.assert_allclose(ours, params, rtol=1e-5)


def test_the_fast_weights_are_online_with_as_many_glances():
    state = run(learner(num_steps=2, fast_rate=0.1))
    alone = online(LOSS, learning_rate=0.1, max_norm=2.0)
    plain = alone.init(MODEL.init(jax.random.key(0)), batch(0))
    for number in range(6):
        for _ in range(2):
            plain, _ = alone.update(plain, batch(number), jax.random.key(number))
    for one, other in zip(jax.tree.leaves(state.fast), jax.tree.leaves(plain.params), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_the_memory_is_that_of_er():
    replay = er(LOSS, learning_rate=0.1, memory_size=30)
    np.testing.assert_array_equal(run(learner()).memory.x, run(replay).memory.x)


def test_with_a_large_bias_the_slow_weights_answer():
    built = learner(slow_bias=50.0)
    state, asked = run(built), batch(9)
    slow = jax.nn.log_softmax(MODEL.apply(state.params, asked.x))
    np.testing.assert_allclose(built.outputs(state, asked.x, asked.task), slow, atol=1e-5)


def test_outputs_are_log_probabilities_and_predict_chooses_the_largest():
    built = learner(slow_bias=0.0)
    state, asked = run(built), batch(9)
    outputs = built.outputs(state, asked.x, asked.task)
    np.testing.assert_allclose(jnp.exp(outputs).sum(axis=1), 1.0, rtol=1e-5)
    chosen = built.predict(state, asked.x, asked.task)
    np.testing.assert_array_equal(chosen, outputs.argmax(axis=1))


def test_the_gain_is_the_running_difference_of_losses_before_learning():
    built = learner(decay=0.5)
    before = run(built, num_batches=3)
    new = batch(7)
    expected = 0.5 * before.gain + 0.5 * (LOSS(before.params, new) - LOSS(before.fast, new))
    after, info = built.update(before, new, jax.random.key(7))
    assert float(after.gain) == pytest.approx(float(expected), abs=1e-5)
    assert float(info["gain"]) == float(after.gain)
    again, _ = built.update(before, new._replace(first=False), jax.random.key(7))
    assert float(again.gain) == float(before.gain)


def test_labels_that_contradict_the_past_are_followed_by_the_answer():
    def labelled(seed, reverse):
        rows = batch(seed, 10)
        label = (rows.x[:, 0] > 0).astype(int)
        return rows._replace(y=1 - label if reverse else label)

    built = learner(memory_size=300, replay_size=50)
    state = built.init(MODEL.init(jax.random.key(0)), batch(0, 10))
    update = jax.jit(built.update)
    for number in range(150):
        state, _ = update(state, labelled(number, number >= 100), jax.random.key(number))
    asked = labelled(999, reverse=True)
    answers = built.predict(state, asked.x, asked.task)
    slow = MODEL.apply(state.params, asked.x).argmax(axis=1)
    assert float(state.gain) > 0.2
    assert np.mean(answers == asked.y) >= 0.9 > np.mean(slow == asked.y)


def test_a_memory_smaller_than_the_number_of_steps_is_enough():
    state = run(learner(memory_size=2, num_steps=3))
    assert int(state.memory.num_seen) == 48
