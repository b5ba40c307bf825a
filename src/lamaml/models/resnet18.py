"""ResNet-18 with group norm, for images of CIFAR's size.

He, Zhang, Ren, Sun: Deep Residual Learning for Image Recognition, 2016; Wu, He: Group
Normalization, 2018. As is usual for small images, the first convolution is 3×3 with stride 1 and no
pooling follows it.

Deviation: group norm in place of batch norm, whose statistics would mix new rows with replayed ones
and change from one step of the look-ahead to the next.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from lamaml.errors import require
from lamaml.models.layers import affine, convolve, group_norm, initializer_named
from lamaml.types import Model, Params

NUM_BLOCKS = 8  # two per stage; from the second stage on, the first block halves the image


class Convolution(NamedTuple):
    """A convolution without bias, and the group norm that follows it."""

    name: str
    norm: str
    inputs: int  # channels
    outputs: int  # channels
    kernel: int
    stride: int


class Block(NamedTuple):
    """Two convolutions, and the one of the shortcut where the shape changes."""

    first: Convolution
    second: Convolution
    shortcut: Convolution | None


def resnet18(
    image_shape: Sequence[int],
    num_outputs: int,
    *,
    num_filters: int = 64,
    num_groups: int = 32,
    initializer: str = "kaiming_normal",
) -> Model:
    """Return a residual network of eighteen layers with group norm.

    Args:
      image_shape: (height, width, channels), at least 8 × 8.
      num_outputs: number of logits, over all heads.
      num_filters: number of filters in the first stage; each later stage has twice as many.
      num_groups: number of groups of channels that are normalised together; it divides
        `num_filters`.
      initializer: "kaiming_normal" or "xavier_uniform".

    Examples:
      >>> import jax, jax.numpy as jnp
      >>> model = resnet18((32, 32, 3), 10)
      >>> params = jax.eval_shape(model.init, jax.random.key(0))
      >>> sum(weights.size for weights in jax.tree.leaves(params))
      11173962
      >>> jax.eval_shape(model.apply, params, jnp.zeros((2, 32, 32, 3))).shape
      (2, 10)
    """
    require(len(image_shape) == 3, "image_shape", tuple(image_shape), "(height, width, channels)")
    height, width, channels = image_shape
    smallest = "at least 8 × 8: three stages halve the image"
    require(min(height, width) >= 8, "image_shape", tuple(image_shape), smallest)
    require(num_outputs > 0, "num_outputs", num_outputs, "positive")
    divides = num_filters > 0 and num_groups > 0 and num_filters % num_groups == 0
    allowed = f"a positive number that divides num_filters = {num_filters}"
    require(divides, "num_groups", num_groups, allowed)
    stem = Convolution("convolution_1", "norm_1", channels, num_filters, kernel=3, stride=1)
    blocks = [_block(number, num_filters) for number in range(1, NUM_BLOCKS + 1)]
    layers = [stem, *(layer for block in blocks for layer in block if layer is not None)]
    features = blocks[-1].second.outputs

    draw = initializer_named(initializer)

    def init(key: jax.Array) -> Params:
        *keys, head = jax.random.split(key, len(layers) + 1)
        params = {}
        for layer, k in zip(layers, keys, strict=True):
            fan_in = layer.kernel * layer.kernel * layer.inputs
            params[layer.name] = {"weight": draw(k, fan_in, layer.outputs)}
            params[layer.norm] = {
                "weight": jnp.ones(layer.outputs),
                "bias": jnp.zeros(layer.outputs),
            }
        weight = draw(head, features, num_outputs)
        return params | {"head": {"weight": weight, "bias": jnp.zeros(num_outputs)}}

    def normalised(params: Params, layer: Convolution, x: jax.Array) -> jax.Array:
        x = convolve(params[layer.name], x, kernel=layer.kernel, stride=layer.stride)
        return group_norm(params[layer.norm], x, num_groups)

    def apply(params: Params, x: jax.Array) -> jax.Array:
        x = jax.nn.relu(normalised(params, stem, x))
        for block in blocks:
            residual = jax.nn.relu(normalised(params, block.first, x))
            residual = normalised(params, block.second, residual)
            x = x if block.shortcut is None else normalised(params, block.shortcut, x)
            x = jax.nn.relu(residual + x)
        return affine(params["head"], jnp.mean(x, axis=(1, 2)))

    return Model(init, apply)


def _block(number: int, num_filters: int) -> Block:
    """Return the shapes of a block, counted from 1."""
    stage, is_second = divmod(number - 1, 2)
    outputs = num_filters * 2**stage
    is_smaller = stage > 0 and not is_second
    inputs, stride = (outputs // 2, 2) if is_smaller else (outputs, 1)
    name = f"block_{number}"
    first = Convolution(f"{name}_convolution_1", f"{name}_norm_1", inputs, outputs, 3, stride)
    second = Convolution(f"{name}_convolution_2", f"{name}_norm_2", outputs, outputs, 3, 1)
    if not is_smaller:
        return Block(first, second, None)
    shortcut = Convolution(f"{name}_shortcut", f"{name}_shortcut_norm", inputs, outputs, 1, stride)
    return Block(first, second, shortcut)
