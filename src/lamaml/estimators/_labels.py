"""Classes and tasks seen so far, and the network output of each class.

Outputs are assigned in the order in which classes arrive, so that a new class never moves an old
one. `classes` stays sorted, as users of scikit-learn expect.
"""

from typing import Any, NamedTuple

import numpy as np

from lamaml.errors import InvalidArgument, require

TaskId = str | int | None
"""The name of a task; None for rows without one."""


class Labels(NamedTuple):
    """Classes and tasks seen so far."""

    classes: np.ndarray  # (C,) the user's labels, sorted
    outputs: np.ndarray  # (C,) the output of each class
    tasks: tuple[TaskId, ...] = ()  # in order of arrival
    heads: np.ndarray = np.zeros((0, 0), bool)  # (T, C) by output: classes seen in each task
    num_rows: np.ndarray = np.zeros(0, np.int64)  # (C,) by output: rows seen of each class
    class_weight: np.ndarray = np.zeros(0)  # (C,) by output: weight of each class in the loss


def empty_labels(dtype: np.dtype) -> Labels:
    """Return the labels before the first row."""
    return Labels(np.zeros(0, dtype), np.zeros(0, np.int32))


def add_classes(labels: Labels, found: np.ndarray) -> Labels:
    """Return the labels with an output for each class that is new, in sorted order.

    >>> labels = add_classes(empty_labels(np.dtype("U1")), np.array(["b", "d"]))
    >>> labels = add_classes(labels, np.array(["b", "a", "b"]))
    >>> labels.classes.tolist(), labels.outputs.tolist()
    (['a', 'b', 'd'], [2, 0, 1])
    """
    known, new = labels.classes, _new_labels(labels.classes, found)
    if not len(new):
        return labels
    new = np.unique(new)
    classes = np.concatenate([known, new]) if len(known) else new
    outputs = np.concatenate([labels.outputs, np.arange(len(known), len(classes), dtype=np.int32)])
    order = np.argsort(classes, kind="stable")
    heads = np.pad(labels.heads, ((0, 0), (0, len(new))))
    num_rows = np.pad(labels.num_rows, (0, len(new)))
    class_weight = np.pad(labels.class_weight, (0, len(new)), constant_values=1.0)
    return Labels(classes[order], outputs[order], labels.tasks, heads, num_rows, class_weight)


def _new_labels(known: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Return the labels that are not known; raise if no dtype tells all labels apart."""
    if not len(known) or not len(found):
        return found
    if (found.dtype.kind in "OUS") != (known.dtype.kind in "OUS"):
        kinds = f"{found.dtype} labels {found[:3].tolist()} with {known[:3].tolist()}"
        raise InvalidArgument(f"y mixes {kinds}: give all labels as numbers, or all as strings")
    nearest = np.minimum(np.searchsorted(known, found), len(known) - 1)
    new = found[known[nearest] != found]
    if len(new) and np.result_type(known, new).kind == "f":
        for part in (known, new):
            if part.dtype.kind in "iu" and (np.abs(part.astype(np.float64)) > 2**53).any():
                kinds = f"{known.dtype} {known[:3].tolist()} and {new.dtype} {new[:3].tolist()}"
                raise InvalidArgument(f"y mixes labels {kinds}: give all of them in one dtype")
    return new


def match_dtype(y: np.ndarray, labels: Labels) -> np.ndarray:
    """Return numbers in the dtype of the known classes if that is exact: 7.0 is the class 7.

    >>> labels = add_classes(empty_labels(np.dtype(int)), np.array([7]))
    >>> match_dtype(np.array([7.0]), labels).tolist()
    [7]
    """
    known = labels.classes.dtype
    if y.dtype == known or not len(labels.classes) or not {y.dtype.kind, known.kind} <= set("iufb"):
        return y
    with np.errstate(invalid="ignore"):
        same = y.astype(known)
    is_exact = bool((same == y).all() and ((same < 0) == (y < 0)).all())
    return same if is_exact else y


def check_task(task: Any) -> TaskId:
    """Return the name of a task as a Python object; raise if it is no string, integer or None."""
    name = task.item() if isinstance(task, np.generic) else task
    require(name is None or isinstance(name, str | int), "task", task, "a string or integer")
    return name


def add_task(labels: Labels, task: TaskId, outputs: np.ndarray) -> Labels:
    """Return the labels with these outputs in the head of a task.

    The head of rows without a task holds every class seen so far.
    """
    tasks, heads = labels.tasks, labels.heads
    if task in tasks and heads[tasks.index(task)][outputs].all():
        return labels
    if task not in tasks:
        tasks, heads = (*tasks, task), np.pad(heads, ((0, 1), (0, 0)))
    heads = heads.copy()
    heads[tasks.index(task), outputs] = True
    if None in tasks:
        heads[tasks.index(None)] = heads.any(axis=0)
    return labels._replace(tasks=tasks, heads=heads)


def encode(labels: Labels, y: np.ndarray) -> np.ndarray:
    """Return the output of each row's class."""
    return labels.outputs[np.searchsorted(labels.classes, y)]
