"""C-MAML (Gupta, Yadav and Paull, 2020, Algorithm 2): MAML on a stream.

    b_m = Sample(R) ∪ b
    θ_r = θ_{r−1} − α · ∇ℓ(θ_{r−1}; b[r])        r = 1 … K, pushing b to R by reservoir sampling
    θ ← θ − β · clip(∇_θ L̄(θ_1 … θ_K; b_m))

Deviation: rows enter R in their first glance of the first epoch only, as in the authors' code; and
L̄ is the mean over the K steps, where the paper's text says sum: the published rates fit the mean.
"""

from typing import NamedTuple

import jax

from lamaml._trees import global_norm
from lamaml.errors import require
from lamaml.learners.gradients import (
    clip_to_norm,
    constant_rates,
    descend,
    join,
    named_keys,
)
from lamaml.learners.inner_loop import check_inner_loop, meta_gradient
from lamaml.memory import Reservoir, empty_reservoir, push, sample
from lamaml.types import Batch, Info, Learner, Loss, Params, Rate


class CMAMLState(NamedTuple):
    """State of C-MAML: slow weights, replay memory."""

    params: Params  # θ, the slow weights
    memory: Reservoir  # R


def c_maml(
    loss: Loss,
    *,
    inner_rate: Rate,
    outer_rate: Rate,
    inner_steps: int,
    memory_size: int,
    replay_size: int = 10,
    first_order: bool = False,
    meta_loss: str = "mean",
    max_norm: float | None = 2.0,
    inner_clamp: float | None = None,
) -> Learner:
    """Meta-learn weights that fast updates on new rows change without harm to old ones.

    Args:
      loss: ℓ and L, the weighted mean loss of a batch.
      inner_rate: α ≥ 0, the rate of the fast updates.
      outer_rate: β > 0, the rate of the meta-update.
      inner_steps: K, the number of fast updates per batch.
      memory_size: M, the number of rows in the reservoir.
      replay_size: number of rows replayed with each new batch.
      first_order: treat the inner gradients as constants.
      meta_loss: "mean" or "sum" over the steps, or the "last" step.
      max_norm: c, the meta-gradient is clipped to this norm; None for no clipping.
      inner_clamp: limit on each element of the inner gradients; the authors' CNN code uses c.

    Examples:
      >>> import jax.numpy as jnp
      >>> learner = c_maml(
      ...     lambda w, b: jnp.mean((b.x - w) ** 2),
      ...     inner_rate=0.1, outer_rate=0.1, inner_steps=2, memory_size=5,
      ... )
    """
    require(inner_rate >= 0, "inner_rate", inner_rate, "at least 0")
    require(outer_rate > 0, "outer_rate", outer_rate, "positive")
    require(memory_size > 0, "memory_size", memory_size, "at least 1")
    require(replay_size >= 0, "replay_size", replay_size, "at least 0")
    require(max_norm is None or max_norm > 0, "max_norm", max_norm, "None or positive")
    check_inner_loop(inner_steps, meta_loss, inner_clamp)

    def init(params: Params, batch: Batch) -> CMAMLState:
        return CMAMLState(params, empty_reservoir(batch, memory_size))

    def update(state: CMAMLState, batch: Batch, key: jax.Array) -> tuple[CMAMLState, Info]:
        keys = named_keys(key)
        meta_batch = join(sample(state.memory, replay_size, keys.replay), batch)  # b_m
        ahead = meta_gradient(
            loss,
            state.params,
            constant_rates(state.params, inner_rate),
            batch,
            meta_batch,
            inner_steps=inner_steps,
            first_order=first_order,
            meta_loss=meta_loss,
            inner_clamp=inner_clamp,
        )
        params = descend(state.params, clip_to_norm(ahead.params, max_norm), outer_rate)
        memory = push(state.memory, batch, keys.reservoir, when=batch.first)
        info = {"loss": ahead.loss, "gradient_norm": global_norm(ahead.params)}
        return CMAMLState(params, memory), info

    return Learner(init, update)
