"""The shipped contract finds what is wrong with a learner, and says it."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lamaml.errors import ContractViolation, LamamlError
from lamaml.learners import er, online
from lamaml.memory import empty_reservoir, push
from lamaml.testing import check_learner, learner_checks
from lamaml.types import Learner


class State(NamedTuple):
    params: object
    extra: object = 0.0


def sgd(loss, *, learning_rate=0.1):
    """A learner that keeps the contract; each test below breaks one part of it."""

    def init(params, batch):
        return State(params, jnp.zeros(()))

    def update(state, batch, key):
        value, gradient = jax.value_and_grad(loss)(state.params, batch)
        params = jax.tree.map(lambda p, g: p - learning_rate * g, state.params, gradient)
        return State(params, state.extra), {"loss": value}

    return Learner(init, update)


BROKEN = {}


def breaks(check):
    """A builder made from `sgd`, and the check that it must fail."""

    def register(builder):
        BROKEN[builder.__name__] = check, builder
        return builder

    return register


def altered(loss, **parts):
    """`sgd` with other functions."""
    return sgd(loss)._replace(**parts)


@breaks("signature")
def loss_by_another_name(objective):
    return sgd(objective)


@breaks("signature")
def positional_setting(loss, learning_rate=0.1):
    return sgd(loss)


@breaks("signature")
def returns_a_pair(loss):
    return sgd(loss)[:2]


@breaks("signature")
def arguments_in_another_order(loss):
    def update(batch, state, key):
        return sgd(loss).update(state, batch, key)

    return altered(loss, update=update)


@breaks("state")
def a_state_without_params(loss):
    return altered(loss, init=lambda params, batch: {"weights": params})


@breaks("state")
def weights_of_its_own(loss):
    def init(params, batch):
        return State(jax.tree.map(lambda leaf: 2 * leaf, params), jnp.zeros(()))

    return altered(loss, init=init)


@breaks("state")
def a_state_that_grows(loss):
    def update(state, batch, key):
        after, info = sgd(loss).update(state, batch, key)
        return after._replace(extra=jnp.append(state.extra, 0.0)), info

    return altered(loss, update=update)


@breaks("info")
def no_loss(loss):
    def update(state, batch, key):
        return sgd(loss).update(state, batch, key)[0], {"value": jnp.zeros(())}

    return altered(loss, update=update)


@breaks("info")
def a_vector_in_info(loss):
    def update(state, batch, key):
        after, info = sgd(loss).update(state, batch, key)
        return after, info | {"weights": batch.weight}

    return altered(loss, update=update)


@breaks("determinism")
def chance_from_elsewhere(loss):
    def update(state, batch, key):
        after, info = sgd(loss).update(state, batch, key)
        return after._replace(extra=jnp.full((), np.random.default_rng().normal())), info

    return altered(loss, update=update)


@breaks("learning")
def lazy(loss):
    return altered(loss, update=lambda state, batch, key: (state, {"loss": jnp.zeros(())}))


@breaks("inputs")
def writes_into_the_state(loss):
    def update(state, batch, key):
        state.params["head"] = jax.tree.map(lambda leaf: 0.9 * leaf, state.params["head"])
        return sgd(loss).update(state, batch, key)

    return altered(loss, update=update)


@breaks("state")
def a_random_key_in_the_state(loss):
    def init(params, batch):
        return State(params, jax.random.key(0))

    return altered(loss, init=init)


@breaks("saving")
def remembers_outside_the_state(loss):
    started = []

    def init(params, batch):
        started.append(True)
        return State(params, jnp.zeros(()))

    def update(state, batch, key):
        after, info = sgd(loss).update(state, batch, key)
        return after._replace(extra=state.extra + bool(started)), info

    return altered(loss, init=init, update=update)


@breaks("memory")
def a_memory_twice_as_large(loss, *, memory_size=20):
    def init(params, batch):
        return State(params, empty_reservoir(batch, 2 * memory_size))

    return altered(loss, init=init)


@breaks("padding")
def forgets_the_weights(loss):
    def unweighted(params, batch):
        return loss(params, batch._replace(weight=jnp.ones_like(batch.weight)))

    return sgd(unweighted)


@breaks("padding")
def decays_on_padding(loss):
    def update(state, batch, key):
        after, info = sgd(loss).update(state, batch, key)
        return after._replace(params=jax.tree.map(lambda p: 0.999 * p, after.params)), info

    return altered(loss, update=update)


@breaks("predict")
def answers_with_numbers_of_its_own(loss):
    return altered(loss, predict=lambda state, x, task: jnp.full(len(x), 99))


@breaks("predict")
def answers_with_logits(loss):
    return altered(loss, predict=lambda state, x, task: x)


@breaks("digits")
def learns_too_slowly(loss):
    return sgd(loss, learning_rate=1e-7)


@breaks("offered_once")
def pushes_at_every_glance(loss, *, memory_size=20):
    class Replay(NamedTuple):
        params: object
        memory: object

    def init(params, batch):
        return Replay(params, empty_reservoir(batch, memory_size))

    def update(state, batch, key):
        after, info = sgd(loss).update(State(state.params), batch, key)
        return Replay(after.params, push(state.memory, batch, key)), info

    return Learner(init, update)


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_learner_fails_its_check(name):
    expected, builder = BROKEN[name]
    with pytest.raises(ContractViolation) as violation:
        check_learner(builder)
    assert violation.value.check == expected
    assert str(violation.value).startswith(f"{name}, {expected}: ")


def test_every_check_has_a_broken_learner():
    names = [check.name for check in learner_checks(sgd)]
    assert {check for check, _ in BROKEN.values()} == set(names)


@pytest.mark.parametrize("check", learner_checks(sgd), ids=str)
def test_a_learner_that_keeps_the_contract_passes(check):
    check()


def test_a_learner_is_found_by_name_and_its_settings_are_given():
    check_learner("er", learning_rate=0.1, memory_size=150)
    (first, *_) = learner_checks(functools.partial(er, learning_rate=0.1, memory_size=9))
    assert "functools.partial" in str(first)


def test_a_violation_is_an_assertion_and_an_error_of_the_package():
    with pytest.raises(AssertionError) as violation:
        check_learner(lambda loss, rate=0.1: online(loss, learning_rate=rate))
    assert isinstance(violation.value, LamamlError)
