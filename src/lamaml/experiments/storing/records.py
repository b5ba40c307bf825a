"""The records of a run folder: settings, seed status and accuracy, and how their files are read."""

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from lamaml._records import FLAT, SPARSE, from_json, to_json
from lamaml.errors import DataCorrupt, require
from lamaml.evaluation import Metrics, metrics
from lamaml.experiments.recipes.load import Experiment, Recipe, realize
from lamaml.training.checkpoint import Seconds
from lamaml.training.loop import SPLITS
from lamaml.types import Examples

METRICS = Metrics._fields
# Updates between checkpoints: seconds of work, at a hundredth of their cost.
CHECKPOINT_EVERY = {"mlp": 500, "cnn": 50, "resnet18": 10}

_Record = TypeVar("_Record")


@dataclass(frozen=True)
class RunSettings:
    """`settings.json`: what one run trains, over which seeds.

    Attributes:
      recipe: every choice but seeds and sizes.
      seeds: in the order they are run.
      changed: names of the settings that are not the recipe's own.
      num_tasks: number of tasks; None for all.
      num_samples: training rows per task; None for the benchmark's number.
      threads: per process.
      checkpoint_every: updates between checkpoints, 0 for task ends only; None is replaced by
        the network's default.
      split: the rows that accuracy is measured on, "test" or "validation".
    """

    recipe: Recipe = field(metadata=FLAT)
    changed: Sequence[str] = field(default=(), kw_only=True)
    seeds: Sequence[int]
    threads: int = field(default=1, kw_only=True)
    num_tasks: int | None = None
    num_samples: int | None = None
    checkpoint_every: int | None = None
    split: str = field(default="test", kw_only=True)

    def __post_init__(self) -> None:
        require(self.split in SPLITS, "split", self.split, " or ".join(SPLITS))
        require(len(self.seeds) > 0, "seeds", list(self.seeds), "at least one")
        for seed in self.seeds:
            require(0 <= seed < 2**32, "seed", seed, "from 0 to 2³² − 1")
        if self.checkpoint_every is None:
            every = CHECKPOINT_EVERY.get(self.recipe.model, CHECKPOINT_EVERY["cnn"])
            object.__setattr__(self, "checkpoint_every", every)

    def experiment(self, seed: int) -> Experiment:
        """The stream, network, learner and schedule of one seed.

        With validation rows for accuracy, the stream has no test rows.
        """
        sizes = {"num_tasks": self.num_tasks, "num_samples": self.num_samples}
        built = realize(self.recipe, seed, **sizes)
        if self.split == "test":
            return built
        tasks = [task._replace(test=_no_rows(task.test)) for task in built.stream.tasks]
        return replace(built, stream=replace(built.stream, tasks=tasks))

    def differences(self, other: "RunSettings") -> list[str]:
        """What decides the results and differs: "hyper_rate 0.3 there, 0.5 here"."""
        mine, theirs = self.decisive, other.decisive
        return [
            f"{name} {theirs.get(name)} there, {mine.get(name)} here"
            for name in sorted({*mine, *theirs})
            if mine.get(name) != theirs.get(name)
        ]

    @property
    def decisive(self) -> dict[str, Any]:
        """Everything that decides the results of a seed except the seed, as JSON types."""
        words = ("benchmark", "learner", "protocol", "preset", "stream", "model", "probes")
        chosen = {name: getattr(self.recipe, name) for name in words}
        sizes = {name: getattr(self, name) for name in ("num_tasks", "num_samples", "threads")}
        if self.split != "test":  # not known to runs from before there was a choice
            sizes["split"] = self.split
        found: dict[str, Any] = to_json({**chosen, **sizes, **self.recipe.settings})
        return found


class SeedState(StrEnum):
    """How far a seed is. Only finished and diverged seeds have nothing left to do."""

    RUNNING = "running"
    FINISHED = "finished"
    DIVERGED = "diverged"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class SeedStatus:
    """`status.json`: the state of one seed, and what is known in that state.

    Attributes:
      state: written as "status".
      message: why it did not finish.
      traceback: of a failed seed.
      task: where it diverged, counted from 1.
      update: within that task, counted from 1.
      num_updates: made by a finished seed.
      seconds: spent by a finished seed.
      facts_sha256: fingerprint of the stream's facts.
      data: fingerprint of the stream's rows.
      peak_memory: bytes, the most that the process of a finished seed has needed, earlier seeds of
        the same process included; None in runs from before it was recorded.
    """

    state: SeedState = field(metadata={"name": "status"})
    message: str = ""
    traceback: str | None = field(default=None, metadata=SPARSE)
    task: int | None = field(default=None, metadata=SPARSE)
    update: int | None = field(default=None, metadata=SPARSE)
    num_updates: int | None = field(default=None, metadata=SPARSE)
    seconds: Seconds | None = field(default=None, metadata=SPARSE)
    facts_sha256: str | None = field(default=None, metadata=SPARSE)
    data: str | None = field(default=None, metadata=SPARSE)
    peak_memory: int | None = field(default=None, metadata=SPARSE)

    @property
    def ended(self) -> bool:
        """Whether nothing is left to do: the seed has finished or diverged."""
        return self.state in (SeedState.FINISHED, SeedState.DIVERGED)


@dataclass(frozen=True)
class Accuracy:
    """`accuracy.json`: the accuracy matrix so far and, after the last task, its metrics.

    Attributes:
      matrix: R[i, t] in [0, 1], NaN where not evaluated.
      baseline: b[t], before any training.
      metrics: None until the last task has been learned.
    """

    matrix: np.ndarray
    baseline: np.ndarray
    metrics: Metrics | None = field(default=None, metadata=FLAT)

    def __post_init__(self) -> None:
        if self.matrix.ndim != 2 or len(self.matrix) != len(self.matrix.T):
            raise ValueError("the matrix is not square")
        if self.metrics is not None and math.isnan(self.metrics.aaa):
            # Written before there were such metrics: they follow from the matrix.
            found = metrics(self.matrix, self.baseline)
            later = self.metrics._replace(fm=found.fm, mf=found.mf, aaa=found.aaa)
            object.__setattr__(self, "metrics", later)


@dataclass(frozen=True)
class Confusion:
    """`confusion.json`: the answers of a finished seed, over the test rows of all tasks.

    Attributes:
      counts: N[c, k], the number of rows of class c that are answered k.
    """

    counts: Sequence[Sequence[int]]


def read_record(path: Path, kind: type[_Record]) -> _Record:
    """The record in a JSON file.

    Raises:
      DataCorrupt: the file is missing or does not hold the record.
    """
    with reading(path):
        return from_json(kind, json.loads(path.read_text("utf-8")))


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn any failure to parse a file into DataCorrupt."""
    try:
        yield
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise DataCorrupt(f"{path} is missing or damaged: {reason}") from error


def _no_rows(rows: Examples) -> Examples:
    return Examples(rows.x[:0], rows.y[:0])
