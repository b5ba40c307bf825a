"""The tasks of a stream joined into one shuffled task: the IID upper bound."""

import numpy as np

from lamaml.streams._tasks import generator
from lamaml.types import Examples, Stream, Task


def joint(stream: Stream, *, seed: int) -> Stream:
    """Return all tasks of a stream as one, with training rows shuffled across tasks.

    Of the metrics, only the retained accuracy RA is defined on it. Rows keep their labels, so with
    `classes_per_task` the head of a row is still y // classes_per_task. Test rows stay in the order
    of their tasks, whose sizes are in `facts["test_sizes"]`; if these are equal, the accuracy on
    all rows is the mean of the tasks' accuracies.

    Args:
      stream: stream to join.
      seed: seed of the order of the training rows.

    Examples:
      >>> from lamaml.streams.digits import digits_rotations
      >>> stream = joint(digits_rotations(seed=0), seed=0)
      >>> len(stream.tasks), len(stream.tasks[0].train), stream.facts["test_sizes"][:3]
      (1, 3000, [400, 400, 400])
    """
    train, validation, test = (
        _joined([getattr(task, part) for task in stream.tasks])
        for part in ("train", "validation", "test")
    )
    order = generator(seed, "joint order").permutation(len(train))
    return Stream(
        "joint",
        [Task(f"all of {stream.name}", Examples(train.x[order], train.y[order]), validation, test)],
        stream.num_classes,
        stream.classes_per_task,
        stream.preprocess,
        stream.augment,
        facts={
            "stream": stream.name,
            "num_tasks": len(stream.tasks),
            "test_sizes": [len(task.test) for task in stream.tasks],
            **stream.facts,
        },
        scenario=stream.scenario,
    )


def _joined(parts: list[Examples]) -> Examples:
    return Examples(
        np.concatenate([part.x for part in parts]), np.concatenate([part.y for part in parts])
    )
