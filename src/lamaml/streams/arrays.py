"""Anyone's own data as a stream: by groups of labels, by given task ids, or unbroken."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lamaml.errors import InvalidArgument, require
from lamaml.streams._loading import load
from lamaml.streams._preprocessing import Scale, unchanged
from lamaml.streams._tasks import Rows, hold_out, tasks_of
from lamaml.types import Preprocess, Stream


def arrays(
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    seed: int,
    path: str | Path | None = None,
    task: ArrayLike | None = None,
    classes_per_task: int | None = None,
    shared_head: bool = False,
    num_tasks: int | None = None,
    num_samples: int | None = None,
    test_fraction: float = 0.2,
    validation_fraction: float = 0.1,
) -> Stream:
    """Your own rows: by label groups, by task ids, or, with neither, as one unbroken stream.

    Bytes stay bytes and are divided by 255 on the way to the network; other numbers become
    float32 and stay as they are. In an unbroken stream the training rows keep their order.

    Args:
      x: rows, of any shape after the first axis.
      y: their labels, whole numbers or strings; in sorted order they become 0..C−1.
      seed: decides which rows validate and test, and the order of the others.
      path: instead of x and y, an `.npz` with x, y and perhaps task, or a folder of images with
        one subfolder a class.
      task: the id of each row's task; tasks arrive in the sorted order of their ids.
      classes_per_task: task t holds this many classes, from t·classes_per_task on; it must divide
        the number of classes. Task ids in a file are then not used.
      shared_head: whether label groups share one head, instead of each having its own.
      num_tasks: the first so many; None for all.
      num_samples: training rows a task; None for all.
      test_fraction: of each task's rows, in (0, 1).
      validation_fraction: of each task's rows, in [0, 1).

    Example:
      >>> x = np.arange(24.0).reshape(12, 2)
      >>> y = ["cat", "dog", "eel", "fox"] * 3
      >>> stream = arrays(x, y, classes_per_task=2, seed=0)
      >>> [task.name for task in stream.tasks], stream.num_classes
      (['cat dog', 'eel fox'], 4)
    """
    if path is not None:
        require(x is None and y is None and task is None, "path", path, "given alone")
        x, y, task = load(path)
        task = None if classes_per_task is not None else task
    if x is None or y is None:
        raise InvalidArgument("arrays needs x and y, or path")
    features, preprocess = _features(x)
    classes, labels = _encode("y", y, len(features))
    if task is not None:
        require(classes_per_task is None, "classes_per_task", classes_per_task, "None with task")
        names, tasks = _encode("task", task, len(features))
    else:
        names, tasks = _label_groups(classes, labels, classes_per_task)
    shuffled = task is not None or classes_per_task is not None
    rows = Rows(features.__getitem__, np.arange(len(labels)), labels, tasks)
    return Stream(
        "arrays",
        tasks_of(
            *_split(rows, names, test_fraction, validation_fraction, seed),
            names=[str(name) for name in names],
            num_tasks=num_tasks,
            num_samples=num_samples,
            seed=seed,
            keep_order=not shuffled,
        ),
        len(classes),
        None if shared_head else classes_per_task,
        preprocess,
        shuffled=shuffled,
        facts={"classes": classes},
    )


def _features(x: ArrayLike) -> tuple[np.ndarray, Preprocess]:
    rows = np.asarray(x)
    require(
        rows.ndim > 1 and rows.size > 0, "shape of x", rows.shape, "(rows, ...), none of them 0"
    )
    require(rows.dtype.kind in "fiub", "dtype of x", str(rows.dtype), "a kind of real number")
    if rows.dtype == np.uint8:
        return rows, Scale(255)
    with np.errstate(over="ignore"):  # what float32 cannot hold is refused below
        rows = rows.astype(np.float32, copy=False)
    bad = np.flatnonzero(~np.isfinite(rows).reshape(len(rows), -1).all(axis=1))
    if len(bad):
        more = f" and {len(bad) - 10} more" if len(bad) > 10 else ""
        raise InvalidArgument(
            f"x is not finite in rows {bad[:10].tolist()}{more}: mend or drop them"
        )
    return rows, unchanged


def _encode(argument: str, values: ArrayLike, num_rows: int) -> tuple[list[Any], np.ndarray]:
    """The distinct values in sorted order, and the place of each row's value among them."""
    raw = np.asarray(values)
    if raw.dtype == object and all(isinstance(value, str) for value in raw.flat):
        raw = raw.astype(str)
    require(raw.shape == (num_rows,), f"shape of {argument}", raw.shape, f"({num_rows},) as x has")
    words = "whole numbers or strings"
    require(raw.dtype.kind in "iubU", f"dtype of {argument}", str(raw.dtype), words)
    distinct, codes = np.unique(raw, return_inverse=True)
    return distinct.tolist(), codes


def _label_groups(
    classes: list[Any], labels: np.ndarray, classes_per_task: int | None
) -> tuple[list[Any], np.ndarray]:
    if classes_per_task is None:
        return ["all rows"], np.zeros(len(labels), int)
    size, total = classes_per_task, len(classes)
    divides = size in range(1, total + 1) and total % size == 0
    require(divides, "classes_per_task", size, f"a divisor of the {total} classes")
    starts = range(0, total, size)
    names = [" ".join(str(name) for name in classes[start : start + size]) for start in starts]
    return names, labels // size


def _split(
    rows: Rows, names: list[Any], test_fraction: float, validation_fraction: float, seed: int
) -> tuple[Rows, Rows, Rows]:
    require(0 < test_fraction < 1, "test_fraction", test_fraction, "in (0, 1)")
    rest = 1 - test_fraction
    allowed = f"in [0, {rest:g}), what test_fraction leaves"
    require(0 <= validation_fraction < rest, "validation_fraction", validation_fraction, allowed)
    for name, size in zip(names, np.bincount(rows.task), strict=True):
        require(size >= 3, f"number of rows of task {name!r}", int(size), "at least 3")
    test, train = hold_out(rows, rows.task, test_fraction, seed=seed, purpose="test")
    if validation_fraction == 0:
        return train, train.part(np.arange(0)), test
    share = validation_fraction / rest
    validation, train = hold_out(train, train.task, share, seed=seed, purpose="validation")
    return train, validation, test
