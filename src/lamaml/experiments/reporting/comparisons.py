"""Runs of one benchmark beside each other, as tables."""

from collections.abc import Mapping, Sequence
from typing import Any

from lamaml.experiments.reporting.table import Grid
from lamaml.experiments.reporting.tables import cell, describe, marked_name, same_data, spread
from lamaml.experiments.reporting.verdicts import paired
from lamaml.experiments.storing.results import METRICS

Summary = Mapping[str, Any]
"""What `results.summary` gives."""


def metrics_grid(name: str, title: str, summaries: Sequence[Summary]) -> Grid:
    """Every metric of every run, over the seeds that finished."""
    header = [
        "learner",
        "run",
        "finished",
        *(metric.upper() for metric in METRICS),
        "paper's RA",
        "ms/update",
    ]
    rows = [
        [
            marked_name(found),
            describe(found),
            f"{found['statuses'].count('finished')} of {len(found['seeds'])}",
            *(cell(found, metric) for metric in METRICS),
            spread(*found["published"]["ra"]) if "ra" in found["published"] else "–",
            spread(found["ms_per_update"], None),
        ]
        for found in summaries
    ]
    return Grid(name, title, header, rows)


def pairs_grid(name: str, runs: Sequence[tuple[str, Summary]]) -> Grid | None:
    """The best run against every other over the seeds that both have finished; None without any.

    Args:
      name: of the benchmark.
      runs: (label, summary) of each, the best first.
    """
    several = [(label, found) for label, found in runs if found["statuses"].count("finished") > 1]
    rows = []
    for label, other in several[1:]:
        best_label, best = several[0]
        pairs = _pairs(best, other)
        if len(pairs) >= 2 and same_data([best, other]):
            mean, low, high = paired(*zip(*pairs, strict=True))
            interval = f"{low:+.2f} to {high:+.2f}".replace("-", "−")
            told = "yes" if low > 0 or high < 0 else "no"
            row = [best_label, label, str(len(pairs)), f"{mean:+.2f}".replace("-", "−")]
            rows.append([*row, interval, told])
    header = ["learner", "less", "seeds", "RA difference", "95 % interval", "beyond chance"]
    return Grid(f"{name}-pairs", "Seed by seed", header, rows) if rows else None


def _pairs(one: Summary, other: Summary) -> list[tuple[float, float]]:
    values = [
        dict(zip(found["seeds"], found["ra"]["values"], strict=True)) for found in (one, other)
    ]
    both = [seed for seed in values[0] if seed in values[1]]
    pairs = [(values[0][seed], values[1][seed]) for seed in both]
    return [pair for pair in pairs if None not in pair]
