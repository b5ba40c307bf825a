"""The first rows of the current task, for algorithms that look back when it ends (EWC, iCaRL)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from lamaml.errors import require
from lamaml.memory.rows import room, write
from lamaml.types import Batch


class TaskRows(NamedTuple):
    """At most N rows of one task."""

    x: jax.Array  # (N, ...) as the learner saw them
    y: jax.Array  # (N,)
    task: jax.Array  # (N,)
    num_kept: jax.Array  # rows held, in the first slots
    position: jax.Array | None = None  # (N,)

    def held(self) -> jax.Array:
        """Return which slots hold a row."""
        return jnp.arange(len(self.y)) < self.num_kept


def empty_task_rows(batch: Batch, size: int) -> TaskRows:
    """Return free slots for `size` rows like those of the batch."""
    require(size > 0, "size", size, "at least 1")
    x, y, task, position = room((batch.x, batch.y, batch.task, batch.position), size)
    return TaskRows(x, y, task, jnp.zeros((), jnp.int32), position)


def keep(rows: TaskRows, batch: Batch, *, when: jax.Array | bool = True) -> TaskRows:
    """Append the rows of a batch to the free slots; skip padding, and all rows if not `when`."""
    size = len(rows.y)
    offered = (batch.weight > 0) & when
    # Slots from N on do not exist: rows sent there are dropped.
    slot = jnp.where(offered, rows.num_kept + jnp.cumsum(offered) - 1, size)
    x, y, task, position = write(
        (rows.x, rows.y, rows.task, rows.position),
        (batch.x, batch.y, batch.task, batch.position),
        slot,
    )
    num_kept = jnp.minimum(rows.num_kept + jnp.sum(offered), size)
    return TaskRows(x, y, task, num_kept, position)


def kept_rows(rows: TaskRows) -> Batch:
    """Return all slots as a batch; free ones have weight 0."""
    weight = rows.held().astype(jnp.float32)
    return Batch(rows.x, rows.y, rows.task, weight, position=rows.position)


def clear(rows: TaskRows) -> TaskRows:
    """Return the same slots, all free."""
    return rows._replace(num_kept=jnp.zeros((), jnp.int32))
