"""What all memories share: the rows they hold, and how these are written and read."""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from lamaml.types import State


@runtime_checkable
class Memory(Protocol):
    """Rows that a learner keeps, in a fixed number of slots."""

    @property
    def x(self) -> jax.Array:
        """(M, ...), the inputs as the learner saw them."""

    @property
    def y(self) -> jax.Array:
        """(M,), the labels."""

    @property
    def task(self) -> jax.Array:
        """(M,), the task of each row."""

    @property
    def position(self) -> jax.Array | None:
        """(M,), the number of each row in the stream; None where batches carry none."""

    def held(self) -> jax.Array:
        """Return which slots hold a row, (M,) booleans."""


class StoredRows(NamedTuple):
    """Rows of a memory on the host, without its free slots."""

    x: np.ndarray
    y: np.ndarray
    task: np.ndarray
    position: np.ndarray | None  # None where batches carry none


def memories_in(state: State) -> dict[str, Memory]:
    """Return the memories among the fields of a learner's state, by field name."""
    return {
        name: part
        for name, part in state._asdict().items()
        if hasattr(part, "held") and isinstance(part, Memory)  # the protocol alone is slow to check
    }


def stored_rows(memory: Memory) -> StoredRows:
    """Return the rows that a memory holds.

    Examples:
      >>> from lamaml.memory import empty_reservoir, push
      >>> from lamaml.types import Batch
      >>> rows = Batch(jnp.ones((2, 3)), jnp.arange(2), jnp.zeros(2, int), jnp.ones(2))
      >>> stored_rows(push(empty_reservoir(rows, 5), rows, jax.random.key(0))).y.tolist()
      [0, 1]
    """
    held = np.asarray(memory.held())
    fields = (memory.x, memory.y, memory.task, memory.position)
    return StoredRows(*jax.tree.map(lambda rows: np.asarray(rows)[held], fields))


def room(like: Any, size: int) -> Any:
    """Return zeros for `size` rows like the given ones, in a pytree."""
    return jax.tree.map(lambda rows: jnp.zeros((size, *rows.shape[1:]), rows.dtype), like)


def write(kept: Any, rows: Any, slot: jax.Array) -> Any:
    """Return the kept rows with new ones in the given slots; a slot that does not exist is skipped.

    Both are pytrees of the same structure.
    """
    return jax.tree.map(lambda old, new: old.at[slot].set(new, mode="drop"), kept, rows)


def take(rows: Any, places: jax.Array) -> Any:
    """Return the rows at the given places, in a pytree."""
    return jax.tree.map(lambda field: field[places], rows)
