"""The sections of a report: the runs of one benchmark with labels, colours, figures and origin."""

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from lamaml.experiments.reporting.comparison import Group, group_of
from lamaml.experiments.reporting.figures import Drawing, Key
from lamaml.experiments.reporting.palette import colour_of
from lamaml.experiments.reporting.references import chance, is_joint, joint_level, joint_runs
from lamaml.experiments.reporting.run_figures import Line, own_figures, shared_figures
from lamaml.experiments.reporting.table import Table
from lamaml.experiments.reporting.tables import describe, pairs_table, reading, sizes_in_words
from lamaml.experiments.storing.records import METRICS
from lamaml.experiments.storing.results import Run
from lamaml.experiments.storing.summary import Summary

_FORGETTING = ("fm", "mf")  # the less, the better
DASHES = {"-": "solid", "--": "dashed", ":": "dotted", "-.": "double"}
"""The dashes of lines, and their CSS."""


class Entry(NamedTuple):
    """A run on the page."""

    run: Run
    summary: Summary
    label: str
    colour: int  # number in `Palette.series`
    dashes: str
    figures: list[Drawing]

    @property
    def date(self) -> str:
        """When the last of its seeds ended, or the run began if none has."""
        ends = [seed.folder / "status.json" for seed in self.run.seeds]
        files = [path for path in ends if path.is_file()] or [self.run.folder / "settings.json"]
        return _date(max(path.stat().st_mtime for path in files))

    @property
    def revision(self) -> str:
        """The commit of the code, or its version where it was installed."""
        where = self.run.environment
        found = (where.revision or "")[:12] or where.versions.get("lamaml", "unknown")
        return f"{found} with changes" if where.dirty else found


class Section(NamedTuple):
    """The runs of one benchmark, protocol and size."""

    group: Group
    name: str
    title: str
    reading: str
    entries: list[Entry]
    joint: list[Entry]  # runs on all tasks at once: the upper bound
    figures: list[Drawing]
    pairs: Table | None

    @property
    def best(self) -> dict[str, float]:
        """The best mean of each metric, and the least time per update; {} for a single run."""
        if len(self.entries) < 2:
            return {}
        summaries = [entry.summary for entry in self.entries]
        means = {name: [found.metric(name).mean for found in summaries] for name in METRICS}
        best = {
            name: (min if name in _FORGETTING else max)(_known(values), default=0.0)
            for name, values in means.items()
        }
        times = _known([found.ms_per_update for found in summaries])
        return {**best, "ms_per_update": min(times, default=0.0)}

    @property
    def significance(self) -> str:
        """How many differences to the best run are significant, in a sentence; "" if unknown."""
        if self.pairs is None:
            return ""
        sure = [row[1] for row in self.pairs.rows if row[-1] == "yes"]
        unsure = [row[1] for row in self.pairs.rows if row[-1] == "no"]
        said = []
        if sure:
            said.append(f"better than {_listed(sure)} (significant, 5 %)")
        if unsure:
            said.append(f"not told apart from {_listed(unsure)} by these seeds")
        return f"{self.pairs.rows[0][0]} is {'; '.join(said)}."


def sections(runs: Sequence[Run]) -> list[Section]:
    """Returns the runs by benchmark, protocol and size. Joint runs join their benchmark."""
    plain = [run for run in runs if not is_joint(run)]
    found: list[Section] = []
    attached: list[Run] = []
    for group, members in groupby(sorted(plain, key=group_of), key=group_of):
        alike = sum(section.group[:2] == group[:2] for section in found)
        joint = joint_runs(group[0], group[2], runs) if group[3:] == (0, 0) else []
        attached += joint
        found.append(_section(group, list(members), alike + 1, joint))
    alone = [run for run in runs if is_joint(run) and run not in attached]
    for group, members in groupby(sorted(alone, key=group_of), key=group_of):
        found.append(_section(group, list(members), 1, []))
    return found


def _section(group: Group, runs: Sequence[Run], number: int, joint: Sequence[Run]) -> Section:
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
    levels = chance(benchmark)
    levels += joint_level(max((run.summary.ra.mean or 0 for run in joint), default=None))
    lines = [Line(e.run, Key(e.label, e.colour, e.dashes)) for e in entries]
    return Section(
        group,
        name,
        f"{benchmark}, {passes}{sizes_in_words(runs[0].summary)}",
        reading([entry.summary for entry in entries]),
        entries,
        [Entry(run, run.summary, "joint training", 0, "-", []) for run in joint],
        shared_figures(name, lines, levels),
        pairs_table(name, [(entry.label, entry.summary) for entry in entries]),
    )


def _entry(section: str, run: Run, alike: int, several: bool) -> Entry:
    learner, found = run.settings.recipe.learner, run.summary
    label = f"{learner} ({describe(found)})" if several else learner
    dashes = list(DASHES)[alike % len(DASHES)]
    name = f"{section}-{learner}" + (f"-{alike + 1}" if several else "")
    colour = colour_of(learner)
    return Entry(run, found, label, colour, dashes, own_figures(name, run, colour))


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
    return f"{folder.absolute().name} of {_date((folder / 'settings.json').stat().st_mtime)}"


def _date(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds):%Y-%m-%d %H:%M}"


def _repeated(run: Run, runs: Sequence[Run]) -> bool:
    return [other.settings.recipe.learner for other in runs].count(run.settings.recipe.learner) > 1


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
