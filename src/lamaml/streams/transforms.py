"""Image transforms: scaling, random augmentation on the device, rotation and permutation.

Scaling and augmentation are values: equal ones have equal hashes, so `jit` compiles once for all
seeds of a stream.
"""

import math
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
from jax import random
from PIL import Image

from lamaml.errors import require
from lamaml.types import Stream


@dataclass(frozen=True)
class Scale:
    """Scales stored integers from 0..largest to [0, 1].

    Examples:
      >>> Scale(16)(jnp.array([0, 4, 16], jnp.uint8)).tolist()
      [0.0, 0.25, 1.0]
    """

    largest: int

    def __call__(self, x: jax.Array, /) -> jax.Array:
        """Return the rows as float32."""
        return x.astype(jnp.float32) / self.largest


@dataclass(frozen=True)
class Standardise:
    """Scales bytes to [0, 1], then each channel to zero mean and unit deviation.

    Attributes:
      mean: mean of each channel, in [0, 1].
      std: standard deviation of each channel.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __call__(self, x: jax.Array, /) -> jax.Array:
        """Return images (n, h, w, c) of bytes as float32."""
        return self.centre(Scale(255)(x))

    def centre(self, unit: jax.Array) -> jax.Array:
        """Return images that are already in [0, 1], standardised."""
        return (unit - jnp.array(self.mean, jnp.float32)) / jnp.array(self.std, jnp.float32)


@dataclass(frozen=True)
class StandardiseColumns:
    """Scales each value of a row to zero mean and unit deviation, at most 5 deviations away.

    Attributes:
      mean: mean of each value.
      std: standard deviation of each value.

    Examples:
      >>> StandardiseColumns((1.0, 0.0), (2.0, 1.0))(jnp.array([[5.0, 9.0]])).tolist()
      [[2.0, 5.0]]
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __call__(self, x: jax.Array, /) -> jax.Array:
        """Return the rows, of any shape after the first axis, standardised."""
        mean, std = (jnp.array(numbers, jnp.float32) for numbers in (self.mean, self.std))
        rows = x.astype(jnp.float32).reshape(len(x), -1)
        return jnp.clip((rows - mean) / std, -5.0, 5.0).reshape(x.shape)


def standardise_like(rows: np.ndarray) -> StandardiseColumns:
    """Return the standardisation of rows by their own statistics; constants are only centred."""
    flat = rows.reshape(len(rows), -1).astype(np.float64)
    mean, std = flat.mean(axis=0), flat.std(axis=0)
    std = np.where(std > 1e-6 * np.abs(mean), std, 1.0)
    return StandardiseColumns(tuple(mean.tolist()), tuple(np.where(std > 0, std, 1.0).tolist()))


def unchanged(x: jax.Array, /) -> jax.Array:
    """Return the rows as they are."""
    return x


def as_stored(x: jax.Array, key: jax.Array, /) -> jax.Array:
    """Return training rows as they are."""
    del key
    return x


def augmented_by_learner(stream: Stream) -> Stream:
    """Return a stream whose learner augments the rows, new and replayed, anew in every update."""
    return replace(stream, augment=as_stored, fresh_augment=stream.augment)


@dataclass(frozen=True)
class CropFlip:
    """Shifts, mirrors and brightens each image at random, then standardises it.

    The semantics are torchvision's RandomCrop(padding), RandomHorizontalFlip and
    ColorJitter(brightness), in this order, as in the authors' code.

    Deviation: brightness is not rounded back to bytes, which would only add noise.

    Attributes:
      standardise: preprocessing of the stream; borders are black before it.
      padding: largest shift in pixels, in each direction.
      brightness: b in [0, 1]; the factor is drawn from [1 − b, 1 + b].
    """

    standardise: Standardise
    padding: int = 4
    brightness: float = 0.0

    def __post_init__(self) -> None:
        require(self.padding >= 0, "padding", self.padding, "0 or more")
        require(0 <= self.brightness <= 1, "brightness", self.brightness, "in [0, 1]")

    def __call__(self, x: jax.Array, key: jax.Array, /) -> jax.Array:
        """Return images (n, h, w, c) of bytes, augmented, as float32."""
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
    """Return each image's window at its (row, column) offset, mirrored where marked.

    Pixels outside the image are black. One gather serves all images: `vmap(dynamic_slice)` is as
    fast alone, but ten times slower inside a `lax.scan` on a CPU.
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


def rotate(images: np.ndarray, angle: float) -> np.ndarray:
    """Return flat square images rotated counter-clockwise, with black corners.

    The result equals Pillow's nearest-neighbour rotation of each image on the same canvas, for any
    dtype. Pillow rotates one image of pixel numbers, which then serves as a gather for all images.

    Args:
      images: (n, side·side) array.
      angle: angle in degrees.

    Examples:
      >>> rotate(np.array([[1, 2, 3, 4]]), 90).tolist()
      [[2, 4, 1, 3]]
    """
    side = math.isqrt(images.shape[1])
    require(side**2 == images.shape[1], "shape of images", images.shape, "(n, side·side)")
    numbers = np.arange(1, side * side + 1, dtype=np.int32).reshape(side, side)
    source = np.asarray(Image.fromarray(numbers).rotate(angle)).reshape(-1).astype(np.intp) - 1
    rotated = permute(images, source)
    rotated[:, source < 0] = 0  # Pillow fills the corners with 0, which became −1
    return rotated


def permute(images: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return flat images with permuted pixels: pixel i of the result is pixel order[i].

    Args:
      images: (n, pixels) array.
      order: (pixels,) array of pixel numbers.

    Examples:
      >>> permute(np.array([[5, 6, 7]]), np.array([2, 0, 1])).tolist()
      [[7, 5, 6]]
    """
    return np.take(images, order, axis=1)
