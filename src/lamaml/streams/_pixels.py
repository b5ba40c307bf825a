"""Streams that show one set of images in every task: rotated, permuted, or turning slowly."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from lamaml.streams._tasks import check_count, generator
from lamaml.streams.transforms import permute, rotate
from lamaml.types import Examples, Preprocess, Stream, Task


class Pool(NamedTuple):
    """Flat square images of ten classes, and which of them may be used for what."""

    images: Examples
    train: np.ndarray  # rows of `images` that a task may draw from
    validation: np.ndarray  # rows of `images` that no task trains on
    test: Examples
    preprocess: Preprocess


def rotated_stream(
    name: str,
    load: Callable[[], Pool],
    *,
    seed: int,
    num_tasks: int,
    num_samples: int,
    full_num_tasks: int,
) -> Stream:
    """Return a stream whose task t is rotated by an angle from the t-th interval of 0 to 180°.

    Args:
      name: name of the stream.
      load: returns the images; called after the arguments are checked.
      seed: seed of the angles and of each task's training images.
      num_tasks: number of tasks; fewer tasks leave the angles of the others unchanged.
      num_samples: number of training images per task.
      full_num_tasks: number of intervals, and the largest number of tasks.
    """
    check_count("num_tasks", num_tasks, full_num_tasks)
    width = 180 / full_num_tasks
    angles = [
        float(generator(seed, "angle", task).uniform(width * task, width * (task + 1)))
        for task in range(num_tasks)
    ]
    moves = [(f"rotated {angle:.1f}°", partial(rotate, angle=angle)) for angle in angles]
    return _moved_stream(name, load(), moves, seed, num_samples, {"angles": angles})


def permuted_stream(
    name: str,
    load: Callable[[], Pool],
    *,
    seed: int,
    num_tasks: int,
    num_samples: int,
    full_num_tasks: int,
) -> Stream:
    """Return a stream whose tasks, including the first, each have a random order of the pixels.

    Args:
      name: name of the stream.
      load: returns the images; called after the arguments are checked.
      seed: seed of the permutations and of each task's training images.
      num_tasks: number of tasks.
      num_samples: number of training images per task.
      full_num_tasks: the largest number of tasks.
    """
    check_count("num_tasks", num_tasks, full_num_tasks)
    pool = load()
    num_pixels = pool.images.x.shape[1]
    orders = [
        generator(seed, "permutation", task).permutation(num_pixels) for task in range(num_tasks)
    ]
    moves = [
        (f"permutation {task}", partial(permute, order=order)) for task, order in enumerate(orders)
    ]
    facts = {"permutations": [order.tolist() for order in orders]}
    return _moved_stream(name, pool, moves, seed, num_samples, facts)


def _moved_stream(
    name: str,
    pool: Pool,
    moves: Sequence[tuple[str, Callable[[np.ndarray], np.ndarray]]],
    seed: int,
    num_samples: int,
    facts: Mapping[str, Any],
) -> Stream:
    check_count("num_samples", num_samples, len(pool.train))
    images, tasks = pool.images, []
    for number, (task_name, move) in enumerate(moves):
        train = generator(seed, "rows", number).choice(pool.train, num_samples, replace=False)
        parts = (
            *(Examples(images.x[rows], images.y[rows]) for rows in (train, pool.validation)),
            pool.test,
        )
        tasks.append(Task(task_name, *(Examples(move(part.x), part.y) for part in parts)))
    return Stream(name, tasks, 10, None, pool.preprocess, facts=facts, scenario="domain")


def drifting_stream(
    name: str,
    load: Callable[[], Pool],
    *,
    seed: int,
    num_tasks: int,
    num_samples: int,
    full_num_tasks: int,
) -> Stream:
    """Return a stream whose images turn from 0 to 180° row by row, without tasks.

    Row i of n is turned by 180·i/n degrees. The stream is cut into stretches of equal length only
    to measure accuracy after each of them, on images at the angle of the middle of the stretch.

    Args:
      name: name of the stream.
      load: returns the images; called after the arguments are checked.
      seed: seed of the training images and their order.
      num_tasks: number of stretches; fewer leave the angles of the others unchanged.
      num_samples: number of training images per stretch.
      full_num_tasks: number of stretches from 0 to 180°.
    """
    check_count("num_tasks", num_tasks, full_num_tasks)
    pool, width, tasks = load(), 180 / full_num_tasks, []
    check_count("num_samples", num_samples, len(pool.train))
    angles = [width * (number + 0.5) for number in range(num_tasks)]
    for number, angle in enumerate(angles):
        rows = generator(seed, "rows", number).choice(pool.train, num_samples, replace=False)
        turns = width * (number + np.arange(num_samples) / num_samples)
        turned = [rotate(pool.images.x[[row]], turn) for row, turn in zip(rows, turns, strict=True)]
        train = Examples(np.concatenate(turned), pool.images.y[rows])
        held = pool.images.x[pool.validation], pool.images.y[pool.validation]
        validation, test = (
            Examples(rotate(part.x, angle), part.y) for part in (Examples(*held), pool.test)
        )
        tasks.append(Task(f"tested at {angle:g}°", train, validation, test))
    return Stream(
        name,
        tasks,
        10,
        None,
        pool.preprocess,
        shuffled=False,
        facts={"angles": angles},
        scenario="domain",
        is_task_free=True,
    )
