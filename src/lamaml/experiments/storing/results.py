"""Reading a run folder.

RUN/settings.json       recipe, seeds, sizes
RUN/environment.json    versions, machine, revision of the code
RUN/summary.json        what `lamaml run --json` prints; written last
RUN/seed-K/facts.json   what the seed decided in the stream
RUN/seed-K/accuracy.json        R[i, t], b[t] and, at the end, RA, BTI, LA, FWT; shares
RUN/seed-K/diagnostics.jsonl    a line an update: task, update, a number a diagnostic
RUN/seed-K/rates/task-T.json    learned rates after task T, by layer: bins from low to high, counts
RUN/seed-K/status.json          running, finished, diverged, failed or interrupted
RUN/seed-K/checkpoint-*         the last two; the newest of a finished seed holds what it learned
RUN/lock                        while a command works on the run: which one
"""

import json
import statistics
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lamaml.errors import DataCorrupt, DataUnavailable

METRICS = ("ra", "bti", "la", "fwt")
_SETTINGS = {
    *("benchmark", "learner", "protocol", "preset", "settings", "published", "changed"),
    *("seeds", "num_tasks", "num_samples", "threads"),
}


@dataclass(frozen=True)
class Seed:
    """What one seed found. Without a finished task the matrix is empty."""

    seed: int
    folder: Path
    status: Mapping[str, Any]
    matrix: np.ndarray  # R[i, t], NaN where not evaluated
    metrics: Mapping[str, float]  # empty until the last task is learned

    @property
    def finished(self) -> bool:
        """Whether the whole stream was learned."""
        return bool(self.status["status"] == "finished")

    @property
    def ended(self) -> bool:
        """Whether there is nothing left to do: it has finished or diverged."""
        return self.status["status"] in ("finished", "diverged")

    def rates(self) -> list[dict[str, Any]]:
        """How the rates of each layer were distributed after each task; [] if none were learned."""
        paths = [
            self.folder / "rates" / f"task-{task + 1}.json" for task in range(len(self.matrix))
        ]
        known = {"low", "high", "counts"}
        found = [read_object(path, set()) for path in paths if path.exists()]
        return (
            found if all(known <= set(layer) for task in found for layer in task.values()) else []
        )

    def diagnostics(self) -> dict[str, np.ndarray]:
        """Every diagnostic over all updates, by name; a half-written last line is left out."""
        path = self.folder / "diagnostics.jsonl"
        if not path.exists():
            return {}
        with _reading(path):
            records = [json.loads(line) for line in path.read_text("utf-8").split("\n")[:-1]]
            names = [name for name in next(iter(records), {}) if name not in ("task", "update")]
            # A line of an older lamaml holds several updates.
            return {
                name: np.hstack([np.array(record[name], float) for record in records])
                for name in names
            }


@dataclass(frozen=True)
class Run:
    """One learner on one benchmark, over seeds."""

    folder: Path
    settings: Mapping[str, Any]
    environment: Mapping[str, Any]
    seeds: list[Seed]

    @property
    def finished(self) -> list[Seed]:
        """The seeds that learned the whole stream."""
        return [seed for seed in self.seeds if seed.finished]


def find_runs(folder: Path) -> list[Path]:
    """The folder itself if it is a run's, else those of the runs in it."""
    if (folder / "settings.json").is_file():
        return [folder]
    found = sorted(path.parent for path in folder.glob("[!.]*/settings.json"))
    if not found:
        raise DataUnavailable(f"{folder} is not a run folder: it has no settings.json")
    return found


def read_run(folder: Path) -> Run:
    """What a run folder holds.

    Raises:
      DataUnavailable: it is not a run folder.
      DataCorrupt: one of its files is damaged.
    """
    if not (folder / "settings.json").is_file():
        raise DataUnavailable(f"{folder} is not a run folder: it has no settings.json")
    settings = read_object(folder / "settings.json", _SETTINGS)
    environment = read_object(folder / "environment.json", {"versions"})
    with _reading(folder / "settings.json"):
        numbers = [int(number) for number in settings["seeds"]]
    seeds = [_read_seed(folder / f"seed-{number}", number) for number in numbers]
    return Run(folder, settings, environment, seeds)


def summary(run: Run) -> dict[str, Any]:
    """A run in one JSON object: accuracies in percent, times a seed; None where nothing is known.

    The values of a metric are in the order of `seeds`; mean and sd are over the finished ones.
    """
    settings, finished = run.settings, run.finished
    num_updates = finished[0].status["num_updates"] if finished else None
    seconds = {
        part: _mean([seed.status["seconds"][part] for seed in finished])
        for part in ("compile", "train", "evaluate")
    }
    return {
        "stream": settings["benchmark"],
        "learner": settings["learner"],
        "protocol": settings["protocol"],
        "preset": settings["preset"],
        "seeds": [seed.seed for seed in run.seeds],
        "statuses": [seed.status["status"] for seed in run.seeds],
        "diverged_at": [_place(seed) for seed in run.seeds],
        **{metric: _over_seeds(run, metric) for metric in METRICS},
        "published": settings["published"],
        "num_tasks": settings["num_tasks"],
        "num_samples": settings["num_samples"],
        "num_updates": num_updates,
        "ms_per_update": 1000 * seconds["train"] / num_updates if num_updates else None,
        "seconds": seconds,
        "settings": settings["settings"],
        "changed": settings["changed"],
        "threads": settings["threads"],
        "facts_sha256": [seed.status.get("facts_sha256") for seed in run.seeds],
        "data": [seed.status.get("data") for seed in run.seeds],
        "versions": run.environment["versions"],
        "out": str(run.folder),
    }


def _place(seed: Seed) -> dict[str, Any] | None:
    """Where it diverged, if it did and that is known; counted from 1."""
    if seed.status["status"] != "diverged" or "update" not in seed.status:
        return None
    return {word: seed.status[word] for word in ("task", "update")}


def _over_seeds(run: Run, metric: str) -> dict[str, Any]:
    shares = [seed.metrics[metric] if seed.finished else None for seed in run.seeds]
    values = [None if share is None else 100 * share for share in shares]
    known = [value for value in values if value is not None]
    deviation = statistics.stdev(known) if len(known) > 1 else None
    return {"mean": _mean(known), "sd": deviation, "values": values}


def _mean(values: list[float]) -> Any:
    return statistics.fmean(values) if values else None


def _read_seed(folder: Path, number: int) -> Seed:
    status: dict[str, Any] = {"status": "interrupted", "message": "it never began"}
    if (folder / "status.json").exists():
        status = read_object(folder / "status.json", {"status", "message"})
    finished = status["status"] == "finished"
    if finished:
        read_object(folder / "status.json", {"num_updates", "seconds"})
    found: dict[str, Any] = {"matrix": np.empty((0, 0))}
    path = folder / "accuracy.json"
    if path.exists() or finished:
        found = read_object(path, {"matrix", *(METRICS if finished else ())})
    with _reading(path):
        matrix = np.array(found["matrix"], float)  # null becomes NaN
        if matrix.ndim != 2 or len(matrix) != len(matrix.T):
            raise ValueError("the matrix is not square")
    known = {metric: found[metric] for metric in METRICS if metric in found}
    return Seed(number, folder, status, matrix, known)


def read_object(path: Path, names: set[str]) -> dict[str, Any]:
    """A JSON file that holds an object with these names.

    Raises:
      DataCorrupt: it does not.
    """
    with _reading(path):
        value: dict[str, Any] = json.loads(path.read_text("utf-8"))
        if missing := names - set(value):
            raise ValueError(f"it lacks {', '.join(sorted(missing))}")
        return value


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise DataCorrupt(f"{path} is missing or damaged: {reason}") from error
