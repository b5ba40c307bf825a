"""`CellResult`: the numbers of one cell beside the paper's, as they are stored in JSON."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np

from lamaml._records import SPARSE
from lamaml.evaluation.alignment import ALIGNMENTS
from lamaml.experiments.recipes.load import recipe
from lamaml.experiments.reporting.statistics import Sample, sample, verdict
from lamaml.experiments.reproduction.cells import Cell, num_updates
from lamaml.experiments.reproduction.scales import MNIST, is_stand_in
from lamaml.experiments.storing.records import METRICS
from lamaml.experiments.storing.results import Run, Seed
from lamaml.experiments.storing.summary import Spread

PAPER_SEEDS = dict.fromkeys(MNIST, 5)
"""The paper's number of seeds by benchmark; 3 for the others."""
_SAME_SIZE = 0.95  # of the paper's updates: the batches of a joint stream span tasks
_MOST_POINTS = 250  # of a stored curve
_UNKNOWN = Spread(None, None, [])


@dataclass(frozen=True)
class Measured:
    """What a probe measured: one value per seed, or one curve per seed.

    Attributes:
      values: by name, one value per seed.
      updates: where the curves were measured, counted from 1; None where there are no curves.
      curves: by name, (seeds, updates).
    """

    values: Mapping[str, Sequence[float]]
    updates: Sequence[int] | None = None
    curves: Mapping[str, Sequence[Sequence[float]]] | None = None

    def curve(self, name: str) -> np.ndarray:
        """Returns a curve as an array (seeds, updates); empty where it was not measured."""
        return np.array((self.curves or {}).get(name, np.empty((0, 0))), float)

    def mean_curve(self, name: str) -> np.ndarray:
        """Returns the mean of a curve over seeds; empty where it was not measured."""
        found = self.curve(name)
        return found.mean(axis=0) if found.size else np.empty(0)

    def to_json(self) -> dict[str, Any]:
        """Returns values and curves in one object."""
        if self.updates is None:
            return dict(self.values)
        return {"updates": self.updates, **(self.curves or {})}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Measured":
        """Reads what `to_json` returned."""
        if "updates" not in value:
            return cls(value)
        return cls({}, value["updates"], {k: v for k, v in value.items() if k != "updates"})


@dataclass(frozen=True)
class CellResult:
    """One cell: what was run, and what it gave. Accuracies are in percent, times in seconds.

    Attributes:
      row: the method, as the paper writes it.
      column: the data, as the paper writes it.
      cell: the name of the cell.
      benchmark: what was run; so are protocol, learner and preset.
      revision: of the code, 12 digits.
      changed: settings that a figure varies.
      cut: settings that the scale reduces.
      num_tasks: number of tasks; None for all.
      num_samples: training rows per task; None for the benchmark's number.
      statuses: one per seed.
      ra: retained accuracy; bti, la, fwt, fm, mf and aaa likewise. The last three are unknown in
        results that were stored before them.
      paper: (mean, sd) of each metric that the paper gives.
      paper_seeds: the paper's number of seeds.
      verdicts: by metric: within, above, below or –.
      seconds: mean per seed, to compile, train and evaluate.
      train_seconds: one per finished seed.
      ms_per_update: milliseconds.
      measured: what the cell's probe measured.
      date: when the last seed ended; None for results from before it was stored.
    """

    row: str
    column: str
    cell: str
    benchmark: str
    protocol: str
    learner: str
    preset: str
    revision: str
    changed: Mapping[str, Any]
    cut: Mapping[str, Any]
    num_tasks: int | None
    num_samples: int | None
    statuses: Sequence[str]
    ra: Spread
    bti: Spread
    la: Spread
    fwt: Spread
    paper: Mapping[str, Sequence[float]]
    paper_seeds: int
    verdicts: Mapping[str, str]
    seconds: Mapping[str, float | None]
    train_seconds: Sequence[float]
    ms_per_update: float | None
    measured: Measured
    date: str | None = field(default=None, metadata=SPARSE)
    fm: Spread | None = field(default=None, metadata=SPARSE)
    mf: Spread | None = field(default=None, metadata=SPARSE)
    aaa: Spread | None = field(default=None, metadata=SPARSE)

    @classmethod
    def of_run(cls, cell: Cell, run: Run) -> "CellResult":
        """Returns the result of a cell from the first seeds of its run."""
        own = Run(run.folder, run.settings, run.environment, run.seeds[: cell.num_seeds])
        summary, recipe = own.summary, cell.recipe
        paper_seeds = PAPER_SEEDS.get(recipe.benchmark, 3)
        found = cls(
            row=cell.row,
            column=cell.column,
            cell=cell.training,
            benchmark=recipe.benchmark,
            protocol=recipe.protocol,
            learner=recipe.learner,
            preset=recipe.preset,
            revision=_revision(run),
            changed=cell.changed,
            cut=cell.cut,
            num_tasks=cell.settings.num_tasks,
            num_samples=cell.settings.num_samples,
            statuses=summary.statuses,
            **{metric: _rounded(summary.metric(metric)) for metric in METRICS},
            paper={metric: list(pair) for metric, pair in recipe.published.items()},
            paper_seeds=paper_seeds,
            verdicts={},
            seconds={part: _round(value) for part, value in summary.seconds._asdict().items()},
            train_seconds=[
                round(s.status.seconds.train, 2) for s in own.finished if s.status.seconds
            ],
            ms_per_update=_round(summary.ms_per_update),
            measured=_measured(recipe.probes, own.finished),
            date=_date(own),
        )
        verdicts = {
            metric: verdict(
                sample(summary.metric(metric).values) if found.is_paper_size else None,
                Sample(pair[0], pair[1], paper_seeds) if len(pair) == 2 else None,
            ).word
            for metric, pair in recipe.published.items()
        }
        return cls(**vars(found) | {"verdicts": verdicts})

    def metric(self, name: str) -> Spread:
        """Returns the metric of that name, one of `METRICS`."""
        found: Spread | None = getattr(self, name)
        return found or _UNKNOWN

    @property
    def is_whole(self) -> bool:
        """Whether all tasks and rows of the benchmark were learned, with the paper's settings."""
        own_settings = not self.changed and not self.cut and not self.is_stand_in
        return own_settings and self.num_tasks is self.num_samples is None

    @property
    def is_stand_in(self) -> bool:
        """Whether digits were learned in place of the paper's data."""
        return is_stand_in(self.benchmark)

    @property
    def data(self) -> str:
        """The data that was learned, and how much of it."""
        sizes = {"tasks": self.num_tasks, "rows": self.num_samples}
        words = [f"{size} {name}" for name, size in sizes.items() if size is not None]
        name = f"{self.benchmark} as {self.column}" if self.is_stand_in else self.column
        return f"{name} ({', '.join(words)})" if words else name

    @property
    def is_paper_size(self) -> bool:
        """Whether the cell is the paper's experiment, by its settings and its updates.

        A part of an archive has fewer updates than the whole.
        """
        train = self.seconds["train"]
        if not (self.is_whole and train and self.ms_per_update):
            return False
        own = recipe(self.benchmark, self.learner, protocol=self.protocol, preset=self.preset)
        return 1000 * train / self.ms_per_update > _SAME_SIZE * num_updates(own)

    @property
    def num_updates(self) -> int | None:
        """Updates per finished seed, from its time and pace."""
        train = self.seconds["train"]
        return round(1000 * train / self.ms_per_update) if train and self.ms_per_update else None

    @property
    def diverged(self) -> bool:
        """Whether every seed diverged: the paper's `*`."""
        return set(self.statuses) == {"diverged"}

    @property
    def mean_train_seconds(self) -> float | None:
        """Mean training seconds per finished seed."""
        return float(np.mean(self.train_seconds)) if self.train_seconds else None


def _measured(probes: Sequence[str], seeds: Sequence[Seed]) -> Measured:
    """Returns what the cell's only probe measured, from the diagnostics of its seeds."""
    if not probes or not seeds:
        return Measured({})
    (probe,) = probes
    logs = [seed.diagnostics() for seed in seeds]
    if probe == "alignment":
        return Measured(
            {
                name: [round(float(np.nanmean(log[name])), 5) for log in logs]
                for name in ALIGNMENTS
                if all(np.isfinite(log.get(name, np.nan)).any() for log in logs)
            }
        )
    prefix = {"look_ahead": "accuracy_", "inter_task": "inter_task_"}[probe]
    names = tuple(name for name in logs[0] if name.startswith(prefix))
    known = np.flatnonzero(np.isfinite(logs[0][names[0]]))
    known = known[:: max(1, len(known) // _MOST_POINTS)]
    curves = {name: np.round([log[name][known] for log in logs], 4).tolist() for name in names}
    return Measured({}, (known + 1).tolist(), curves)


def _rounded(spread: Spread) -> Spread:
    return Spread(_round(spread.mean), _round(spread.sd), [_round(v) for v in spread.values])


def _round(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else round(value, 3)


def _date(run: Run) -> str:
    ends = [seed.folder / "status.json" for seed in run.seeds if seed.ended]
    if not ends:
        return "not ended"
    return f"{datetime.fromtimestamp(max(path.stat().st_mtime for path in ends)):%Y-%m-%d %H:%M}"


def _revision(run: Run) -> str:
    revision = run.environment.revision or "unknown"
    return revision[:12] + (" with changes" if run.environment.dirty else "")
