"""Adam (Kingma and Ba, 2015): steps scaled by running moments of the gradient.

m ← β₁·m + (1 − β₁)·g,   v ← β₂·v + (1 − β₂)·g²
θ ← θ − lr · [(m / (1 − β₁ᵗ)) / (√(v / (1 − β₂ᵗ)) + ε) + decay·θ]

With a decay it is AdamW (Loshchilov and Hutter, 2019).
"""

import jax
import jax.numpy as jnp

from lamaml.types import Params

_BETA_1, _BETA_2, _EPSILON = 0.9, 0.999, 1e-8


def adam_step(
    params: Params,
    mean: Params,
    square: Params,
    count: jax.Array,
    gradient: Params,
    learning_rate: float,
    weight_decay: float = 0.0,
) -> tuple[Params, Params, Params]:
    """Return the weights and both moments after one step.

    Args:
      params: θ.
      mean: m, zeros before the first step.
      square: v, zeros before the first step.
      count: t, the number of this step, from 1.
      gradient: g.
      learning_rate: lr.
      weight_decay: of every weight; 0 for Adam.

    >>> zero = jnp.zeros(1)
    >>> round(float(adam_step(jnp.ones(1), zero, zero, 1, jnp.array([7.0]), 0.1)[0][0]), 4)
    0.9
    """

    def mix(share: float, old: Params, new: Params) -> Params:
        return jax.tree.map(lambda a, b: share * a + (1 - share) * b, old, new)

    mean = mix(_BETA_1, mean, gradient)
    square = mix(_BETA_2, square, jax.tree.map(jnp.square, gradient))
    rate = learning_rate / (1 - _BETA_1**count)
    correction = 1 - _BETA_2**count

    def move(p: jax.Array, m: jax.Array, v: jax.Array) -> jax.Array:
        return (
            p - rate * m / (jnp.sqrt(v / correction) + _EPSILON) - learning_rate * weight_decay * p
        )

    return jax.tree.map(move, params, mean, square), mean, square
