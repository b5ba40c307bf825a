"""Elastic weight consolidation (Kirkpatrick et al., 2017), as in the baselines of GEM and MER.

    at the end of task τ, on its first n rows:   F_τ = (∇ℓ(θ))²,   θ*_τ = θ
    θ ← θ − lr · clip(∇[ℓ(θ; b) + λ Ω(θ)]),      Ω(θ) = Σ_τ Σ_i F_τ,i (θ_i − θ*_τ,i)²

Ω is one parabola per weight for any number of tasks. Around the last solution:

    δ = θ − θ*,   θ* the last θ*_τ
    Ω(θ) = Ω(θ*) + Σ_i (2 D_i δ_i + S_i δ_i²),   S = Σ_τ F_τ,   D = Σ_τ F_τ ⊙ (θ* − θ*_τ)
so no copy per task is stored, and a new task's own term is exactly 0 at its end.
Deviation: the original F is a mean of squared gradients; those baselines square the mean.
"""

from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp

from lamaml._trees import global_norm
from lamaml.errors import require
from lamaml.learners.gradients import clip_to_norm, descend
from lamaml.memory import TaskRows, clear, empty_task_rows, keep, kept_rows
from lamaml.types import Batch, Info, Learner, Loss, Params, Range, Rate


class EWCState(NamedTuple):
    """State of EWC: weights, the quadratic penalty of past tasks, rows of the current task."""

    params: Params  # θ
    anchor: Params  # θ*, the weights at the last task's end
    stiffness: Params  # S
    pull: Params  # D
    offset: jax.Array  # Ω(θ*)
    rows: TaskRows  # the first n rows of the current task


def ewc(
    loss: Loss,
    *,
    learning_rate: Rate,
    penalty: Annotated[float, Range(1.0, 1000.0)],
    memory_size: int = 10,
    max_norm: float | None = None,
) -> Learner:
    """SGD with a quadratic penalty on changing weights that past tasks depend on.

    Args:
      loss: ℓ, the weighted mean loss of a batch.
      learning_rate: lr > 0.
      penalty: λ ≥ 0, the weight of past tasks, without a factor ½.
      memory_size: n, the number of rows per task that F is computed on.
      max_norm: c, gradients are clipped to this norm; None for no clipping, as in MER's baselines.

    Examples:
      >>> import jax.numpy as jnp
      >>> learner = ewc(lambda w, b: jnp.mean((b.x - w) ** 2), learning_rate=0.1, penalty=10.0)
    """
    require(learning_rate > 0, "learning_rate", learning_rate, "positive")
    require(penalty >= 0, "penalty", penalty, "at least 0")
    require(memory_size > 0, "memory_size", memory_size, "at least 1")
    require(max_norm is None or max_norm > 0, "max_norm", max_norm, "None or positive")

    def init(params: Params, batch: Batch) -> EWCState:
        stiffness, pull = (jax.tree.map(jnp.zeros_like, params) for _ in range(2))
        anchor = jax.tree.map(jnp.copy, params)
        rows = empty_task_rows(batch, memory_size)
        return EWCState(params, anchor, stiffness, pull, jnp.zeros(()), rows)

    def update(state: EWCState, batch: Batch, key: jax.Array) -> tuple[EWCState, Info]:
        def objective(params: Params) -> tuple[jax.Array, jax.Array]:
            consolidated = penalty * consolidation(state, params)
            return loss(params, batch) + consolidated, consolidated

        (value, consolidated), gradient = jax.value_and_grad(objective, has_aux=True)(state.params)
        params = descend(state.params, clip_to_norm(gradient, max_norm), learning_rate)
        rows = keep(state.rows, batch, when=batch.first)
        norm = global_norm(gradient)
        info = {"loss": value, "gradient_norm": norm, "penalty": consolidated}
        return state._replace(params=params, rows=rows), info

    def end_task(state: EWCState, key: jax.Array) -> EWCState:
        gradient = jax.grad(loss)(state.params, kept_rows(state.rows))
        fisher = jax.tree.map(jnp.square, gradient)  # F_τ
        # The same parabola, around the new anchor.
        pull = jax.tree.map(
            lambda d, s, p, a: d + s * (p - a),
            state.pull,
            state.stiffness,
            state.params,
            state.anchor,
        )
        return EWCState(
            state.params,
            jax.tree.map(jnp.copy, state.params),
            jax.tree.map(jnp.add, state.stiffness, fisher),
            pull,
            consolidation(state, state.params),
            clear(state.rows),
        )

    return Learner(init, update, end_task)


def consolidation(state: EWCState, params: Params) -> jax.Array:
    """Return Ω(θ), the penalty of all past tasks before λ."""

    def term(p: jax.Array, a: jax.Array, s: jax.Array, d: jax.Array) -> jax.Array:
        return jnp.sum((2 * d + s * (p - a)) * (p - a))

    terms = jax.tree.map(term, params, state.anchor, state.stiffness, state.pull)
    return state.offset + sum(jax.tree.leaves(terms))
