"""Experience replay with asymmetric cross-entropy (Caccia et al., 2022).

    θ ← θ − lr · clip(∇[ℓ_b(θ; b) + ℓ(θ; Sample(R))] / 2)
    after the last glance, push b to R by reservoir sampling

ℓ_b is the cross-entropy over the classes of b alone: a new class does not push down the outputs of
old ones, which replay compares among all.
Deviation: the authors add the two losses; here their mean is taken, so that a rate means what it
does for `er`. While the memory is empty ℓ_b stands alone.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from lamaml._trees import global_norm
from lamaml.errors import require
from lamaml.learners.gradients import clip_to_norm, descend, named_keys
from lamaml.memory import Reservoir, empty_reservoir, push, sample
from lamaml.models import Heads, head_mask, mean_loss, surprise
from lamaml.types import Batch, Info, Learner, Loss, Params, Rate


class ERACEState(NamedTuple):
    """State of ER-ACE: weights and replay memory."""

    params: Params  # θ
    memory: Reservoir  # R


def er_ace(
    loss: Loss,
    *,
    apply: Callable[[Params, jax.Array], jax.Array],
    heads: Heads,
    learning_rate: Rate,
    memory_size: int,
    replay_size: int = 10,
    max_norm: float | None = 2.0,
) -> Learner:
    """Experience replay in which new rows compare only the classes of their own batch.

    Args:
      loss: ℓ, the weighted mean loss of the replayed rows.
      apply: the network, (params, x) -> logits.
      heads: which outputs belong to each task; None where all tasks share one head.
      learning_rate: lr > 0.
      memory_size: M, the number of rows in the reservoir.
      replay_size: number of rows replayed beside each new batch; 0 for none.
      max_norm: c, gradients are clipped to this norm; None for no clipping.

    Examples:
      >>> from lamaml.models import cross_entropy, mlp
      >>> model = mlp(64, 10)
      >>> learner = er_ace(
      ...     cross_entropy(model), apply=model.apply, heads=None,
      ...     learning_rate=0.1, memory_size=200,
      ... )
    """
    require(learning_rate > 0, "learning_rate", learning_rate, "positive")
    require(memory_size > 0, "memory_size", memory_size, "at least 1")
    require(replay_size >= 0, "replay_size", replay_size, "at least 0")
    require(max_norm is None or max_norm > 0, "max_norm", max_norm, "None or positive")

    def loss_of_new(params: Params, batch: Batch) -> jax.Array:
        logits = head_mask(apply(params, batch.x), batch.task, heads)
        label = jax.nn.one_hot(batch.y, logits.shape[-1])
        present = jnp.any(label * batch.weight[:, None] > 0, axis=0, keepdims=True)
        among = head_mask(logits, jnp.zeros_like(batch.task), present)
        return mean_loss(surprise(among, batch.y), batch)

    def init(params: Params, batch: Batch) -> ERACEState:
        return ERACEState(params, empty_reservoir(batch, memory_size))

    def update(state: ERACEState, batch: Batch, key: jax.Array) -> tuple[ERACEState, Info]:
        keys = named_keys(key)
        replayed = sample(state.memory, replay_size, keys.replay)
        share = jnp.where(jnp.any(replayed.weight > 0), 0.5, 0.0)

        def objective(params: Params) -> jax.Array:
            new = loss_of_new(params, batch)
            return (1 - share) * new + share * loss(params, replayed)

        value, gradient = jax.value_and_grad(objective)(state.params)
        params = descend(state.params, clip_to_norm(gradient, max_norm), learning_rate)
        memory = push(state.memory, batch, keys.reservoir, when=batch.last)
        return ERACEState(params, memory), {"loss": value, "gradient_norm": global_norm(gradient)}

    return Learner(init, update)
