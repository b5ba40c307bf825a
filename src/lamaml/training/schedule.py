"""How a stream is presented to a learner, and how many updates that takes."""

from dataclasses import dataclass
from typing import Annotated

from lamaml.errors import require
from lamaml.types import Choices, Stream


@dataclass(frozen=True)
class Schedule:
    """How a stream is presented: batches, epochs over each task, glances at each batch.

    A single pass is one epoch with several glances; multiple passes are several epochs.

    Attributes:
      batch_size: number of rows per batch.
      epochs: number of passes over the rows of a task.
      glances: number of consecutive updates on each batch.

    Examples:
      >>> Schedule(epochs=2).batch_size
      10
    """

    batch_size: int = 10
    epochs: int = 1
    glances: Annotated[int, Choices((1, 2, 3, 5, 10))] = 1

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            require(value > 0, name, value, "at least 1")


def updates_per_task(stream: Stream, schedule: Schedule) -> list[int]:
    """Return the number of updates of each task."""
    passes = schedule.epochs * schedule.glances
    return [-(-len(task.train) // schedule.batch_size) * passes for task in stream.tasks]
