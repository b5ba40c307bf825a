"""MNIST, rotated or permuted, built in memory from the four original files."""

import gzip
from functools import partial

import numpy as np

from lamaml.streams._download import ARCHIVES, fetch
from lamaml.streams._image_pool import Pool, permuted_stream, rotated_stream
from lamaml.streams._preprocessing import Scale
from lamaml.streams._randomness import generator
from lamaml.types import Examples, Stream

NUM_VALIDATION = 1000  # images that no task trains on


def mnist_rotations(*, seed: int, num_tasks: int = 20, num_samples: int = 1000) -> Stream:
    """MNIST, each of 20 tasks rotated further: task t by an angle from [9t, 9(t + 1)) degrees.

    Args:
      seed: decides the angles, the validation images and which images a task trains on.
      num_tasks: the first so many, at most 20.
      num_samples: training images a task, at most 59,000; 1000 validate, all 10,000 test.
    """
    return rotated_stream(
        "mnist_rotations",
        partial(_pool, seed),
        seed=seed,
        num_tasks=num_tasks,
        num_samples=num_samples,
        full_num_tasks=20,
    )


def mnist_permutations(*, seed: int, num_tasks: int = 20, num_samples: int = 1000) -> Stream:
    """MNIST, each of 20 tasks with its own order of the pixels.

    Args:
      seed: decides the permutations, the validation images and which images a task trains on.
      num_tasks: the first so many, at most 20.
      num_samples: training images a task, at most 59,000; 1000 validate, all 10,000 test.
    """
    return permuted_stream(
        "mnist_permutations",
        partial(_pool, seed),
        seed=seed,
        num_tasks=num_tasks,
        num_samples=num_samples,
        full_num_tasks=20,
    )


def mnist_many_permutations(*, seed: int, num_tasks: int = 100, num_samples: int = 200) -> Stream:
    """MNIST, each of 100 tasks with its own order of the pixels and 200 images to learn it.

    Args:
      seed: decides the permutations, the validation images and which images a task trains on.
      num_tasks: the first so many, at most 100.
      num_samples: training images a task, at most 59,000; 200 validate, all 10,000 test.
    """
    return permuted_stream(
        "mnist_many_permutations",
        partial(_pool, seed, most_validation=200),  # as many as a task trains on
        seed=seed,
        num_tasks=num_tasks,
        num_samples=num_samples,
        full_num_tasks=100,
    )


def data_digest() -> str:
    """A digest of the four files; they are the original ones, or they are refused."""
    return " ".join(archive.checksum for name, archive in ARCHIVES.items() if "mnist/" in name)


def _pool(seed: int, most_validation: int | None = None) -> Pool:
    images = Examples(_images("train-images-idx3-ubyte.gz"), _labels("train-labels-idx1-ubyte.gz"))
    test = Examples(_images("t10k-images-idx3-ubyte.gz"), _labels("t10k-labels-idx1-ubyte.gz"))
    shuffled = generator(seed, "validation").permutation(len(images))
    validation = shuffled[:NUM_VALIDATION][:most_validation]
    return Pool(images, shuffled[NUM_VALIDATION:], validation, test, Scale(255))


def _images(name: str) -> np.ndarray:
    return _content(name, header=16).reshape(-1, 784)


def _labels(name: str) -> np.ndarray:
    return _content(name, header=8).astype(np.int32)


def _content(name: str, header: int) -> np.ndarray:
    # The checksum has vouched for every byte, so the header has nothing to add.
    return np.frombuffer(gzip.decompress(fetch(f"mnist/{name}").read_bytes()), np.uint8)[header:]
