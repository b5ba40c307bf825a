"""Meta-experience replay (Riemer et al., 2019, Algorithm 1): Reptile over replayed batches.

For each example, with A = θ, and s times with W = θ:

    θ ← θ − α · clip(∇ℓ(θ; row))         for each row of [the example, Sample(R)], one at a time
    θ ← W + β (θ − W)                    within a batch

and after the s batches

    θ ← A + γ (θ − A)                    across batches
    push the example to R by reservoir sampling

Deviation: rows enter R in their last glance of the first epoch only; a row is not replayed twice in
one batch, where the authors draw with replacement.
"""

from typing import NamedTuple

import jax

from lamaml.errors import require
from lamaml.learners.gradients import join, named_keys
from lamaml.learners.reptile import example_by_example, part_of_the_way, row_by_row
from lamaml.memory import Reservoir, empty_reservoir, push, sample
from lamaml.types import Batch, Info, Learner, Loss, Params, Rate


class MERState(NamedTuple):
    """State of MER: weights, replay memory."""

    params: Params  # θ
    memory: Reservoir  # R


def mer(
    loss: Loss,
    *,
    inner_rate: Rate,
    within_rate: float,
    across_rate: float = 1.0,
    num_batches: int,
    memory_size: int,
    replay_size: int = 10,
    max_norm: float | None = None,
) -> Learner:
    """Single-row steps, of which a fraction is kept: the direction that different rows share.

    Args:
      loss: ℓ, the weighted mean loss of a batch.
      inner_rate: α > 0, the rate of the single-row steps.
      within_rate: β ≥ 0, the fraction of a batch's displacement that is kept.
      across_rate: γ ≥ 0, the fraction of the displacement over all batches that is kept.
      num_batches: s, the number of batches replayed per example.
      memory_size: M, the number of rows in the reservoir.
      replay_size: k − 1, the number of rows replayed in each batch with the example.
      max_norm: c, each step's gradient is clipped to this norm; None for no clipping.

    Examples:
      >>> import jax.numpy as jnp
      >>> learner = mer(
      ...     lambda w, b: jnp.mean((b.x - w) ** 2),
      ...     inner_rate=0.1, within_rate=0.3, num_batches=5, memory_size=5,
      ... )
    """
    require(inner_rate > 0, "inner_rate", inner_rate, "positive")
    require(within_rate >= 0, "within_rate", within_rate, "at least 0")
    require(across_rate >= 0, "across_rate", across_rate, "at least 0")
    require(num_batches > 0, "num_batches", num_batches, "at least 1")
    require(memory_size > 0, "memory_size", memory_size, "at least 1")
    require(replay_size >= 0, "replay_size", replay_size, "at least 0")
    require(max_norm is None or max_norm > 0, "max_norm", max_norm, "None or positive")

    def init(params: Params, batch: Batch) -> MERState:
        return MERState(params, empty_reservoir(batch, memory_size))

    def learn(state: MERState, example: Batch, key: jax.Array) -> tuple[MERState, jax.Array]:
        keys = named_keys(key)

        def draw(key: jax.Array) -> Batch:
            rows = join(example, sample(state.memory, replay_size, key))  # the example first
            return rows._replace(weight=rows.weight * example.weight)

        batches = jax.vmap(draw)(jax.random.split(keys.replay, num_batches))
        params, value = replay_batches(
            loss,
            state.params,
            batches,
            inner_rate=inner_rate,
            within_rate=within_rate,
            across_rate=across_rate,
            max_norm=max_norm,
        )
        memory = push(state.memory, example, keys.reservoir, when=example.last)
        return MERState(params, memory), value

    def update(state: MERState, batch: Batch, key: jax.Array) -> tuple[MERState, Info]:
        return example_by_example(learn, state, batch, key)

    return Learner(init, update)


def replay_batches(
    loss: Loss,
    params: Params,
    batches: Batch,
    *,
    inner_rate: float,
    within_rate: float,
    across_rate: float,
    max_norm: float | None = None,
) -> tuple[Params, jax.Array]:
    """Return θ after the s batches of one example, and the loss of the first row."""

    def within(start: Params, rows: Batch) -> tuple[Params, jax.Array]:
        end, values = row_by_row(loss, start, rows, inner_rate, max_norm)
        return part_of_the_way(start, end, within_rate), values[0]

    end, values = jax.lax.scan(within, params, batches)
    return part_of_the_way(params, end, across_rate), values[0]
