"""Toy problems with known answers, and the batches and memories to pose them with.

Their rows carry the problem itself: each row of x is the slope or the curvature of its own loss.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from lamaml.memory import Reservoir
from lamaml.models import cross_entropy, mlp, task_heads
from lamaml.types import Batch

KEY = jax.random.key(0)


def weighted_mean(row_loss):
    """A loss as learners take it: the mean of the rows by their weights, 0 where there are none."""

    def loss(params, batch):
        total = jnp.sum(batch.weight)
        values = jax.vmap(row_loss, in_axes=(None, 0))(params, batch.x)
        return jnp.sum(batch.weight * values) / jnp.where(total > 0, total, 1.0)

    return loss


linear = weighted_mean(lambda theta, slope: jnp.sum(theta * slope))
"""u·θ, for rows u."""

quadratic = weighted_mean(lambda theta, row: 0.5 * row[0] * (theta - row[1]) ** 2)
"""½a(θ − c)² of one number θ, for rows (a, c)."""


@weighted_mean
def bowl(theta, row):
    """½(θ − c)ᵀH(θ − c) in the plane, for rows (H₁₁, H₁₂, H₂₂, c₁, c₂)."""
    return 0.5 * (theta - row[3:]) @ (row[jnp.array([[0, 1], [1, 2]])] @ (theta - row[3:]))


BOWLS = np.array(
    [
        [2.0, 0.7, 0.5, 0.3, -0.2],
        [0.4, -0.6, 1.5, -0.5, 0.8],
        [1.0, 0.3, 0.9, 0.1, 0.4],
        [0.7, 0.5, 1.1, 0.9, -0.6],
        [1.2, -0.4, 0.8, 1.0, 1.0],
        [0.6, 0.2, 2.0, -1.0, 0.5],
    ]
)
"""Curvatures of which no two commute."""


def bowl_slope(theta, rows):
    """∇ of the mean of bowls, in NumPy."""
    return np.mean([hessian(row) @ (theta - row[3:]) for row in rows], axis=0)


def hessian(row):
    """A bowl's curvature."""
    return np.array([[row[0], row[1]], [row[1], row[2]]])


MODEL = mlp(4, 6, hidden_sizes=(5,))
HEADS = task_heads(6, 2)
network = cross_entropy(MODEL.apply, HEADS)
"""A small network with three heads of two classes."""


@weighted_mean
def curved(params, row):
    """A loss without a closed form, for rows of three numbers."""
    return jax.nn.softplus(row[0] - 2 * jnp.tanh(params["b"] + jnp.sum(params["w"] * row[1:])))


CURVED_PARAMS = {"w": jnp.array([0.3, -0.4]), "b": jnp.array(0.1)}


def curved_batch(seed, num_rows=6):
    """Rows for it."""
    return batch_of(np.random.default_rng(seed).normal(size=(num_rows, 3)))


def network_params(seed=0):
    """Weights and biases none of which is 0."""
    return jax.tree.map(lambda p: p + 0.1, MODEL.init(jax.random.key(seed)))


def network_batch(seed, num_rows=6, **flags):
    """Rows of all three tasks."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 6, num_rows)
    x = rng.normal(size=(num_rows, 4)).astype(np.float32)
    rows = jnp.asarray(x), jnp.asarray(y, jnp.int32), jnp.asarray(y // 2, jnp.int32)
    return Batch(*rows, jnp.ones(num_rows), **flags)


def batch_of(x, weight=None, **flags):
    """Rows whose class and task do not matter."""
    x = jnp.asarray(x, float)
    zeros = jnp.zeros(len(x), jnp.int32)
    weight = jnp.ones(len(x)) if weight is None else jnp.asarray(weight, float)
    return Batch(x, zeros, zeros, weight, **flags)


def compiled(builder, loss, **settings):
    """A learner whose update is compiled, once however many tests ask for it."""
    return _compiled(builder, loss, tuple(sorted(settings.items())))


@functools.cache
def _compiled(builder, loss, settings):
    learner = builder(loss, **dict(settings))
    return learner._replace(update=jax.jit(learner.update))


def remembering(state, rows):
    """The state with a full memory of exactly these rows, so that every draw of all is known."""
    rows = batch_of(rows)
    return state._replace(memory=Reservoir(*rows[:3], jnp.int32(len(rows.y))))


def posed(learner, inner, outer, params=None, rates=None):
    """A state and a batch of two rows with ∇ℓ = inner and ∇L = outer, of linear losses.

    The learner must hold, and replay, one row: the one that makes the mean over b_m what is asked.
    """
    inner, outer = np.asarray(inner, float), np.asarray(outer, float)
    rows = batch_of([inner, inner])
    state = learner.init(jnp.zeros(len(inner)) if params is None else jnp.asarray(params), rows)
    state = remembering(state, [3 * outer - 2 * inner])
    return (state if rates is None else state._replace(rates=jnp.asarray(rates, float))), rows


def assert_same_bits(one, other):
    """Two trees equal in structure, dtype and every value."""
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert jnp.asarray(a).dtype == jnp.asarray(b).dtype
        np.testing.assert_array_equal(a, b)


def assert_close(one, other, rtol=1e-6, atol=1e-7):
    """Two trees equal in structure and, to rounding, in value."""
    assert jax.tree.structure(one) == jax.tree.structure(other)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=rtol, atol=atol), one, other)
