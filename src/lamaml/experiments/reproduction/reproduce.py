"""Tables and figures from nothing: run what is missing, and write down what was found.

OUT/cells/...                       a run folder a cell; finished ones are never computed again
OUT/SCALE/TARGET.json               what was found
OUT/SCALE/TARGET.md .tex .csv       its tables
OUT/SCALE/FIGURE.svg .pdf           its figures
OUT/SCALE/report.html               all that is there, on one page
"""

import re
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from lamaml._io import fingerprint, write_json
from lamaml.errors import InvalidArgument, require
from lamaml.experiments.recipes.probes import in_order
from lamaml.experiments.reporting.figures import export
from lamaml.experiments.reporting.tables import counted
from lamaml.experiments.reproduction.cells import Cell
from lamaml.experiments.reproduction.estimates import in_words, seconds_left
from lamaml.experiments.reproduction.figures import figures
from lamaml.experiments.reproduction.outcomes import outcome, stored
from lamaml.experiments.reproduction.page import write_page
from lamaml.experiments.reproduction.scales import Scale
from lamaml.experiments.reproduction.tables import tables
from lamaml.experiments.reproduction.targets import Target
from lamaml.experiments.running.console import complete_with_progress, failures
from lamaml.experiments.running.engines.local import default_processes
from lamaml.experiments.running.plan import Work


class Request(NamedTuple):
    """What is to be reproduced.

    Attributes:
      targets: tables and figures.
      scale: how much of the paper's protocol.
      seeds: in place of the scale's; None for the scale's.
      num_tasks: in place of the scale's.
      num_samples: in place of the scale's.
      rates: of the robustness figures, in place of the scale's; () for the scale's.
      only: texts; the words of one of them must all be in a cell's method, data, learner and
        benchmark. () for all cells.
    """

    targets: Sequence[Target]
    scale: Scale
    seeds: int | None = None
    num_tasks: int | None = None
    num_samples: int | None = None
    rates: Sequence[float] = ()
    only: Sequence[str] = ()

    @property
    def options(self) -> list[tuple[str, str]]:
        """What the command line calls them: ("tasks", "5")."""
        sizes = {"tasks": self.num_tasks, "samples": self.num_samples, "seeds": self.seeds}
        given = [(name, str(size)) for name, size in sizes.items() if size is not None]
        given += [("rate", f"{rate:g}") for rate in self.rates]
        return given + [("only", word) for word in self.only]

    @property
    def about(self) -> str:
        """How much of the paper's protocol is run."""
        return "; ".join([self.scale.about, *(f"{name} {value}" for name, value in self.options)])

    def command(self, target: Target) -> str:
        """What to type for one target."""
        words = ["lamaml", "reproduce", target.name, "--scale", self.scale.name]
        return shlex.join([*words, *(w for name, v in self.options for w in (f"--{name}", v))])

    def label(self, target: Target) -> str:
        """A name for what is found, as that of a file."""
        words = "-".join([target.name, self.scale.name, *(f"{n}-{v}" for n, v in self.options)])
        return re.sub(r"[^\w-]+", "-", words)

    def cells(self, target: Target) -> list[Cell]:
        """Of one target."""
        scale = self.scale._replace(rates=tuple(self.rates) or self.scale.rates)
        found = target.cells(scale, self.num_tasks)
        return [self._sized(cell) for cell in found if self._wanted(cell)]

    def all_cells(self) -> list[Cell]:
        """Of all targets; each training once, with all the seeds and probes asked of it."""
        found: dict[str, Cell] = {}
        for target in self.targets:
            for cell in self.cells(target):
                training = fingerprint(cell.choices)
                known = found.get(training, cell)
                probes = in_order([*known.recipe.probes, *cell.recipe.probes])
                found[training] = known._replace(
                    recipe=replace(cell.recipe, probes=probes), seeds=max(known.seeds, cell.seeds)
                )
        if not found:
            raise InvalidArgument(f"--only {' --only '.join(self.only)}: no cell is called so")
        return list(found.values())

    def _sized(self, cell: Cell) -> Cell:
        return cell._replace(
            seeds=self.seeds or cell.seeds,
            num_samples=self.num_samples or cell.num_samples,
        )

    def _wanted(self, cell: Cell) -> bool:
        known = _words(cell.row, cell.column, cell.recipe.learner, cell.recipe.benchmark)
        return not self.only or any(
            all(any(word.startswith(part) for word in known) for part in _words(wanted))
            for wanted in self.only
        )


def _words(*texts: str) -> list[str]:
    """In small letters, without commas."""
    return " ".join(texts).lower().replace(",", " ").split()


def reproduce(
    request: Request,
    out: Path,
    console: Console,
    *,
    processes: int | None = None,
    record: Path | None = None,
    stored_only: bool = False,
) -> list[dict[str, Any]]:
    """Run the cells that are missing; then write what was found, and return it.

    Args:
      request: what.
      out: where it goes.
      console: shows how far it is.
      processes: runs at once; None for one a core.
      record: a folder for the outcomes alone, as small JSON files.
      stored_only: run nothing; write what the finished cells say.

    Raises:
      Stopped: by Ctrl-C or SIGTERM; the same command goes on.
      LamamlError: settings, data or the disk are refused.
    """
    for rate in request.rates:
        require(rate > 0, "rate", rate, "positive")
    cells, store = request.all_cells(), out / "cells"
    if stored_only:
        return written(request, out, record)
    plans = [cell.plan(store) for cell in cells]

    def announce(work: Work) -> None:
        jobs = Counter(job.folder.parent for job in work.jobs)
        left = [jobs[plan.folder] for plan in plans]
        _announce(console, request, cells, left, store, processes)

    for failure in failures(complete_with_progress(plans, console, processes, announce)):
        text = f"{failure.traceback}{failure.message}"
        console.print(text, highlight=False, markup=False, soft_wrap=True)
    return written(request, out, record)


def written(request: Request, out: Path, record: Path | None = None) -> list[dict[str, Any]]:
    """Write tables, figures and the page of what there is; outcomes to `record`, too."""
    found, folder = [], out / request.scale.name
    for target in request.targets:
        cells = request.cells(target)
        if not cells:
            continue
        result = outcome(target, request.scale, request.about, cells, out / "cells")
        result |= {"command": request.command(target)}
        write_json(folder / f"{target.name}.json", result)
        if record is not None:
            write_json(record / f"{request.label(target)}.json", result)
        for table in tables(result):
            table.write(folder)
        for drawing in figures(result):
            export(drawing, folder)
        found.append(result)
    write_page(stored(folder).values(), folder / "report.html")
    return found


def _announce(
    console: Console,
    request: Request,
    cells: Sequence[Cell],
    left: Sequence[int],
    store: Path,
    processes: int | None,
) -> None:
    names = ", ".join(target.name for target in request.targets)
    console.print(f"{names} at scale {request.scale.name}: {request.about}", highlight=False)
    count = sum(left)
    if not count:
        console.print(f"{counted(len(cells), 'cell')}, all finished: nothing is computed again")
        return
    at_once = processes or default_processes(count, 1)
    wait = in_words(seconds_left(cells, left, store, at_once))
    console.print(
        f"{counted(len(cells), 'cell')}, {sum(map(bool, left))} of them not finished: "
        f"{counted(count, 'run')}, {at_once} "
        f"at once, about {wait}",
        highlight=False,
    )
