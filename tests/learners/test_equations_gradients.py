"""Steps and norms on trees."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import assert_close, assert_same_bits, batch_of

from lamaml._trees import global_norm
from lamaml.learners.gradients import (
    clamp,
    clip_to_norm,
    constant_rates,
    descend,
    describe,
    join,
    named_keys,
    positive,
    where_positive,
)

TREE = {"a": jnp.array([[3.0, 0.0]]), "b": {"c": jnp.array([-4.0])}}
NUMBERS = st.lists(st.floats(-100, 100, width=32), min_size=3, max_size=3)


def test_global_norm_is_one_norm_over_all_leaves():
    assert float(global_norm(TREE)) == 5.0


@settings(max_examples=50, deadline=None)
@given(NUMBERS, st.floats(0.125, 100, width=32))
def test_clip_is_g_times_min_1_c_over_norm(numbers, limit):
    tree = {"a": jnp.array(numbers[:2]), "b": jnp.array(numbers[2:])}
    flat = np.array(numbers, np.float64)
    norm = np.linalg.norm(flat)
    clipped = clip_to_norm(tree, limit)
    expected = flat * min(1.0, limit / norm) if norm else flat
    found = np.concatenate([clipped["a"], clipped["b"]])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-30)
    assert float(global_norm(clipped)) <= limit * (1 + 1e-6)


@pytest.mark.parametrize("limit", [5.0, 5.5, 1e6, None])
def test_clip_leaves_a_smaller_gradient_bit_identical(limit):
    uneven = jax.tree.map(lambda leaf: leaf * 0.7, TREE)
    assert_same_bits(clip_to_norm(uneven, limit), uneven)
    assert_same_bits(clip_to_norm(TREE, limit), TREE)  # norm exactly 5


def test_clip_of_nothing_is_nothing():
    zeros = jax.tree.map(jnp.zeros_like, TREE)
    assert_same_bits(clip_to_norm(zeros, 2.0), zeros)


def test_clamp_limits_each_element_and_has_no_slope_where_it_does():
    assert_same_bits(clamp(TREE, 3.5), {"a": TREE["a"], "b": {"c": jnp.array([-3.5])}})
    assert clamp(TREE, None) is TREE
    slope = jax.grad(lambda tree: clamp(tree, 3.5)["a"][0, 0] + clamp(tree, 3.5)["b"]["c"][0])(TREE)
    assert_same_bits(slope, {"a": jnp.array([[1.0, 0.0]]), "b": {"c": jnp.array([0.0])}})


def test_descend_by_one_rate_and_by_one_a_weight():
    by_one = descend(TREE, TREE, 0.5)
    assert_close(by_one, jax.tree.map(lambda leaf: leaf / 2, TREE))
    assert_same_bits(descend(TREE, TREE, constant_rates(TREE, 0.5)), by_one)
    rates = {"a": jnp.array([[1.0, 7.0]]), "b": {"c": jnp.array([0.25])}}
    expected = {"a": jnp.array([[0.0, 0.0]]), "b": {"c": jnp.array([-3.0])}}
    assert_close(descend(TREE, TREE, rates), expected)


def test_positive_keeps_positive_rates_and_has_no_slope_at_or_below_0():
    rates = jnp.array([-1.0, 0.0, 2.0])
    assert positive(rates).tolist() == [0.0, 0.0, 2.0]
    assert jax.grad(lambda r: positive(r).sum())(rates).tolist() == [0.0, 0.0, 1.0]
    assert where_positive(jnp.ones(3), rates).tolist() == [0.0, 0.0, 1.0]


def test_join_puts_replayed_rows_before_new_ones_with_their_own_weights():
    joined = join(batch_of([[1.0], [2.0]], [1.0, 0.0]), batch_of([[3.0]], first=False, last=True))
    assert joined.x.tolist() == [[1.0], [2.0], [3.0]]
    assert joined.weight.tolist() == [1.0, 0.0, 1.0]
    assert (joined.first, joined.last) == (False, True)


def test_describe_counts_the_weights_held_still():
    rates = {"a": jnp.array([-1.0, 0.0]), "b": jnp.array([[2.0, 4.0]])}
    found = {name: float(value) for name, value in describe(rates).items()}
    assert found == {"rate_mean": 1.5, "rates_at_zero": 0.5}


def test_keys_differ_by_purpose():
    bits = [tuple(jax.random.key_data(key).tolist()) for key in named_keys(jax.random.key(0))]
    assert len(set(bits)) == len(bits) == 3
