"""Reptile, the common part of `mer` and `mer_single`: single-row steps, of which a part is kept.

θ ← θ − α · clip(∇ℓ(θ; row))   for each row in turn,   then   θ ← W + β (θ − W)
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from lamaml.learners.gradients import clip_to_norm, descend
from lamaml.learners.inner_loop import chunks
from lamaml.types import Batch, Info, Loss, Params, State

_UNROLL = 2  # steps per compiled loop body: a fifth faster than 1, and more are no faster


def row_by_row(
    loss: Loss, params: Params, rows: Batch, rate: float, max_norm: float | None
) -> tuple[Params, jax.Array]:
    """Return θ after one SGD step per row, and the loss of each row before its step."""

    def step(params: Params, row: Batch) -> tuple[Params, jax.Array]:
        value, gradient = jax.value_and_grad(loss)(params, row)
        return descend(params, clip_to_norm(gradient, max_norm), rate), value

    return jax.lax.scan(step, params, chunks(rows, len(rows.y)), unroll=_UNROLL)


def part_of_the_way(start: Params, end: Params, part: float) -> Params:
    """Return W + β (θ − W)."""
    return jax.tree.map(lambda w, p: w + part * (p - w), start, end)


def example_by_example(
    learn: Callable[[State, Batch, jax.Array], tuple[State, jax.Array]],
    state: State,
    batch: Batch,
    key: jax.Array,
) -> tuple[State, Info]:
    """Learn from the rows of a batch one by one, each with its own key; skip padding."""

    def turn(state: State, given: tuple[Batch, jax.Array]) -> tuple[State, jax.Array]:
        example, key = given
        return learn(state, example._replace(first=batch.first, last=batch.last), key)

    examples = chunks(batch, len(batch.y))
    state, values = jax.lax.scan(turn, state, (examples, jax.random.split(key, len(batch.y))))
    total = jnp.sum(batch.weight)
    mean = jnp.vdot(batch.weight, values) / jnp.where(total > 0, total, 1.0)
    return state, {"loss": mean}
