"""Which classes and tasks there are, and which of the network's outputs is whose.

Outputs are given out in the order in which classes arrive, so that a new class never moves an old
one; `classes` stays sorted, as users of scikit-learn expect.
"""

from typing import Any, NamedTuple

import numpy as np

from lamaml.errors import InvalidArgument, require

TaskId = str | int | None
"""A task's name; None for rows that come without one."""


class Labels(NamedTuple):
    """Classes and tasks so far."""

    classes: np.ndarray  # (C,) sorted, the user's own labels
    outputs: np.ndarray  # (C,) the output of each of them
    tasks: tuple[TaskId, ...] = ()  # in the order of their arrival
    heads: np.ndarray = np.zeros((0, 0), bool)  # (T, C) by output: classes seen in a task


def no_labels(dtype: np.dtype) -> Labels:
    """Before the first row."""
    return Labels(np.zeros(0, dtype), np.zeros(0, np.int32))


def with_classes(labels: Labels, found: np.ndarray) -> Labels:
    """With outputs for those of the given labels that are new, in their sorted order.

    >>> labels = with_classes(no_labels(np.dtype("U1")), np.array(["b", "d"]))
    >>> labels = with_classes(labels, np.array(["b", "a", "b"]))
    >>> labels.classes.tolist(), labels.outputs.tolist()
    (['a', 'b', 'd'], [2, 0, 1])
    """
    known, new = labels.classes, _not_among(labels.classes, found)
    if not len(new):
        return labels
    new = np.unique(new)
    classes = np.concatenate([known, new]) if len(known) else new
    outputs = np.concatenate([labels.outputs, np.arange(len(known), len(classes), dtype=np.int32)])
    order = np.argsort(classes, kind="stable")
    heads = np.pad(labels.heads, ((0, 0), (0, len(new))))
    return labels._replace(classes=classes[order], outputs=outputs[order], heads=heads)


def _not_among(known: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Those that are new; refused where known and new ones have no dtype that tells all apart."""
    if not len(known) or not len(found):
        return found
    if (found.dtype.kind in "OUS") != (known.dtype.kind in "OUS"):
        kinds = f"{found.dtype} labels {found[:3].tolist()} beside {known[:3].tolist()}"
        raise InvalidArgument(f"y mixes {kinds}: give all labels as numbers, or all as strings")
    places = np.minimum(np.searchsorted(known, found), len(known) - 1)
    new = found[known[places] != found]
    if len(new) and np.result_type(known, new).kind == "f":
        for part in (known, new):
            if part.dtype.kind in "iu" and (np.abs(part.astype(np.float64)) > 2**53).any():
                kinds = f"{known.dtype} {known[:3].tolist()} and {new.dtype} {new[:3].tolist()}"
                raise InvalidArgument(f"y mixes labels {kinds}: give all of them in one dtype")
    return new


def alike(y: np.ndarray, labels: Labels) -> np.ndarray:
    """Numbers in the dtype of the known ones, where that keeps each: 7.0 is 7, whatever came first.

    >>> alike(np.array([7.0]), with_classes(no_labels(np.dtype(int)), np.array([7]))).tolist()
    [7]
    """
    known = labels.classes.dtype
    if y.dtype == known or not len(labels.classes) or not {y.dtype.kind, known.kind} <= set("iufb"):
        return y
    with np.errstate(invalid="ignore"):
        same = y.astype(known)
    is_exact = bool((same == y).all() and ((same < 0) == (y < 0)).all())
    return same if is_exact else y


def as_task(task: Any) -> TaskId:
    """A task's name as Python's own; what is none is refused."""
    name = task.item() if isinstance(task, np.generic) else task
    require(name is None or isinstance(name, str | int), "task", task, "a string or integer")
    return name


def with_task(labels: Labels, task: TaskId, outputs: np.ndarray) -> Labels:
    """With these outputs opened for a task. Rows without a task may be of any class seen so far."""
    tasks, heads = labels.tasks, labels.heads
    if task in tasks and heads[tasks.index(task)][outputs].all():
        return labels
    if task not in tasks:
        tasks, heads = (*tasks, task), np.pad(heads, ((0, 1), (0, 0)))
    opened = heads.copy()
    opened[tasks.index(task), outputs] = True
    if None in tasks:
        opened[tasks.index(None)] = opened.any(axis=0)
    return labels._replace(tasks=tasks, heads=opened)


def outputs_of(labels: Labels, y: np.ndarray) -> np.ndarray:
    """The output of each row's class."""
    return labels.outputs[np.searchsorted(labels.classes, y)]


def power_of_two(number: int) -> int:
    """The smallest power of two that is not below: capacities double, so programs are few.

    >>> [power_of_two(number) for number in (1, 2, 3, 10)]
    [1, 2, 4, 16]
    """
    return 1 << max(number - 1, 0).bit_length()
