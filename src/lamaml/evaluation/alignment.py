"""Alignment of new and replayed gradients, which La-MAML's meta-objective raises (Table 4).

    cos(g, h) = g·h / (‖g‖ ‖h‖),   g = ∇ℓ(θ; replayed rows of earlier tasks),   h = ∇ℓ(θ; b)

measured at θ before the update, in the first glance at b. Rows of different heads share no weight
of the head: it adds nothing to g·h but lengthens g and h. So the trunk is also measured alone.

The paper says "replay samples" without saying of which tasks. A learner that replays draws them
from its whole memory, current task included, so the cosine with g of such rows is measured too.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from lamaml._trees import cosine
from lamaml.learners.gradients import named_keys
from lamaml.memory import sample
from lamaml.types import Batch, Info, Learner, Loss, Params, State

ALIGNMENTS = ("alignment", "alignment_trunk", "alignment_replayed")


class Alignment(NamedTuple):
    """Cosines, NaN where a gradient is 0."""

    whole: jax.Array
    trunk: jax.Array


def trunk(params: Params) -> Params:
    """Return all weights except those of the head."""
    return {name: layer for name, layer in params.items() if name != "head"}


def alignment(one: Params, other: Params) -> Alignment:
    """Return the cosine of two gradients of a network, with and without its head."""
    return Alignment(cosine(one, other), cosine(trunk(one), trunk(other)))


def with_alignment(learner: Learner, loss: Loss, *, replay_size: int) -> Learner:
    """Return the same learner with `ALIGNMENTS` among its diagnostics.

    Args:
      learner: its state has `params` and a reservoir `memory`.
      loss: ℓ.
      replay_size: rows drawn for g, from earlier tasks and from the whole memory.
    """

    def measure(state: State, batch: Batch, key: jax.Array) -> Info:
        new = jax.grad(loss)(state.params, batch)

        def with_new(before: jax.Array | None) -> Alignment:
            rows = sample(state.memory, replay_size, key, before=before)
            return alignment(jax.grad(loss)(state.params, rows), new)

        earlier, replayed = with_new(jnp.max(batch.task)), with_new(None)
        found = earlier.whole, earlier.trunk, replayed.whole
        return dict(zip(ALIGNMENTS, found, strict=True))

    def unmeasured(*_: object) -> Info:
        return dict.fromkeys(ALIGNMENTS, jnp.array(jnp.nan))

    def update(state: State, batch: Batch, key: jax.Array) -> tuple[State, Info]:
        when = jnp.asarray(batch.first) & (jnp.max(batch.task) > 0)
        found = jax.lax.cond(when, measure, unmeasured, state, batch, named_keys(key).replay)
        state, info = learner.update(state, batch, key)
        return state, info | found

    return learner._replace(update=update)
