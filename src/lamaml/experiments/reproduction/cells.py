"""One run of the paper: its settings, its size, and the name of its folder.

The name has a hash of the settings, of the size, and of the source that the learner, the stream and
the training loop are made of, and one of the source of each probe: a finished cell is found again
under it, and never under the name of another.
"""

import ast
import hashlib
import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from lamaml.experiments.folders import fingerprint
from lamaml.experiments.probes import in_order
from lamaml.experiments.recipes import Recipe, recipe
from lamaml.experiments.reproduction.scales import Scale
from lamaml.experiments.results import read_run
from lamaml.experiments.runs import Plan
from lamaml.learners import LEARNERS
from lamaml.streams import STREAMS

_LOOP = "lamaml.experiments.protocol"
_PROBES = "lamaml.evaluation"


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
    def training(self) -> str:
        """A name for what is learned, whatever is measured on the way."""
        plan, threads = self.recipe, 1
        apart = ("published", "probes")
        settings = {name: value for name, value in asdict(plan).items() if name not in apart}
        sizes = {"num_tasks": self.num_tasks, "num_samples": self.num_samples, "threads": threads}
        source = _source(LEARNERS[plan.learner].__module__, STREAMS[plan.stream].__module__, _LOOP)
        mark = fingerprint(settings | sizes | {"source": source})[:12]
        return f"{plan.benchmark}-{plan.protocol}-{plan.learner}-{mark}"

    @property
    def name(self) -> str:
        """Of its own folder."""
        return "+".join([self.training, *self._measured])

    @property
    def _measured(self) -> list[str]:
        return [f"{name}-{_source(f'{_PROBES}.{name}')[:6]}" for name in self.recipe.probes]

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
        return Plan(
            self.recipe,
            range(self.seeds),
            self.folder(store),
            changed=[*self.changed, *self.cut],
            num_tasks=self.num_tasks,
            num_samples=self.num_samples,
        )


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


@cache
def _source(*modules: str) -> str:
    """A hash of modules and of all in this package that they import; comments do not count."""
    waiting, found = list(modules), dict[str, str]()
    while waiting:
        name = waiting.pop()
        if name not in found:
            tree = _parsed(name)
            found[name] = ast.dump(tree)
            waiting += _imported(tree)
    return hashlib.sha256(repr(sorted(found.items())).encode()).hexdigest()


def _parsed(module: str) -> ast.Module:
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        return ast.Module([], [])
    tree = ast.parse(Path(spec.origin).read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            node.body = node.body[1:]
    return tree


def _imported(tree: ast.Module) -> Sequence[str]:
    froms = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return [name for name in froms if name and name.split(".")[0] == "lamaml"]
