"""How a stream is presented to a learner, and how many updates that takes."""

from dataclasses import dataclass

from lamaml.errors import require
from lamaml.types import Stream


@dataclass(frozen=True)
class Schedule:
    """How a stream is presented: batches, epochs over each task, glances at each batch.

    A single pass is one epoch with several glances; multiple passes are several epochs.

    Example:
      >>> Schedule(epochs=2).batch_size
      10
    """

    batch_size: int = 10
    epochs: int = 1
    glances: int = 1

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            require(value > 0, name, value, "at least 1")


def updates_per_task(stream: Stream, schedule: Schedule) -> list[int]:
    """Return the number of updates of each task."""
    passes = schedule.epochs * schedule.glances
    return [-(-len(task.train) // schedule.batch_size) * passes for task in stream.tasks]
