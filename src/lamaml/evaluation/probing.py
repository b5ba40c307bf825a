"""Probes: measurements of a learner during training, on rows it never trains on.

A learner with probes carries those rows in its state, one block per task. So they are compiled as
data and saved with it, and a resumed run continues to measure.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lamaml.types import Batch, Examples, Info, Learner, Params, State


class ProbeRows(NamedTuple):
    """The same number of rows of every task, as stored."""

    x: jax.Array  # (T, n, ...)
    y: jax.Array  # (T, n)

    def of_first(self, num_tasks: int) -> "ProbeRows":
        """The rows of the first tasks."""
        return ProbeRows(self.x[:num_tasks], self.y[:num_tasks])


class Probed(NamedTuple):
    """A learner's state, and the rows it is measured on."""

    learned: State
    rows: ProbeRows
    num_updates: jax.Array

    @property
    def params(self) -> Params:
        """Its weights."""
        return self.learned.params

    @property
    def rates(self) -> Params | None:
        """Its learning rates, if it learns them."""
        return getattr(self.learned, "rates", None)


Measure = Callable[[State, State, Batch, ProbeRows], Info]
"""(state before, state after, batch, rows) -> diagnostics."""


class Probe(NamedTuple):
    """A measurement, and when it is made."""

    measure: Measure
    due: Callable[[jax.Array], jax.Array]  # (updates made) -> whether now


def every(count: int, last: int) -> Callable[[jax.Array], jax.Array]:
    """After every `count` updates, up to the update with number `last`."""
    return lambda number: (number % count == 0) & (number <= last)


def after(numbers: Sequence[int]) -> Callable[[jax.Array], jax.Array]:
    """After these updates."""
    return lambda number: jnp.isin(number, jnp.array(numbers))


def blocks(sets: Sequence[Examples], most: int) -> ProbeRows:
    """The first rows of every task: as many as the smallest set has, at most `most`."""
    count = min(most, *(len(examples) for examples in sets))
    x = np.stack([examples.x[:count] for examples in sets])
    y = np.stack([examples.y[:count] for examples in sets])
    return ProbeRows(jnp.asarray(x), jnp.asarray(y.astype(np.int32)))


def with_probes(learner: Learner, rows: ProbeRows, probes: Sequence[Probe]) -> Learner:
    """The same learner with the numbers of probes among its diagnostics, NaN when none is due.

    Args:
      learner: its updates stay the same.
      rows: what is measured on.
      probes: what is measured, and when.
    """

    def init(params: Params, batch: Batch) -> Probed:
        return Probed(learner.init(params, batch), rows, jnp.zeros((), jnp.int32))

    def update(state: Probed, batch: Batch, key: jax.Array) -> tuple[Probed, Info]:
        learned, info = learner.update(state.learned, batch, key)
        number = state.num_updates + 1
        for measure, due in probes:
            info |= _when(due(number), measure, state.learned, learned, batch, state.rows)
        return Probed(learned, state.rows, number), info

    def end_task(state: Probed, key: jax.Array) -> Probed:
        return state._replace(learned=learner.end_task(state.learned, key))  # type: ignore[misc]

    def predict(state: Probed, x: jax.Array, task: jax.Array) -> jax.Array:
        return learner.predict(state.learned, x, task)  # type: ignore[misc]

    return Learner(
        init,
        update,
        end_task if learner.end_task else None,
        predict if learner.predict else None,
    )


def _when(due: jax.Array, measure: Measure, *seen: Any) -> Info:
    """The measurement if it is due, else NaN."""
    names = jax.eval_shape(measure, *seen)
    return jax.lax.cond(due, measure, lambda *_: dict.fromkeys(names, jnp.float32(jnp.nan)), *seen)
