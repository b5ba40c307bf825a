"""The look-ahead in function space equals the general path and the slope of its own loss."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.flatten_util import ravel_pytree

from lamaml.learners.inner_loop import META_LOSSES, meta_gradient
from lamaml.models import cross_entropy, mlp, task_heads
from lamaml.types import Batch

NUM_OUTPUTS, NUM_INPUTS = 4, 3


@functools.cache
def network(function_space: bool, hidden_sizes: tuple[int, ...]):
    return mlp(NUM_INPUTS, NUM_OUTPUTS, hidden_sizes=hidden_sizes, function_space=function_space)


def draw(seed: int, num_new: int, num_old: int, num_padding: int, with_heads: bool):
    """Return a batch with padding and weights, and the meta-batch that ends with it."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, NUM_OUTPUTS, num_old + num_new)
    weight = rng.uniform(0.2, 2.0, len(y))
    weight[len(y) - num_padding :] = 0.0
    weight[:num_old] *= rng.random(num_old) < 0.8  # a memory that is not full yet
    task = y // 2 if with_heads else np.zeros(len(y))
    x = rng.normal(size=(len(y), NUM_INPUTS))
    whole = (x, y.astype(np.int32), task.astype(np.int32), weight)
    meta_batch = Batch(*(jnp.asarray(part) for part in whole))
    return Batch(*(part[num_old:] for part in meta_batch[:4])), meta_batch


def both_paths(batch, meta_batch, params, rates, hidden_sizes, with_heads, **options):
    heads = task_heads(NUM_OUTPUTS, 2) if with_heads else None
    return [
        meta_gradient(
            cross_entropy(network(is_used, hidden_sizes), heads),
            params,
            rates,
            batch,
            meta_batch,
            **options,
        )
        for is_used in (True, False)
    ]


@settings(max_examples=5, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    num_new=st.integers(1, 7),
    num_old=st.integers(0, 5),
    padding=st.floats(0, 1),
    inner_steps=st.integers(1, 8),
    first_order=st.booleans(),
    clip_inner_rates=st.booleans(),
    with_heads=st.booleans(),
    meta_loss=st.sampled_from(META_LOSSES),
    hidden_sizes=st.sampled_from([(), (4,), (5, 3)]),
)
def test_equals_the_general_path(
    seed, num_new, num_old, padding, with_heads, hidden_sizes, **options
) -> None:
    with jax.enable_x64(True):
        num_padding = int(padding * num_new)
        batch, meta_batch = draw(seed, num_new, num_old, num_padding, with_heads)
        params = network(False, hidden_sizes).init(jax.random.key(seed))
        keys = iter(jax.random.split(jax.random.key(seed), 20))
        rates = jax.tree.map(lambda p: 0.3 * jax.random.normal(next(keys), p.shape) + 0.1, params)
        params, rates = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), (params, rates))
        ours, general = both_paths(
            batch, meta_batch, params, rates, hidden_sizes, with_heads, **options
        )
        assert jax.tree.structure(ours) == jax.tree.structure(general)
        for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(general), strict=True):
            scale = max(1e-3, float(jnp.abs(other).max()))
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-9 * scale)


def test_single_precision_agrees_to_rounding() -> None:
    batch, meta_batch = draw(0, 10, 10, 0, False)
    batch, meta_batch = (
        jax.tree.map(jnp.float32, b)._replace(y=b.y, task=b.task) for b in (batch, meta_batch)
    )
    params = network(False, (20, 20)).init(jax.random.key(0))
    rates = jax.tree.map(lambda p: jnp.full_like(p, 0.1), params)
    for first_order in (True, False):
        ours, general = both_paths(
            batch,
            meta_batch,
            params,
            rates,
            (20, 20),
            False,
            inner_steps=5,
            first_order=first_order,
        )
        for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(general), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("of", ["params", "rates"])
def test_second_order_is_the_slope_of_the_meta_loss(of) -> None:
    with jax.enable_x64(True):
        batch, meta_batch = draw(1, 6, 4, 1, True)
        params = network(True, (5, 3)).init(jax.random.key(1))
        rates = jax.tree.map(
            lambda p: 0.2 + 0.05 * jnp.cos(jnp.arange(p.size)).reshape(p.shape), params
        )
        trees = jax.tree.map(lambda p: p.astype(jnp.float64), {"params": params, "rates": rates})
        loss = cross_entropy(network(True, (5, 3)), task_heads(NUM_OUTPUTS, 2))
        flat, unflatten = ravel_pytree(trees[of])

        @jax.jit
        def ahead(vector):
            given = trees | {of: unflatten(vector)}
            return meta_gradient(
                loss,
                given["params"],
                given["rates"],
                batch,
                meta_batch,
                inner_steps=3,
                first_order=False,
            )

        slope, _ = ravel_pytree(getattr(ahead(flat), of))
        step = 1e-6
        for number in range(0, len(flat), 5):
            away = jnp.zeros_like(flat).at[number].set(step)
            measured = (ahead(flat + away).loss - ahead(flat - away).loss) / (2 * step)
            np.testing.assert_allclose(slope[number], measured, rtol=1e-6, atol=1e-9)


def test_a_clamp_takes_the_general_path() -> None:
    batch, meta_batch = draw(2, 4, 4, 0, False)
    params = network(True, (4,)).init(jax.random.key(0))
    rates = jax.tree.map(lambda p: jnp.full_like(p, 0.5), params)
    ours, general = both_paths(
        batch,
        meta_batch,
        params,
        rates,
        (4,),
        False,
        inner_steps=2,
        first_order=True,
        inner_clamp=0.01,
    )
    for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(general), strict=True):
        np.testing.assert_array_equal(one, other)
