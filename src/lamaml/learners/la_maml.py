"""La-MAML (Gupta, Yadav and Paull, 2020, Algorithm 1): look-ahead meta-learning with learned rates.

    b_m = Sample(R) ∪ b
    θ_r = θ_{r−1} − α ⊙ ∇ℓ(θ_{r−1}; b[r])        r = 1 … K, pushing b to R by reservoir sampling
    α ← α − η · clip(∇_α L̄)                      (a)
    θ ← θ − max(0, α) ⊙ clip(∇_θ L̄)              (b)   with the α of (a); L̄ as in `c_maml`

A rate grows where new and old gradients agree and falls where they interfere; while it is below
zero, its weight does not change.
Deviation: as in `c_maml`; `clip_inner_rates` is from the authors' MNIST code.
"""

from typing import NamedTuple

import jax

from lamaml._trees import global_norm
from lamaml.errors import require
from lamaml.learners.gradients import (
    clip_to_norm,
    constant_rates,
    descend,
    describe,
    join,
    named_keys,
    positive,
)
from lamaml.learners.inner_loop import check_inner_loop, meta_gradient
from lamaml.memory import Reservoir, empty_reservoir, push, sample
from lamaml.types import Batch, Info, Learner, Loss, Params, Rate


class LaMAMLState(NamedTuple):
    """State of La-MAML: slow weights, per-weight learning rates, replay memory."""

    params: Params  # θ, the slow weights
    rates: Params  # α, one learning rate per weight; may be negative
    memory: Reservoir  # R


def la_maml(
    loss: Loss,
    *,
    initial_rate: Rate,
    hyper_rate: Rate,
    inner_steps: int,
    memory_size: int,
    replay_size: int = 10,
    first_order: bool = False,
    meta_loss: str = "mean",
    max_norm: float | None = 2.0,
    inner_clamp: float | None = None,
    clip_inner_rates: bool = False,
) -> Learner:
    """Learn weights and one learning rate per weight together, without task boundaries.

    Args:
      loss: ℓ and L, the weighted mean loss of a batch.
      initial_rate: α₀ ≥ 0, the initial value of every rate.
      hyper_rate: η ≥ 0, the learning rate of the rates.
      inner_steps: K, the number of fast updates per batch.
      memory_size: M, the number of rows in the reservoir.
      replay_size: number of rows replayed with each new batch.
      first_order: treat the inner gradients as constants.
      meta_loss: "mean" or "sum" over the steps, or the "last" step.
      max_norm: c, the gradients of θ and of α are each clipped to this norm; None for no clipping.
      inner_clamp: limit on each element of the inner gradients; the authors' CNN code uses c.
      clip_inner_rates: use max(0, α) in the fast updates too; a rate below 0 then never recovers.

    Examples:
      >>> import jax.numpy as jnp
      >>> learner = la_maml(
      ...     lambda w, b: jnp.mean((b.x - w) ** 2),
      ...     initial_rate=0.1, hyper_rate=0.1, inner_steps=2, memory_size=5,
      ... )
    """
    require(initial_rate >= 0, "initial_rate", initial_rate, "at least 0")
    require(hyper_rate >= 0, "hyper_rate", hyper_rate, "at least 0")
    require(memory_size > 0, "memory_size", memory_size, "at least 1")
    require(replay_size >= 0, "replay_size", replay_size, "at least 0")
    require(max_norm is None or max_norm > 0, "max_norm", max_norm, "None or positive")
    check_inner_loop(inner_steps, meta_loss, inner_clamp)

    def init(params: Params, batch: Batch) -> LaMAMLState:
        rates = constant_rates(params, initial_rate)
        return LaMAMLState(params, rates, empty_reservoir(batch, memory_size))

    def update(state: LaMAMLState, batch: Batch, key: jax.Array) -> tuple[LaMAMLState, Info]:
        keys = named_keys(key)
        meta_batch = join(sample(state.memory, replay_size, keys.replay), batch)  # b_m
        ahead = meta_gradient(
            loss,
            state.params,
            state.rates,
            batch,
            meta_batch,
            inner_steps=inner_steps,
            first_order=first_order,
            meta_loss=meta_loss,
            inner_clamp=inner_clamp,
            clip_inner_rates=clip_inner_rates,
        )
        rates = descend(state.rates, clip_to_norm(ahead.rates, max_norm), hyper_rate)  # (a)
        params = descend(state.params, clip_to_norm(ahead.params, max_norm), positive(rates))  # (b)
        memory = push(state.memory, batch, keys.reservoir, when=batch.first)
        info = {"loss": ahead.loss, "gradient_norm": global_norm(ahead.params), **describe(rates)}
        return LaMAMLState(params, rates, memory), info

    return Learner(init, update)
