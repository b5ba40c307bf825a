"""La-MAML with dark replay: our successor, which also holds old answers still.

    b_m = Sample(R) ∪ b, each replayed row with the logits z of when it was first seen
    L(θ) = ℓ(θ; b_m) + λ · D(θ)                  D: distance of logits from z (`dark_replay`)
    θ_r = θ_{r−1} − α ⊙ ∇ℓ(θ_{r−1}; b[r])        r = 1 … K, as in `la_maml`, without D
    α ← α − η · clip(∇_α L̄)                      (a)
    θ ← θ − max(0, α) ⊙ clip(∇_θ L̄)              (b)   with the α of (a); L̄ the mean of L(θ_r)

The stored logits are those of Dark Experience Replay (Buzzega et al., 2020). λ = 0 is `la_maml`.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax

from lamaml._trees import global_norm
from lamaml.errors import require
from lamaml.learners.dark_replay import answers_of, dark_term, no_answers
from lamaml.learners.gradients import (
    clip_to_norm,
    constant_rates,
    descend,
    describe,
    freshly,
    join,
    named_keys,
    positive,
)
from lamaml.learners.inner_loop import check_inner_loop, meta_gradient
from lamaml.memory import Reservoir, empty_reservoir, push, sample
from lamaml.models import Heads, add_term
from lamaml.types import Augment, Batch, Info, Learner, Loss, Params, Rate


class DarkLaMAMLState(NamedTuple):
    """State of La-MAML with dark replay: slow weights, rates, and a memory with answers."""

    params: Params  # θ, the slow weights
    rates: Params  # α, one learning rate per weight; may be negative
    memory: Reservoir  # R, each row with its logits z


def dark_la_maml(
    loss: Loss,
    *,
    apply: Callable[[Params, jax.Array], jax.Array],
    heads: Heads,
    initial_rate: Rate,
    hyper_rate: Rate,
    inner_steps: int,
    memory_size: int,
    dark_weight: float = 0.3,
    is_gated: bool = False,
    replay_size: int = 10,
    first_order: bool = False,
    meta_loss: str = "mean",
    max_norm: float | None = 2.0,
    inner_clamp: float | None = None,
    inner_max_norm: float | None = None,
    clip_inner_rates: bool = False,
    augment: Augment | None = None,
) -> Learner:
    """La-MAML whose meta-loss also holds the answers to replayed rows where they were.

    Args:
      loss: ℓ, the weighted mean loss of a batch.
      apply: the network, (params, x) -> logits.
      heads: which outputs belong to each task; None where all tasks share one head.
      initial_rate: α₀ ≥ 0, every rate at the start.
      hyper_rate: η ≥ 0, the learning rate of the rates.
      inner_steps: K, the number of fast updates per batch.
      memory_size: M, the number of rows in the reservoir.
      dark_weight: λ ≥ 0.
      is_gated: weigh a remembered answer by the probability it gave to the row's label.
      replay_size: number of rows replayed beside each new batch.
      first_order: take the inner gradients as constants.
      meta_loss: "mean", "sum" or "last" over the steps.
      max_norm: c, the gradients of θ and of α are each clipped to this norm; None for no clipping.
      inner_clamp: limit on each element of the inner gradients; the authors' CNN code uses c.
      inner_max_norm: limit on the norm of each inner gradient. Element by element, the first fast
        updates of a CNN end at losses in the thousands, and half of a task is lost to them.
      clip_inner_rates: use max(0, α) in the fast updates too; a rate below 0 is then never revived.
      augment: applied to new and replayed rows in every update; None for rows already augmented.

    Examples:
      >>> from lamaml.models import cross_entropy, mlp
      >>> model = mlp(64, 10)
      >>> learner = dark_la_maml(
      ...     cross_entropy(model), apply=model.apply, heads=None,
      ...     initial_rate=0.15, hyper_rate=0.3, inner_steps=10, memory_size=200,
      ... )
    """
    require(initial_rate >= 0, "initial_rate", initial_rate, "at least 0")
    require(hyper_rate >= 0, "hyper_rate", hyper_rate, "at least 0")
    require(memory_size > 0, "memory_size", memory_size, "at least 1")
    require(dark_weight >= 0, "dark_weight", dark_weight, "at least 0")
    require(replay_size >= 0, "replay_size", replay_size, "at least 0")
    require(max_norm is None or max_norm > 0, "max_norm", max_norm, "None or positive")
    check_inner_loop(inner_steps, meta_loss, inner_clamp, inner_max_norm)

    def term(outputs: jax.Array, batch: Batch) -> jax.Array:
        return dark_weight * dark_term(outputs, batch, is_gated=is_gated)

    outer = add_term(loss, apply, term) if dark_weight else loss  # L

    def init(params: Params, batch: Batch) -> DarkLaMAMLState:
        num_outputs = jax.eval_shape(apply, params, batch.x).shape[-1]
        rows = batch._replace(extra=no_answers(len(batch.y), num_outputs))
        rates = constant_rates(params, initial_rate)
        return DarkLaMAMLState(params, rates, empty_reservoir(rows, memory_size))

    def update(
        state: DarkLaMAMLState, batch: Batch, key: jax.Array
    ) -> tuple[DarkLaMAMLState, Info]:
        keys = named_keys(key)
        of_new, of_replayed = jax.random.split(keys.noise)
        seen = freshly(augment, batch, of_new)
        num_outputs = state.memory.extra.logits.shape[-1]
        new = seen._replace(extra=no_answers(len(batch.y), num_outputs))
        replayed = freshly(augment, sample(state.memory, replay_size, keys.replay), of_replayed)
        meta_batch = join(replayed, new)  # b_m
        ahead = meta_gradient(
            loss,
            state.params,
            state.rates,
            new,
            meta_batch,
            inner_steps=inner_steps,
            first_order=first_order,
            meta_loss=meta_loss,
            inner_clamp=inner_clamp,
            inner_max_norm=inner_max_norm,
            clip_inner_rates=clip_inner_rates,
            outer=outer,
        )
        rates = descend(state.rates, clip_to_norm(ahead.rates, max_norm), hyper_rate)  # (a)
        params = descend(state.params, clip_to_norm(ahead.params, max_norm), positive(rates))  # (b)
        answers = answers_of(  # z, before the update
            apply, state.params, seen, heads, num_outputs=num_outputs, when=batch.first
        )
        answered = batch._replace(extra=answers)
        memory = push(state.memory, answered, keys.reservoir, when=batch.first)
        info = {"loss": ahead.loss, "gradient_norm": global_norm(ahead.params), **describe(rates)}
        return DarkLaMAMLState(params, rates, memory), info

    return Learner(init, update)
