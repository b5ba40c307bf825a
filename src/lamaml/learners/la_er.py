"""La-ER (Gupta, Yadav and Paull, 2020, §5.3): experience replay with La-MAML's learned rates.

    b_m = Sample(R) ∪ b
    θ_r = θ_{r−1} − α ⊙ ∇ℓ(θ_{r−1}; b[r])        r = 1 … K, first order
    α ← α − η · clip(−L'(θ_K; b_m) ⊙ Σ_r ∇ℓ(θ_{r−1}; b[r]))
    θ ← θ − max(0, α) ⊙ clip(∇L(θ; b_m))         the gradient of ER, with the new α
    after the last glance, push b to R by reservoir sampling

The ablation that learns rates without aligning the weights.
Deviation: as in `er`.
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
from lamaml.learners.inner_loop import check_inner_loop, chunks, fast_weights
from lamaml.memory import Reservoir, empty_reservoir, push, sample
from lamaml.types import Batch, Info, Learner, Loss, Params, Rate


class LaERState(NamedTuple):
    """State of La-ER: weights, per-weight learning rates, replay memory."""

    params: Params  # θ
    rates: Params  # α, one learning rate per weight; may be negative
    memory: Reservoir  # R


def la_er(
    loss: Loss,
    *,
    initial_rate: Rate,
    hyper_rate: Rate,
    inner_steps: int,
    memory_size: int,
    replay_size: int = 10,
    max_norm: float | None = 2.0,
    inner_clamp: float | None = None,
) -> Learner:
    """Experience replay with learned, look-ahead learning rates.

    Args:
      loss: ℓ and L, the weighted mean loss of a batch.
      initial_rate: α₀ ≥ 0, the initial value of every rate.
      hyper_rate: η ≥ 0, the learning rate of the rates.
      inner_steps: K, the number of fast updates per batch.
      memory_size: M, the number of rows in the reservoir.
      replay_size: number of rows replayed with each new batch.
      max_norm: c, the gradients of θ and of α are each clipped to this norm; None for no clipping.
      inner_clamp: limit on each element of the inner gradients; the authors' CNN code uses c.

    Examples:
      >>> import jax.numpy as jnp
      >>> learner = la_er(
      ...     lambda w, b: jnp.mean((b.x - w) ** 2),
      ...     initial_rate=0.1, hyper_rate=0.1, inner_steps=2, memory_size=5,
      ... )
    """
    require(initial_rate >= 0, "initial_rate", initial_rate, "at least 0")
    require(hyper_rate >= 0, "hyper_rate", hyper_rate, "at least 0")
    require(memory_size > 0, "memory_size", memory_size, "at least 1")
    require(replay_size >= 0, "replay_size", replay_size, "at least 0")
    require(max_norm is None or max_norm > 0, "max_norm", max_norm, "None or positive")
    check_inner_loop(inner_steps, "last", inner_clamp)

    def init(params: Params, batch: Batch) -> LaERState:
        rates = constant_rates(params, initial_rate)
        return LaERState(params, rates, empty_reservoir(batch, memory_size))

    def update(state: LaERState, batch: Batch, key: jax.Array) -> tuple[LaERState, Info]:
        keys = named_keys(key)
        meta_batch = join(sample(state.memory, replay_size, keys.replay), batch)  # b_m
        steps = chunks(batch, inner_steps)
        fast, travelled = fast_weights(
            loss, state.params, state.rates, steps, inner_clamp=inner_clamp
        )  # θ_K, Σ_r ∇ℓ
        slope = jax.grad(loss)(fast, meta_batch)  # L'(θ_K)
        rate_gradient = jax.tree.map(lambda s, g: -s * g, slope, travelled)
        rates = descend(state.rates, clip_to_norm(rate_gradient, max_norm), hyper_rate)
        value, gradient = jax.value_and_grad(loss)(state.params, meta_batch)
        params = descend(state.params, clip_to_norm(gradient, max_norm), positive(rates))
        memory = push(state.memory, batch, keys.reservoir, when=batch.last)
        info = {"loss": value, "gradient_norm": global_norm(gradient), **describe(rates)}
        return LaERState(params, rates, memory), info

    return Learner(init, update)
