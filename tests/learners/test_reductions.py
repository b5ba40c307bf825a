"""One algorithm with a term switched off is another, given the same draws."""

import jax
import pytest
from problems import (
    HEADS,
    MODEL,
    assert_close,
    assert_same_bits,
    compiled,
    network,
    network_batch,
    network_params,
)

from lamaml.learners import (
    averaged,
    c_maml,
    dark_la_maml,
    der,
    er,
    la_er,
    la_maml,
    online,
    sync_la_maml,
)

NUM_UPDATES = 6
SHARED = {"memory_size": 10, "replay_size": 4, "max_norm": 1.0}
ORDERS = pytest.mark.parametrize("first_order", [True, False], ids=["first", "second"])


def follow(builder, **settings):
    """The states along a stream of batches, more rows than the memory holds."""
    learner = compiled(builder, network, **settings)
    state, states = learner.init(network_params(), network_batch(0)), []
    for step in range(NUM_UPDATES):
        # Its only glance, so that algorithms that push first and ones that push last agree.
        state, _ = learner.update(state, network_batch(step), jax.random.key(step))
        states.append(state)
    return states


def assert_same_way(ones, others):
    """Both went the same way, and moved: weights to rounding, memories to the bit."""
    for one, other in zip(ones, others, strict=True):
        assert_close(one.params, other.params, rtol=1e-5, atol=1e-6)
        if hasattr(one, "memory") and hasattr(other, "memory"):
            assert_same_bits(one.memory, other.memory)
    start = network_params()["head"]["weight"]
    assert abs(ones[-1].params["head"]["weight"] - start).max() > 0.01


@ORDERS
def test_la_maml_without_hyper_rate_is_c_maml_with_equal_rates(first_order):
    same = {"inner_steps": 3, "first_order": first_order, **SHARED}
    assert_same_way(
        follow(la_maml, initial_rate=0.2, hyper_rate=0.0, **same),
        follow(c_maml, inner_rate=0.2, outer_rate=0.2, **same),
    )


@ORDERS
def test_sync_la_maml_without_hyper_rate_is_c_maml(first_order):
    same = {"inner_steps": 3, "first_order": first_order, "outer_rate": 0.2, **SHARED}
    assert_same_way(
        follow(sync_la_maml, initial_rate=0.2, hyper_rate=0.0, **same),
        follow(c_maml, inner_rate=0.2, **same),
    )


def test_la_er_without_hyper_rate_is_er():
    assert_same_way(
        follow(la_er, initial_rate=0.2, hyper_rate=0.0, inner_steps=3, **SHARED),
        follow(er, learning_rate=0.2, **SHARED),
    )


@pytest.mark.parametrize("first_order", [True, False], ids=["first", "second"])
def test_c_maml_without_inner_rate_is_er(first_order):
    """One SGD step of rate β on b_m: looking ahead by nothing."""
    same = {"inner_steps": 3, "first_order": first_order, **SHARED}
    assert_same_way(
        follow(c_maml, inner_rate=0.0, outer_rate=0.2, **same),
        follow(er, learning_rate=0.2, **SHARED),
    )


def test_er_without_replay_is_online():
    without = follow(er, learning_rate=0.2, **(SHARED | {"replay_size": 0}))
    assert_same_way(without, follow(online, learning_rate=0.2, max_norm=1.0))


def test_what_is_switched_off_matters():
    """The negative control: with the term on, the ways part."""
    same = {"inner_steps": 3, "first_order": True, **SHARED}
    ways = {
        "er": follow(er, learning_rate=0.2, **SHARED),
        "online": follow(online, learning_rate=0.2, max_norm=1.0),
        "c_maml": follow(c_maml, inner_rate=0.2, outer_rate=0.2, **same),
        "la_maml": follow(la_maml, initial_rate=0.2, hyper_rate=0.2, **same),
    }
    biases = {name: states[-1].params["head"]["bias"] for name, states in ways.items()}
    for name, bias in biases.items():
        for other, other_bias in biases.items():
            assert name == other or abs(bias - other_bias).max() > 1e-4, (name, other)


@ORDERS
def test_dark_la_maml_without_dark_weight_is_la_maml_to_the_bit(first_order):
    same = {"initial_rate": 0.2, "hyper_rate": 0.1, "inner_steps": 3, "first_order": first_order}
    for one, other in zip(
        follow(_dark_la_maml, **same, **SHARED), follow(la_maml, **same, **SHARED), strict=True
    ):
        assert_same_bits((one.params, one.rates), (other.params, other.rates))
        assert_same_bits(one.memory._replace(extra=None), other.memory)


def test_der_without_dark_weight_is_er():
    for one, other in zip(
        follow(_der, learning_rate=0.2, **SHARED),
        follow(er, learning_rate=0.2, **SHARED),
        strict=True,
    ):
        assert_same_bits(one.params, other.params)


def test_the_average_without_decay_is_the_learner():
    plain = follow(er, learning_rate=0.2, **SHARED)
    for one, other in zip(follow(_averaged_er, learning_rate=0.2, **SHARED), plain, strict=True):
        assert_same_bits(one.learned, other)
        assert_same_bits(one.params, other.params)


def _dark_la_maml(loss, **settings):
    return dark_la_maml(loss, apply=MODEL.apply, heads=HEADS, dark_weight=0.0, **settings)


def _der(loss, **settings):
    return der(loss, apply=MODEL.apply, heads=HEADS, dark_weight=0.0, **settings)


def _averaged_er(loss, **settings):
    return averaged(er(loss, **settings), decay=0.0)
