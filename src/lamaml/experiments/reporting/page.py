"""The HTML report of runs: one self-contained page with tables, figures and settings."""

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import jinja2

from lamaml._io import write_text, writing
from lamaml.experiments.reporting.comparison import Group, comparisons, group_of
from lamaml.experiments.reporting.figures import DARK, LIGHT, Drawing, Key, export, picture
from lamaml.experiments.reporting.run_figures import Line, own_figures, shared_figures
from lamaml.experiments.reporting.table import Table
from lamaml.experiments.reporting.tables import (
    cell,
    comparable,
    describe,
    difference,
    memory,
    metrics_table,
    pairs_table,
    reading,
    sizes_in_words,
    spread,
    timing,
)
from lamaml.experiments.storing.joining import run_records
from lamaml.experiments.storing.results import Run
from lamaml.experiments.storing.summary import Summary

_COLOURS = {
    name: number
    for number, name in enumerate(
        ("la_maml", "c_maml", "sync_la_maml", "la_er", "er", "online", "mer", "gem", "a_gem", "ewc")
    )
}
_DASHES = {"-": "solid", "--": "dashed", ":": "dotted", "-.": "double"}  # and their CSS


class Entry(NamedTuple):
    """A run on the page."""

    run: Run
    summary: Summary
    label: str
    colour: int  # number in `Palette.series`
    dashes: str
    figures: list[Drawing]


class Section(NamedTuple):
    """The runs of one benchmark, protocol and size."""

    group: Group
    name: str
    title: str
    reading: str
    entries: list[Entry]
    figures: list[Drawing]
    pairs: Table | None


def write_report(runs: Sequence[Run], path: Path, files: Path | None = None) -> None:
    """Write the page.

    Args:
      runs: the runs it shows.
      path: the file to write.
      files: a folder for every figure (SVG, PDF) and table (Markdown, LaTeX, CSV); None for none.

    Raises:
      LamamlError: a file cannot be written, or a run is damaged.
    """
    write_text(path, render(runs))
    if files is not None:
        write_files(runs, files)


def write_files(runs: Sequence[Run], folder: Path) -> None:
    """Write every figure and table of the page to its own files."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for section in _sections(runs):
        entries = [figure for entry in section.entries for figure in entry.figures]
        for figure in [*section.figures, *entries]:
            export(figure, folder)
        shown = [entry.run for entry in section.entries]
        table = metrics_table(section.name, section.title, [run.summary for run in shown])
        table._replace(records=run_records(shown)).write(folder)
        if section.pairs is not None:
            pairs = [pair._asdict() for pair in comparisons(shown)]
            section.pairs._replace(records=pairs).write(folder)


def templates() -> jinja2.Environment:
    """Returns the templates of all pages, with the functions they call."""
    loader = jinja2.PackageLoader("lamaml.experiments.reporting", "templates")
    found = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    found.globals |= {
        "spread": spread,
        "cell": cell,
        "difference": difference,
        "describe": describe,
        "timing": timing,
        "memory": memory,
        "comparable": comparable,
        "dashes": _DASHES,
        "picture": picture,
        "vars": vars,
        "light": LIGHT,
        "dark": DARK,
    }
    return found


def render(runs: Sequence[Run]) -> str:
    """Returns the page as HTML."""
    page = templates().get_template("report.html").render(sections=_sections(runs))
    return page.strip() + "\n"


def _sections(runs: Sequence[Run]) -> list[Section]:
    sections: list[Section] = []
    for group, members in groupby(sorted(runs, key=group_of), key=group_of):
        alike = sum(section.group[:2] == group[:2] for section in sections)
        sections.append(_section(group, list(members), alike + 1))
    return sections


def _section(group: Group, runs: Sequence[Run], number: int) -> Section:
    benchmark, protocol, *_ = group
    name = f"{benchmark}-{protocol}" + (f"-{number}" if number > 1 else "")
    entries: list[Entry] = []
    for run in runs:
        alike = sum(
            entry.run.settings.recipe.learner == run.settings.recipe.learner for entry in entries
        )
        entries.append(_entry(name, run, alike, several=_repeated(run, runs)))
    entries = _told_apart(entries)
    entries.sort(key=lambda entry: -(entry.summary.ra.mean or 0))
    passes = "single pass" if protocol == "single" else "multiple passes"
    return Section(
        group,
        name,
        f"{benchmark}, {passes}{sizes_in_words(runs[0].summary)}",
        reading([entry.summary for entry in entries]),
        entries,
        shared_figures(name, [Line(e.run, Key(e.label, e.colour, e.dashes)) for e in entries]),
        pairs_table(name, [(entry.label, entry.summary) for entry in entries]),
    )


def _told_apart(entries: Sequence[Entry]) -> list[Entry]:
    """Adds the folder and its date to labels that are not unique."""
    labels = [entry.label for entry in entries]
    return [
        entry._replace(label=f"{entry.label}, {_folder_and_date(entry.run.folder)}")
        if labels.count(entry.label) > 1
        else entry
        for entry in entries
    ]


def _folder_and_date(folder: Path) -> str:
    made = datetime.fromtimestamp((folder / "settings.json").stat().st_mtime)
    return f"{folder.absolute().name} of {made:%Y-%m-%d %H:%M}"


def _repeated(run: Run, runs: Sequence[Run]) -> bool:
    return [other.settings.recipe.learner for other in runs].count(run.settings.recipe.learner) > 1


def _entry(section: str, run: Run, alike: int, several: bool) -> Entry:
    learner, found = run.settings.recipe.learner, run.summary
    label = f"{learner} ({describe(found)})" if several else learner
    colour = _COLOURS.get(learner, sum(map(ord, learner)) % len(_COLOURS))
    dashes = list(_DASHES)[alike % len(_DASHES)]
    name = f"{section}-{learner}" + (f"-{alike + 1}" if several else "")
    return Entry(run, found, label, colour, dashes, own_figures(name, run))
