"""Paired comparison of runs: differences over the seeds that two runs share, with intervals."""

import math
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from scipy import stats

from lamaml.errors import InvalidArgument, unknown_name
from lamaml.experiments.recipes.overrides import assignment
from lamaml.experiments.reporting.statistics import paired_difference
from lamaml.experiments.reporting.table import Table
from lamaml.experiments.reporting.tables import same_data, shared_seeds, sizes_in_words
from lamaml.experiments.storing.joining import read_runs, varying_settings
from lamaml.experiments.storing.records import METRICS
from lamaml.experiments.storing.results import Run, frame

if TYPE_CHECKING:
    import pandas as pd

Group = tuple[str, str, str, int, int]
"""Benchmark, protocol, split, tasks and samples (0 for all): what runs must share to be ranked."""


class Comparison(NamedTuple):
    """One run against another, over the seeds that both have finished.

    Attributes:
      benchmark: with its protocol and size.
      learner: the run, by learner and what tells it apart from others.
      baseline: the other run.
      metric: what is compared: "ra", "bti", "la", "fwt", "fm", "mf" or "aaa".
      seeds: the number of shared seeds.
      difference: mean of learner − baseline, in points of percent; NaN without a shared seed.
      low: lower end of the 95 % interval (Student's t); NaN with fewer than two seeds.
      high: upper end.
      p: of the paired t-test, two-sided; NaN with fewer than two seeds.
      note: why there is no interval, or "".
    """

    benchmark: str
    learner: str
    baseline: str
    metric: str
    seeds: int
    difference: float
    low: float
    high: float
    p: float
    note: str = ""


def compare(
    *runs: str | Path | Run, baseline: str | None = None, metric: str = "ra"
) -> "pd.DataFrame":
    """Compare runs seed by seed: mean differences with 95 % intervals, as a pandas DataFrame.

    Runs of other benchmarks, protocols and sizes are compared among themselves.

    Args:
      *runs: runs, run folders, or folders that contain them.
      baseline: the learner or run folder that all others are compared with; None compares the best
        run with all others.
      metric: "ra", "bti", "la", "fwt", "fm", "mf" or "aaa".

    Returns:
      One row per pair, with the columns of `Comparison`; differences in points of percent.

    Raises:
      InvalidArgument: no two runs have the same benchmark, protocol and size.
      LamamlError: pandas is not installed.

    Examples:
      >>> import tempfile
      >>> from lamaml import sweep
      >>> runs = sweep("digits_rotations", ["online", "er"], seeds=2, num_tasks=2, num_samples=30,
      ...              out=f"{tempfile.mkdtemp()}/sweep", progress=False)
      >>> compare(*runs, baseline="online")[["learner", "baseline", "seeds"]].to_numpy().tolist()
      [['er', 'online', 2]]
    """
    given = [run for run in runs if isinstance(run, Run)]
    read = read_runs(Path(run) for run in runs if not isinstance(run, Run))
    return frame([found._asdict() for found in comparisons([*given, *read], baseline, metric)])


def comparisons(
    runs: Sequence[Run], baseline: str | None = None, metric: str = "ra"
) -> list[Comparison]:
    """Returns the comparisons of runs, benchmark by benchmark; the arguments are `compare`'s."""
    if metric not in METRICS:
        raise unknown_name("metric", metric, METRICS)
    groups = [list(group) for _, group in groupby(sorted(runs, key=group_of), key=group_of)]
    several = [group for group in groups if len(group) > 1]
    if not several:
        raise InvalidArgument(
            "a comparison needs two runs of the same benchmark, protocol and size: there are "
            + ("none" if not runs else "; ".join(_title(group[0]) for group in groups))
        )
    known = {name for group in several for run in group for name in _names(run)}
    if baseline is not None and baseline not in known:
        raise unknown_name("baseline", baseline, known)
    return [found for group in several for found in _of_group(group, baseline, metric)]


def comparison_tables(found: Sequence[Comparison]) -> list[Table]:
    """Returns one table per benchmark, for the terminal."""
    tables = []
    for title, pairs in groupby(found, key=lambda pair: pair.benchmark):
        rows = [
            [
                pair.learner,
                pair.baseline,
                str(pair.seeds),
                _signed(pair.difference),
                pair.note or f"{_signed(pair.low)} to {_signed(pair.high)}",
                "–" if math.isnan(pair.p) else f"{pair.p:.3f}",
            ]
            for pair in pairs
        ]
        header = ["learner", "baseline", "seeds", f"{found[0].metric.upper()} difference"]
        tables.append(Table("comparison", title, [*header, "95 % interval", "p"], rows))
    return tables


def group_of(run: Run) -> Group:
    """Returns what runs must have in common to be ranked together."""
    settings, recipe = run.settings, run.settings.recipe
    sizes = settings.num_tasks or 0, settings.num_samples or 0
    return recipe.benchmark, recipe.protocol, settings.split, *sizes


def labels(runs: Sequence[Run]) -> list[str]:
    """Returns a label for each run: its learner, and what tells it apart from the others."""
    varied = varying_settings([run.settings for run in runs])
    learners = [run.settings.recipe.learner for run in runs]
    found = []
    for run, learner in zip(runs, learners, strict=True):
        settings = run.settings.recipe.settings
        words = [assignment(name, settings[name]) for name in varied if name in settings]
        found.append(" ".join([learner, *words]) if learners.count(learner) > 1 else learner)
    return [
        f"{label} ({run.folder.absolute().name})" if found.count(label) > 1 else label
        for run, label in zip(runs, found, strict=True)
    ]


def _of_group(runs: Sequence[Run], baseline: str | None, metric: str) -> list[Comparison]:
    named = sorted(zip(labels(runs), runs, strict=True), key=lambda pair: -_mean(pair[1], metric))
    if baseline is None:
        pairs = [(named[0], other) for other in named[1:]]
    else:
        bases = [pair for pair in named if baseline in (pair[0], *_names(pair[1]))]
        pairs = [(other, base) for base in bases for other in named if other is not base]
    title = _title(runs[0])
    return [_compared(title, *one, *other, metric) for one, other in pairs]


def _compared(
    title: str, label: str, one: Run, other_label: str, other: Run, metric: str
) -> Comparison:
    alike = same_data([one.summary, other.summary])
    pairs = shared_seeds(one.summary, other.summary, metric) if alike else []
    differences = [a - b for a, b in pairs]
    mean, low, high, p, note = math.nan, math.nan, math.nan, math.nan, ""
    if len(differences) > 1:
        mean, low, high = paired_difference(*zip(*pairs, strict=True))
        same = len(set(differences)) == 1  # the t statistic divides by zero
        p = float(mean == 0) if same else float(stats.ttest_1samp(differences, 0.0).pvalue)
    else:
        mean = differences[0] if differences else math.nan
        note = "needs two shared seeds" if alike else "they learned different rows"
    return Comparison(title, label, other_label, metric, len(pairs), mean, low, high, p, note)


def _names(run: Run) -> list[str]:
    """Returns the words that a baseline may be named by."""
    return [run.settings.recipe.learner, str(run.folder), run.folder.absolute().name]


def _title(run: Run) -> str:
    passes = ", multiple passes" if run.settings.recipe.protocol == "multiple" else ""
    return f"{run.settings.recipe.benchmark}{passes}{sizes_in_words(run.summary)}"


def _mean(run: Run, metric: str) -> float:
    mean = run.summary.metric(metric).mean
    return -math.inf if mean is None else mean


def _signed(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:+.2f}".replace("-", "−")
