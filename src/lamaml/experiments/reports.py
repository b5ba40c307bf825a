"""Runs as one page that needs nothing else: tables, curves, heat maps, learning rates, settings."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import numpy as np
from markupsafe import Markup

from lamaml.errors import InvalidArgument
from lamaml.experiments.figures import Series, curves, heat_map, inline
from lamaml.experiments.results import Run, summary
from lamaml.experiments.tables import (
    cell,
    comparable,
    describe,
    difference,
    reading,
    spread,
    timing,
)

_COLOURS = {
    name: f"--series-{number}"
    for number, name in enumerate(
        ("la_maml", "c_maml", "sync_la_maml", "la_er", "er", "online", "mer", "gem", "a_gem", "ewc")
    )
}
_DASHES = {"-": "solid", "--": "dashed", ":": "dotted", "-.": "double"}  # and their CSS

Points = tuple[np.ndarray, np.ndarray]
"""x, and a row of values a seed."""


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


def pages() -> jinja2.Environment:
    """The templates, and what they may call."""
    loader = jinja2.PackageLoader("lamaml.experiments", "templates")
    found = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    found.globals |= {
        "spread": spread,
        "cell": cell,
        "difference": difference,
        "describe": describe,
        "timing": timing,
        "comparable": comparable,
        "dashes": _DASHES,
    }
    return found


def render(runs: Sequence[Run]) -> str:
    """The page as HTML."""
    ordered = sorted(runs, key=_group)
    sections = [_section(group, list(members)) for group, members in groupby(ordered, key=_group)]
    return pages().get_template("report.html").render(sections=sections).strip() + "\n"


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
    drawing = None
    if len(matrices):
        draw = partial(heat_map, matrices.mean(axis=0))
        drawing = Markup(inline(draw, str(run.folder)))  # noqa: S704  (our own SVG)
    colour = _COLOURS.get(learner, f"--series-{sum(map(ord, learner)) % len(_COLOURS)}")
    dashes = list(_DASHES)[alike % len(_DASHES)]
    return Entry(run, found, label, colour, dashes, drawing)


def _figures(entries: Sequence[Entry]) -> list[tuple[str, Markup]]:
    """(caption, drawing) of every figure there is something to show in."""
    drawn = []
    for caption, points_of, x_label, percent in _FIGURES:
        lines = [(entry, *points_of(entry.run)) for entry in entries if entry.run.finished]
        series = [Series(x, y, e.colour, e.dashes) for e, x, y in lines if y.size]
        if series:
            name = f"{caption}, {entries[0].run.folder}"
            draw = partial(curves, series, x_label, percent=percent)
            drawn.append((caption, Markup(inline(draw, name))))  # noqa: S704
    return drawn


def _matrices(run: Run) -> np.ndarray:
    """(seeds, T, T), of the finished seeds."""
    return np.array([seed.matrix for seed in run.finished])


def _seen_so_far(run: Run) -> Points:
    """After each task that all tasks so far were tested after."""
    matrices = _matrices(run)
    rows = [matrices[:, task, : task + 1] for task in range(matrices.shape[1])]
    tested = [row for row in rows if np.isfinite(row).all()]
    return np.array([row.shape[1] for row in tested]), np.array([r.mean(axis=1) for r in tested]).T


def _after_the_last(run: Run) -> Points:
    accuracies = _matrices(run)[:, -1]
    return np.arange(1, accuracies.shape[1] + 1), accuracies


def _diagnostic(name: str) -> Callable[[Run], Points]:
    def points(run: Run) -> Points:
        found = [seed.diagnostics().get(name, np.empty(0)) for seed in run.finished]
        return np.arange(1, len(found[0]) + 1), np.array(found)

    return points


_FIGURES: tuple[tuple[str, Callable[[Run], Points], str, bool], ...] = (
    ("Accuracy on the tasks seen so far", _seen_so_far, "tasks learned", True),
    ("Accuracy on each task, after the last", _after_the_last, "task", True),
    ("Mean learning rate in use", _diagnostic("rate_mean"), "updates", False),
    (
        "Share of weights held still, with a rate of 0",
        _diagnostic("rates_at_zero"),
        "updates",
        True,
    ),
)
