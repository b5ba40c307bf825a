"""The look-ahead of C-MAML and La-MAML: fast updates on the new batch, and their gradient.

    θ_r = θ_{r−1} − α ⊙ g_{r−1},   g_i = ∇ℓ(θ_i; chunk i),   L̄ = Σ_r w_r L(θ_r; b_m),   r = 1 … K

First order treats every g_i as a constant, so no gradient flows back through the loop:

    ∇_θ L̄ = Σ_r w_r L'(θ_r),      ∇_α L̄ = −Σ_r w_r L'(θ_r) ⊙ Σ_{i<r} g_i            (eq. 5)
both accumulated forwards in the loop. Second order differentiates the loop itself.
Where the network's first layer is affine in the data, `function_space` computes the same numbers
without unrolling that layer.
"""

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

import jax
import jax.numpy as jnp

from lamaml.errors import require, unknown_name
from lamaml.learners.function_space import MetaGradient, meta_gradient_above
from lamaml.learners.gradients import (
    clamp,
    clip_to_norm,
    descend,
    positive,
    where_positive,
)
from lamaml.models import NetworkLoss
from lamaml.types import Batch, Loss, Params

META_LOSSES = ("mean", "sum", "last")


_max_unrolled = ContextVar("_max_unrolled", default=5)  # the fastest number, measured on a CPU


def unrolled(steps: Batch) -> int:
    """Return the number of steps per compiled loop body."""
    return min(len(steps.y), _max_unrolled.get())


@contextlib.contextmanager
def not_unrolled() -> Iterator[None]:
    """Trace inner loops with one step per compiled body: they compile in two thirds of the time."""
    token = _max_unrolled.set(1)
    try:
        yield
    finally:
        _max_unrolled.reset(token)


def check_inner_loop(
    inner_steps: int,
    meta_loss: str,
    inner_clamp: float | None,
    inner_max_norm: float | None = None,
) -> None:
    """Raise InvalidArgument for settings that the inner loop cannot use."""
    require(inner_steps > 0, "inner_steps", inner_steps, "at least 1")
    for name, limit in (("inner_clamp", inner_clamp), ("inner_max_norm", inner_max_norm)):
        require(limit is None or limit > 0, name, limit, "None or positive")
    if meta_loss not in META_LOSSES:
        raise unknown_name("meta_loss", meta_loss, META_LOSSES)


def chunks(batch: Batch, inner_steps: int) -> Batch:
    """Return the rows in order as K chunks of ⌈n/K⌉, the last ones padded with weight 0."""
    size = -(-len(batch.y) // inner_steps)
    padding = size * inner_steps - len(batch.y)

    def split(rows: jax.Array) -> jax.Array:
        padded = jnp.pad(rows, [(0, padding)] + [(0, 0)] * (rows.ndim - 1))
        return padded.reshape(inner_steps, size, *rows.shape[1:])

    unused = jnp.zeros(inner_steps, bool)
    rows = (batch.x, batch.y, batch.task, batch.weight, batch.position, batch.extra, batch.scale)
    x, y, task, weight, position, extra, scale = jax.tree.map(split, rows)
    return Batch(x, y, task, weight, unused, unused, position, extra, scale)


def step_weights(steps: Batch, meta_loss: str) -> jax.Array:
    """Return w_r of each step; a chunk without rows has weight 0."""
    taken = jnp.any(steps.weight > 0, axis=1).astype(jnp.float32)
    if meta_loss == "sum":
        return taken
    if meta_loss == "mean":
        return taken / jnp.maximum(jnp.sum(taken), 1.0)
    return taken * (jnp.cumsum(taken) == jnp.sum(taken))


def fast_weights(
    loss: Loss, params: Params, rates: Params, steps: Batch, *, inner_clamp: float | None = None
) -> tuple[Params, Params]:
    """Return θ_K and the sum of the inner gradients."""

    def step(carry: tuple[Params, Params], chunk: Batch) -> tuple[tuple[Params, Params], None]:
        fast, travelled = carry
        gradient = clamp(jax.grad(loss)(fast, chunk), inner_clamp)
        return (descend(fast, gradient, rates), jax.tree.map(jnp.add, travelled, gradient)), None

    start = (params, jax.tree.map(jnp.zeros_like, params))
    return jax.lax.scan(step, start, steps, unroll=unrolled(steps))[0]


def meta_gradient(
    loss: Loss,
    params: Params,
    rates: Params,
    batch: Batch,
    meta_batch: Batch,
    *,
    inner_steps: int,
    first_order: bool,
    meta_loss: str = "mean",
    inner_clamp: float | None = None,
    inner_max_norm: float | None = None,
    clip_inner_rates: bool = False,
    outer: Loss | None = None,
) -> MetaGradient:
    """Return the meta-loss over the fast updates, and its gradients in the weights and the rates.

    Args:
      loss: ℓ, the weighted mean loss of a batch, that the fast updates descend.
      params: θ, the slow weights; never changed here.
      rates: α, a tree like params.
      batch: b, the new rows.
      meta_batch: b_m, the rows of the meta-loss: replayed rows, then those of b.
      inner_steps: K, the number of fast updates the batch is divided into.
      first_order: treat the inner gradients as constants.
      meta_loss: "mean" or "sum" over the steps, or the "last" step.
      inner_clamp: limit on each element of the inner gradients.
      inner_max_norm: limit on the norm of each inner gradient, after the clamp.
      clip_inner_rates: use max(0, α) in the fast updates.
      outer: L, the loss that the meta-loss is made of; None for ℓ.
    """
    outer = loss if outer is None else outer
    steps = chunks(batch, inner_steps)
    weights = step_weights(steps, meta_loss)
    used = positive(rates) if clip_inner_rates else rates
    is_free = inner_clamp is None and inner_max_norm is None
    first = loss.first_layer if isinstance(loss, NetworkLoss) and is_free else None
    if first and isinstance(loss, NetworkLoss) and isinstance(outer, NetworkLoss):
        ahead = meta_gradient_above(
            loss.above_first_layer,
            outer.above_first_layer,
            first.name,
            first.inputs(meta_batch.x),
            params,
            used,
            steps,
            weights,
            meta_batch,
            num_new=len(batch.y),
            first_order=first_order,
        )
    else:

        def inner_gradient(fast: Params, rows: Batch) -> Params:
            return clip_to_norm(clamp(jax.grad(loss)(fast, rows), inner_clamp), inner_max_norm)

        differentiate = _first_order if first_order else _second_order
        ahead = differentiate(inner_gradient, outer, params, used, steps, weights, meta_batch)
    return ahead._replace(rates=where_positive(ahead.rates, rates)) if clip_inner_rates else ahead


def _first_order(
    inner_gradient: Callable[[Params, Batch], Params],
    outer: Loss,
    params: Params,
    rates: Params,
    steps: Batch,
    weights: jax.Array,
    meta_batch: Batch,
) -> MetaGradient:
    zeros = jax.tree.map(jnp.zeros_like, params)

    def step(carry: tuple[Params, Params, MetaGradient], chunk: tuple[Batch, jax.Array]):  # type: ignore[no-untyped-def]
        fast, travelled, total = carry
        rows, weight = chunk
        gradient = inner_gradient(fast, rows)  # g_{r−1}
        fast = descend(fast, gradient, rates)  # θ_r
        travelled = jax.tree.map(jnp.add, travelled, gradient)  # Σ_{i<r} g_i
        value, slope = jax.value_and_grad(outer)(fast, meta_batch)  # L(θ_r), L'(θ_r)
        total = MetaGradient(
            total.loss + weight * value,
            jax.tree.map(lambda t, s: t + weight * s, total.params, slope),
            jax.tree.map(lambda t, s, g: t - weight * s * g, total.rates, slope, travelled),
        )
        return (fast, travelled, total), None

    start = (params, zeros, MetaGradient(jnp.zeros(()), zeros, zeros))
    (_, _, total), _ = jax.lax.scan(step, start, (steps, weights), unroll=unrolled(steps))
    return total


def _second_order(
    inner_gradient: Callable[[Params, Batch], Params],
    outer: Loss,
    params: Params,
    rates: Params,
    steps: Batch,
    weights: jax.Array,
    meta_batch: Batch,
) -> MetaGradient:
    def objective(params: Params, rates: Params) -> jax.Array:
        def step(fast: Params, chunk: tuple[Batch, jax.Array]) -> tuple[Params, jax.Array]:
            rows, weight = chunk
            fast = descend(fast, inner_gradient(fast, rows), rates)
            return fast, weight * outer(fast, meta_batch)

        return jnp.sum(jax.lax.scan(step, params, (steps, weights), unroll=unrolled(steps))[1])

    value, gradients = jax.value_and_grad(objective, argnums=(0, 1))(params, rates)
    return MetaGradient(value, *gradients)
