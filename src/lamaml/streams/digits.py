"""Scikit-learn's embedded digits, rotated or permuted: the streams that need no file.

1797 images of 8×8 pixels with values 0 to 16, split once and for all into 1197 to train on, 200 to
validate and 400 to test.
"""

import hashlib
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from lamaml.streams._image_pool import Pool, permuted_stream, rotated_stream
from lamaml.streams._preprocessing import Scale
from lamaml.streams._randomness import generator
from lamaml.types import Examples, Stream

NUM_VALIDATION = 200
NUM_TEST = 400


def digits_rotations(*, seed: int, num_tasks: int = 10, num_samples: int = 300) -> Stream:
    """Embedded 8×8 digits, each of 10 tasks rotated further: task t by [18t, 18(t + 1)) degrees.

    Args:
      seed: decides the angles and which images a task trains on.
      num_tasks: the first so many, at most 10.
      num_samples: training images a task, at most 1197.

    Example:
      >>> stream = digits_rotations(seed=0)
      >>> len(stream.tasks), stream.tasks[0].train.x.shape, len(stream.tasks[0].test)
      (10, (300, 64), 400)
      >>> [round(angle) for angle in stream.facts["angles"]][:3]
      [0, 28, 54]
    """
    return rotated_stream(
        "digits_rotations",
        _pool,
        seed=seed,
        num_tasks=num_tasks,
        num_samples=num_samples,
        full_num_tasks=10,
    )


def digits_permutations(*, seed: int, num_tasks: int = 10, num_samples: int = 300) -> Stream:
    """Embedded 8×8 digits, each of 10 tasks with its own order of the pixels.

    Args:
      seed: decides the permutations and which images a task trains on.
      num_tasks: the first so many, at most 10.
      num_samples: training images a task, at most 1197.

    Example:
      >>> stream = digits_permutations(seed=0, num_tasks=2)
      >>> [task.name for task in stream.tasks], len(stream.facts["permutations"][1])
      (['permutation 0', 'permutation 1'], 64)
    """
    return permuted_stream(
        "digits_permutations",
        _pool,
        seed=seed,
        num_tasks=num_tasks,
        num_samples=num_samples,
        full_num_tasks=10,
    )


def data_digest() -> str:
    """A digest of the images and their labels."""
    return hashlib.sha256(_table().tobytes()).hexdigest()


def _pool() -> Pool:
    table = _table()
    images = Examples(table[:, :-1], table[:, -1].astype(np.int32))
    # The file is in the order of its writers: a split by position would test on other hands.
    shuffled = generator(0, "digits split").permutation(len(images))
    validation, test, train = np.split(shuffled, [NUM_VALIDATION, NUM_VALIDATION + NUM_TEST])
    return Pool(images, train, validation, Examples(images.x[test], images.y[test]), Scale(16))


def _table() -> np.ndarray:
    """Rows of 64 pixels and a label, from scikit-learn's file: to import it takes two seconds."""
    installed = find_spec("sklearn")
    if installed and installed.origin:
        file = Path(installed.origin).parent / "datasets" / "data" / "digits.csv.gz"
        if file.exists():
            return np.loadtxt(file, delimiter=",", dtype=np.uint8)
    from sklearn.datasets import load_digits  # where it keeps its digits elsewhere

    return np.column_stack(load_digits(return_X_y=True)).astype(np.uint8)
