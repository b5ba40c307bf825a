"""MNIST, rotated, permuted, split by class or drifting, from the four original files."""

import gzip
from functools import partial

import numpy as np

from lamaml.streams._download import ARCHIVES, fetch
from lamaml.streams._pixels import Pool, drifting_stream, permuted_stream, rotated_stream
from lamaml.streams._splits import Shape, split_pool, split_stream
from lamaml.streams._tasks import generator
from lamaml.streams.transforms import Scale
from lamaml.types import Examples, Stream

NUM_VALIDATION = 1000  # images that no task trains on


def mnist_rotations(*, seed: int, num_tasks: int = 20, num_samples: int = 1000) -> Stream:
    """MNIST in 20 tasks, task t rotated by an angle from [9t, 9(t + 1)) degrees.

    A task has 1000 validation and 10,000 test images.

    Args:
      seed: seed of the angles and of the choice of validation and training images.
      num_tasks: number of tasks, at most 20.
      num_samples: number of training images per task, at most 59,000.
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
    """MNIST in 20 tasks, each with its own order of the pixels.

    A task has 1000 validation and 10,000 test images.

    Args:
      seed: seed of the permutations and of the choice of validation and training images.
      num_tasks: number of tasks, at most 20.
      num_samples: number of training images per task, at most 59,000.
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
    """MNIST in 100 tasks, each with its own order of the pixels and 200 training images.

    A task has 200 validation and 10,000 test images.

    Args:
      seed: seed of the permutations and of the choice of validation and training images.
      num_tasks: number of tasks, at most 100.
      num_samples: number of training images per task, at most 59,000.
    """
    return permuted_stream(
        "mnist_many_permutations",
        partial(_pool, seed, num_validation=200),
        seed=seed,
        num_tasks=num_tasks,
        num_samples=num_samples,
        full_num_tasks=100,
    )


def split_mnist(
    *,
    seed: int,
    scenario: str = "class",
    classes_per_task: int = 2,
    num_tasks: int | None = None,
    num_samples: int | None = None,
    shuffled_classes: bool = False,
    blur: float = 0.0,
    num_visits: int = 1,
) -> Stream:
    """MNIST in groups of classes: 5 tasks of 2, or another divisor of 10.

    Of the 60,000 training images, 1000 are for validation; the 10,000 test images are all used.

    Args:
      seed: seed of the order of the images and of validation images, and of the blur.
      scenario: "task", "domain" or "class".
      classes_per_task: number of classes per task; it must divide 10.
      num_tasks: number of tasks, the first ones; None for all.
      num_samples: number of training images per task; None for all.
      shuffled_classes: whether the order of the classes is random.
      blur: part of a task's training images that comes from its neighbours, in [0, 1].
      num_visits: number of visits to each task, each with its own part of the images.
    """
    return split_stream(
        "split_mnist",
        lambda order: split_pool(_pool(seed), order, classes_per_task),
        Shape(
            scenario,
            classes_per_task,
            shuffled_classes,
            num_tasks,
            num_samples,
            blur,
            num_visits,
        ),
        seed=seed,
        num_classes=10,
        preprocess=Scale(255),
    )


def mnist_drift(*, seed: int, num_tasks: int = 20, num_samples: int = 1000) -> Stream:
    """MNIST that turns by 180° row by row, without tasks.

    Accuracy is measured at 4.5°, 13.5° ... 175.5°, after each twentieth of the rows.

    Args:
      seed: seed of the choice of training and validation images.
      num_tasks: number of stretches, at most 20.
      num_samples: number of training images per stretch, at most 59,000.
    """
    return drifting_stream(
        "mnist_drift",
        partial(_pool, seed),
        seed=seed,
        num_tasks=num_tasks,
        num_samples=num_samples,
        full_num_tasks=20,
    )


def mnist_images() -> Examples:
    """Return the 60,000 training images, (n, 784) of 0 to 255, and their labels."""
    return Examples(_images("train-images-idx3-ubyte.gz"), _labels("train-labels-idx1-ubyte.gz"))


def mnist_digest() -> str:
    """Return the checksums of the four files; `fetch` refuses any other files."""
    return " ".join(archive.checksum for name, archive in ARCHIVES.items() if "mnist/" in name)


def _pool(seed: int, num_validation: int | None = None) -> Pool:
    images = mnist_images()
    test = Examples(_images("t10k-images-idx3-ubyte.gz"), _labels("t10k-labels-idx1-ubyte.gz"))
    shuffled = generator(seed, "validation").permutation(len(images))
    validation = shuffled[:NUM_VALIDATION][:num_validation]
    return Pool(images, shuffled[NUM_VALIDATION:], validation, test, Scale(255))


def _images(name: str) -> np.ndarray:
    return _content(name, header=16).reshape(-1, 784)


def _labels(name: str) -> np.ndarray:
    return _content(name, header=8).astype(np.int32)


def _content(name: str, header: int) -> np.ndarray:
    # `fetch` has verified the checksum, so the header need not be read.
    return np.frombuffer(gzip.decompress(fetch(f"mnist/{name}").read_bytes()), np.uint8)[header:]
