"""Keys differ by purpose, seed and counter; glances are flagged by one rule."""

import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lamaml.training.keys import RunKeys, fold, keys_from_seed
from lamaml.types import Batch


class TwoKeys(NamedTuple):
    one: jax.Array
    other: jax.Array


def numbers(key):
    return tuple(np.asarray(jax.random.key_data(key)).tolist())


def test_every_purpose_and_seed_has_its_own_key():
    keys = [numbers(key) for seed in range(3) for key in keys_from_seed(RunKeys, seed)]
    assert len(set(keys)) == 3 * len(RunKeys._fields)


def test_a_seed_may_be_traced_and_any_named_tuple_asked_for():
    compiled = jax.jit(lambda seed: keys_from_seed(TwoKeys, seed))(np.uint32(7))
    assert [*map(numbers, compiled)] == [*map(numbers, keys_from_seed(TwoKeys, 7))]


def test_counters_are_folded_in_their_order():
    key = jax.random.key(0)
    keys = {numbers(fold(key, a, b)) for a, b in itertools.product(range(4), range(4))}
    assert len(keys) == 16
    assert numbers(fold(key)) == numbers(key)


@pytest.mark.parametrize("glances", [1, 3])
def test_first_and_last_glances_are_flagged_in_the_first_pass_only(glances):
    zeros = jnp.zeros(2, jnp.int32)
    batch = Batch(jnp.zeros((2, 1)), zeros, zeros, jnp.ones(2))
    for glance in range(glances):
        seen = batch.at_glance(glance, glances, is_first_pass=True)
        assert (seen.first, seen.last) == (glance == 0, glance == glances - 1)
        again = batch.at_glance(glance, glances, is_first_pass=False)
        assert (again.first, again.last) == (False, False)
