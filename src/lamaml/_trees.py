"""Arithmetic on pytrees (dot, cosine, norm, finite check), and padding of rows."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lamaml.types import Params


def dot(one: Params, other: Params) -> jax.Array:
    """Return the inner product of two trees taken as vectors."""
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return sum((jnp.vdot(a, b) for a, b in pairs), start=jnp.zeros(()))


def cosine(one: Params, other: Params) -> jax.Array:
    """Return the cosine between two trees taken as vectors; NaN where one of them is 0.

    >>> cosine({"w": jnp.array([1.0, 0.0])}, {"w": jnp.array([-2.0, 0.0])})
    Array(-1., dtype=float32)
    """
    lengths = jnp.sqrt(dot(one, one)) * jnp.sqrt(dot(other, other))
    return jnp.where(lengths > 0, dot(one, other) / jnp.where(lengths > 0, lengths, 1.0), jnp.nan)


def global_norm(tree: Params) -> jax.Array:
    """Return the Euclidean norm of all leaves taken as one vector; its gradient at 0 is 0."""
    squares = sum(jnp.sum(jnp.square(leaf)) for leaf in jax.tree.leaves(tree))
    return jnp.where(squares > 0, jnp.sqrt(jnp.where(squares > 0, squares, 1.0)), squares)


@jax.jit
def all_finite(tree: Any) -> jax.Array:
    """Return whether every floating-point number of a tree is finite."""
    numbers = [leaf for leaf in jax.tree.leaves(tree) if jnp.issubdtype(leaf.dtype, jnp.inexact)]
    return jnp.array([jnp.isfinite(leaf).all() for leaf in numbers]).all()


def pad_rows(rows: np.ndarray, size: int, value: int = 0) -> np.ndarray:
    """Return the rows, filled up to `size` rows with a value."""
    if len(rows) == size:
        return rows
    full = np.full((size, *rows.shape[1:]), value, rows.dtype)
    full[: len(rows)] = rows
    return full
