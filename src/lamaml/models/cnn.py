"""The paper's network for CIFAR-100 and TinyImagenet: convolutions, then two dense layers."""

from collections.abc import Sequence

import jax

from lamaml.errors import require
from lamaml.models.layers import (
    KERNEL,
    affine,
    convolve,
    convolved_size,
    init_layers,
    initializer_named,
)
from lamaml.types import Model, Params


def cnn(
    image_shape: Sequence[int],
    num_outputs: int,
    *,
    num_convolutions: int = 3,
    num_filters: int = 160,
    hidden_sizes: Sequence[int] = (320, 320),
    initializer: str = "kaiming_normal",
) -> Model:
    """Return a convolutional network without normalisation layers.

    Args:
      image_shape: (height, width, channels).
      num_outputs: number of logits, over all heads.
      num_convolutions: number of 3×3, stride 2 layers; 3 for CIFAR-100, 4 for TinyImagenet.
      num_filters: number of filters per convolution.
      hidden_sizes: units per dense layer; (320, 320) for CIFAR-100, (640, 640) for TinyImagenet.
      initializer: "kaiming_normal" or "xavier_uniform".

    Examples:
      >>> import jax, jax.numpy as jnp
      >>> model = cnn((32, 32, 3), 100)
      >>> params = model.init(jax.random.key(0))
      >>> params["hidden_1"]["weight"].shape
      (320, 2560)
      >>> model.apply(params, jnp.zeros((2, 32, 32, 3))).shape
      (2, 100)
    """
    require(len(image_shape) == 3, "image_shape", tuple(image_shape), "(height, width, channels)")
    require(num_convolutions > 0, "num_convolutions", num_convolutions, "at least 1")
    height, width, channels = image_shape
    convolutions = [f"convolution_{i}" for i in range(1, num_convolutions + 1)]
    hidden = [f"hidden_{i}" for i in range(1, len(hidden_sizes) + 1)]
    sizes = {}
    for name in convolutions:
        sizes[name] = (KERNEL * KERNEL * channels, num_filters)
        height, width, channels = convolved_size(height), convolved_size(width), num_filters
    widths = (height * width * channels, *hidden_sizes, num_outputs)
    for name, fan_in, fan_out in zip([*hidden, "head"], widths[:-1], widths[1:], strict=True):
        sizes[name] = (fan_in, fan_out)

    draw = initializer_named(initializer)

    def init(key: jax.Array) -> Params:
        return init_layers(sizes, draw, key)

    def apply(params: Params, x: jax.Array) -> jax.Array:
        for name in convolutions:
            x = jax.nn.relu(convolve(params[name], x))
        x = x.reshape(len(x), -1)
        for name in hidden:
            x = jax.nn.relu(affine(params[name], x))
        return affine(params["head"], x)

    return Model(init, apply)
