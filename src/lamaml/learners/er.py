"""Experience replay (Chaudhry et al., 2019; Algorithm 4 of Riemer et al., 2019).

    b_m = Sample(R) ∪ b
    θ ← θ − lr · clip(∇L(θ; b_m))
    after the last glance, push b to R by reservoir sampling

Deviation: the authors push in every epoch; here a row is offered once, so that the memory stays a
uniform sample of distinct rows.
"""

from typing import NamedTuple

import jax

from lamaml._trees import global_norm
from lamaml.errors import require
from lamaml.learners.gradients import clip_to_norm, descend, freshly, join, named_keys
from lamaml.memory import Reservoir, empty_reservoir, push, sample
from lamaml.types import Augment, Batch, Info, Learner, Loss, Params, Rate


class ERState(NamedTuple):
    """State of experience replay: weights, replay memory."""

    params: Params  # θ
    memory: Reservoir  # R


def er(
    loss: Loss,
    *,
    learning_rate: Rate,
    memory_size: int,
    replay_size: int = 10,
    max_norm: float | None = 2.0,
    augment: Augment | None = None,
) -> Learner:
    """SGD on new rows joined with rows from a reservoir.

    Args:
      loss: L, the weighted mean loss of a batch.
      learning_rate: lr > 0.
      memory_size: M, the number of rows in the reservoir.
      replay_size: number of rows replayed with each new batch; 0 for none.
      max_norm: c, gradients are clipped to this norm; None for no clipping.
      augment: applied to new and replayed rows in every update; None for rows already augmented.

    Examples:
      >>> import jax, jax.numpy as jnp
      >>> from lamaml.types import Batch
      >>> learner = er(lambda w, b: jnp.mean((b.x - w) ** 2), learning_rate=0.5, memory_size=2)
      >>> batch = Batch(jnp.ones(1), jnp.zeros(1, int), jnp.zeros(1, int), jnp.ones(1))
      >>> state = learner.init(jnp.array(0.0), batch)
      >>> state, info = learner.update(state, batch, jax.random.key(0))
      >>> int(state.memory.num_seen)
      1
    """
    require(learning_rate > 0, "learning_rate", learning_rate, "positive")
    require(memory_size > 0, "memory_size", memory_size, "at least 1")
    require(replay_size >= 0, "replay_size", replay_size, "at least 0")
    require(max_norm is None or max_norm > 0, "max_norm", max_norm, "None or positive")

    def init(params: Params, batch: Batch) -> ERState:
        return ERState(params, empty_reservoir(batch, memory_size))

    def update(state: ERState, batch: Batch, key: jax.Array) -> tuple[ERState, Info]:
        keys = named_keys(key)
        meta_batch = join(sample(state.memory, replay_size, keys.replay), batch)  # b_m
        meta_batch = freshly(augment, meta_batch, keys.noise)
        value, gradient = jax.value_and_grad(loss)(state.params, meta_batch)
        params = descend(state.params, clip_to_norm(gradient, max_norm), learning_rate)
        memory = push(state.memory, batch, keys.reservoir, when=batch.last)
        return ERState(params, memory), {"loss": value, "gradient_norm": global_norm(gradient)}

    return Learner(init, update)
