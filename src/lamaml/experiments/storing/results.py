"""Runs as they are read from their folders: `Run`, its seeds and its summary.

RUN/settings.json       recipe, seeds, sizes
RUN/environment.json    versions, machine, revision of the code
RUN/summary.json        what `lamaml run --json` prints; written last
RUN/seed-K/facts.json   what the seed decided in the stream
RUN/seed-K/accuracy.json        R[i, t], b[t] and, at the end, RA, BTI and the others; in [0, 1]
RUN/seed-K/confusion.json       after the last task: rows of class c answered k, over all tasks
RUN/seed-K/diagnostics.jsonl    one line per update: task, update, one number per diagnostic
RUN/seed-K/rates/task-T.json    learned rates after task T, per layer: bins from low to high, counts
RUN/seed-K/status.json          running, finished, diverged, failed or interrupted
RUN/seed-K/checkpoint-*         the last two; the newest of a finished seed holds its final state
RUN/log.csv             with `--log csv`: seed, update, name, value
RUN/lock                        while a command works on the run: which one
"""

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lamaml.errors import DataCorrupt, DataUnavailable, LamamlError, require
from lamaml.evaluation import Metrics, class_accuracies
from lamaml.experiments.storing.environment import Environment
from lamaml.experiments.storing.records import (
    METRICS,
    Accuracy,
    Confusion,
    RunSettings,
    SeedState,
    SeedStatus,
    read_record,
    reading,
)
from lamaml.experiments.storing.summary import Place, Spread, Summary
from lamaml.experiments.storing.trained import TrainedModel, trained_model
from lamaml.training.checkpoint import Seconds

if TYPE_CHECKING:
    import pandas as pd

_NOT_STARTED = SeedStatus(SeedState.INTERRUPTED, "not started")
_UNKNOWN = Seconds(math.nan, math.nan, math.nan)
_NO_ACCURACY = Accuracy(np.empty((0, 0)), np.empty(0))


class RateHistogram(NamedTuple):
    """The learning rates of one layer: counts in equal bins from low to high."""

    low: float
    high: float
    counts: list[int]


@dataclass(frozen=True)
class Seed:
    """The results of one seed. Without a finished task the matrix is empty."""

    seed: int
    folder: Path
    status: SeedStatus
    accuracy: Accuracy

    @property
    def matrix(self) -> np.ndarray:
        """R[i, t] in [0, 1], NaN where not evaluated."""
        return self.accuracy.matrix

    @property
    def metrics(self) -> Metrics | None:
        """RA, BTI and the others in [−1, 1]; None until the last task has been learned."""
        return self.accuracy.metrics

    @cached_property
    def confusion(self) -> np.ndarray | None:
        """N[c, k], rows of class c answered k at the end; None if it was not recorded."""
        path = self.folder / "confusion.json"
        if not self.finished or not path.exists():
            return None
        return np.array(read_record(path, Confusion).counts, int)

    @property
    def finished(self) -> bool:
        """Whether the whole stream was learned."""
        return self.status.state is SeedState.FINISHED

    @property
    def ended(self) -> bool:
        """Whether nothing is left to do: the seed has finished or diverged."""
        return self.status.ended

    def rates(self) -> list[dict[str, RateHistogram]]:
        """The distribution of learning rates per layer after each task; [] if none are learned."""
        paths = [
            self.folder / "rates" / f"task-{task + 1}.json" for task in range(len(self.matrix))
        ]
        return [read_record(path, dict[str, RateHistogram]) for path in paths if path.exists()]

    def diagnostics(self) -> dict[str, np.ndarray]:
        """Every diagnostic over all updates, by name. A half-written last line is ignored."""
        path = self.folder / "diagnostics.jsonl"
        if not path.exists():
            return {}
        with reading(path):
            records = [json.loads(line) for line in path.read_text("utf-8").split("\n")[:-1]]
            names = [name for name in next(iter(records), {}) if name not in ("task", "update")]
            return {name: np.array([record[name] for record in records], float) for name in names}


@dataclass(frozen=True)
class Run:
    """One learner on one benchmark, over seeds."""

    folder: Path
    settings: RunSettings
    environment: Environment
    seeds: list[Seed]

    @property
    def folders(self) -> list[Path]:
        """The run folders that the seeds are in; several if runs were joined."""
        return list(dict.fromkeys(seed.folder.parent for seed in self.seeds))

    @property
    def finished(self) -> list[Seed]:
        """The seeds that learned the whole stream."""
        return [seed for seed in self.seeds if seed.finished]

    @property
    def matrix(self) -> np.ndarray:
        """R[i, t] in [0, 1], the mean over finished seeds; empty if there are none."""
        found = [seed.matrix for seed in self.finished]
        return np.mean(found, axis=0) if found else _NO_ACCURACY.matrix

    @property
    def confusion(self) -> np.ndarray | None:
        """N[c, k] summed over finished seeds; None where a seed has not recorded it."""
        found = [seed.confusion for seed in self.finished]
        counts = [one for one in found if one is not None]
        return np.sum(counts, axis=0) if counts and len(counts) == len(found) else None

    @property
    def class_accuracy(self) -> np.ndarray:
        """The accuracy of each class at the end, in [0, 1], over all finished seeds; or empty."""
        return np.empty(0) if self.confusion is None else class_accuracies(self.confusion)

    @cached_property
    def summary(self) -> Summary:
        """The run in one object, accuracies in percent."""
        settings, recipe = self.settings, self.settings.recipe
        statuses = [seed.status for seed in self.seeds]
        done = [seed.status for seed in self.finished]
        seconds = [status.seconds for status in done if status.seconds]
        num_updates = done[0].num_updates if done else None
        mean = Seconds(*map(statistics.fmean, zip(*seconds, strict=True))) if seconds else _UNKNOWN
        return Summary(
            stream=recipe.benchmark,
            learner=recipe.learner,
            model=recipe.model,
            protocol=recipe.protocol,
            preset=recipe.preset,
            seeds=[seed.seed for seed in self.seeds],
            statuses=[str(status.state) for status in statuses],
            diverged_at=[_place(status) for status in statuses],
            **{metric: self._over_seeds(metric) for metric in METRICS},
            published=recipe.published,
            num_tasks=settings.num_tasks,
            num_samples=settings.num_samples,
            num_updates=num_updates,
            ms_per_update=1000 * mean.train / num_updates if num_updates else None,
            seconds=mean,
            settings=recipe.settings,
            changed=settings.changed,
            threads=settings.threads,
            split=settings.split,
            facts_sha256=[status.facts_sha256 for status in statuses],
            data=[status.data for status in statuses],
            peak_memory=[status.peak_memory for status in statuses],
            class_accuracy=[
                None if math.isnan(share) else 100 * float(share) for share in self.class_accuracy
            ],
            versions=self.environment.versions,
            out=str(self.folder),
        )

    def to_frame(self) -> "pd.DataFrame":
        """A pandas DataFrame with one row per seed.

        Columns: seed, status, ra, bti, la, fwt, fm, mf, aaa (in percent, NaN if unfinished),
        seconds (total) and peak_memory (bytes).

        Raises:
          LamamlError: pandas is not installed.
        """
        rows = [
            {
                "seed": seed.seed,
                "status": str(seed.status.state),
                **{metric: _number(_percent(seed, metric)) for metric in METRICS},
                "seconds": sum(seed.status.seconds) if seed.status.seconds else math.nan,
                "peak_memory": _number(seed.status.peak_memory),
            }
            for seed in self.seeds
        ]
        return frame(rows)

    def model(self, seed: int | None = None) -> TrainedModel:
        """The model that a seed has learned, from its newest good checkpoint.

        Args:
          seed: one of the run's; None for the first that has finished, else the first.

        Raises:
          DataUnavailable: the seed has no checkpoint yet.
        """
        if seed is None:
            chosen = next(iter([*self.finished, *self.seeds]))
        else:
            known = {each.seed: each for each in self.seeds}
            require(seed in known, "seed", seed, f"one of {sorted(known)}")
            chosen = known[seed]
        return trained_model(self.settings, chosen.seed, chosen.folder)

    def _over_seeds(self, metric: str) -> Spread:
        values = [_percent(seed, metric) for seed in self.seeds]
        known = [value for value in values if value is not None]
        deviation = statistics.stdev(known) if len(known) > 1 else None
        return Spread(statistics.fmean(known) if known else None, deviation, values)


def find_runs(folder: Path) -> list[Path]:
    """The folder itself if it is a run's, else the run folders in it and in its subfolders."""
    if (folder / "settings.json").is_file():
        return [folder]
    levels = ("[!.]*/settings.json", "[!.]*/[!.]*/settings.json")
    found = sorted(path.parent for level in levels for path in folder.glob(level))
    if not found:
        raise DataUnavailable(f"{folder} is not a run folder: it has no settings.json")
    return found


def frame(rows: Sequence[Mapping[str, Any]]) -> "pd.DataFrame":
    """A pandas DataFrame of records.

    Raises:
      LamamlError: pandas is not installed.
    """
    try:
        import pandas as pd
    except ModuleNotFoundError as error:
        raise LamamlError("data frames need pandas: pip install pandas") from error
    return pd.DataFrame(rows)


def read_run(folder: Path) -> Run:
    """The run in a folder.

    Raises:
      DataUnavailable: it is not a run folder.
      DataCorrupt: one of its files is damaged.
    """
    if not (folder / "settings.json").is_file():
        raise DataUnavailable(f"{folder} is not a run folder: it has no settings.json")
    settings = read_record(folder / "settings.json", RunSettings)
    environment = read_record(folder / "environment.json", Environment)
    seeds = [_read_seed(folder / f"seed-{number}", number) for number in settings.seeds]
    return Run(folder, settings, environment, seeds)


def _read_seed(folder: Path, number: int) -> Seed:
    status, accuracy = _NOT_STARTED, _NO_ACCURACY
    if (folder / "status.json").exists():
        status = read_record(folder / "status.json", SeedStatus)
    finished = status.state is SeedState.FINISHED
    if finished and None in (status.num_updates, status.seconds):
        raise DataCorrupt(f"{folder / 'status.json'} lacks num_updates or seconds")
    if (folder / "accuracy.json").exists() or finished:
        accuracy = read_record(folder / "accuracy.json", Accuracy)
    if finished and accuracy.metrics is None:
        raise DataCorrupt(f"{folder / 'accuracy.json'} lacks the metrics of a finished seed")
    return Seed(number, folder, status, accuracy)


def _percent(seed: Seed, metric: str) -> float | None:
    if not seed.finished or seed.metrics is None:
        return None
    share: float = getattr(seed.metrics, metric)
    return None if math.isnan(share) else 100 * share


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _place(status: SeedStatus) -> Place | None:
    if status.state is not SeedState.DIVERGED or status.task is None or status.update is None:
        return None
    return Place(status.task, status.update)
