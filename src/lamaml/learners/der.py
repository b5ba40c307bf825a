"""Dark Experience Replay (Buzzega et al., 2020), in its form DER++.

    b_m = Sample(R) ∪ b, each replayed row with the logits z of when it was stored
    θ ← θ − lr · clip(∇[ℓ(θ; b_m) + λ · D(θ)])      D: distance of logits from z (`dark_replay`)
    at the last glance, push b to R by reservoir sampling, with the logits before the update

λ = 0 is `er`.
Deviation: the authors draw rows for each of the two terms; here both are of one draw, that of `er`.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax

from lamaml._trees import global_norm
from lamaml.errors import require
from lamaml.learners.dark_replay import answers_of, dark_term, no_answers
from lamaml.learners.gradients import clip_to_norm, descend, freshly, join, named_keys
from lamaml.memory import Reservoir, empty_reservoir, push, sample
from lamaml.models import Heads, add_term
from lamaml.types import Augment, Batch, Info, Learner, Loss, Params, Rate


class DERState(NamedTuple):
    """State of DER++: weights, and a memory with answers."""

    params: Params  # θ
    memory: Reservoir  # R, each row with its logits z


def der(
    loss: Loss,
    *,
    apply: Callable[[Params, jax.Array], jax.Array],
    heads: Heads,
    learning_rate: Rate,
    memory_size: int,
    dark_weight: float = 1.0,
    replay_size: int = 10,
    max_norm: float | None = 2.0,
    augment: Augment | None = None,
) -> Learner:
    """Experience replay that also holds the answers to replayed rows where they were.

    Args:
      loss: ℓ, the weighted mean loss of a batch.
      apply: the network, (params, x) -> logits.
      heads: which outputs belong to each task; None where all tasks share one head.
      learning_rate: lr > 0.
      memory_size: M, the number of rows in the reservoir.
      dark_weight: λ ≥ 0.
      replay_size: number of rows replayed beside each new batch; 0 for none.
      max_norm: c, gradients are clipped to this norm; None for no clipping.
      augment: applied to new and replayed rows in every update; None for rows already augmented.

    Examples:
      >>> from lamaml.models import cross_entropy, mlp
      >>> model = mlp(64, 10)
      >>> learner = der(
      ...     cross_entropy(model), apply=model.apply, heads=None,
      ...     learning_rate=0.1, memory_size=200,
      ... )
    """
    require(learning_rate > 0, "learning_rate", learning_rate, "positive")
    require(memory_size > 0, "memory_size", memory_size, "at least 1")
    require(dark_weight >= 0, "dark_weight", dark_weight, "at least 0")
    require(replay_size >= 0, "replay_size", replay_size, "at least 0")
    require(max_norm is None or max_norm > 0, "max_norm", max_norm, "None or positive")

    def term(outputs: jax.Array, batch: Batch) -> jax.Array:
        return dark_weight * dark_term(outputs, batch, is_gated=False)

    objective = add_term(loss, apply, term) if dark_weight else loss

    def init(params: Params, batch: Batch) -> DERState:
        num_outputs = jax.eval_shape(apply, params, batch.x).shape[-1]
        rows = batch._replace(extra=no_answers(len(batch.y), num_outputs))
        return DERState(params, empty_reservoir(rows, memory_size))

    def update(state: DERState, batch: Batch, key: jax.Array) -> tuple[DERState, Info]:
        keys = named_keys(key)
        of_new, of_replayed = jax.random.split(keys.noise)
        seen = freshly(augment, batch, of_new)
        num_outputs = state.memory.extra.logits.shape[-1]
        new = seen._replace(extra=no_answers(len(batch.y), num_outputs))
        replayed = freshly(augment, sample(state.memory, replay_size, keys.replay), of_replayed)
        meta_batch = join(replayed, new)  # b_m
        value, gradient = jax.value_and_grad(objective)(state.params, meta_batch)
        params = descend(state.params, clip_to_norm(gradient, max_norm), learning_rate)
        answers = answers_of(  # z, before the update
            apply, state.params, seen, heads, num_outputs=num_outputs, when=batch.last
        )
        answered = batch._replace(extra=answers)
        memory = push(state.memory, answered, keys.reservoir, when=batch.last)
        return DERState(params, memory), {"loss": value, "gradient_norm": global_norm(gradient)}

    return Learner(init, update)
