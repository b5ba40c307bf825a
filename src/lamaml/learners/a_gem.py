"""A-GEM (Chaudhry et al., 2019): one constraint, the average loss of the past.

    push b to its task's ring
    g = clip(∇ℓ(θ; b)),   g_ref = ∇ℓ(θ; rows of tasks before t)
    g̃ = g − min(0, g·g_ref) / ‖g_ref‖² · g_ref
    θ ← θ − lr · g̃

Deviation: La-MAML's authors take one backward pass per past task, this takes one in all; they leave
out the first task by an off-by-one error; the original keeps rings per class, not per task. As in
`gem`, when an earlier task returns, later tasks do not constrain it.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from lamaml._trees import dot, global_norm
from lamaml.errors import require
from lamaml.learners.gradients import clip_to_norm, descend, named_keys
from lamaml.learners.inner_loop import chunks
from lamaml.memory import RingBuffer, check_ring, empty_ring, push_to_ring, rows_before
from lamaml.types import Batch, Info, Learner, Loss, Params, Rate


class AGEMState(NamedTuple):
    """State of A-GEM: weights, one ring buffer per task."""

    params: Params  # θ
    memory: RingBuffer  # the last rows of each task


def a_gem(
    loss: Loss,
    *,
    learning_rate: Rate,
    memory_size: int,
    num_tasks: int,
    ref_size: int | None = 256,
    max_norm: float | None = 2.0,
) -> Learner:
    """SGD whose steps do not raise the average loss of stored rows, to first order.

    Args:
      loss: ℓ, the weighted mean loss of a batch.
      learning_rate: lr > 0.
      memory_size: M, the number of rows in all rings; ⌊M/T⌋ per task.
      num_tasks: T, the number of tasks.
      ref_size: number of stored rows that g_ref is computed on; None for all.
      max_norm: c, g is clipped to this norm; None for no clipping. The norm of g_ref has no effect.

    Examples:
      >>> import jax.numpy as jnp
      >>> learner = a_gem(
      ...     lambda w, b: jnp.mean((b.x - w) ** 2), learning_rate=0.1, memory_size=6, num_tasks=3
      ... )
    """
    require(learning_rate > 0, "learning_rate", learning_rate, "positive")
    check_ring(memory_size, num_tasks)
    require(ref_size is None or ref_size > 0, "ref_size", ref_size, "None or positive")
    require(max_norm is None or max_norm > 0, "max_norm", max_norm, "None or positive")

    def init(params: Params, batch: Batch) -> AGEMState:
        return AGEMState(params, empty_ring(batch, memory_size, num_tasks))

    def update(state: AGEMState, batch: Batch, key: jax.Array) -> tuple[AGEMState, Info]:
        memory = push_to_ring(state.memory, batch, when=batch.first)
        past = rows_before(memory, batch.task[0], ref_size, named_keys(key).replay)
        reference = gradient_by_pieces(loss, state.params, past)  # g_ref
        value, gradient = jax.value_and_grad(loss)(state.params, batch)
        projected = project(clip_to_norm(gradient, max_norm), reference)
        params = descend(state.params, projected, learning_rate)
        return AGEMState(params, memory), {"loss": value, "gradient_norm": global_norm(gradient)}

    return Learner(init, update)


def gradient_by_pieces(loss: Loss, params: Params, rows: Batch, *, piece: int = 16) -> Params:
    """Return ∇ℓ over many rows, piece by piece; pieces after the last weighted row are skipped.

    Args:
      loss: ℓ, the weighted mean loss of a batch.
      params: θ.
      rows: rows without weight cost nothing at the end.
      piece: maximal number of rows per pass.
    """
    pieces = chunks(rows, -(-len(rows.y) // piece))
    weights = jnp.sum(pieces.weight, axis=1)
    share = weights / jnp.sum(weights)
    num_held = jnp.max(jnp.where(weights > 0, jnp.arange(1, len(weights) + 1), 0))

    def add(number: jax.Array, total: Params) -> Params:
        gradient = jax.grad(loss)(params, jax.tree.map(lambda field: field[number], pieces))
        return jax.tree.map(lambda t, g: t + share[number] * g, total, gradient)

    return jax.lax.fori_loop(0, num_held, add, jax.tree.map(jnp.zeros_like, params))


def project(gradient: Params, reference: Params) -> Params:
    """Return g̃, the vector nearest to g with g̃·g_ref ≥ 0; g itself where g_ref = 0."""
    length = dot(reference, reference)
    share = jnp.where(length > 0, jnp.minimum(dot(gradient, reference), 0.0) / length, 0.0)
    return jax.tree.map(lambda g, r: g - share * r, gradient, reference)
