"""Reservoir sampling (Vitter, 1985): a uniform sample of everything seen, in constant memory.

The n-th row is kept with probability M/n, in a slot drawn uniformly:
    n ≤ M:  slot = n − 1
    n > M:  slot ~ U{0, …, n − 1}, dropped where slot ≥ M
so that after n rows each of them is held with probability exactly M/n.

Deviation: the authors draw from {0, …, n}, one value too many, which favours the first M rows.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from lamaml.errors import require
from lamaml.types import Batch


class Reservoir(NamedTuple):
    """A memory of at most M rows."""

    x: jax.Array  # (M, ...) as the learner saw them
    y: jax.Array  # (M,)
    task: jax.Array  # (M,)
    num_seen: jax.Array  # n, distinct rows offered so far


def empty_reservoir(batch: Batch, memory_size: int) -> Reservoir:
    """Room for `memory_size` rows like those of the batch."""
    require(memory_size > 0, "memory_size", memory_size, "at least 1")

    def room(rows: jax.Array) -> jax.Array:
        return jnp.zeros((memory_size, *rows.shape[1:]), rows.dtype)

    return Reservoir(room(batch.x), room(batch.y), room(batch.task), jnp.zeros((), jnp.int32))


def push(
    memory: Reservoir, batch: Batch, key: jax.Array, *, when: jax.Array | bool = True
) -> Reservoir:
    """Offer the rows of a batch one after another, without padding; none if not `when`."""
    size = len(memory.y)
    offered = (batch.weight > 0) & when
    order = memory.num_seen + jnp.cumsum(offered)  # n of each row
    drawn = jax.random.randint(key, order.shape, 0, jnp.maximum(order, 1))
    slot = jnp.where(offered, jnp.where(order <= size, order - 1, drawn), size)
    # Of rows drawn to one slot the last stays; the others go to slot M, which does not exist.
    overwritten = jnp.triu(slot[:, None] == slot[None, :], k=1).any(axis=1)
    slot = jnp.where(overwritten, size, slot)

    def write(kept: jax.Array, rows: jax.Array) -> jax.Array:
        return kept.at[slot].set(rows, mode="drop")

    return Reservoir(
        write(memory.x, batch.x),
        write(memory.y, batch.y),
        write(memory.task, batch.task),
        memory.num_seen + jnp.sum(offered),
    )


def sample(
    memory: Reservoir, num_rows: int, key: jax.Array, *, before: jax.Array | None = None
) -> Batch:
    """Draw rows without replacement; where fewer are held the rest has weight 0.

    Args:
      memory: what is held.
      num_rows: how many to draw.
      key: decides which.
      before: draw only from tasks before this one; None for all.
    """
    size = len(memory.y)
    held = jnp.arange(size) < memory.num_seen
    if before is not None:
        held &= memory.task < before
    lot = jnp.where(held, jax.random.uniform(key, (size,)), -1.0)
    _, rows = jax.lax.top_k(lot, min(num_rows, size))
    weight = held[rows].astype(jnp.float32)
    return Batch(memory.x[rows], memory.y[rows], memory.task[rows], weight)
