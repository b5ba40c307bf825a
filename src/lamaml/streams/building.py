"""A stream from arrays that are split into tasks already, with checks of every array."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from lamaml.errors import InvalidArgument, require
from lamaml.streams._splits import check_scenario
from lamaml.streams.transforms import Scale, unchanged
from lamaml.types import Examples, Preprocess, Stream, Task

Rows = tuple[ArrayLike, ArrayLike]
"""Rows x, of any shape after the first axis, and their labels y."""
_MOST_NAMED = 10  # rows that an error lists


def stream_from_arrays(
    train: Sequence[Rows],
    test: Sequence[Rows],
    *,
    scenario: str,
    validation: Sequence[Rows] | None = None,
    classes_per_task: int | None = None,
    num_classes: int | None = None,
    names: Sequence[str] | None = None,
    name: str = "from_arrays",
    shuffled: bool = True,
) -> Stream:
    """Return a stream of tasks that are given as arrays, one (x, y) per task.

    Bytes stay bytes and are divided by 255 before the network reads them; other numbers become
    float32 and are not scaled. Labels are whole numbers from 0.

    Args:
      train: training rows of each task.
      test: test rows of each task.
      scenario: "task" (task τ has the labels c·τ to c·τ + c − 1, for c classes per task), "domain"
        or "class".
      validation: validation rows of each task; None for none.
      classes_per_task: c, with scenario "task" only.
      num_classes: number of classes; None for one more than the largest label.
      names: of the tasks; None for "task 1", "task 2" ...
      name: of the stream.
      shuffled: whether the training rows of a task arrive in random order, or as given.

    Raises:
      InvalidArgument: the arrays do not fit together; the message names the task.

    Examples:
      >>> x, y = np.eye(4, dtype=np.float32), np.arange(4)
      >>> stream = stream_from_arrays([(x[:2], y[:2]), (x[2:], y[2:])],
      ...                             [(x[:2], y[:2]), (x[2:], y[2:])], scenario="class")
      >>> len(stream.tasks), stream.num_classes
      (2, 4)
      >>> stream_from_arrays([(x, y[:3])], [(x, y)], scenario="class")
      Traceback (most recent call last):
      lamaml.errors.InvalidArgument: shape of y in train rows of task 1 = (3,): must be (4,),
      as x has
    """
    check_scenario(scenario)
    owned = scenario == "task"
    allowed = "a number with scenario 'task', None without"
    require(owned == (classes_per_task is not None), "classes_per_task", classes_per_task, allowed)
    require(len(train) > 0, "train", [], "the rows of at least one task")
    require(len(test) == len(train), "number of tasks in test", len(test), f"{len(train)} as train")
    parts = {"train": _read("train", train), "test": _read("test", test)}
    if validation is not None:
        allowed = f"{len(train)} as train"
        require(
            len(validation) == len(train), "number of tasks in validation", len(validation), allowed
        )
        parts["validation"] = _read("validation", validation)
    preprocess = _one_kind(parts)
    labels = np.concatenate([rows.y for tasks in parts.values() for rows in tasks])
    num_classes = int(labels.max()) + 1 if num_classes is None else num_classes
    for part, tasks in parts.items():
        for number, rows in enumerate(tasks):
            own = None if classes_per_task is None else (number, classes_per_task)
            _check_labels(f"{part} rows of task {number + 1}", rows.y, num_classes, own)
    empty = [_without_rows(rows) for rows in parts["train"]]
    titles = names or [f"task {number + 1}" for number in range(len(train))]
    require(len(titles) == len(train), "number of names", len(titles), f"{len(train)} as train")
    columns = titles, parts["train"], parts.get("validation", empty), parts["test"]
    return Stream(
        name,
        [Task(*row) for row in zip(*columns, strict=True)],
        num_classes,
        classes_per_task,
        preprocess,
        shuffled=shuffled,
        scenario=scenario,
    )


def check_rows(argument: str, x: ArrayLike) -> tuple[np.ndarray, Preprocess]:
    """Return rows as they are stored, and how the network reads them.

    Raises:
      InvalidArgument: an axis is empty, or a row is not a row of finite real numbers.
    """
    rows = np.asarray(x)
    allowed = "(rows, ...) without empty axes"
    require(rows.ndim > 1 and rows.size > 0, f"shape of {argument}", rows.shape, allowed)
    real = "a kind of real number"
    require(rows.dtype.kind in "fiub", f"dtype of {argument}", str(rows.dtype), real)
    if rows.dtype == np.uint8:
        return rows, Scale(255)
    with np.errstate(over="ignore"):  # overflow to infinity is reported below
        rows = rows.astype(np.float32, copy=False)
    bad = np.flatnonzero(~np.isfinite(rows).reshape(len(rows), -1).all(axis=1))
    if len(bad):
        more = f" and {len(bad) - _MOST_NAMED} more" if len(bad) > _MOST_NAMED else ""
        named = f"{bad[:_MOST_NAMED].tolist()}{more}"
        raise InvalidArgument(f"{argument} is not finite in rows {named}: correct or drop them")
    return rows, unchanged


def _read(part: str, tasks: Sequence[Rows]) -> list[Examples]:
    found = []
    for number, (x, y) in enumerate(tasks, 1):
        what = f"{part} rows of task {number}"
        require(len(np.asarray(x)) > 0, f"number of {what}", 0, "at least 1")
        rows, _ = check_rows(f"x in {what}", x)
        labels = np.asarray(y)
        shape = f"({len(rows)},), as x has"
        require(labels.shape == (len(rows),), f"shape of y in {what}", labels.shape, shape)
        whole = labels.dtype.kind in "iub"
        require(whole, f"dtype of y in {what}", str(labels.dtype), "whole numbers")
        found.append(Examples(rows, labels.astype(np.int32)))
    return found


def _one_kind(parts: dict[str, list[Examples]]) -> Preprocess:
    """Return how rows are read, once all of them have one shape and one dtype."""
    first = parts["train"][0].x
    for part, tasks in parts.items():
        for number, rows in enumerate(tasks, 1):
            what = f"x in {part} rows of task {number}"
            shape, dtype = rows.x.shape[1:], rows.x.dtype
            like = f"{first.shape[1:]}, that of the first task"
            require(shape == first.shape[1:], f"shape of a row of {what}", shape, like)
            require(dtype == first.dtype, f"dtype of {what}", str(dtype), str(first.dtype))
    return Scale(255) if first.dtype == np.uint8 else unchanged


def _check_labels(what: str, y: np.ndarray, num_classes: int, own: tuple[int, int] | None) -> None:
    """Raise InvalidArgument for labels outside the classes, or outside the head of their task."""
    low, high = 0, num_classes - 1
    allowed = f"whole numbers from 0 to {high}"
    if own is not None:
        task, size = own
        low, high = size * task, min(size * (task + 1), num_classes) - 1
        allowed = f"from {low} to {high}, the classes of the task"
    outside = sorted(set(y[(y < low) | (y > high)].tolist()))
    require(not outside, f"labels of {what}", outside, allowed)


def _without_rows(rows: Examples) -> Examples:
    return Examples(rows.x[:0], rows.y[:0])
