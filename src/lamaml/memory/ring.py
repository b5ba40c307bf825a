"""One ring buffer per task (Lopez-Paz and Ranzato, 2017): the last ⌊M/T⌋ rows of each of T tasks.

The n-th row of task τ, counted from 0, goes to slot n mod ⌊M/T⌋ of ring τ.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from lamaml.errors import require
from lamaml.memory.rows import room, take, write
from lamaml.types import Batch


class RingBuffer(NamedTuple):
    """Rings of m rows, one after another: ring τ is the slots [m·τ, m·(τ+1))."""

    x: jax.Array  # (T·m, ...) as the learner saw them
    y: jax.Array  # (T·m,)
    num_seen: jax.Array  # (T,) rows of each task offered so far
    position: jax.Array | None = None  # (T·m,)

    @property
    def ring_size(self) -> int:
        """The number of slots per task, m."""
        return len(self.y) // len(self.num_seen)

    @property
    def task(self) -> jax.Array:
        """The task of each slot."""
        return jnp.arange(len(self.y), dtype=jnp.int32) // self.ring_size

    def held(self) -> jax.Array:
        """Return which slots hold a row."""
        place = jnp.arange(len(self.y), dtype=jnp.int32) % self.ring_size
        return place < jnp.asarray(self.num_seen)[self.task]


def empty_ring(batch: Batch, memory_size: int, num_tasks: int) -> RingBuffer:
    """Return free slots for `memory_size // num_tasks` rows per task like those of the batch."""
    check_ring(memory_size, num_tasks)
    size = memory_size // num_tasks * num_tasks
    x, y, position = room((batch.x, batch.y, batch.position), size)
    return RingBuffer(x, y, jnp.zeros(num_tasks, jnp.int32), position)


def check_ring(memory_size: int, num_tasks: int) -> None:
    """Raise InvalidArgument for a memory without at least one row per task."""
    require(num_tasks > 0, "num_tasks", num_tasks, "at least 1")
    allowed = f"at least one row for each of {num_tasks} tasks"
    require(memory_size >= num_tasks, "memory_size", memory_size, allowed)


def push_to_ring(memory: RingBuffer, batch: Batch, *, when: jax.Array | bool = True) -> RingBuffer:
    """Write each row to its task's ring; skip padding, and all rows if not `when`."""
    size, ring_size = len(memory.y), memory.ring_size
    offered = (batch.weight > 0) & when
    alike = (batch.task[:, None] == batch.task[None, :]) & offered[:, None] & offered[None, :]
    earlier = jnp.sum(jnp.tril(alike, k=-1), axis=1)  # rows of the same task before this one
    later = jnp.sum(jnp.triu(alike, k=1), axis=1)
    slot = ring_size * batch.task + (memory.num_seen[batch.task] + earlier) % ring_size
    # Rows that a later one would overwrite go, like padding, to a slot that does not exist.
    slot = jnp.where(offered & (later < ring_size), slot, size)
    x, y, position = write(
        (memory.x, memory.y, memory.position), (batch.x, batch.y, batch.position), slot
    )
    seen = memory.num_seen.at[batch.task].add(offered.astype(jnp.int32), mode="drop")
    return RingBuffer(x, y, seen, position)


def rows_of(memory: RingBuffer, task: jax.Array | int) -> Batch:
    """Return the ring of one task; where fewer rows are held, the rest has weight 0."""
    size = memory.ring_size
    x, y, position = jax.tree.map(
        lambda rows: jax.lax.dynamic_slice_in_dim(rows, task * size, size),
        (memory.x, memory.y, memory.position),
    )
    weight = (jnp.arange(size) < memory.num_seen[task]).astype(jnp.float32)
    return Batch(x, y, jnp.full_like(y, task), weight, position=position)


def rows_before(
    memory: RingBuffer, task: jax.Array | int, num_rows: int | None, key: jax.Array
) -> Batch:
    """Return rows of earlier tasks, each at most once; where fewer are held, the rest has weight 0.

    Args:
      memory: the rings.
      task: t; only rings τ < t are read.
      num_rows: number of rows to draw at random; None for all.
      key: decides which.
    """
    size, owner = len(memory.y), memory.task
    old = (owner < task) & memory.held()
    weight = old.astype(jnp.float32)
    rows = (memory.x, memory.y, owner, weight, memory.position)
    if num_rows is not None and num_rows < size:
        lot = jnp.where(old, jax.random.uniform(key, (size,)), -1.0)
        _, drawn = jax.lax.top_k(lot, num_rows)
        rows = take(rows, drawn)
    x, y, owner, weight, position = rows
    return Batch(x, y, owner, weight, position=position)
