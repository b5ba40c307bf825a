"""Runs as one page that needs nothing else: tables, curves, heat maps, learning rates, settings."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import numpy as np
from markupsafe import Markup

from lamaml.errors import InvalidArgument
from lamaml.experiments.figures import Series, curves, heat_map
from lamaml.experiments.results import Run, summary
from lamaml.experiments.tables import comparable, describe, difference, reading, spread, timing

_COLOURS = {
    name: f"--series-{number}"
    for number, name in enumerate(
        ("la_maml", "c_maml", "sync_la_maml", "la_er", "er", "online", "mer", "gem", "a_gem", "ewc")
    )
}
_DASHES = ("-", "--", ":", "-.")


class Entry(NamedTuple):
    """A run as the page shows it."""

    run: Run
    summary: Mapping[str, Any]
    label: str
    colour: str
    dashes: str
    heat_map: Markup | None


class Section(NamedTuple):
    """The runs of one benchmark and protocol."""

    title: str
    reading: str
    entries: list[Entry]
    figures: list[tuple[str, Markup]]


def write_report(runs: Sequence[Run], path: Path) -> None:
    """Write the page.

    Raises:
      InvalidArgument: the page cannot be written there.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(render(runs), "utf-8")
    except OSError as error:
        raise InvalidArgument(f"report {path}: cannot be written ({error.strerror})") from error


def render(runs: Sequence[Run]) -> str:
    """The page as HTML."""
    loader = jinja2.PackageLoader("lamaml.experiments", "templates")
    pages = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    pages.globals |= {
        "spread": spread,
        "difference": difference,
        "describe": describe,
        "timing": timing,
        "comparable": comparable,
    }
    ordered = sorted(runs, key=_group)
    sections = [_section(group, list(members)) for group, members in groupby(ordered, key=_group)]
    return pages.get_template("report.html").render(sections=sections).strip() + "\n"


def _group(run: Run) -> tuple[str, str]:
    return run.settings["benchmark"], run.settings["protocol"]


def _section(group: tuple[str, str], runs: Sequence[Run]) -> Section:
    entries: list[Entry] = []
    for run in runs:
        alike = sum(entry.run.settings["learner"] == run.settings["learner"] for entry in entries)
        entries.append(_entry(run, alike, several=_repeated(run, runs)))
    entries.sort(key=lambda entry: -(entry.summary["ra"]["mean"] or 0))
    benchmark, protocol = group
    passes = "single pass" if protocol == "single" else "multiple passes"
    words = reading([entry.summary for entry in entries])
    return Section(f"{benchmark}, {passes}", words, entries, _figures(entries))


def _repeated(run: Run, runs: Sequence[Run]) -> bool:
    return [other.settings["learner"] for other in runs].count(run.settings["learner"]) > 1


def _entry(run: Run, alike: int, several: bool) -> Entry:
    learner, found = run.settings["learner"], summary(run)
    label = f"{learner} ({describe(found)})" if several else learner
    matrices = _matrices(run)
    drawing = Markup(heat_map(matrices.mean(axis=0))) if len(matrices) else None  # noqa: S704
    colour = _COLOURS.get(learner, f"--series-{sum(map(ord, learner)) % len(_COLOURS)}")
    return Entry(run, found, label, colour, _DASHES[alike % len(_DASHES)], drawing)


def _figures(entries: Sequence[Entry]) -> list[tuple[str, Markup]]:
    shown = [entry for entry in entries if entry.run.finished]
    after_each = {id(e): np.array([_seen_so_far(m) for m in _matrices(e.run)]) for e in shown}
    last = {id(e): np.array([m[-1] for m in _matrices(e.run)]) for e in shown}
    rates = {id(e): _diagnostic(e.run, "rate_mean") for e in shown}
    at_zero = {id(e): _diagnostic(e.run, "rates_at_zero") for e in shown}
    figures = [
        ("Accuracy on the tasks seen so far", after_each, "tasks learned", True),
        ("Accuracy on each task, after the last", last, "task", True),
        ("Mean learning rate in use", rates, "updates", False),
        ("Share of weights held still, with a rate of 0", at_zero, "updates", True),
    ]
    drawn = []
    for caption, values, x_label, percent in figures:
        series = [Series(values[id(e)], e.colour, e.dashes) for e in shown if values[id(e)].size]
        if series:
            drawn.append((caption, Markup(curves(series, x_label, percent=percent))))  # noqa: S704
    return drawn


def _matrices(run: Run) -> np.ndarray:
    """(seeds, T, T), of the finished seeds."""
    return np.array([seed.matrix for seed in run.finished])


def _seen_so_far(matrix: np.ndarray) -> list[float]:
    return [float(matrix[task, : task + 1].mean()) for task in range(len(matrix))]


def _diagnostic(run: Run, name: str) -> np.ndarray:
    """(seeds, updates), empty where the learner has no such diagnostic."""
    found = [seed.diagnostics().get(name) for seed in run.finished]
    return np.array([values for values in found if values is not None])
