"""Meta-experience replay in one batch (Riemer et al., 2019, Algorithm 6): one batch per example.

For each example, with W = θ:

    θ ← θ − α · clip(∇ℓ(θ; row))         for each row of [Sample(R), the example], one at a time
    θ ← W + γ (θ − W)
    push the example to R by reservoir sampling

It is `mer` with s = 1, except that the example comes last.
Deviation: as in `mer`.
"""

import jax

from lamaml.errors import require
from lamaml.learners.gradients import join, named_keys
from lamaml.learners.mer import MERState
from lamaml.learners.reptile import example_by_example, part_of_the_way, row_by_row
from lamaml.memory import empty_reservoir, push, sample
from lamaml.types import Batch, Info, Learner, Loss, Params, Rate


def mer_single(
    loss: Loss,
    *,
    inner_rate: Rate,
    across_rate: float,
    memory_size: int,
    replay_size: int = 10,
    max_norm: float | None = None,
) -> Learner:
    """MER at the cost of one batch per example.

    Args:
      loss: ℓ, the weighted mean loss of a batch.
      inner_rate: α > 0, the rate of the single-row steps.
      across_rate: γ ≥ 0, the fraction of the batch's displacement that is kept.
      memory_size: M, the number of rows in the reservoir.
      replay_size: number of rows replayed before the example.
      max_norm: c, each step's gradient is clipped to this norm; None for no clipping.

    Examples:
      >>> import jax.numpy as jnp
      >>> learner = mer_single(
      ...     lambda w, b: jnp.mean((b.x - w) ** 2), inner_rate=0.1, across_rate=0.3, memory_size=5
      ... )
    """
    require(inner_rate > 0, "inner_rate", inner_rate, "positive")
    require(across_rate >= 0, "across_rate", across_rate, "at least 0")
    require(memory_size > 0, "memory_size", memory_size, "at least 1")
    require(replay_size >= 0, "replay_size", replay_size, "at least 0")
    require(max_norm is None or max_norm > 0, "max_norm", max_norm, "None or positive")

    def init(params: Params, batch: Batch) -> MERState:
        return MERState(params, empty_reservoir(batch, memory_size))

    def learn(state: MERState, example: Batch, key: jax.Array) -> tuple[MERState, jax.Array]:
        keys = named_keys(key)
        rows = join(sample(state.memory, replay_size, keys.replay), example)  # the example last
        rows = rows._replace(weight=rows.weight * example.weight)
        end, values = row_by_row(loss, state.params, rows, inner_rate, max_norm)
        params = part_of_the_way(state.params, end, across_rate)
        memory = push(state.memory, example, keys.reservoir, when=example.last)
        return MERState(params, memory), values[-1]

    def update(state: MERState, batch: Batch, key: jax.Array) -> tuple[MERState, Info]:
        return example_by_example(learn, state, batch, key)

    return Learner(init, update)
