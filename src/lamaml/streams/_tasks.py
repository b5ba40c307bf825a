"""Splitting the rows of one data set into tasks, reproducibly from a seed."""

import zlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from lamaml.errors import require
from lamaml.types import Examples, Task

Read = Callable[[np.ndarray], np.ndarray]
"""Maps row numbers to the inputs x of these rows."""


def generator(seed: int, purpose: str, *index: int) -> np.random.Generator:
    """Return a random generator that is independent for every seed, purpose and index.

    Draws for one task never affect those for another, so a shortened stream equals the beginning
    of the full one.

    Args:
      seed: 0 or more.
      purpose: what is drawn, in words.
      *index: which of several draws, such as the task number.

    Example:
      >>> [int(generator(0, "angle", task).integers(100)) for task in (3, 4, 3)]
      [70, 7, 70]
    """
    require(seed >= 0, "seed", seed, "0 or more")
    words = (zlib.crc32(purpose.encode()), *index)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=words))


def check_count(argument: str, value: int, largest: int) -> None:
    """Raise InvalidArgument unless a number of tasks or rows is available.

    >>> check_count("num_tasks", 21, 20)
    Traceback (most recent call last):
    lamaml.errors.InvalidArgument: num_tasks = 21: must be a whole number from 1 to 20
    """
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    require(whole and 1 <= value <= largest, argument, value, f"a whole number from 1 to {largest}")


class Selection(NamedTuple):
    """A selection of rows of a data set, whose inputs are read only by `load`."""

    read: Read
    number: np.ndarray  # row number of each selected row, as `read` takes it
    label: np.ndarray  # label of each selected row, 0..C−1
    task: np.ndarray  # task of each selected row, 0..T−1

    def subset(self, chosen: np.ndarray) -> "Selection":
        """Return the selected rows at the given positions."""
        return Selection(self.read, self.number[chosen], self.label[chosen], self.task[chosen])

    def load(self) -> Examples:
        """Read the selected rows into memory."""
        return Examples(self.read(self.number), self.label.astype(np.int32))


def select_by_class(
    read: Read, class_ids: np.ndarray, order: np.ndarray, classes_per_task: int
) -> Selection:
    """Select all rows. The label of a row is the position of its class in `order`.

    >>> select_by_class(np.arange, np.array([0, 1]), np.array([1, 0]), 1).label.tolist()
    [1, 0]
    """
    label = np.argsort(order)[class_ids]
    return Selection(read, np.arange(len(class_ids)), label, label // classes_per_task)


def groups(key: np.ndarray, num_groups: int) -> list[np.ndarray]:
    """Return the positions of each value 0, 1, ... of the key, in ascending order.

    >>> [group.tolist() for group in groups(np.array([1, 0, 1]), 3)]
    [[1], [0, 2], []]
    """
    sizes = np.bincount(key, minlength=num_groups)
    return np.split(np.argsort(key, kind="stable"), np.cumsum(sizes)[:-1])


def hold_out(
    rows: Selection, key: np.ndarray, fraction: float, *, seed: int, purpose: str
) -> tuple[Selection, Selection]:
    """Draw a fraction of each group of the key at random, at least one row and never all.

    Returns:
      The rows drawn and the remaining rows, both in their original order.
    """
    drawn = np.zeros(len(key), bool)
    for number, group in enumerate(groups(key, 1)):
        size = min(max(1, round(len(group) * fraction)), len(group) - 1)
        drawn[generator(seed, purpose, number).choice(group, size, replace=False)] = True
    return rows.subset(np.flatnonzero(drawn)), rows.subset(np.flatnonzero(~drawn))


def make_tasks(
    train: Selection,
    validation: Selection,
    test: Selection,
    *,
    names: Sequence[str],
    num_tasks: int | None,
    num_samples: int | None,
    seed: int,
    keep_order: bool = False,
) -> list[Task]:
    """Return one task per name, reading only the rows of the tasks returned.

    Args:
      train: training rows, from which `num_samples` per task are drawn at random.
      validation: rows that are never trained on.
      test: rows that are neither trained on nor used for validation.
      names: names of all tasks.
      num_tasks: number of tasks, the first ones; None for all.
      num_samples: number of training rows per task; None for all.
      seed: seed of the choice and the order of the training rows.
      keep_order: whether training rows keep their order in `train`.
    """
    if num_tasks is not None:
        check_count("num_tasks", num_tasks, len(names))
    train_groups, validation_groups, test_groups = (
        groups(part.task, len(names)) for part in (train, validation, test)
    )
    if num_samples is not None:
        smallest = min(len(group) for group in train_groups[:num_tasks])
        check_count("num_samples", num_samples, smallest)
    tasks = []
    for number, name in enumerate(names[:num_tasks]):
        drawn = generator(seed, "row order", number).permutation(train_groups[number])
        drawn = drawn[:num_samples]
        tasks.append(
            Task(
                name,
                train.subset(np.sort(drawn) if keep_order else drawn).load(),
                validation.subset(validation_groups[number]).load(),
                test.subset(test_groups[number]).load(),
            )
        )
    return tasks
