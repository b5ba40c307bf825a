"""Streams of the user's own data: from arrays, an `.npz` file or a folder of images."""

import zipfile
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from PIL import Image

from lamaml.errors import DataCorrupt, DataUnavailable, InvalidArgument, require
from lamaml.streams._decoding import decode_image
from lamaml.streams._splits import check_scenario, with_shared_labels
from lamaml.streams._tasks import Selection, hold_out, make_tasks
from lamaml.streams.building import check_rows
from lamaml.streams.transforms import standardise_like
from lamaml.types import Stream


def arrays(
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    seed: int,
    path: str | Path | None = None,
    task: ArrayLike | None = None,
    classes_per_task: int | None = None,
    scenario: str | None = None,
    num_tasks: int | None = None,
    num_samples: int | None = None,
    test_fraction: float = 0.2,
    validation_fraction: float = 0.1,
    standardise: bool = True,
) -> Stream:
    """Return your own rows as a stream of label groups, of given tasks, or of one unbroken task.

    Bytes stay bytes and are divided by 255 before the network reads them. Other numbers become
    float32 and are standardised before the network reads them, by the mean and the standard
    deviation of the training rows of the first task: no test or validation row and no later task
    is looked at, so nothing of what is measured leaks into the scaling. With neither `task` nor
    `classes_per_task`, there is one task, whose training rows keep their order.

    Args:
      x: rows, of any shape after the first axis.
      y: labels, whole numbers or strings; they become 0..C−1 in sorted order.
      seed: seed of the choice of validation and test rows, and of the order of training rows.
      path: instead of x and y, an `.npz` file with x, y and optionally task, or a folder of images
        with one subfolder per class.
      task: task id of each row; tasks arrive in the sorted order of their ids.
      classes_per_task: number of classes per task, in sorted order; it must divide the number of
        classes. Task ids in a file are then ignored.
      scenario: of label groups: "task" (each has its own head; the default), "class" (all share
        one) or "domain" (every task has the labels 0..c−1). Of given tasks: "domain" or "class".
      num_tasks: number of tasks, the first ones; None for all.
      num_samples: number of training rows per task; None for all.
      test_fraction: fraction of each task's rows used for testing, in (0, 1).
      validation_fraction: fraction of each task's rows used for validation, in [0, 1).
      standardise: whether to standardise rows that are not bytes. The statistics are in `facts`.

    Examples:
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
    features, preprocess = check_rows("x", x)
    classes, labels = _encode("y", y, len(features))
    if task is not None:
        require(classes_per_task is None, "classes_per_task", classes_per_task, "None with task")
        names, tasks = _encode("task", task, len(features))
    else:
        names, tasks = _label_groups(classes, labels, classes_per_task)
    shuffled = task is not None or classes_per_task is not None
    heads = _heads(scenario, classes_per_task, shuffled)
    rows = Selection(features.__getitem__, np.arange(len(labels)), labels, tasks)
    facts: dict[str, Any] = {"classes": classes}
    made = make_tasks(
        *_split(rows, names, test_fraction, validation_fraction, seed),
        names=[str(name) for name in names],
        num_tasks=num_tasks,
        num_samples=num_samples,
        seed=seed,
        keep_order=not shuffled,
    )
    if standardise and features.dtype != np.uint8:
        preprocess = standardise_like(made[0].train.x)
        facts["standardised"] = {"mean": preprocess.mean, "std": preprocess.std}
    stream = Stream(
        "arrays",
        made,
        len(classes),
        heads,
        preprocess,
        shuffled=shuffled,
        facts=facts,
        scenario=scenario,
    )
    if scenario == "domain" and classes_per_task is not None:
        return with_shared_labels(stream, classes_per_task)
    return stream


def _heads(scenario: str | None, classes_per_task: int | None, has_tasks: bool) -> int | None:
    """Return the classes per head, None for one shared head; refuse scenarios that do not fit."""
    if scenario is not None:
        check_scenario(scenario)
        require(has_tasks, "scenario", scenario, "None for one unbroken task")
        known = scenario != "task" or classes_per_task is not None
        require(known, "scenario", scenario, "'domain' or 'class' without classes_per_task")
    return classes_per_task if scenario in (None, "task") else None


def _encode(argument: str, values: ArrayLike, num_rows: int) -> tuple[list[Any], np.ndarray]:
    """Return the distinct values in sorted order, and the index of each row's value among them."""
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
    rows: Selection, names: list[Any], test_fraction: float, validation_fraction: float, seed: int
) -> tuple[Selection, Selection, Selection]:
    require(0 < test_fraction < 1, "test_fraction", test_fraction, "in (0, 1)")
    rest = 1 - test_fraction
    allowed = f"in [0, {rest:g}), what test_fraction leaves"
    require(0 <= validation_fraction < rest, "validation_fraction", validation_fraction, allowed)
    for name, size in zip(names, np.bincount(rows.task), strict=True):
        require(size >= 3, f"number of rows of task {name!r}", int(size), "at least 3")
    test, train = hold_out(rows, rows.task, test_fraction, seed=seed, purpose="test")
    if validation_fraction == 0:
        return train, train.subset(np.arange(0)), test
    share = validation_fraction / rest
    validation, train = hold_out(train, train.task, share, seed=seed, purpose="validation")
    return train, validation, test


class Table(NamedTuple):
    """Rows as read from disk."""

    x: np.ndarray
    y: np.ndarray
    task: np.ndarray | None = None


def load(path: str | Path) -> Table:
    """Return the rows of an `.npz` file or of a folder of images.

    Raises:
      DataUnavailable: the path does not exist or has no images.
      DataCorrupt: the path is neither of the two, or a part of it cannot be read.
    """
    path = Path(path).expanduser()
    if path.is_dir():
        return _load_image_folder(path)
    if path.is_file():
        return _load_npz(path)
    raise DataUnavailable(f"{path} does not exist: give an .npz file or a folder of images")


def _load_npz(path: Path) -> Table:
    """Return the arrays `x`, `y` and optionally `task`; pickled objects are refused."""
    try:
        with zipfile.ZipFile(path) as members:
            names = {name.removesuffix(".npy") for name in members.namelist()}
        with np.load(path, allow_pickle=False) as file:
            held = {name: file[name] for name in names & {"x", "y", "task"}}
    except (zipfile.BadZipFile, zlib.error, ValueError, EOFError, OSError) as error:
        raise DataCorrupt(
            f"{path} cannot be read ({error}): write it with numpy.savez, without objects"
        ) from error
    if not held.keys() >= {"x", "y"}:
        raise DataCorrupt(f"{path} holds {sorted(names)}: it must hold x and y, and may hold task")
    return Table(**held)


def _load_image_folder(path: Path) -> Table:
    """Return images of equal size as RGB bytes, labelled by the name of their subfolder."""
    suffixes = Image.registered_extensions()
    files = [
        file
        for folder in sorted(path.iterdir())
        if folder.is_dir() and not folder.name.startswith(".")
        for file in sorted(folder.iterdir())
        if file.is_file() and file.suffix.lower() in suffixes and not file.name.startswith(".")
    ]
    if not files:
        raise DataUnavailable(f"{path} has no images: give a folder with one subfolder per class")
    images = []
    for file in files:
        try:
            images.append(decode_image(file.read_bytes(), str(file)))
        except ValueError as error:
            advice = "convert or delete it, or give the rows in an .npz"
            raise DataCorrupt(f"{error}: {advice}") from error
        except OSError as error:
            raise DataCorrupt(f"{file} cannot be read ({error.strerror})") from error
        if images[-1].shape != images[0].shape:
            sizes = f"{images[-1].shape[:2]}, but {files[0]} is {images[0].shape[:2]}"
            raise DataCorrupt(f"{file} is {sizes}: all images must have the same size")
    return Table(np.stack(images), np.array([file.parent.name for file in files]))
