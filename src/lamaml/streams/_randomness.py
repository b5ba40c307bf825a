"""One independent source of random numbers a purpose, all from one seed."""

import zlib

import numpy as np

from lamaml.errors import require


def generator(seed: int, purpose: str, *place: int) -> np.random.Generator:
    """A generator that no other purpose, place or seed shares.

    A draw for one task never moves the draws of another, so a shortened stream is the beginning
    of the full one.

    Args:
      seed: 0 or more.
      purpose: what is drawn, in words.
      *place: which one of them, such as the task's number.

    Example:
      >>> [int(generator(0, "angle", task).integers(100)) for task in (3, 4, 3)]
      [70, 7, 70]
    """
    require(seed >= 0, "seed", seed, "0 or more")
    words = (zlib.crc32(purpose.encode()), *place)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=words))
