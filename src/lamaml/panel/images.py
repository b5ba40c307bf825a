"""Streams whose classes come one after the other, or whose images turn and turn back."""

from collections.abc import Callable

import numpy as np
from scipy import ndimage
from sklearn.datasets import load_digits

from lamaml.panel.rows import LabelledRows
from lamaml.streams.mnist import mnist_images

_TURNS = (0, 60, 120)  # degrees
_SECTIONS = "ABCABCAB"


def by_class(
    make: Callable[[int, int], LabelledRows],
) -> Callable[[int, int], LabelledRows]:
    """Return the maker of the same rows, sorted by class; the order of classes is random."""

    def make_sorted(seed: int, num_rows: int) -> LabelledRows:
        rows = make(seed, num_rows)
        rng = np.random.default_rng([seed, 3])
        place = rng.permutation(int(rows.y.max()) + 1)[rows.y]
        order = np.lexsort([rng.random(len(rows.y)), place])
        starts = np.flatnonzero(np.diff(place[order])) + 1
        return LabelledRows(rows.x[order], rows.y[order], tuple(starts.tolist()))

    return make_sorted


def digits(seed: int, num_rows: int) -> LabelledRows:
    """The 1797 digits of scikit-learn, 8×8 pixels, in random order."""
    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng([seed, 4]).permutation(len(y))[:num_rows]
    return LabelledRows(x[order].astype(np.float32), y[order])


def mnist(seed: int, num_rows: int) -> LabelledRows:
    """Images of MNIST, of 14×14 pixels, in random order. They need LAMAML_DATA or a download."""
    images, labels = _mnist(seed, num_rows)
    return LabelledRows(_halve(images), labels)


def digits_turning(seed: int, num_rows: int) -> LabelledRows:
    """The digits of scikit-learn at three angles that return: A B C A B C A B."""
    rows = digits(seed, num_rows)
    return _turning(rows.x.reshape(-1, 8, 8), rows.y, lambda images: images)


def mnist_turning(seed: int, num_rows: int) -> LabelledRows:
    """Images of MNIST, of 14×14 pixels, at three angles that return: A B C A B C A B."""
    return _turning(*_mnist(seed, num_rows), _halve)


def _mnist(seed: int, num_rows: int) -> tuple[np.ndarray, np.ndarray]:
    images = mnist_images()
    order = np.random.default_rng([seed, 5]).permutation(len(images))[:num_rows]
    return images.x[order].reshape(-1, 28, 28).astype(np.float32), images.y[order].astype(int)


def _halve(images: np.ndarray) -> np.ndarray:
    """Return the means of blocks of 2×2 pixels, one image per row."""
    blocks = images.reshape(len(images), 14, 2, 14, 2)
    return blocks.mean(axis=(2, 4)).reshape(len(images), -1)


def _turning(
    images: np.ndarray, y: np.ndarray, finish: Callable[[np.ndarray], np.ndarray]
) -> LabelledRows:
    edges = np.linspace(0, len(y), len(_SECTIONS) + 1).astype(int)
    parts = [
        ndimage.rotate(part, _TURNS[ord(name) - ord("A")], axes=(1, 2), reshape=False, order=1)
        for part, name in zip(np.split(images, edges[1:-1]), _SECTIONS, strict=True)
    ]
    x = finish(np.concatenate(parts)).reshape(len(y), -1)
    return LabelledRows(x.astype(np.float32), y, tuple(edges[1:-1].tolist()))
