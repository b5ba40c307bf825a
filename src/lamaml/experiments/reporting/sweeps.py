"""The table of a sweep: its runs side by side, the best first."""

import shlex
from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from lamaml.experiments.recipes.overrides import assignment
from lamaml.experiments.reporting.tables import (
    LEGEND,
    SHOWN,
    cell,
    counted,
    footnotes,
    marked_name,
    sizes_in_words,
)
from lamaml.experiments.storing.joining import varying_settings
from lamaml.experiments.storing.results import Run


def ranked(runs: Sequence[Run]) -> list[Run]:
    """The runs by their mean RA, the highest first; runs without one come last."""
    return sorted(
        runs,
        key=lambda run: -1.0 if run.summary.ra.mean is None else run.summary.ra.mean,
        reverse=True,
    )


def sweep_table(runs: Sequence[Run]) -> RenderableType:
    """Returns the metrics of the runs of a sweep, for the terminal: the best first and marked."""
    names, ordered = varying_settings([run.settings for run in runs]), ranked(runs)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    header = ["learner", *names, *(metric.upper() for metric in SHOWN), "ms/update"]
    for name in header:
        table.add_column(name, justify="left" if name == "learner" else "right")
    for run in ordered:
        found = run.summary
        values = (found.settings.get(name, "–") for name in names)
        words = [marked_name(found), *map(str, values)]
        words += [cell(found, metric, 1) for metric in SHOWN]
        words.append("–" if found.ms_per_update is None else f"{found.ms_per_update:.2f}")
        best = run is ordered[0] and found.ra.mean is not None
        table.add_row(*words, style="bold green" if best else "")
    first = runs[0].summary
    seeds = counted(max(len(run.seeds) for run in runs), "seed")
    title = f"{first.stream}, {seeds}{sizes_in_words(first)}"
    notes = footnotes([run.summary for run in ordered])
    return Group(Text(title, style="bold"), table, Text(LEGEND, style="dim"), *notes)


def advice(runs: Sequence[Run]) -> str:
    """Returns which run is best on validation rows, and the command that tests it; else ""."""
    best = ranked(runs)[0]
    found = best.summary
    if found.split != "validation" or found.ra.mean is None:
        return ""
    names = varying_settings([run.settings for run in runs])
    values = [assignment(name, found.settings[name]) for name in names if name in found.settings]
    which = f"{found.learner}{' with ' if values else ''}{', '.join(values)}"
    return f"Best on validation rows: {which}. On test rows:\n  {test_command(best)}"


def test_command(run: Run) -> str:
    """Returns the command that runs the same settings and seeds on test rows."""
    settings, recipe = run.settings, run.settings.recipe
    words = ["lamaml", "run", recipe.benchmark, recipe.learner]
    for name in settings.changed:
        words += ["--set", assignment(name, recipe.settings[name])]
    first, count = min(settings.seeds), len(settings.seeds)
    if sorted(settings.seeds) == [*range(first, first + count)]:
        words += ["--seeds", str(count)] if count > 1 or first == 0 else []
        words += ["--first-seed", str(first)] if first else []
    else:
        words += [word for seed in settings.seeds for word in ("--seed", str(seed))]
    for option, size in (("--tasks", settings.num_tasks), ("--samples", settings.num_samples)):
        words += [option, str(size)] if size is not None else []
    return shlex.join(words)
