"""Looking at a learner while it learns, on rows it never learns from.

A watched learner carries those rows in its state, one block a task; so they are compiled as data,
saved with it, and a run that was cut short goes on watching.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lamaml.types import Batch, Examples, Info, Learner, Params, State


class Rows(NamedTuple):
    """As many rows of every task, as stored."""

    x: jax.Array  # (T, n, ...)
    y: jax.Array  # (T, n)


class Watched(NamedTuple):
    """A learner's state, and what it is watched with."""

    learned: State
    rows: Rows
    num_updates: jax.Array

    @property
    def params(self) -> Params:
        """Its weights."""
        return self.learned.params


Look = Callable[[State, State, Batch, Rows], Info]
"""(state before, state after, batch, rows) -> diagnostics."""


def blocks(sets: Sequence[Examples], most: int) -> Rows:
    """The first rows of every task, as many as the smallest set has, and not more than `most`."""
    count = min(most, *(len(examples) for examples in sets))
    x = np.stack([examples.x[:count] for examples in sets])
    y = np.stack([examples.y[:count] for examples in sets])
    return Rows(jnp.asarray(x), jnp.asarray(y.astype(np.int32)))


def watched(learner: Learner, rows: Rows, look: Look, *, every: int) -> Learner:
    """The same learner, looked at after every so many updates; NaN in between.

    Args:
      learner: is not changed by it.
      rows: what to look at it with.
      look: what to find out.
      every: updates from one look to the next.
    """

    def init(params: Params, batch: Batch) -> Watched:
        return Watched(learner.init(params, batch), rows, jnp.zeros((), jnp.int32))

    def update(state: Watched, batch: Batch, key: jax.Array) -> tuple[Watched, Info]:
        learned, info = learner.update(state.learned, batch, key)
        seen = (state.learned, learned, batch, state.rows)
        nothing = dict.fromkeys(jax.eval_shape(look, *seen), jnp.nan)
        number = state.num_updates + 1
        found = jax.lax.cond(
            number % every == 0, look, lambda *_: jax.tree.map(jnp.float32, nothing), *seen
        )
        return Watched(learned, state.rows, number), info | found

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
