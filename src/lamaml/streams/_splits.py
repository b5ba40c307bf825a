"""Streams whose tasks are groups of classes, in each of the three scenarios."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from lamaml.errors import require
from lamaml.streams._pixels import Pool
from lamaml.streams._tasks import Selection, generator, make_tasks, select_by_class
from lamaml.streams.boundaries import blurred, recurring
from lamaml.types import SCENARIOS, Augment, Examples, Preprocess, Stream, Task


class Parts(NamedTuple):
    """Rows by their use; labels are positions in the order of the classes."""

    train: Selection
    validation: Selection
    test: Selection


class Shape(NamedTuple):
    """How the classes of a data set become tasks: the settings that all split streams share."""

    scenario: str
    classes_per_task: int
    shuffled_classes: bool
    num_tasks: int | None
    num_samples: int | None
    blur: float
    num_visits: int


def split_stream(
    name: str,
    load: Callable[[np.ndarray], Parts],
    shape: Shape,
    *,
    seed: int,
    num_classes: int,
    preprocess: Preprocess,
    augment: Augment | None = None,
) -> Stream:
    """Return a stream of label groups.

    Args:
      name: name of the stream.
      load: (order of the classes) -> rows; called after the arguments are checked.
      shape: settings of the stream.
      seed: seed of the order of the classes and rows, and of the blur.
      num_classes: number of classes of the data set.
      preprocess: converts stored rows to network inputs.
      augment: the same for training rows, with random changes; None for none.
    """
    size, scenario = shape.classes_per_task, shape.scenario
    check_scenario(scenario)
    divides = size in range(1, num_classes + 1) and num_classes % size == 0
    require(divides, "classes_per_task", size, f"a divisor of the {num_classes} classes")
    order = np.arange(num_classes)
    if shape.shuffled_classes:
        order = generator(seed, "class order").permutation(num_classes)
    tasks = make_tasks(
        *load(order),
        names=[f"classes {ids.tolist()}" for ids in order.reshape(-1, size)],
        num_tasks=shape.num_tasks,
        num_samples=shape.num_samples,
        seed=seed,
    )
    stream = Stream(
        name,
        tasks,
        num_classes,
        size if scenario == "task" else None,
        preprocess,
        augment,
        facts={"class_order": order.tolist(), "scenario": scenario},
        scenario=None if scenario == "domain" else scenario,
    )
    if scenario == "domain":
        stream = with_shared_labels(stream, size)
    if shape.num_visits != 1:
        stream = recurring(stream, num_visits=shape.num_visits)
    return blurred(stream, blur=shape.blur, seed=seed) if shape.blur else stream


def with_shared_labels(stream: Stream, classes_per_task: int) -> Stream:
    """Return label groups with the labels 0..c−1 in every task, for c classes per task.

    Args:
      stream: label groups that share one head.
      classes_per_task: c.
    """

    def relabelled(rows: Examples) -> Examples:
        return Examples(rows.x, rows.y % classes_per_task)

    tasks = [Task(task.name, *map(relabelled, task[1:])) for task in stream.tasks]
    return replace(stream, tasks=tasks, num_classes=classes_per_task, scenario="domain")


def split_pool(pool: Pool, order: np.ndarray, classes_per_task: int) -> Parts:
    """Return the rows of a pool, labelled by the order of the classes."""
    rows = select_by_class(pool.images.x.__getitem__, pool.images.y, order, classes_per_task)
    test = select_by_class(pool.test.x.__getitem__, pool.test.y, order, classes_per_task)
    return Parts(rows.subset(pool.train), rows.subset(pool.validation), test)


def check_scenario(scenario: str) -> None:
    """Raise InvalidArgument unless the word is one of `SCENARIOS`.

    >>> check_scenario("classes")
    Traceback (most recent call last):
    lamaml.errors.InvalidArgument: scenario = 'classes': must be one of task, domain, class
    """
    require(scenario in SCENARIOS, "scenario", scenario, f"one of {', '.join(SCENARIOS)}")
