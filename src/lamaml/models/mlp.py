"""The paper's network for MNIST: two hidden layers of 100 rectifiers."""

from collections.abc import Sequence
from itertools import pairwise

import jax
import numpy as np

from lamaml.errors import require
from lamaml.models.layers import affine, init_layers, initializer_named
from lamaml.types import FirstLayer, Model, Params


def mlp(
    input_shape: int | Sequence[int],
    num_outputs: int,
    *,
    hidden_sizes: Sequence[int] = (100, 100),
    initializer: str = "kaiming_normal",
    function_space: bool = True,
) -> Model:
    """Return a multi-layer perceptron on flattened rows.

    Args:
      input_shape: shape of a row, or the number of values in it.
      num_outputs: number of logits.
      hidden_sizes: units per hidden layer.
      initializer: "kaiming_normal" (La-MAML) or "xavier_uniform" (MER, GEM and their baselines).
      function_space: declare the first layer affine, so that the look-ahead need not unroll it;
        False forces the general path, which gives the same numbers to rounding.

    Examples:
      >>> import jax, jax.numpy as jnp
      >>> model = mlp(64, 10)
      >>> model.apply(model.init(jax.random.key(0)), jnp.zeros((3, 64))).shape
      (3, 10)
    """
    input_size = int(np.prod(input_shape))
    require(
        min(input_size, num_outputs, *hidden_sizes) > 0, "hidden_sizes", hidden_sizes, "positive"
    )
    widths = (input_size, *hidden_sizes, num_outputs)
    names = [*(f"hidden_{i}" for i in range(1, len(widths) - 1)), "head"]
    sizes = dict(zip(names, pairwise(widths), strict=True))

    draw = initializer_named(initializer)

    def init(key: jax.Array) -> Params:
        return init_layers(sizes, draw, key)

    def inputs(x: jax.Array) -> jax.Array:
        return x.reshape(len(x), -1)

    def above(params: Params, z: jax.Array) -> jax.Array:
        for name in names[1:]:
            z = affine(params[name], jax.nn.relu(z))
        return z

    def apply(params: Params, x: jax.Array) -> jax.Array:
        return above(params, affine(params[names[0]], inputs(x)))

    declared = FirstLayer(names[0], inputs, above) if function_space else None
    return Model(init, apply, declared)
