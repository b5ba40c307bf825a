"""Runs of equal settings that were made apart, joined into one with the seeds of all."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lamaml.experiments.storing.records import METRICS, RunSettings
from lamaml.experiments.storing.results import Run, Seed, find_runs, frame, read_run

if TYPE_CHECKING:
    import pandas as pd


class Runs(list[Run]):
    """Runs in a list, with all of them in one data frame."""

    def to_frame(self) -> "pd.DataFrame":
        """A pandas DataFrame with one row per run.

        Columns: benchmark, protocol, learner, preset, split, num_tasks, num_samples, one per
        setting that is not the same everywhere, seeds, finished, mean and sd of each metric (ra,
        ra_sd, bti, bti_sd, la, fwt, fm, mf, aaa; in percent, NaN if unknown), ms_per_update,
        peak_memory (bytes, the most of any seed) and folder.

        Raises:
          LamamlError: pandas is not installed.
        """
        return frame(run_records(self))


def read_runs(folders: Iterable[Path]) -> Runs:
    """The runs in folders, or in folders that contain them; those of equal settings are joined.

    Raises:
      DataUnavailable: a folder has no run.
      DataCorrupt: a file of a run is damaged.
    """
    found = [path for folder in folders for path in find_runs(folder)]
    once = {path.resolve(): path for path in found}.values()
    return joined([read_run(path) for path in once])


def joined(runs: Iterable[Run]) -> Runs:
    """Join the runs of equal settings, in the order of their first.

    Two runs with a common seed are joined only if its results are the same in both; a seed that
    has ended in one of them only is taken from there.
    """
    found = Runs()
    for run in runs:
        for number, other in enumerate(found):
            if not run.settings.differences(other.settings) and _agree(run, other):
                found[number] = _union(other, run)
                break
        else:
            found.append(run)
    return found


def run_records(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """One record per run, numbers as numbers: the rows of a frame or a CSV file."""
    names = varying_settings([run.settings for run in runs])
    records = []
    for run in runs:
        found, settings = run.summary, run.settings.recipe.settings
        record: dict[str, Any] = {"benchmark": found.stream}
        for name in ("protocol", "learner", "preset", "split", "num_tasks", "num_samples"):
            record[name] = getattr(found, name)
        record |= {name: settings.get(name) for name in names}
        record |= {"seeds": len(run.seeds), "finished": len(run.finished)}
        for metric in METRICS:
            spread = found.metric(metric)
            record |= {metric: _known(spread.mean), f"{metric}_sd": _known(spread.sd)}
        peaks = [peak for peak in found.peak_memory if peak is not None]
        record |= {
            "ms_per_update": _known(found.ms_per_update),
            "peak_memory": max(peaks, default=math.nan),
            "folder": str(run.folder),
        }
        records.append(record)
    return records


def varying_settings(runs: Sequence[RunSettings]) -> list[str]:
    """The settings that some run has changed and that differ among the runs, in order."""
    changed = dict.fromkeys(name for run in runs for name in run.changed)
    values = {name: [run.recipe.settings.get(name) for run in runs] for name in changed}
    return [name for name, there in values.items() if any(value != there[0] for value in there)]


def _agree(one: Run, other: Run) -> bool:
    theirs = {seed.seed: seed for seed in other.seeds}
    pairs = [(seed, theirs[seed.seed]) for seed in one.seeds if seed.seed in theirs]
    return all(_same(*pair) for pair in pairs if pair[0].ended and pair[1].ended)


def _same(one: Seed, other: Seed) -> bool:
    return one.status.state == other.status.state and np.array_equal(
        one.matrix, other.matrix, equal_nan=True
    )


def _union(one: Run, other: Run) -> Run:
    seeds = {seed.seed: seed for seed in one.seeds}
    for seed in other.seeds:
        if seed.seed not in seeds or (seed.ended and not seeds[seed.seed].ended):
            seeds[seed.seed] = seed
    chosen = [seeds[number] for number in sorted(seeds)]
    settings = replace(one.settings, seeds=[seed.seed for seed in chosen])
    return replace(one, settings=settings, seeds=chosen)


def _known(value: float | None) -> float:
    return math.nan if value is None else value
