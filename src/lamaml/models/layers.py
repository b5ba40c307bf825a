"""Layers of the networks: initializers, affine layers and strided convolution.

On a CPU a convolution is nine strided slices and one matrix product: a gradient on 20 images takes
half the time of the native operation, and inside a compiled loop a twentieth. Weights are (outputs,
inputs), the layout of their gradients after a matrix product; transposing costs a tenth of an
update.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from lamaml.errors import unknown_name
from lamaml.types import Params

KERNEL, STRIDE = 3, 2


def kaiming_normal(key: jax.Array, fan_in: int, fan_out: int) -> jax.Array:
    """Return normal weights of variance 2 / fan_in, for networks of rectifiers."""
    return jax.random.normal(key, (fan_out, fan_in)) * jnp.sqrt(2.0 / fan_in)


def xavier_uniform(key: jax.Array, fan_in: int, fan_out: int) -> jax.Array:
    """Return uniform weights of variance 2 / (fan_in + fan_out), as MER and GEM do."""
    bound = jnp.sqrt(6.0 / (fan_in + fan_out))
    return jax.random.uniform(key, (fan_out, fan_in), minval=-bound, maxval=bound)


Initializer = Callable[[jax.Array, int, int], jax.Array]
"""(key, fan_in, fan_out) -> weights."""
INITIALIZERS: dict[str, Initializer] = {
    "kaiming_normal": kaiming_normal,
    "xavier_uniform": xavier_uniform,
}


def initializer_named(name: str) -> Initializer:
    """Return one of INITIALIZERS."""
    if name not in INITIALIZERS:
        raise unknown_name("initializer", name, INITIALIZERS)
    return INITIALIZERS[name]


def init_layers(sizes: dict[str, tuple[int, int]], draw: Initializer, key: jax.Array) -> Params:
    """Return random weights (fan_out, fan_in) and zero biases, by layer name."""
    keys = jax.random.split(key, len(sizes))
    return {
        name: {"weight": draw(k, *size), "bias": jnp.zeros(size[1])}
        for k, (name, size) in zip(keys, sizes.items(), strict=True)
    }


def affine(layer: Params, x: jax.Array) -> jax.Array:
    """Return W·x + b over the last axis."""
    last_axes = (((x.ndim - 1,), (1,)), ((), ()))
    return jax.lax.dot_general(x, layer["weight"], last_axes) + layer["bias"]


def convolve(layer: Params, images: jax.Array) -> jax.Array:
    """Convolve (n, h, w, c) images: 3×3, stride 2, padding 1; the weight is (filters, 9·c)."""
    channels = images.shape[-1]
    if jax.default_backend() == "cpu":
        patches = neighbourhoods(images)
        # One flat matrix product: over four axes the gradients transpose whole arrays.
        flat = patches.reshape(-1, KERNEL * KERNEL * channels) @ layer["weight"].T + layer["bias"]
        return flat.reshape(*patches.shape[:3], -1)
    kernel = layer["weight"].T.reshape(KERNEL, KERNEL, channels, -1)
    padding = ((1, 1), (1, 1))
    layout = ("NHWC", "HWIO", "NHWC")
    strides = (STRIDE, STRIDE)
    out = jax.lax.conv_general_dilated(images, kernel, strides, padding, dimension_numbers=layout)
    return out + layer["bias"]


def neighbourhoods(images: jax.Array) -> jax.Array:
    """Return the 3×3 neighbourhood of every second pixel, flattened: (n, ⌈h/2⌉, ⌈w/2⌉, 9·c)."""
    height, width = (convolved_size(side) for side in images.shape[1:3])
    padded = jnp.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    rows, columns = STRIDE * height - 1, STRIDE * width - 1
    slices = [
        padded[:, i : i + rows : STRIDE, j : j + columns : STRIDE]
        for i in range(KERNEL)
        for j in range(KERNEL)
    ]
    return jnp.concatenate(slices, axis=-1)


def convolved_size(side: int) -> int:
    """Return the side length of an image after one convolution."""
    return -(-side // STRIDE)
