"""Stored rows become what a network reads, on the device.

Each is a value: two equal ones hash alike, so `jit` compiles once for all seeds of a stream.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp


@dataclass(frozen=True)
class Scale:
    """Stored integers 0..largest, to [0, 1].

    >>> Scale(16)(jnp.array([0, 4, 16], jnp.uint8)).tolist()
    [0.0, 0.25, 1.0]
    """

    largest: int

    def __call__(self, x: jax.Array, /) -> jax.Array:
        """Rows as float32."""
        return x.astype(jnp.float32) / self.largest


@dataclass(frozen=True)
class Standardise:
    """Stored bytes to [0, 1], then to zero mean and unit deviation a channel."""

    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __call__(self, x: jax.Array, /) -> jax.Array:
        """Images (n, h, w, c) of bytes, as float32."""
        return self.centre(Scale(255)(x))

    def centre(self, unit: jax.Array) -> jax.Array:
        """The second half alone, for images already in [0, 1]."""
        return (unit - jnp.array(self.mean, jnp.float32)) / jnp.array(self.std, jnp.float32)


def unchanged(x: jax.Array, /) -> jax.Array:
    """Rows that are already what a network reads."""
    return x
