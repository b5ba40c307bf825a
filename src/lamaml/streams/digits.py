"""Digits of scikit-learn, rotated, permuted, split by class or drifting; they need no download.

There are 1797 images of 8×8 pixels with values 0 to 16, in a fixed split: 1197 for training, 200
for validation and 400 for testing.
"""

import hashlib
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from lamaml.streams._pixels import Pool, drifting_stream, permuted_stream, rotated_stream
from lamaml.streams._splits import Shape, split_pool, split_stream
from lamaml.streams._tasks import generator
from lamaml.streams.transforms import Scale
from lamaml.types import Examples, Stream

NUM_VALIDATION = 200
NUM_TEST = 400


def digits_rotations(*, seed: int, num_tasks: int = 10, num_samples: int = 300) -> Stream:
    """Digits of 8×8 pixels in 10 tasks, task t rotated by an angle from [18t, 18(t + 1)) degrees.

    Args:
      seed: seed of the angles and of the choice of training images.
      num_tasks: number of tasks, at most 10.
      num_samples: number of training images per task, at most 1197.

    Examples:
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
    """Digits of 8×8 pixels in 10 tasks, each with its own order of the pixels.

    Args:
      seed: seed of the permutations and of the choice of training images.
      num_tasks: number of tasks, at most 10.
      num_samples: number of training images per task, at most 1197.

    Examples:
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


def split_digits(
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
    """Digits of 8×8 pixels in groups of classes: 5 tasks of 2, or another divisor of 10.

    Args:
      seed: seed of the order of the images, and of the blur.
      scenario: "task", "domain" or "class".
      classes_per_task: number of classes per task; it must divide 10.
      num_tasks: number of tasks, the first ones; None for all.
      num_samples: number of training images per task; None for all.
      shuffled_classes: whether the order of the classes is random.
      blur: part of a task's training images that comes from its neighbours, in [0, 1].
      num_visits: number of visits to each task, each with its own part of the images.

    Examples:
      >>> [task.name for task in split_digits(seed=0).tasks][:2]
      ['classes [0, 1]', 'classes [2, 3]']
      >>> for scenario in ("task", "domain", "class"):
      ...     stream = split_digits(seed=0, scenario=scenario)
      ...     print(sorted(set(stream.tasks[1].test.y.tolist())), stream.num_classes)
      [2, 3] 10
      [0, 1] 2
      [2, 3] 10
    """
    return split_stream(
        "split_digits",
        lambda order: split_pool(_pool(), order, classes_per_task),
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
        preprocess=Scale(16),
    )


def digits_drift(*, seed: int, num_tasks: int = 10, num_samples: int = 300) -> Stream:
    """Digits of 8×8 pixels that turn by 180° row by row, without tasks.

    Accuracy is measured at 9°, 27° ... 171°, after each tenth of the rows.

    Args:
      seed: seed of the choice of training images.
      num_tasks: number of stretches, at most 10.
      num_samples: number of training images per stretch, at most 1197.

    Examples:
      >>> stream = digits_drift(seed=0, num_tasks=2)
      >>> [task.name for task in stream.tasks], stream.is_task_free
      (['tested at 9°', 'tested at 27°'], True)
    """
    return drifting_stream(
        "digits_drift",
        _pool,
        seed=seed,
        num_tasks=num_tasks,
        num_samples=num_samples,
        full_num_tasks=10,
    )


def digits_digest() -> str:
    """Return a digest of the images and their labels."""
    return hashlib.sha256(_table().tobytes()).hexdigest()


def _pool() -> Pool:
    table = _table()
    images = Examples(table[:, :-1], table[:, -1].astype(np.int32))
    # The file is sorted by writer: a split by position would test on other people's digits.
    shuffled = generator(0, "digits split").permutation(len(images))
    validation, test, train = np.split(shuffled, [NUM_VALIDATION, NUM_VALIDATION + NUM_TEST])
    return Pool(images, train, validation, Examples(images.x[test], images.y[test]), Scale(16))


def _table() -> np.ndarray:
    """Return rows of 64 pixels and a label, from scikit-learn's file: importing it is slow."""
    installed = find_spec("sklearn")
    if installed and installed.origin:
        file = Path(installed.origin).parent / "datasets" / "data" / "digits.csv.gz"
        if file.exists():
            return np.loadtxt(file, delimiter=",", dtype=np.uint8)
    from sklearn.datasets import load_digits  # in case the file has moved

    return np.column_stack(load_digits(return_X_y=True)).astype(np.uint8)
