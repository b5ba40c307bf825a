"""Streams whose tasks are one set of images, each task with its pixels moved in its own way."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lamaml.streams._counts import check_count
from lamaml.streams._pixel_maps import rotation, take
from lamaml.streams._randomness import generator
from lamaml.types import Examples, Preprocess, Stream, Task


class Pool(NamedTuple):
    """Flat square images in ten classes, and what each may be used for."""

    images: Examples
    train: np.ndarray  # rows of `images` a task may draw from
    validation: np.ndarray  # rows of `images` no task trains on
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
    """Task t is rotated by an angle from its share, the t-th, of 0 to 180 degrees.

    Args:
      name: of the stream.
      load: called once the arguments are found good.
      seed: decides the angles and which images a task trains on.
      num_tasks: the first so many of `full_num_tasks`; fewer tasks leave the angles as they are.
      num_samples: training images a task.
      full_num_tasks: how many shares there are.
    """
    check_count("num_tasks", num_tasks, full_num_tasks)
    pool = load()
    side = math.isqrt(pool.images.x.shape[1])
    share = 180 / full_num_tasks
    angles = [
        float(generator(seed, "angle", task).uniform(share * task, share * (task + 1)))
        for task in range(num_tasks)
    ]
    maps = [(f"rotated {angle:.1f}°", rotation(side, angle)) for angle in angles]
    return _mapped_stream(name, pool, maps, seed, num_samples, {"angles": angles})


def permuted_stream(
    name: str,
    load: Callable[[], Pool],
    *,
    seed: int,
    num_tasks: int,
    num_samples: int,
    full_num_tasks: int,
) -> Stream:
    """Each task, the first included, has its own random order of the pixels.

    Args:
      name: of the stream.
      load: called once the arguments are found good.
      seed: decides the permutations and which images a task trains on.
      num_tasks: the first so many of `full_num_tasks`.
      num_samples: training images a task.
      full_num_tasks: how many tasks the benchmark has.
    """
    check_count("num_tasks", num_tasks, full_num_tasks)
    pool = load()
    num_pixels = pool.images.x.shape[1]
    maps = [
        (f"permutation {task}", generator(seed, "permutation", task).permutation(num_pixels))
        for task in range(num_tasks)
    ]
    facts = {"permutations": [source.tolist() for _, source in maps]}
    return _mapped_stream(name, pool, maps, seed, num_samples, facts)


def _mapped_stream(
    name: str,
    pool: Pool,
    maps: Sequence[tuple[str, np.ndarray]],
    seed: int,
    num_samples: int,
    facts: Mapping[str, Any],
) -> Stream:
    check_count("num_samples", num_samples, len(pool.train))
    validation = _rows(pool.images, pool.validation)
    tasks = []
    for number, (task_name, source) in enumerate(maps):
        chosen = generator(seed, "rows", number).choice(pool.train, num_samples, replace=False)
        parts = (_rows(pool.images, chosen), validation, pool.test)
        tasks.append(Task(task_name, *(Examples(take(part.x, source), part.y) for part in parts)))
    return Stream(name, tasks, 10, None, pool.preprocess, facts=facts)


def _rows(images: Examples, chosen: np.ndarray) -> Examples:
    return Examples(images.x[chosen], images.y[chosen])
