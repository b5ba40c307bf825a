"""The summary of a run: what `lamaml run --json` prints."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from lamaml.training.checkpoint import Seconds


class Spread(NamedTuple):
    """One metric over seeds, in percent. `values` has one entry per seed, None if unfinished."""

    mean: float | None
    sd: float | None
    values: list[float | None]


class Place(NamedTuple):
    """Where a seed diverged, counted from 1."""

    task: int
    update: int


@dataclass(frozen=True)
class Summary:
    """One run in one object: what `lamaml run --json` prints and `summary.json` holds.

    Accuracies are in percent. Lists have one entry per seed; means are over the finished seeds.
    """

    stream: str
    learner: str
    model: str
    protocol: str
    preset: str
    seeds: list[int]
    statuses: list[str]
    diverged_at: list[Place | None]
    ra: Spread
    bti: Spread
    la: Spread
    fwt: Spread
    fm: Spread
    mf: Spread
    aaa: Spread
    published: Mapping[str, Sequence[float]]
    num_tasks: int | None
    num_samples: int | None
    num_updates: int | None
    ms_per_update: float | None
    seconds: Seconds  # means per finished seed; NaN if there is none
    settings: Mapping[str, Any]
    changed: Sequence[str]
    threads: int
    split: str  # the rows that accuracy was measured on
    facts_sha256: list[str | None]
    data: list[str | None]
    peak_memory: list[int | None]  # bytes
    class_accuracy: list[float | None]  # by class, over all finished seeds; [] if not recorded
    versions: Mapping[str, str]
    out: str

    def metric(self, name: str) -> Spread:
        """The metric of that name, one of `METRICS`."""
        found: Spread = getattr(self, name)
        return found
