"""One ring buffer a task (Lopez-Paz and Ranzato, 2017): the last ⌊M/T⌋ rows of each of T tasks.

The n-th row of task τ, counted from 0, goes to slot n mod ⌊M/T⌋ of ring τ.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from lamaml.errors import require
from lamaml.memory._task_rows import room
from lamaml.types import Batch


class PerTask(NamedTuple):
    """Rings of m rows, one after another: ring τ is the slots [m·τ, m·(τ+1))."""

    x: jax.Array  # (T·m, ...) as the learner saw them
    y: jax.Array  # (T·m,)
    num_seen: jax.Array  # (T,) rows of each task offered so far


def empty_per_task(batch: Batch, memory_size: int, num_tasks: int) -> PerTask:
    """Room for `memory_size // num_tasks` rows a task like those of the batch."""
    check_per_task(memory_size, num_tasks)
    size = memory_size // num_tasks * num_tasks
    return PerTask(room(batch.x, size), room(batch.y, size), jnp.zeros(num_tasks, jnp.int32))


def check_per_task(memory_size: int, num_tasks: int) -> None:
    """Refuse a memory without a row for every task, naming the argument."""
    require(num_tasks > 0, "num_tasks", num_tasks, "at least 1")
    allowed = f"at least one row for each of {num_tasks} tasks"
    require(memory_size >= num_tasks, "memory_size", memory_size, allowed)


def push_per_task(memory: PerTask, batch: Batch, *, when: jax.Array | bool = True) -> PerTask:
    """Write each row to its task's ring; no padding, and nothing if not `when`."""
    size, per_task = len(memory.y), len(memory.y) // len(memory.num_seen)
    offered = (batch.weight > 0) & when
    alike = (batch.task[:, None] == batch.task[None, :]) & offered[:, None] & offered[None, :]
    earlier = jnp.sum(jnp.tril(alike, k=-1), axis=1)  # rows of the same task before this one
    later = jnp.sum(jnp.triu(alike, k=1), axis=1)
    slot = per_task * batch.task + (memory.num_seen[batch.task] + earlier) % per_task
    # What a later row would overwrite goes, like padding, to a slot that does not exist.
    slot = jnp.where(offered & (later < per_task), slot, size)
    return PerTask(
        memory.x.at[slot].set(batch.x, mode="drop"),
        memory.y.at[slot].set(batch.y, mode="drop"),
        memory.num_seen.at[batch.task].add(offered.astype(jnp.int32), mode="drop"),
    )


def rows_of(memory: PerTask, task: jax.Array | int) -> Batch:
    """The ring of one task; where fewer rows are held the rest has weight 0."""
    per_task = len(memory.y) // len(memory.num_seen)
    x, y = (
        jax.lax.dynamic_slice_in_dim(rows, task * per_task, per_task)
        for rows in (memory.x, memory.y)
    )
    weight = (jnp.arange(per_task) < memory.num_seen[task]).astype(jnp.float32)
    return Batch(x, y, jnp.full_like(y, task), weight)


def rows_before(
    memory: PerTask, task: jax.Array | int, num_rows: int | None, key: jax.Array
) -> Batch:
    """Rows of all tasks before this one, each at most once; where fewer are held the rest weighs 0.

    Args:
      memory: the rings.
      task: t; only rings τ < t are read.
      num_rows: how many to draw at random; None for all.
      key: of the draw.
    """
    size, num_tasks = len(memory.y), len(memory.num_seen)
    per_task = size // num_tasks
    owner, place = jnp.divmod(jnp.arange(size, dtype=jnp.int32), per_task)
    old = (owner < task) & (place < memory.num_seen[owner])
    everything = Batch(memory.x, memory.y, owner, old.astype(jnp.float32))
    if num_rows is None or num_rows >= size:
        return everything
    lot = jnp.where(old, jax.random.uniform(key, (size,)), -1.0)
    _, drawn = jax.lax.top_k(lot, num_rows)
    return Batch(*(rows[drawn] for rows in everything[:4]))
