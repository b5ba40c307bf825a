"""Looking at a learner while it learns, on rows it never learns from.

A watched learner carries those rows in its state, one block a task; so they are compiled as data,
saved with it, and a run that was cut short goes on watching.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lamaml.types import Batch, Examples, Info, Learner, Params, State


class Rows(NamedTuple):
    """As many rows of every task, as stored."""

    x: jax.Array  # (T, n, ...)
    y: jax.Array  # (T, n)

    def of_first(self, num_tasks: int) -> "Rows":
        """The rows of the first tasks."""
        return Rows(self.x[:num_tasks], self.y[:num_tasks])


class Watched(NamedTuple):
    """A learner's state, and what it is watched with."""

    learned: State
    rows: Rows
    num_updates: jax.Array

    @property
    def params(self) -> Params:
        """Its weights."""
        return self.learned.params

    @property
    def rates(self) -> Params | None:
        """Its learning rates, if it learns them."""
        return getattr(self.learned, "rates", None)


Look = Callable[[State, State, Batch, Rows], Info]
"""(state before, state after, batch, rows) -> diagnostics."""


class Timed(NamedTuple):
    """A look, and when it is due."""

    look: Look
    due: Callable[[jax.Array], jax.Array]  # (updates made) -> whether now


def every(count: int, last: int) -> Callable[[jax.Array], jax.Array]:
    """After every `count` updates, up to the update with number `last`."""
    return lambda number: (number % count == 0) & (number <= last)


def after(numbers: Sequence[int]) -> Callable[[jax.Array], jax.Array]:
    """After these updates."""
    return lambda number: jnp.isin(number, jnp.array(numbers))


def blocks(sets: Sequence[Examples], most: int) -> Rows:
    """The first rows of every task, as many as the smallest set has, and not more than `most`."""
    count = min(most, *(len(examples) for examples in sets))
    x = np.stack([examples.x[:count] for examples in sets])
    y = np.stack([examples.y[:count] for examples in sets])
    return Rows(jnp.asarray(x), jnp.asarray(y.astype(np.int32)))


def watched(learner: Learner, rows: Rows, looks: Sequence[Timed]) -> Learner:
    """The same learner, looked at now and then; NaN in between.

    Args:
      learner: is not changed by it.
      rows: what to look at it with.
      looks: what to find out, and when.
    """

    def init(params: Params, batch: Batch) -> Watched:
        return Watched(learner.init(params, batch), rows, jnp.zeros((), jnp.int32))

    def update(state: Watched, batch: Batch, key: jax.Array) -> tuple[Watched, Info]:
        learned, info = learner.update(state.learned, batch, key)
        number = state.num_updates + 1
        for look, due in looks:
            info |= _when(due(number), look, state.learned, learned, batch, state.rows)
        return Watched(learned, state.rows, number), info

    def end_task(state: Watched, key: jax.Array) -> Watched:
        return state._replace(learned=learner.end_task(state.learned, key))  # type: ignore[misc]

    def predict(state: Watched, x: jax.Array, task: jax.Array) -> jax.Array:
        return learner.predict(state.learned, x, task)  # type: ignore[misc]

    return Learner(
        init,
        update,
        end_task if learner.end_task else None,
        predict if learner.predict else None,
    )


def _when(due: jax.Array, look: Look, *seen: Any) -> Info:
    """What the look finds if it is due, else NaN."""
    names = jax.eval_shape(look, *seen)
    return jax.lax.cond(due, look, lambda *_: dict.fromkeys(names, jnp.float32(jnp.nan)), *seen)
