"""Random changes of training images, on the device, from a key."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import random

from lamaml.errors import require
from lamaml.streams._preprocessing import Scale, Standardise


@dataclass(frozen=True)
class CropFlip:
    """Shift, mirror and brighten each image on its own, then standardise.

    The semantics are torchvision's RandomCrop(padding), RandomHorizontalFlip and
    ColorJitter(brightness), in this order, as in the authors' code.

    Deviation: brightness is not rounded back to bytes, which would only add noise.

    Attributes:
      standardise: the stream's preprocessing; black borders are black before it.
      padding: largest shift in pixels, in both directions.
      brightness: b in [0, 1]; the factor is drawn from [1 − b, 1 + b].
    """

    standardise: Standardise
    padding: int = 4
    brightness: float = 0.0

    def __post_init__(self) -> None:
        require(self.padding >= 0, "padding", self.padding, "0 or more")
        require(0 <= self.brightness <= 1, "brightness", self.brightness, "in [0, 1]")

    def __call__(self, x: jax.Array, key: jax.Array, /) -> jax.Array:
        """Images (n, h, w, c) of bytes, changed, as float32."""
        crop_key, flip_key, brightness_key = random.split(key, 3)
        count = len(x)
        offset = random.randint(crop_key, (count, 2), -self.padding, self.padding + 1)
        mirrored = random.bernoulli(flip_key, 0.5, (count,))
        unit = Scale(255)(shift_and_mirror(x, offset, mirrored))
        if self.brightness:
            low, high = 1 - self.brightness, 1 + self.brightness
            factor = random.uniform(brightness_key, (count, 1, 1, 1), minval=low, maxval=high)
            unit = jnp.clip(unit * factor, 0, 1)
        return self.standardise.centre(unit)


def shift_and_mirror(x: jax.Array, offset: jax.Array, mirrored: jax.Array) -> jax.Array:
    """Each image's window at its (row, column) offset, black outside, then mirrored if marked.

    One gather for all images: `vmap(dynamic_slice)` is as fast alone, but in a `lax.scan` on a
    CPU ten times slower.
    """
    count, height, width, _ = x.shape
    row = jnp.arange(height) + offset[:, :1]
    column = jnp.arange(width)
    column = jnp.where(mirrored[:, None], column[::-1], column) + offset[:, 1:]
    row_inside = (row >= 0) & (row < height)
    column_inside = (column >= 0) & (column < width)
    inside = row_inside[:, :, None] & column_inside[:, None, :]
    image = jnp.arange(count)[:, None, None]
    row, column = row.clip(0, height - 1), column.clip(0, width - 1)
    return jnp.where(inside[..., None], x[image, row[:, :, None], column[:, None, :]], 0)
