"""Reservoir sampling (Vitter, 1985): a uniform sample of all rows seen, in constant memory.

The n-th row is kept with probability M/n, in a slot drawn uniformly:

    n ≤ M:  slot = n − 1
    n > M:  slot ~ U{0, …, n − 1}, dropped where slot ≥ M
so that after n rows each of them is held with probability exactly M/n.

Deviation: the authors draw from {0, …, n}, one value too many, which favours the first M rows.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lamaml.errors import InvalidArgument, require
from lamaml.memory.rows import Memory, room, take, write
from lamaml.types import Batch, Params


class Reservoir(NamedTuple):
    """A memory of at most M rows."""

    x: jax.Array  # (M, ...) as the learner saw them
    y: jax.Array  # (M,)
    task: jax.Array  # (M,)
    num_seen: jax.Array  # n, distinct rows offered so far
    position: jax.Array | None = None  # (M,)
    extra: Params = None  # a pytree of (M, ...) arrays that the learner keeps with each row

    def held(self) -> jax.Array:
        """Return which slots hold a row."""
        return jnp.arange(len(self.y)) < self.num_seen


def empty_reservoir(batch: Batch, memory_size: int) -> Reservoir:
    """Return free slots for `memory_size` rows like those of the batch."""
    require(memory_size > 0, "memory_size", memory_size, "at least 1")
    x, y, task, position, extra = room(_fields(batch), memory_size)
    return Reservoir(x, y, task, jnp.zeros((), jnp.int32), position, extra)


def push(
    memory: Reservoir, batch: Batch, key: jax.Array, *, when: jax.Array | bool = True
) -> Reservoir:
    """Offer the rows of a batch one by one; skip padding, and all rows if not `when`."""
    size = len(memory.y)
    offered = (batch.weight > 0) & when
    order = memory.num_seen + jnp.cumsum(offered)  # n of each row
    drawn = jax.random.randint(key, order.shape, 0, jnp.maximum(order, 1))
    slot = jnp.where(offered, jnp.where(order <= size, order - 1, drawn), size)
    # Of rows drawn to one slot the last stays; the others go to slot M, which does not exist.
    overwritten = jnp.triu(slot[:, None] == slot[None, :], k=1).any(axis=1)
    slot = jnp.where(overwritten, size, slot)
    x, y, task, position, extra = write(_fields(memory), _fields(batch), slot)
    return Reservoir(x, y, task, memory.num_seen + jnp.sum(offered), position, extra)


def sample(
    memory: Reservoir, num_rows: int, key: jax.Array, *, before: jax.Array | None = None
) -> Batch:
    """Draw rows without replacement; where fewer are held, the rest has weight 0.

    Args:
      memory: the reservoir.
      num_rows: number of rows to draw.
      key: decides which.
      before: draw only from tasks before this one; None for all tasks.
    """
    size = len(memory.y)
    held = memory.held()
    if before is not None:
        held &= memory.task < before
    lot = jnp.where(held, jax.random.uniform(key, (size,)), -1.0)
    _, rows = jax.lax.top_k(lot, min(num_rows, size))
    weight = held[rows].astype(jnp.float32)
    x, y, task, position, extra = take(_fields(memory), rows)
    return Batch(x, y, task, weight, position=position, extra=extra)


def can_resize(memory: Memory) -> bool:
    """Return whether a memory stays what it is with fewer slots: a reservoir does."""
    return isinstance(memory, Reservoir)


def resize(memory: Memory, size: int, rng: np.random.Generator) -> Memory:
    """Return a reservoir with fewer slots, on the host, that is still a uniform sample.

    Memories that already have at most `size` slots are returned as they are.

    Args:
      memory: a reservoir, if it has more than `size` slots.
      size: the number of slots.
      rng: decides which rows stay.
    """
    if len(memory.y) <= size:
        return memory
    if not isinstance(memory, Reservoir):
        raise InvalidArgument(f"memory is a {type(memory).__name__}: must be a Reservoir")
    kept = rng.permutation(min(int(memory.num_seen), len(memory.y)))[:size]
    slots = np.resize(kept, size) if len(kept) else np.zeros(size, int)  # free slots: any row
    x, y, task, position, extra = jax.tree.map(
        lambda rows: np.asarray(rows)[slots], _fields(memory)
    )
    return Reservoir(x, y, task, memory.num_seen, position, extra)


def _fields(rows: Reservoir | Batch) -> tuple[Params, ...]:
    """Return what is kept of each row."""
    return rows.x, rows.y, rows.task, rows.position, rows.extra
