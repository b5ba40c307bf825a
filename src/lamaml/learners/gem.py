"""Gradient episodic memory (Lopez-Paz and Ranzato, 2017): one constraint per past task.

    push b to its task's ring
    g = clip(∇ℓ(θ; b)),   G = (clip(∇ℓ(θ; ring τ)))_{τ<t}
    if some (Gg)_τ < 0:   v = argmin_{v≥γ} ½ vᵀ(GGᵀ + εI)v + (Gg)ᵀv,   g̃ = g + Gᵀv        (eq. 11)
    else:                 g̃ = g
    θ ← θ − lr · g̃

The dual is a non-negative least-squares problem in v − γ. G has one row per task, and only the rows
of past tasks are computed and read.
Deviation: clipping before the projection is from La-MAML's authors. Past tasks are those before t
in the stream: when an earlier task returns, later tasks do not constrain it.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lamaml._trees import dot, global_norm
from lamaml.errors import require
from lamaml.learners.gradients import clip_to_norm, descend
from lamaml.memory import RingBuffer, check_ring, empty_ring, push_to_ring, rows_of
from lamaml.types import Batch, Info, Learner, Loss, Params, Rate


class GEMState(NamedTuple):
    """State of GEM: weights, past gradients, one ring buffer per task."""

    params: Params  # θ
    gradients: Params  # G, along a new first axis; kept only to be overwritten in place
    memory: RingBuffer  # the last rows of each task


def gem(
    loss: Loss,
    *,
    learning_rate: Rate,
    memory_size: int,
    num_tasks: int,
    margin: float = 0.0,
    ridge: float = 1e-3,
    max_norm: float | None = None,
) -> Learner:
    """SGD whose steps raise no past task's loss, to first order.

    Args:
      loss: ℓ, the weighted mean loss of a batch.
      learning_rate: lr > 0.
      memory_size: M, the number of rows in all rings; ⌊M/T⌋ per task.
      num_tasks: T, the number of tasks.
      margin: γ ≥ 0, the memory strength: the least weight of every past task's gradient once any
        constraint is violated.
      ridge: ε ≥ 0, keeps the dual solvable when gradients are nearly dependent.
      max_norm: c, g and every row of G are clipped to this norm; None for no clipping.

    Examples:
      >>> import jax.numpy as jnp
      >>> learner = gem(
      ...     lambda w, b: jnp.mean((b.x - w) ** 2), learning_rate=0.1, memory_size=6, num_tasks=3
      ... )
    """
    require(learning_rate > 0, "learning_rate", learning_rate, "positive")
    check_ring(memory_size, num_tasks)
    require(margin >= 0, "margin", margin, "at least 0")
    require(ridge >= 0, "ridge", ridge, "at least 0")
    require(max_norm is None or max_norm > 0, "max_norm", max_norm, "None or positive")

    def init(params: Params, batch: Batch) -> GEMState:
        gradients = jax.tree.map(lambda leaf: jnp.zeros((num_tasks, *leaf.shape)), params)
        return GEMState(params, gradients, empty_ring(batch, memory_size, num_tasks))

    def update(state: GEMState, batch: Batch, key: jax.Array) -> tuple[GEMState, Info]:
        memory = push_to_ring(state.memory, batch, when=batch.first)
        value, gradient = jax.value_and_grad(loss)(state.params, batch)
        clipped = clip_to_norm(gradient, max_norm)  # g

        def constrain(task: jax.Array, done: tuple[Params, jax.Array]) -> tuple[Params, jax.Array]:
            rows, products = done
            row = clip_to_norm(jax.grad(loss)(state.params, rows_of(memory, task)), max_norm)
            rows = jax.tree.map(lambda r, new: r.at[task].set(new), rows, row)
            return rows, products.at[task].set(dot(row, clipped))

        num_past = jnp.minimum(batch.task[0], num_tasks)
        start = (state.gradients, jnp.zeros(num_tasks))
        rows, products = jax.lax.fori_loop(0, num_past, constrain, start)  # G, Gg
        projected = project(clipped, rows, products, num_past, margin=margin, ridge=ridge)  # g̃
        params = descend(state.params, projected, learning_rate)
        info = {"loss": value, "gradient_norm": global_norm(gradient)}
        return GEMState(params, rows, memory), info | {"violations": jnp.sum(products < 0)}

    return Learner(init, update)


def project(
    gradient: Params,
    rows: Params,
    products: jax.Array,
    num_past: jax.Array,
    *,
    margin: float,
    ridge: float,
) -> Params:
    """Return the nearest g̃; the number of rows of G that are read is a power of 2, or T."""
    num_tasks = len(products)
    sizes = [*(2**i for i in range(num_tasks.bit_length()) if 2**i <= 0.75 * num_tasks), num_tasks]
    solve = partial(solve_dual, margin=margin, ridge=ridge)

    def with_rows(size: int) -> Params:
        matrices = [leaf[:size].reshape(size, -1) for leaf in jax.tree.leaves(rows)]
        gram = sum(matrix @ matrix.T for matrix in matrices)  # GGᵀ
        given = (gram, products[:size], num_past)
        dual = jax.pure_callback(solve, products[:size], *given, vmap_method="sequential")  # v
        return jax.tree.map(lambda g, r: g + jnp.tensordot(dual, r[:size], 1), gradient, rows)

    branches: list[Callable[[], Params]] = [lambda: gradient]
    branches += [partial(with_rows, size) for size in sizes]
    bucket = 1 + jnp.searchsorted(jnp.array(sizes), num_past)
    return jax.lax.switch(jnp.where(jnp.any(products < 0), bucket, 0), branches)


def solve_dual(
    gram: np.ndarray, products: np.ndarray, num_past: np.ndarray, *, margin: float, ridge: float
) -> np.ndarray:
    """Return the dual v over past tasks, 0 for the others; computed in float64 on the host.

    With A = GGᵀ + εI = LLᵀ and v = γ + w it is the w ≥ 0 nearest to solve Lᵀw = −L⁻¹(Gg + Aγ).
    """
    # Imported here: SciPy takes a third of this package's import time.
    from scipy.linalg import solve_triangular
    from scipy.optimize import nnls

    past = int(num_past)
    matrix = np.asarray(gram, np.float64)[:past, :past] + ridge * np.eye(past)
    if not np.isfinite(matrix).all():
        return np.full(len(gram), np.nan, np.float32)  # diverged, as the next loss will show
    try:
        root = np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:  # dependent gradients, and no ridge that outweighs rounding
        matrix += (1e-6 * np.trace(matrix) - np.linalg.eigvalsh(matrix)[0]) * np.eye(past)
        root = np.linalg.cholesky(matrix)
    slope = np.asarray(products, np.float64)[:past] + matrix @ np.full(past, margin)
    above, _ = nnls(root.T, -solve_triangular(root, slope, lower=True), maxiter=100 * past)
    return np.pad(margin + above, (0, len(gram) - past)).astype(np.float32)
