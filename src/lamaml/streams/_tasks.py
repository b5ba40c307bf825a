"""Rows of one data set become the tasks of a stream."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from lamaml.streams._counts import check_count
from lamaml.streams._randomness import generator
from lamaml.types import Examples, Task

Read = Callable[[np.ndarray], np.ndarray]
"""Row numbers to the x of those rows."""


class Rows(NamedTuple):
    """Some rows of a data set that need not be in memory yet."""

    read: Read
    number: np.ndarray  # of each row, as `read` knows it
    label: np.ndarray  # of each row, as a network knows it: 0..C−1
    task: np.ndarray  # of each row: 0..T−1

    def part(self, chosen: np.ndarray) -> "Rows":
        """Those among these rows."""
        return Rows(self.read, self.number[chosen], self.label[chosen], self.task[chosen])

    def load(self) -> Examples:
        """These rows in memory."""
        return Examples(self.read(self.number), self.label.astype(np.int32))


def rows_by_class(
    read: Read, class_ids: np.ndarray, order: np.ndarray, classes_per_task: int
) -> Rows:
    """All rows, their label being the position of their class in the order.

    >>> rows = rows_by_class(np.arange, np.array([7, 8]) - 7, np.array([1, 0]), 1)
    >>> rows.label.tolist()
    [1, 0]
    """
    label = np.argsort(order)[class_ids]
    return Rows(read, np.arange(len(class_ids)), label, label // classes_per_task)


def groups(key: np.ndarray, num_groups: int) -> list[np.ndarray]:
    """The positions of each value 0, 1, ... of the key, in their order.

    >>> [group.tolist() for group in groups(np.array([1, 0, 1]), 3)]
    [[1], [0, 2], []]
    """
    sizes = np.bincount(key, minlength=num_groups)
    return np.split(np.argsort(key, kind="stable"), np.cumsum(sizes)[:-1])


def hold_out(
    rows: Rows, key: np.ndarray, fraction: float, *, seed: int, purpose: str
) -> tuple[Rows, Rows]:
    """Take a fraction of each group of the key at random, at least one row and never all.

    Returns:
      the rows taken and the rows left, both in their order.
    """
    taken = np.zeros(len(key), bool)
    for number, group in enumerate(groups(key, 1)):
        size = min(max(1, round(len(group) * fraction)), len(group) - 1)
        taken[generator(seed, purpose, number).choice(group, size, replace=False)] = True
    return rows.part(np.flatnonzero(taken)), rows.part(np.flatnonzero(~taken))


def tasks_of(
    train: Rows,
    validation: Rows,
    test: Rows,
    *,
    names: Sequence[str],
    num_tasks: int | None,
    num_samples: int | None,
    seed: int,
    keep_order: bool = False,
) -> list[Task]:
    """One task a name, loading nothing but its rows.

    Args:
      train: training rows, from which `num_samples` a task are drawn at random.
      validation: rows never trained on.
      test: rows neither trained on nor validated with.
      names: of all tasks.
      num_tasks: the first so many; None for all.
      num_samples: training rows a task; None for all there are.
      seed: decides which training rows are drawn, and their order.
      keep_order: whether training rows stay in the order they had.
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
                train.part(np.sort(drawn) if keep_order else drawn).load(),
                validation.part(validation_groups[number]).load(),
                test.part(test_groups[number]).load(),
            )
        )
    return tasks
