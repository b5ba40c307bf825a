"""The records of a run folder: settings, seed status and accuracy, each with one reader and writer.

Every record is a frozen dataclass. `to_json` returns what is written, `from_json` reads it back;
`read_record` turns a damaged file into a DataCorrupt that names it.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from lamaml._io import plain
from lamaml.errors import DataCorrupt, require
from lamaml.evaluation import Metrics
from lamaml.experiments.recipes.load import Recipe
from lamaml.training.checkpoint import Seconds

METRICS = Metrics._fields
CHECKPOINT_EVERY = {"mlp": 500, "cnn": 50}  # updates: seconds of work, at a hundredth of their cost

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
      checkpoint_every: updates between checkpoints, 0 for task ends only; None for the network's
        default.
    """

    recipe: Recipe
    seeds: Sequence[int]
    changed: Sequence[str] = ()
    num_tasks: int | None = None
    num_samples: int | None = None
    threads: int = 1
    checkpoint_every: int | None = None

    def __post_init__(self) -> None:
        for seed in self.seeds:
            require(0 <= seed < 2**32, "seed", seed, "from 0 to 2³² − 1")

    @property
    def checkpoint_interval(self) -> int:
        """Updates between checkpoints, 0 for task ends only."""
        if self.checkpoint_every is not None:
            return self.checkpoint_every
        return CHECKPOINT_EVERY.get(self.recipe.model, min(CHECKPOINT_EVERY.values()))

    def to_json(self) -> dict[str, Any]:
        """The recipe's fields and the run's own in one object."""
        own = {
            "changed": list(self.changed),
            "seeds": list(self.seeds),
            "threads": self.threads,
            "num_tasks": self.num_tasks,
            "num_samples": self.num_samples,
            "checkpoint_every": self.checkpoint_interval,
        }
        value: dict[str, Any] = plain(asdict(self.recipe) | own)
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "RunSettings":
        """Read what `to_json` returned."""
        known = {field.name: value[field.name] for field in fields(Recipe) if field.name in value}
        return cls(
            Recipe(**known | {"probes": tuple(known.get("probes", ()))}),
            [int(seed) for seed in value["seeds"]],
            list(value["changed"]),
            _optional_int(value["num_tasks"]),
            _optional_int(value["num_samples"]),
            int(value["threads"]),
            int(value["checkpoint_every"]),
        )


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
    """

    state: SeedState
    message: str = ""
    traceback: str | None = None
    task: int | None = None
    update: int | None = None
    num_updates: int | None = None
    seconds: Seconds | None = None
    facts_sha256: str | None = None
    data: str | None = None

    @property
    def ended(self) -> bool:
        """Whether nothing is left to do: the seed has finished or diverged."""
        return self.state in (SeedState.FINISHED, SeedState.DIVERGED)

    def to_json(self) -> dict[str, Any]:
        """State, message and every field that is known."""
        known = {name: value for name, value in vars(self).items() if value is not None}
        del known["state"]
        if self.seconds is not None:
            known["seconds"] = self.seconds._asdict()
        return {"status": str(self.state), **known}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "SeedStatus":
        """Read what `to_json` returned."""
        known = {field.name: value[field.name] for field in fields(cls) if field.name in value}
        known |= {"state": SeedState(value["status"]), "message": str(value["message"])}
        if "seconds" in known:
            known["seconds"] = Seconds(**known["seconds"])
        status = cls(**known)
        if status.state is SeedState.FINISHED and None in (status.num_updates, status.seconds):
            raise ValueError("a finished seed without num_updates or seconds")
        return status


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
    metrics: Metrics | None = None

    def to_json(self) -> dict[str, Any]:
        """NaN is written as null."""
        found = self.metrics._asdict() if self.metrics else {}
        return {"matrix": self.matrix, "baseline": self.baseline, **found}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Accuracy":
        """Read what `to_json` returned."""
        matrix = np.array(value["matrix"], float)  # null becomes NaN
        if matrix.ndim != 2 or len(matrix) != len(matrix.T):
            raise ValueError("the matrix is not square")
        found = None
        if METRICS[0] in value:
            numbers = {name: value[name] for name in METRICS}
            found = Metrics(**{n: np.nan if v is None else float(v) for n, v in numbers.items()})
        return cls(matrix, np.array(value["baseline"], float), found)


def read_record(path: Path, from_json: Callable[[dict[str, Any]], _Record]) -> _Record:
    """The record in a JSON file.

    Raises:
      DataCorrupt: the file is missing or does not hold the record.
    """
    with reading(path):
        return from_json(json.loads(path.read_text("utf-8")))


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn any failure to parse a file into DataCorrupt."""
    try:
        yield
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise DataCorrupt(f"{path} is missing or damaged: {reason}") from error


def _optional_int(value: Any) -> int | None:
    return None if value is None else int(value)
