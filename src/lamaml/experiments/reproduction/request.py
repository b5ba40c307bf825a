"""`Request`: the tables and figures to reproduce, at which scale and size."""

import re
import shlex
from collections.abc import Sequence
from typing import NamedTuple

from lamaml.errors import InvalidArgument
from lamaml.experiments.recipes.probes import in_order
from lamaml.experiments.reproduction.cells import Cell
from lamaml.experiments.reproduction.scales import Scale
from lamaml.experiments.reproduction.targets import Target


class Request(NamedTuple):
    """What is to be reproduced.

    Attributes:
      targets: tables and figures.
      scale: how much of the paper's protocol.
      num_seeds: replaces the scale's number; None keeps it.
      num_tasks: replaces the scale's number.
      num_samples: replaces the scale's number.
      rates: replace those of the scale in the robustness figures; () keeps them.
      only: filters. A cell matches a filter if every word of it begins a word of the cell's
        method, data, learner or benchmark. () for all cells.
      threads: threads per worker process; a cell that was begun keeps its number.
    """

    targets: Sequence[Target]
    scale: Scale
    num_seeds: int | None = None
    num_tasks: int | None = None
    num_samples: int | None = None
    rates: Sequence[float] = ()
    only: Sequence[str] = ()
    threads: int = 1

    @property
    def options(self) -> list[tuple[str, str]]:
        """The options of the command line that differ from the scale, as ("tasks", "5")."""
        sizes = {"tasks": self.num_tasks, "samples": self.num_samples, "seeds": self.num_seeds}
        given = [(name, str(size)) for name, size in sizes.items() if size is not None]
        given += [("rate", f"{rate:g}") for rate in self.rates]
        return given + [("only", word) for word in self.only]

    @property
    def about(self) -> str:
        """How much of the paper's protocol is run, in words."""
        return "; ".join([self.scale.about, *(f"{name} {value}" for name, value in self.options)])

    def command(self, target: Target) -> str:
        """Returns the command that reproduces one target."""
        words = ["lamaml", "reproduce", target.name, "--scale", self.scale.name]
        return shlex.join([*words, *(w for name, v in self.options for w in (f"--{name}", v))])

    def label(self, target: Target) -> str:
        """Returns the stem of the file that records the outcome of a target."""
        words = "-".join([target.name, self.scale.name, *(f"{n}-{v}" for n, v in self.options)])
        return re.sub(r"[^\w-]+", "-", words)

    def cells(self, target: Target) -> list[Cell]:
        """Returns the cells of one target."""
        scale = self.scale._replace(rates=tuple(self.rates) or self.scale.rates)
        sizes = {"num_tasks": self.num_tasks, "num_samples": self.num_samples}
        return [
            cell.sized(num_seeds=self.num_seeds, threads=self.threads, **sizes)
            for cell in target.cells(scale)
            if self._matches(cell)
        ]

    def all_cells(self) -> list[Cell]:
        """Returns the cells of all targets: each training once, with all its seeds and probes."""
        found: dict[str, Cell] = {}
        for target in self.targets:
            for cell in self.cells(target):
                known = found.get(cell.identity, cell)
                probes = in_order([*known.recipe.probes, *cell.recipe.probes])
                num_seeds = max(known.num_seeds, cell.num_seeds)
                found[cell.identity] = known.with_recipe(probes=probes).sized(num_seeds=num_seeds)
        if not found:
            raise InvalidArgument(f"no cell matches --only {' --only '.join(self.only)}")
        return list(found.values())

    def _matches(self, cell: Cell) -> bool:
        known = _words(cell.row, cell.column, cell.recipe.learner, cell.recipe.benchmark)
        return not self.only or any(
            all(any(word.startswith(part) for word in known) for part in _words(wanted))
            for wanted in self.only
        )


def _words(*texts: str) -> list[str]:
    """Returns the words of the texts in lower case, without commas."""
    return " ".join(texts).lower().replace(",", " ").split()
