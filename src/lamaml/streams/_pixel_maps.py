"""Rotations and permutations of square images.

Both are the same thing: pixel i of the new image is pixel source[i] of the old one. A rotation by
Pillow (nearest neighbour, same canvas, zero fill, counter-clockwise) is found by rotating one
image of pixel numbers, and then costs as little as a permutation.
"""

import numpy as np
from PIL import Image

FILL = -1
"""The source of a pixel that lies outside the old image: it is black."""


def rotation(side: int, angle: float) -> np.ndarray:
    """The source of each pixel after a rotation by `angle` degrees.

    >>> rotation(2, 90).tolist()
    [1, 3, 0, 2]
    """
    numbers = np.arange(1, side * side + 1, dtype=np.int32).reshape(side, side)
    rotated = np.asarray(Image.fromarray(numbers).rotate(angle))
    return rotated.reshape(-1).astype(np.intp) - 1  # Pillow fills with 0, which becomes FILL


def take(images: np.ndarray, source: np.ndarray) -> np.ndarray:
    """All images (n, pixels) at once, with their pixels moved.

    >>> take(np.array([[5, 6, 7]], np.uint8), np.array([2, FILL, 0])).tolist()
    [[7, 0, 5]]
    """
    moved = np.empty((len(images), len(source)), images.dtype)
    np.take(images, source, axis=1, out=moved, mode="clip")  # "raise" would buffer the output
    moved[:, source == FILL] = 0
    return moved
