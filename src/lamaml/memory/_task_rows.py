"""The first rows of the task under way, for algorithms that look back when it ends (EWC, iCaRL)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from lamaml.errors import require
from lamaml.types import Batch


class TaskRows(NamedTuple):
    """At most N rows of one task."""

    x: jax.Array  # (N, ...) as the learner saw them
    y: jax.Array  # (N,)
    task: jax.Array  # (N,)
    num_kept: jax.Array  # rows held, the first ones


def empty_task_rows(batch: Batch, size: int) -> TaskRows:
    """Room for `size` rows like those of the batch."""
    require(size > 0, "size", size, "at least 1")
    nothing = jnp.zeros((), jnp.int32)
    return TaskRows(room(batch.x, size), room(batch.y, size), room(batch.task, size), nothing)


def room(rows: jax.Array, size: int) -> jax.Array:
    """Zeros for `size` rows like the given ones."""
    return jnp.zeros((size, *rows.shape[1:]), rows.dtype)


def keep(rows: TaskRows, batch: Batch, *, when: jax.Array | bool = True) -> TaskRows:
    """Append the rows of a batch while there is room; no padding, and nothing if not `when`."""
    size = len(rows.y)
    offered = (batch.weight > 0) & when
    # A place of N or more does not exist: what is sent there is dropped.
    place = jnp.where(offered, rows.num_kept + jnp.cumsum(offered) - 1, size)

    def write(kept: jax.Array, new: jax.Array) -> jax.Array:
        return kept.at[place].set(new, mode="drop")

    return TaskRows(
        write(rows.x, batch.x),
        write(rows.y, batch.y),
        write(rows.task, batch.task),
        jnp.minimum(rows.num_kept + jnp.sum(offered), size),
    )


def kept_rows(rows: TaskRows) -> Batch:
    """All places as a batch; the free ones have weight 0."""
    weight = (jnp.arange(len(rows.y)) < rows.num_kept).astype(jnp.float32)
    return Batch(rows.x, rows.y, rows.task, weight)


def forget(rows: TaskRows) -> TaskRows:
    """The same room, empty."""
    return rows._replace(num_kept=jnp.zeros((), jnp.int32))
