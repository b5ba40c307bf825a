"""`Cell`: one run of the paper, its settings, and the name of its folder.

The name holds a hash of the settings, the size, the data and the learner's `RESULTS_VERSIONS`
entry, and the version of each probe: a finished cell is found again under its name. Rewording or
moving code changes no name; golden trajectories show when a version must be raised.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lamaml._io import fingerprint
from lamaml.experiments.recipes.load import Recipe, recipe
from lamaml.experiments.recipes.probes import PROBE_VERSIONS, in_order
from lamaml.experiments.reproduction.scales import Scale
from lamaml.experiments.running.plan import Plan
from lamaml.experiments.storing.records import RunSettings
from lamaml.experiments.storing.results import read_run
from lamaml.learners import RESULTS_VERSIONS
from lamaml.streams import data_fingerprint

SIZES = {
    "mnist_rotations": (20, 1000),
    "mnist_permutations": (20, 1000),
    "mnist_many_permutations": (100, 200),
    "cifar100": (20, 2250),
    "tiny_imagenet": (40, 2250),
    "joint_cifar100": (20, 2250),
    "joint_tiny_imagenet": (40, 2250),
    "split_mnist": (5, 11_800),
    "split_cifar100": (20, 2250),
    "split_digits": (5, 240),
    "digits_rotations": (10, 300),
    "digits_permutations": (10, 300),
    "joint_digits_rotations": (10, 300),
    "joint_digits_permutations": (10, 300),
}
"""Number of tasks, and training rows per task, of each benchmark."""


@dataclass(frozen=True)
class Cell:
    """A cell of a table or a point of a figure.

    Attributes:
      row: the method, as the paper writes it.
      column: the data, as the paper writes it.
      settings: what is run.
      cut: settings that the scale reduces, by name; `settings.changed` names them, too.
    """

    row: str
    column: str
    settings: RunSettings
    cut: Mapping[str, Any]

    @property
    def recipe(self) -> Recipe:
        """The recipe, with the settings that are changed or cut."""
        return self.settings.recipe

    @property
    def num_seeds(self) -> int:
        """The number of seeds asked for."""
        return len(self.settings.seeds)

    @property
    def changed(self) -> dict[str, Any]:
        """The settings that a figure varies, by name."""
        names = [name for name in self.settings.changed if name not in self.cut]
        return {name: self.recipe.settings[name] for name in names}

    @property
    def identity(self) -> str:
        """A hash of everything that decides what is learned, except the data."""
        return fingerprint(self._choices)

    @property
    def training(self) -> str:
        """A name for what is learned, whatever the probes measure."""
        run = self.recipe
        data = data_fingerprint(run.stream, of=run.settings.get("of", ""))
        mark = fingerprint(self._choices | {"data": data})[:12]
        return f"{run.benchmark}-{run.protocol}-{run.learner}-{mark}"

    @property
    def name(self) -> str:
        """The name of the cell's own folder."""
        return "+".join([self.training, *self._measured])

    @property
    def _choices(self) -> dict[str, Any]:
        names = ("benchmark", "learner", "protocol", "stream", "model", "settings")
        choices = {name: getattr(self.recipe, name) for name in names} | {
            "num_tasks": self.settings.num_tasks,
            "num_samples": self.settings.num_samples,
            "results_version": RESULTS_VERSIONS[self.recipe.learner],
        }
        split = self.settings.split
        return choices if split == "test" else choices | {"split": split}

    @property
    def _measured(self) -> list[str]:
        return [f"{name}-{PROBE_VERSIONS[name]}" for name in self.recipe.probes]

    def sized(
        self,
        *,
        num_seeds: int | None = None,
        num_tasks: int | None = None,
        num_samples: int | None = None,
        threads: int | None = None,
    ) -> "Cell":
        """Returns the cell with other sizes; None keeps a size."""
        first = self.settings.seeds[0]
        settings = replace(
            self.settings,
            seeds=range(first, first + (num_seeds or self.num_seeds)),
            num_tasks=num_tasks or self.settings.num_tasks,
            num_samples=num_samples or self.settings.num_samples,
            threads=threads or self.settings.threads,
        )
        return replace(self, settings=settings)

    def with_recipe(self, **changes: Any) -> "Cell":
        """Returns the cell with other values of its recipe's fields."""
        recipe = replace(self.recipe, **changes)
        return replace(self, settings=replace(self.settings, recipe=recipe))

    def folder(self, store: Path) -> Path:
        """Returns the folder of the cell's run.

        It is the cell's own, or that of a run that learned the same, measured at least as much and
        has more ended seeds.
        """
        own = store / self.name
        more = [
            other
            for other in sorted(store.glob(f"{self.training}*"))
            if set(self._measured) <= set(other.name.split("+")[1:])
        ]
        there = [own, *more] if own.exists() else more
        return max(there, key=_num_ended, default=own)

    def plan(self, store: Path) -> Plan:
        """Returns the plan of the run, in its folder in the store."""
        return Plan(self.settings, self.folder(store))


def cell(
    scale: Scale,
    row: str,
    column: str,
    benchmark: str,
    learner: str,
    *,
    protocol: str = "single",
    preset: str | None = None,
    probes: Sequence[str] = (),
    changed: Mapping[str, Any] | None = None,
    validation_seeds: Sequence[int] = (),
) -> Cell:
    """Returns a cell of the paper at a scale.

    Args:
      scale: how much of the paper's protocol is run.
      row: the method, as the paper writes it.
      column: the data, as the paper writes it.
      benchmark: of the paper.
      learner: one of `LEARNERS`.
      protocol: "single" or "multiple".
      preset: of the recipe; None for the one that reproduces the paper's table.
      probes: what is measured during training.
      changed: settings that replace the recipe's.
      validation_seeds: measure accuracy on validation rows of these seeds; () for test rows.
    """
    published = recipe(benchmark, learner, protocol=protocol, preset=preset)
    size, stand_in = scale.sizes[benchmark], scale.stand_ins.get(benchmark)
    run = recipe(stand_in, learner) if stand_in else published
    cut: dict[str, Any] = {}
    for name, most in (("glances", scale.most_glances), ("epochs", scale.most_epochs)):
        if most is not None and published.settings.get(name, 1) > most:
            cut[name] = most
    if stand_in:  # its own settings, but several epochs where the paper has several
        cut = {"glances": 1, **cut} if "epochs" in cut else {}
    varied = dict(changed or {})
    cut = {name: value for name, value in cut.items() if name not in varied}
    run = replace(
        run,
        protocol=protocol,
        settings=dict(run.settings) | cut | varied,
        published=published.published,
        probes=in_order(probes),
    )
    settings = RunSettings(
        run,
        validation_seeds or range(size.seeds),
        changed=[*varied, *cut],
        num_tasks=size.num_tasks,
        num_samples=size.num_samples,
        split="validation" if validation_seeds else "test",
    )
    return Cell(row, column, settings, cut)


def num_updates(run: Recipe, num_tasks: int | None = None, num_samples: int | None = None) -> int:
    """Returns the updates per seed of a recipe; None for all tasks, or all rows per task."""
    tasks, rows = SIZES[run.benchmark]
    batches = -(-min(num_samples or rows, rows) // int(run.settings.get("batch_size", 10)))
    passes = int(run.settings.get("epochs", 1)) * int(run.settings.get("glances", 1))
    return min(num_tasks or tasks, tasks) * batches * passes


def _num_ended(folder: Path) -> int:
    known = (folder / "settings.json").is_file()
    return sum(seed.ended for seed in read_run(folder).seeds) if known else 0
