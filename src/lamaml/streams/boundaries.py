"""Blurred boundaries between tasks, and tasks that return.

blurred     at each boundary, a part of the rows of both tasks change places
recurring   A B C becomes A B C A B C, with a part of the rows at each visit

Both keep every training row, once, and leave validation and test rows as they are.
"""

from dataclasses import replace

import numpy as np

from lamaml.errors import require
from lamaml.streams._tasks import generator
from lamaml.types import Examples, Stream, Task


def blurred(stream: Stream, *, blur: float, seed: int) -> Stream:
    """Return a stream whose neighbouring tasks have exchanged training rows.

    At each boundary, blur/2 of the rows of the smaller of the two tasks, drawn at random, change
    places with as many of the other. So a part `blur` of a task between two others of its size
    comes from its neighbours. The sizes of the tasks stay. Where tasks own their classes, a row
    keeps the head of its class.

    Args:
      stream: stream to blur.
      blur: in [0, 1]; 0 for none.
      seed: seed of the choice of rows.

    Examples:
      >>> from lamaml.streams.digits import split_digits
      >>> stream = blurred(split_digits(seed=0, num_samples=100), blur=0.2, seed=0)
      >>> [int((task.train.y // 2 != number).sum()) for number, task in enumerate(stream.tasks)]
      [10, 20, 20, 20, 10]
    """
    require(0 <= blur <= 1, "blur", blur, "in [0, 1]")
    require(not stream.is_task_free, "stream", stream.name, "one with tasks: it has no boundaries")
    trains = [task.train for task in stream.tasks]
    lots = [
        generator(seed, "blur", number).permutation(len(train))
        for number, train in enumerate(trains)
    ]
    mixed = [Examples(train.x.copy(), train.y.copy()) for train in trains]
    for number in range(len(trains) - 1):
        here, there = number, number + 1
        size = round(blur / 2 * min(len(trains[here]), len(trains[there])))
        # A task gives the first of its drawn rows to the next one, the last to the one before.
        first, last = lots[here][:size], lots[there][len(lots[there]) - size :]
        for part, rows, other, others in ((here, first, there, last), (there, last, here, first)):
            mixed[part].x[rows] = trains[other].x[others]
            mixed[part].y[rows] = trains[other].y[others]
    tasks = [task._replace(train=rows) for task, rows in zip(stream.tasks, mixed, strict=True)]
    return replace(stream, tasks=tasks, facts={**stream.facts, "blur": blur})


def recurring(stream: Stream, *, num_visits: int) -> Stream:
    """Return a stream whose tasks come back in the same order: A B C A B C for two visits.

    Each visit has its own part of the task's training rows, and the same validation and test rows.
    Learners that count tasks take a visit for a new task, except where tasks own their classes.

    Args:
      stream: stream to repeat.
      num_visits: number of visits to each task; 1 for no return.

    Examples:
      >>> from lamaml.streams.digits import split_digits
      >>> stream = recurring(split_digits(seed=0, num_tasks=2, num_samples=100), num_visits=2)
      >>> [(task.name, len(task.train)) for task in stream.tasks][1:3]
      [('classes [2, 3], visit 1', 50), ('classes [0, 1], visit 2', 50)]
    """
    require(num_visits > 0, "num_visits", num_visits, "at least 1")
    smallest = min(len(task.train) for task in stream.tasks)
    allowed = f"at most {smallest}, the rows of the smallest task"
    require(num_visits <= smallest, "num_visits", num_visits, allowed)
    tasks = [
        _visit(task, number, num_visits) for number in range(num_visits) for task in stream.tasks
    ]
    return replace(stream, tasks=tasks, facts={**stream.facts, "num_visits": num_visits})


def _visit(task: Task, number: int, num_visits: int) -> Task:
    rows = slice(number, None, num_visits)  # every n-th: rows that are sorted by class stay mixed
    train = Examples(np.ascontiguousarray(task.train.x[rows]), task.train.y[rows])
    return task._replace(name=f"{task.name}, visit {number + 1}", train=train)
