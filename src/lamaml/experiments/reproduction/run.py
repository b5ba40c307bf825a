"""`reproduce`: runs the cells that are missing, and writes tables, figures and a page.

OUT/cells/...                       one run folder per cell; finished cells are never computed again
OUT/SCALE/TARGET.json               the outcome
OUT/SCALE/TARGET.md .tex .csv       its tables
OUT/SCALE/FIGURE.svg .pdf           its figures
OUT/SCALE/report.html               every outcome in the folder, on one page
"""

import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from lamaml._io import write_text
from lamaml.errors import LamamlError, require
from lamaml.experiments.reporting.figures import export
from lamaml.experiments.reporting.page import templates
from lamaml.experiments.reporting.tables import counted
from lamaml.experiments.reproduction.cells import SIZES, Cell, num_updates
from lamaml.experiments.reproduction.figures import figures
from lamaml.experiments.reproduction.outcomes import (
    Outcome,
    collect,
    read_outcomes,
    with_recorded,
)
from lamaml.experiments.reproduction.request import Request
from lamaml.experiments.reproduction.scales import is_stand_in
from lamaml.experiments.reproduction.summary import data_of, summary_table
from lamaml.experiments.reproduction.tables import tables
from lamaml.experiments.running.console import failures, run_with_progress
from lamaml.experiments.running.engines import Workers
from lamaml.experiments.running.plan import Work, missing_runs
from lamaml.experiments.storing.results import read_run

_START = {"digits": 2.0, "mlp": 6.0, "cnn": 25.0}  # seconds to import, build the stream and compile
_EVALUATE = {"mlp": 0.04, "cnn": 0.6}  # seconds per evaluation of a task

Pace = Mapping[tuple[str, str], float]
"""Milliseconds per update by (benchmark, learner)."""


def reproduce(
    request: Request,
    out: Path,
    console: Console,
    *,
    workers: Workers | None = None,
    record: Path | None = None,
    stored_only: bool = False,
) -> list[Outcome]:
    """Runs the cells that are missing, writes the outcomes, and returns them.

    Args:
      request: what to reproduce.
      out: the folder for cells, tables, figures and the page.
      console: shows the progress.
      workers: where the runs are made; None for one local process per core.
      record: another folder for the outcomes' JSON; None for none. Cells that an earlier record
        has, and whose runs are not in `out`, stay in it.
      stored_only: run nothing; write the outcomes of the cells that have finished.

    Raises:
      Stopped: by Ctrl-C or SIGTERM; the same command continues.
      LamamlError: settings, data or the disk are refused.
    """
    for rate in request.rates:
        require(rate > 0, "rate", rate, "positive")
    cells, store = request.all_cells(), out / "cells"
    if not stored_only:
        _run_missing(request, cells, store, console, workers or Workers())
    return write_outcomes(request, out, record)


def write_outcomes(request: Request, out: Path, record: Path | None = None) -> list[Outcome]:
    """Writes tables, figures and the page of the cells that have finished.

    Returns:
      The outcome of each target of which a cell was requested.
    """
    found, folder = [], out / request.scale.name
    for target in request.targets:
        if not request.cells(target):
            continue
        outcome = collect(request, target, out / "cells")
        outcome.write(folder / f"{target.name}.json")
        if record is not None:
            path = record / f"{request.label(target)}.json"
            with_recorded(outcome, request.cells(target), path).write(path)
        for table in tables(outcome):
            table.write(folder)
        for drawing in figures(outcome):
            export(drawing, folder)
        found.append(outcome)
    write_text(folder / "report.html", render_page(read_outcomes(folder).values()))
    return found


def render_page(outcomes: Iterable[Outcome]) -> str:
    """Returns every table and figure on one self-contained HTML page."""
    shown = list(outcomes)
    parts = [
        {"outcome": outcome, "tables": tables(outcome), "figures": figures(outcome)}
        for outcome in shown
    ]
    template = templates().get_template("reproduction.html")
    page = template.render(parts=parts, summary=summary_table(shown), data_of=data_of)
    return page.strip() + "\n"


def seconds_per_seed(cell: Cell, pace: Pace) -> float:
    """Estimates the time of one seed in one process with one thread."""
    run, num_tasks = cell.recipe, cell.settings.num_tasks
    tasks = min(num_tasks or 1000, SIZES[run.benchmark][0])
    evaluations = min(tasks, 20) * tasks / 2
    milliseconds = pace.get((run.benchmark, run.learner)) or _table_pace(run.model, run.learner)
    training = num_updates(run, num_tasks, cell.settings.num_samples) * milliseconds / 1000
    start = _START["digits" if is_stand_in(run.benchmark) else run.model]
    return start + training + _EVALUATE[run.model] * evaluations


def in_words(seconds: float) -> str:
    """Returns a duration in the largest fitting unit.

    >>> in_words(42), in_words(200), in_words(7 * 3600), in_words(100 * 3600)
    ('42 seconds', '3 minutes', '7.0 hours', '4.2 days')
    """
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} minutes"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.1f} hours"
    return f"{seconds / 86400:.1f} days"


def _run_missing(
    request: Request, cells: Sequence[Cell], store: Path, console: Console, workers: Workers
) -> None:
    plans = [cell.plan(store) for cell in cells]

    def announce(work: Work) -> None:
        jobs = Counter(job.folder.parent for job in work.jobs)
        left = [jobs[plan.folder] for plan in plans]
        console.print(_announcement(request, cells, left, store, workers), highlight=False)

    folders = [plan.folder for plan in plans]
    runs = run_with_progress(missing_runs(plans), folders, console, workers, announce)
    for failure in failures(runs):
        text = f"{failure.traceback}{failure.message}"
        console.print(text, highlight=False, markup=False, soft_wrap=True)


def _announcement(
    request: Request,
    cells: Sequence[Cell],
    left: Sequence[int],
    store: Path,
    workers: Workers,
) -> str:
    """Returns what will be run, and an estimate of its time; `left` has the seeds per cell."""
    names = ", ".join(target.name for target in request.targets)
    title = f"{names} at scale {request.scale.name}: {request.about}"
    total, count = counted(len(cells), "cell"), sum(left)
    if not count:
        return f"{title}\n{total}, all finished: nothing is computed again"
    at_once = workers.at_once(count, 1)
    pace = _measured_pace(store)
    work = [(seconds_per_seed(cell, pace), seeds) for cell, seeds in zip(cells, left, strict=True)]
    longest = max(seconds for seconds, seeds in work if seeds)
    wait = max(sum(seconds * seeds for seconds, seeds in work) / max(at_once, 1), longest)
    return (
        f"{title}\n{total}, {sum(map(bool, left))} of them not finished: {counted(count, 'run')}, "
        f"{at_once} at once, about {in_words(wait)}"
    )


def _measured_pace(store: Path) -> Pace:
    """Returns the mean pace of the cells that have finished in a folder."""
    found: dict[tuple[str, str], list[float]] = {}
    for path in sorted(store.glob("*/summary.json")):
        try:
            summary = read_run(path.parent).summary
        except LamamlError:
            continue
        if summary.ms_per_update is not None:
            pair = (summary.stream, summary.learner)
            found.setdefault(pair, []).append(summary.ms_per_update)
    return {pair: sum(values) / len(values) for pair, values in found.items()}


def _table_pace(model: str, learner: str) -> float:
    """Returns milliseconds per update from speeds.toml, scaled to this machine."""
    speeds = _speeds()
    return float(speeds[model].get(learner, max(speeds[model].values()))) / _machine()


@cache
def _speeds() -> dict[str, Any]:
    path = resources.files("lamaml.experiments.reproduction") / "speeds.toml"
    return tomllib.loads(path.read_text("utf-8"))


@cache
def _machine() -> float:
    """Returns this machine's matrix-product rate as a multiple of that in speeds.toml."""
    matrix = np.ones((512, 512), np.float32)
    best = min(_seconds_to_multiply(matrix) for _ in range(10))
    return float(2 * len(matrix) ** 3 / best / 1e9 / _speeds()["gemm_gflops"])


def _seconds_to_multiply(matrix: np.ndarray) -> float:
    start = time.perf_counter()
    matrix @ matrix
    return time.perf_counter() - start
