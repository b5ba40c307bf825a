"""One run of the paper: its settings, its size, and the name of its folder.

The name has a hash of the settings, the size, the data and the learner's `RESULTS_VERSIONS` entry,
and the version of each probe: a finished cell is found again under it, and never under the name of
another. Rewording or moving code changes no name; golden trajectories say when a version is due.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

from lamaml._io import fingerprint
from lamaml.experiments.recipes.load import Recipe, recipe
from lamaml.experiments.recipes.probes import PROBE_VERSIONS, in_order
from lamaml.experiments.reproduction.scales import Scale
from lamaml.experiments.running.plan import Plan
from lamaml.experiments.storing.records import RunSettings
from lamaml.experiments.storing.results import read_run
from lamaml.learners import RESULTS_VERSIONS
from lamaml.streams import data_fingerprint


class Cell(NamedTuple):
    """A place in a table or a point of a figure.

    Attributes:
      row: the method, as the paper writes it.
      column: the data, as the paper writes it.
      recipe: what is run.
      seeds: how many.
      num_tasks: only the first so many; None for all.
      num_samples: training rows a task; None for the benchmark's number.
      changed: settings that are not the recipe's own: what a figure varies.
      cut: settings that the scale has made smaller.
    """

    row: str
    column: str
    recipe: Recipe
    seeds: int
    num_tasks: int | None = None
    num_samples: int | None = None
    changed: Mapping[str, Any] = {}
    cut: Mapping[str, Any] = {}

    @property
    def choices(self) -> dict[str, Any]:
        """Everything that decides what is learned, but the data."""
        apart = ("published", "probes", "preset")
        chosen = {name: part for name, part in asdict(self.recipe).items() if name not in apart}
        return chosen | {
            "num_tasks": self.num_tasks,
            "num_samples": self.num_samples,
            "results_version": RESULTS_VERSIONS[self.recipe.learner],
        }

    @property
    def training(self) -> str:
        """A name for what is learned, whatever is measured on the way."""
        run = self.recipe
        data = data_fingerprint(run.stream, of=run.settings.get("of", ""))
        mark = fingerprint(self.choices | {"data": data})[:12]
        return f"{run.benchmark}-{run.protocol}-{run.learner}-{mark}"

    @property
    def name(self) -> str:
        """The name of its own folder."""
        return "+".join([self.training, *self._measured])

    @property
    def _measured(self) -> list[str]:
        return [f"{name}-{PROBE_VERSIONS[name]}" for name in self.recipe.probes]

    def folder(self, store: Path) -> Path:
        """Its own, or that of a run that learned the same, measured more and has more seeds."""
        own = store / self.name
        more = [
            other
            for other in sorted(store.glob(f"{self.training}*"))
            if set(self._measured) <= set(other.name.split("+")[1:])
        ]
        there = [own, *more] if own.exists() else more
        return max(there, key=_num_ended, default=own)

    def plan(self, store: Path) -> Plan:
        """The run, in its folder among the others."""
        settings = RunSettings(
            self.recipe,
            range(self.seeds),
            changed=[*self.changed, *self.cut],
            num_tasks=self.num_tasks,
            num_samples=self.num_samples,
        )
        return Plan(settings, self.folder(store))


def cell(
    scale: Scale,
    row: str,
    column: str,
    benchmark: str,
    learner: str,
    *,
    protocol: str = "single",
    probes: Sequence[str] = (),
    changed: Mapping[str, Any] | None = None,
) -> Cell:
    """A cell of the paper at a scale.

    Args:
      scale: what is run in place of the paper's protocol.
      row: the method, as the paper writes it.
      column: the data, as the paper writes it.
      benchmark: of the paper.
      learner: one of `LEARNERS`.
      protocol: "single" or "multiple".
      probes: what is measured on the way.
      changed: settings in place of the recipe's.
    """
    published = recipe(benchmark, learner, protocol=protocol)
    size, stand_in = scale.sizes[benchmark], scale.stand_ins.get(benchmark)
    run = recipe(stand_in, learner) if stand_in else published
    cut: dict[str, Any] = {}
    for name, most in (("glances", scale.most_glances), ("epochs", scale.most_epochs)):
        if most is not None and published.settings.get(name, 1) > most:
            cut[name] = most
    if stand_in:
        cut = {"glances": 1, "epochs": 1} | cut | {"batch_size": 10}
    settings = dict(run.settings) | cut | dict(changed or {})
    run = replace(
        run,
        protocol=protocol,
        settings=settings,
        published=published.published,
        probes=in_order(probes),
    )
    return Cell(row, column, run, *size, changed=changed or {}, cut=cut)


def _num_ended(folder: Path) -> int:
    known = (folder / "settings.json").is_file()
    return sum(seed.ended for seed in read_run(folder).seeds) if known else 0
