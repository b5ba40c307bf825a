"""The look-ahead with the first layer in function space: exact, and never unrolled.

Where the first layer is affine, z = x Wᵀ + b, its inputs are data and do not change within an
update. Write x_i for the rows of b, c(i) for the step of row i, X_s for the rows of b_m, A and a
for the rates of W and b, and δ_i = ∂ℓ/∂z_i. An inner gradient of W is Σ_i δ_i x_iᵀ, so that

    z_r(X_s) = X_s Wᵀ + b − Σ_{c(i) ≤ r} δ_i ⊙ (k_is + a),      k_is = (x_i ⊙ X_s) Aᵀ

and no W_r is ever formed. Two products before the loop give Z₀ = X Wᵀ + b and k; the loop runs on
pre-activations and on the layers above; two products after it give, with P the rows x_i ⊙ X_s,

    ∇_W L̄ = (∂L̄/∂Z₀)ᵀ X,     ∇_b L̄ = Σ_s ∂L̄/∂Z₀,     ∇_A L̄ = (∂L̄/∂k)ᵀ P,     ∇_a L̄ = Σ_is ∂L̄/∂k_is

First order takes δ_i and the inner gradients above as constants. With G_r = w_r ∂L(z_r)/∂z_r,

    ∂L̄/∂Z₀ = Σ_r G_r,     ∂L̄/∂k_is = −δ_i ⊙ Σ_{r ≥ c(i)} G_rs

so nothing is propagated back through the loop; second order differentiates the loop itself.
The rows of b are among those of b_m, and k_is = k_si is computed once for each pair of them.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lamaml.learners.gradients import descend
from lamaml.types import Batch, Params

LossAbove = Callable[[Params, jax.Array, Batch], jax.Array]
"""(the layers above, pre-activations z, rows) -> the weighted mean loss of the rows."""


class MetaGradient(NamedTuple):
    """The meta-loss and its gradients."""

    loss: jax.Array  # L̄
    params: Params  # ∇_θ L̄
    rates: Params  # ∇_α L̄


class _Pairs(NamedTuple):
    """A row of b with a row of b_m; of two rows of b, one order only."""

    inner: np.ndarray  # (p,) i
    meta: np.ndarray  # (p,) s
    number: np.ndarray  # (n, m) the pair of i and s
    is_double: np.ndarray  # (p,) whether the pair stands for both orders


def meta_gradient_above(
    loss: LossAbove,
    outer: LossAbove,
    layer: str,
    x: jax.Array,
    params: Params,
    rates: Params,
    steps: Batch,
    step_weights: jax.Array,
    meta_batch: Batch,
    *,
    num_new: int,
    first_order: bool,
) -> MetaGradient:
    """Return the meta-loss and its gradients, computed in the function space of one layer.

    Args:
      loss: ℓ as a function of the layer's outputs.
      outer: L as a function of the layer's outputs.
      layer: name of the affine layer in params: {"weight": W, "bias": b}.
      x: X, (m, inputs), what the layer reads of the rows of b_m.
      params: θ.
      rates: α as the fast updates use it.
      steps: the rows of b in K chunks.
      step_weights: w_r, the weight of each step in L̄.
      meta_batch: b_m, whose last rows are those of b.
      num_new: n, the number of rows of b.
      first_order: take the inner gradients as constants.
    """
    first, above = params[layer], _without(params, layer)
    first_rates, above_rates = rates[layer], _without(rates, layer)
    num_old = len(x) - num_new
    pairs = _pairs(num_new, len(x))
    # Rows that fill up the last chunks have weight 0: any row may stand for them.
    row = np.minimum(np.arange(steps.weight.size), num_new - 1).reshape(steps.weight.shape)
    products = x[num_old + pairs.inner] * x[pairs.meta]  # P
    z = _times_transposed(x, first["weight"]) + first["bias"]  # Z₀
    k = _times_transposed(products, first_rates["weight"])[pairs.number[row]]  # (K, n/K, m, units)
    chunks = (steps, step_weights, k, num_old + row)
    differentiate = _first_order if first_order else _second_order
    value, slope_z, slope_k, slope_a, above_slope, above_rates_slope = differentiate(
        loss, outer, z, first_rates["bias"], above, above_rates, chunks, meta_batch
    )
    slope_pairs = _by_pair(slope_k.reshape(-1, *slope_k.shape[2:]), pairs, num_old)
    weights = {"weight": _transposed_times(slope_z, x), "bias": jnp.sum(slope_z, axis=0)}
    rates_of_weights = {"weight": _transposed_times(slope_pairs, products), "bias": slope_a}
    return MetaGradient(
        value, above_slope | {layer: weights}, above_rates_slope | {layer: rates_of_weights}
    )


def _first_order(  # type: ignore[no-untyped-def]
    loss: LossAbove,
    outer: LossAbove,
    z: jax.Array,
    bias_rates: jax.Array,
    above: Params,
    above_rates: Params,
    chunks: Any,
    meta_batch: Batch,
):
    zeros = jax.tree.map(jnp.zeros_like, above)

    def step(carry, chunk):  # type: ignore[no-untyped-def]
        z, fast, travelled, total = carry
        rows, weight, k, place = chunk
        gradient, delta = jax.grad(loss, argnums=(0, 1))(fast, z[place], rows)  # g_{r−1}, δ_i
        z = z - jnp.sum(delta[:, None] * (k + bias_rates), axis=0)  # z_r
        fast = descend(fast, gradient, above_rates)  # θ_r
        travelled = jax.tree.map(jnp.add, travelled, gradient)  # Σ_{i<r} g_i
        value, (slope, slope_z) = jax.value_and_grad(outer, argnums=(0, 1))(fast, z, meta_batch)
        total = MetaGradient(
            total.loss + weight * value,
            jax.tree.map(lambda t, s: t + weight * s, total.params, slope),
            jax.tree.map(lambda t, s, g: t - weight * s * g, total.rates, slope, travelled),
        )
        return (z, fast, travelled, total), (delta, weight * slope_z)

    start = (z, above, zeros, MetaGradient(jnp.zeros(()), zeros, zeros))
    (_, _, _, total), (delta, slopes) = jax.lax.scan(step, start, chunks)
    later = jnp.cumsum(slopes[::-1], axis=0)[::-1]  # Σ_{r' ≥ r} G_r'
    slope_k = -delta[:, :, None] * later[:, None]
    slope_a = jnp.sum(slope_k, axis=(0, 1, 2))
    return total.loss, later[0], slope_k, slope_a, total.params, total.rates


def _second_order(  # type: ignore[no-untyped-def]
    loss: LossAbove,
    outer: LossAbove,
    z: jax.Array,
    bias_rates: jax.Array,
    above: Params,
    above_rates: Params,
    chunks: Any,
    meta_batch: Batch,
):
    steps, step_weights, k, places = chunks

    def objective(z, k, bias_rates, above, above_rates):  # type: ignore[no-untyped-def]
        def step(carry, chunk):  # type: ignore[no-untyped-def]
            z, fast = carry
            rows, weight, k, place = chunk
            gradient, delta = jax.grad(loss, argnums=(0, 1))(fast, z[place], rows)
            z = z - jnp.sum(delta[:, None] * (k + bias_rates), axis=0)
            fast = descend(fast, gradient, above_rates)
            return (z, fast), weight * outer(fast, z, meta_batch)

        return jnp.sum(jax.lax.scan(step, (z, above), (steps, step_weights, k, places))[1])

    everything = tuple(range(5))
    value, slopes = jax.value_and_grad(objective, everything)(z, k, bias_rates, above, above_rates)
    return value, *slopes


def _pairs(num_new: int, num_rows: int) -> _Pairs:
    num_old = num_rows - num_new
    once = np.hstack(
        [np.ones((num_new, num_old), bool), np.triu(np.ones((num_new, num_new), bool))]
    )
    inner, meta = np.nonzero(once)
    count, both = np.arange(len(inner)), meta >= num_old
    number = np.zeros((num_new, num_rows), int)
    number[inner, meta] = count
    number[meta[both] - num_old, inner[both] + num_old] = count[both]
    return _Pairs(inner, meta, number, both & (meta - num_old != inner))


def _by_pair(slope: jax.Array, pairs: _Pairs, num_old: int) -> jax.Array:
    """Return the sum over both orders of each pair, (p, units), of a slope (rows, m, units)."""
    other = np.where(pairs.is_double, pairs.meta - num_old, 0)
    exchanged = slope[other, pairs.inner + num_old]
    return slope[pairs.inner, pairs.meta] + jnp.where(pairs.is_double[:, None], exchanged, 0.0)


def _times_transposed(one: jax.Array, other: jax.Array) -> jax.Array:
    return jax.lax.dot_general(one, other, (((1,), (1,)), ((), ())))


def _transposed_times(one: jax.Array, other: jax.Array) -> jax.Array:
    return jax.lax.dot_general(one, other, (((0,), (0,)), ((), ())))


def _without(tree: Params, layer: str) -> Params:
    return {name: part for name, part in tree.items() if name != layer}
