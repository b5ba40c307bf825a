"""Probes: measurements of a learner during training, on rows that it never learns from.

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
        """Return the rows of the first tasks."""
        return ProbeRows(self.x[:num_tasks], self.y[:num_tasks])


class ProbedState(NamedTuple):
    """A learner's state, the rows of its probes, and the number of updates made."""

    learned: State
    rows: ProbeRows
    num_updates: jax.Array

    @property
    def params(self) -> Params:
        """The learner's weights."""
        return self.learned.params

    @property
    def rates(self) -> Params | None:
        """The learner's learning rates; None if it learns none."""
        return getattr(self.learned, "rates", None)


Measure = Callable[[State, State, Batch, ProbeRows], Info]
"""(state before, state after, batch, rows) -> diagnostics of one update."""
Due = Callable[[jax.Array], jax.Array]
"""(number of the update, from 1) -> whether to measure after it."""


class Probe(NamedTuple):
    """A measurement, and the updates after which it is made."""

    measure: Measure
    due: Due


def every(count: int, last: int) -> Due:
    """Return the schedule: after every `count` updates, up to update number `last`."""
    return lambda number: (number % count == 0) & (number <= last)


def after(numbers: Sequence[int]) -> Due:
    """Return the schedule: after the updates with these numbers."""
    return lambda number: jnp.isin(number, jnp.array(numbers))


def probe_rows(sets: Sequence[Examples], max_rows: int) -> ProbeRows:
    """Return the first rows of every task: as many as the smallest has, at most `max_rows`."""
    count = min(max_rows, *(len(examples) for examples in sets))
    x = np.stack([examples.x[:count] for examples in sets])
    y = np.stack([examples.y[:count] for examples in sets])
    return ProbeRows(jnp.asarray(x), jnp.asarray(y.astype(np.int32)))


def with_probes(learner: Learner, rows: ProbeRows, probes: Sequence[Probe]) -> Learner:
    """Return the same learner with the results of the probes among its diagnostics.

    Between the updates after which a probe is due, its diagnostics are NaN.

    Args:
      learner: the algorithm; its updates stay the same.
      rows: what the probes measure on.
      probes: the measurements and their schedules.
    """

    def init(params: Params, batch: Batch) -> ProbedState:
        return ProbedState(learner.init(params, batch), rows, jnp.zeros((), jnp.int32))

    def update(state: ProbedState, batch: Batch, key: jax.Array) -> tuple[ProbedState, Info]:
        learned, info = learner.update(state.learned, batch, key)
        number = state.num_updates + 1
        for measure, due in probes:
            info |= _when(due(number), measure, state.learned, learned, batch, state.rows)
        return ProbedState(learned, state.rows, number), info

    def end_task(state: ProbedState, key: jax.Array) -> ProbedState:
        return state._replace(learned=learner.end_task(state.learned, key))  # type: ignore[misc]

    def predict(state: ProbedState, x: jax.Array, task: jax.Array) -> jax.Array:
        return learner.predict(state.learned, x, task)  # type: ignore[misc]

    return Learner(
        init,
        update,
        end_task if learner.end_task else None,
        predict if learner.predict else None,
    )


def _when(due: jax.Array, measure: Measure, *given: Any) -> Info:
    names = jax.eval_shape(measure, *given)
    return jax.lax.cond(due, measure, lambda *_: dict.fromkeys(names, jnp.float32(jnp.nan)), *given)
