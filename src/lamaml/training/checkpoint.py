"""Checkpoints: what the training loop yields, and what it can continue from."""

from typing import NamedTuple

import numpy as np

from lamaml.types import State


class Seconds(NamedTuple):
    """Wall-clock seconds spent so far, by kind of work."""

    compile: float = 0.0
    train: float = 0.0
    evaluate: float = 0.0


class Checkpoint(NamedTuple):
    """Everything the loop needs to continue from here, and the results so far.

    The next update reuses the state's buffers: copy what must outlive it.
    """

    task: int  # the task of the next update; after the last one, the number of tasks
    update: int  # updates of that task already made
    state: State
    matrix: np.ndarray  # R[i, t], NaN where not evaluated
    baseline: np.ndarray  # b[t]
    infos: dict[str, np.ndarray]  # diagnostics of the updates since the last checkpoint
    seconds: Seconds

    @property
    def num_new(self) -> int:
        """The number of updates since the last checkpoint."""
        return len(self.infos["loss"]) if self.infos else 0

    @property
    def retained(self) -> float:
        """Mean accuracy over the finished tasks, at the last evaluation of all of them."""
        rows = [self.matrix[task, : task + 1] for task in range(self.task)]
        complete = [row.mean() for row in rows if np.isfinite(row).all()]
        return float(complete[-1]) if complete else float("nan")
