"""Dark replay: the term, what is stored, and the learners that use it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems import HEADS, MODEL, assert_close, network, network_batch, network_params

from lamaml.learners import averaged, dark_la_maml, der, er, er_ace
from lamaml.learners.dark_replay import Answers, answers_of, dark_term, no_answers
from lamaml.types import Batch

LOGITS = jnp.array([[1.0, 2.0, 9.0], [0.0, 1.0, 1.0]])
OPEN = jnp.array([[True, True, False], [True, True, True]])


def rows(weight=(1.0, 1.0), answers=None):
    extra = answers or Answers(LOGITS, OPEN)
    zeros = jnp.zeros(2, jnp.int32)
    return Batch(jnp.zeros((2, 1)), jnp.array([1, 0]), zeros, jnp.array(weight), extra=extra)


def test_the_term_is_the_mean_square_over_open_outputs() -> None:
    outputs = jnp.array([[2.0, 4.0, -50.0], [3.0, 1.0, 1.0]])
    first, second = (1 + 4) / 2, 9 / 3
    assert dark_term(outputs, rows(), is_gated=False) == pytest.approx((first + second) / 2)
    assert dark_term(outputs, rows((1.0, 0.0)), is_gated=False) == pytest.approx(first)
    q = np.exp(2) / (np.exp(1) + np.exp(2)), 1 / (1 + 2 * np.exp(1))
    gated = dark_term(outputs, rows(), is_gated=True)
    assert gated == pytest.approx((q[0] * first + q[1] * second) / 2, rel=1e-5)


@pytest.mark.parametrize("is_gated", [True, False])
def test_rows_without_answers_hold_nothing(is_gated) -> None:
    outputs = jnp.ones((2, 3))
    nothing = rows(answers=no_answers(2, 3))
    value, slope = jax.value_and_grad(dark_term)(outputs, nothing, is_gated=is_gated)
    assert value == 0
    np.testing.assert_array_equal(slope, jnp.zeros((2, 3)))
    mixed = Answers(LOGITS, OPEN.at[1].set(False))
    slope = jax.grad(dark_term)(outputs, rows(answers=mixed), is_gated=is_gated)
    np.testing.assert_array_equal(slope[1], jnp.zeros(3))
    assert slope[0, 2] == 0  # closed when it was stored
    assert jnp.isfinite(slope).all()


def test_answers_are_open_in_the_head_of_the_row() -> None:
    batch = Batch(jnp.ones((1, 6)), jnp.zeros(1, int), jnp.array([1]), jnp.ones(1))

    def answers(when):
        return answers_of(lambda params, x: params * x, 2.0, batch, HEADS, num_outputs=6, when=when)

    assert answers(True).is_open.tolist() == [[False, False, True, True, False, False]]
    assert answers(True).logits.tolist() == [[2.0] * 6]
    assert not answers(False).is_open.any()
    assert not answers(False).logits.any()


@pytest.mark.parametrize("builder", [dark_la_maml, der])
def test_logits_are_those_before_the_update(builder) -> None:
    more = {"initial_rate": 0.1, "hyper_rate": 0.1, "inner_steps": 2}
    settings = more if builder is dark_la_maml else {"learning_rate": 0.1}
    learner = builder(network, apply=MODEL.apply, heads=HEADS, memory_size=9, **settings)
    batch, params = network_batch(0), network_params()
    state = learner.init(params, batch)
    state, _ = jax.jit(learner.update)(state, batch, jax.random.key(0))
    held = jnp.argsort(state.memory.x[:6, 0])
    order = jnp.argsort(batch.x[:, 0])
    np.testing.assert_allclose(
        state.memory.extra.logits[:6][held], MODEL.apply(params, batch.x)[order], rtol=1e-6
    )


def test_der_descends_both_terms() -> None:
    learner = der(
        network,
        apply=MODEL.apply,
        heads=HEADS,
        learning_rate=0.1,
        memory_size=6,
        replay_size=6,
        dark_weight=0.7,
        max_norm=None,
    )
    old, new, params = network_batch(0), network_batch(1), network_params()
    state = learner.init(params, old)
    state, _ = jax.jit(learner.update)(state, old, jax.random.key(0))
    before = state.params
    stored = state.memory

    def objective(weights):
        both = Batch(
            *(jnp.concatenate([getattr(stored, f), getattr(new, f)]) for f in ("x", "y", "task")),
            jnp.ones(12),
        )
        outputs = MODEL.apply(weights, stored.x)
        gaps = jnp.where(stored.extra.is_open, outputs - stored.extra.logits, 0.0)
        return network(weights, both) + 0.7 * jnp.mean(jnp.sum(gaps**2, axis=1) / 2)

    state, _ = jax.jit(learner.update)(state, new, jax.random.key(1))
    expected = jax.tree.map(lambda w, g: w - 0.1 * g, before, jax.grad(objective)(before))
    for ours, theirs in zip(jax.tree.leaves(state.params), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_new_rows_compare_the_classes_of_their_batch_alone() -> None:
    learner = er_ace(network, apply=MODEL.apply, heads=None, learning_rate=0.1, memory_size=6)
    batch = network_batch(0)
    batch = batch._replace(y=batch.y % 2)  # classes 0 and 1 of six
    params = network_params()
    state, _ = jax.jit(learner.update)(learner.init(params, batch), batch, jax.random.key(0))
    moved = jnp.abs(state.params["head"]["weight"] - params["head"]["weight"]).sum(axis=1)
    assert (moved[:2] > 0).all()
    np.testing.assert_array_equal(moved[2:], jnp.zeros(4))


def test_the_average_follows_the_weights() -> None:
    plain = er(network, learning_rate=0.1, memory_size=6)
    learner = averaged(plain, decay=0.75)
    batch, params = network_batch(0), network_params()
    state, _ = jax.jit(learner.update)(learner.init(params, batch), batch, jax.random.key(0))
    expected = jax.tree.map(lambda a, p: 0.75 * a + 0.25 * p, params, state.learned.params)
    for ours, theirs in zip(jax.tree.leaves(state.params), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.parametrize("builder", [er, der, dark_la_maml])
def test_rows_are_augmented_in_every_update_and_remembered_as_they_were(builder) -> None:
    """With an augmentation that halves, twice the rows are learned like the rows themselves."""
    more = {} if builder is er else {"apply": MODEL.apply, "heads": HEADS}
    rates = {"initial_rate": 0.1, "hyper_rate": 0.1, "inner_steps": 2}
    more |= rates if builder is dark_la_maml else {"learning_rate": 0.1}
    plain = builder(network, memory_size=6, **more)
    fresh = builder(network, memory_size=6, augment=lambda x, key: x / 2, **more)
    first = network_batch(0)
    ours = plain.init(network_params(), first)
    theirs = fresh.init(network_params(), first)
    for number in range(2):  # the second replays what the first pushed
        batch = network_batch(number)
        ours, _ = jax.jit(plain.update)(ours, batch, jax.random.key(number))
        doubled = batch._replace(x=2 * batch.x)
        theirs, _ = jax.jit(fresh.update)(theirs, doubled, jax.random.key(number))
    assert_close(theirs.params, ours.params, rtol=1e-5)
    np.testing.assert_array_equal(theirs.memory.x, 2 * ours.memory.x)


def test_each_update_has_its_own_draw() -> None:
    def noise(x, key):
        return x + jax.random.normal(key, x.shape)

    learner = er(network, learning_rate=0.1, memory_size=6, augment=noise)
    batch = network_batch(0)
    state = learner.init(network_params(), batch)
    one, other = (jax.jit(learner.update)(state, batch, jax.random.key(k))[0] for k in (0, 1))
    assert (one.params["head"]["weight"] != other.params["head"]["weight"]).any()
