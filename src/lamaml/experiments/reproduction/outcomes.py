"""`Outcome`: the results of a table or figure of the paper, with one reader and one writer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lamaml._io import write_json
from lamaml._records import to_json
from lamaml.experiments.reproduction.cells import Cell
from lamaml.experiments.reproduction.claims import Judgement, judge
from lamaml.experiments.reproduction.request import Request
from lamaml.experiments.reproduction.results import CellResult
from lamaml.experiments.reproduction.targets import TARGETS, Target
from lamaml.experiments.storing.environment import PACKAGES
from lamaml.experiments.storing.records import SeedState, read_record
from lamaml.experiments.storing.results import Run, read_run


@dataclass(frozen=True)
class Outcome:
    """The results of one target.

    Attributes:
      target: name of the table or figure.
      title: what it shows.
      scale: name of the scale.
      about: how much of the paper's protocol was run.
      cells: those of which a seed has ended.
      missing: the others, "METHOD, DATA".
      claims: what the paper says in words, judged by the cells.
      versions: of the packages, one entry per combination.
      command: prints the outcome again.
    """

    target: str
    title: str
    scale: str
    about: str
    cells: Sequence[CellResult]
    missing: Sequence[str]
    claims: Sequence[Judgement]
    versions: Sequence[str]
    command: str

    def write(self, path: Path) -> None:
        """Write a JSON file."""
        write_json(path, to_json(self))


def collect(request: Request, target: Target, store: Path) -> Outcome:
    """Returns the results of the runs of a target, as far as their seeds have ended.

    Args:
      request: what was asked for.
      target: one of its targets.
      store: the folder of the cells' folders.
    """
    cells = request.cells(target)
    runs = [_run_of(cell, store) for cell in cells]
    found = [(cell, run) for cell, run in zip(cells, runs, strict=True) if run]
    results = [CellResult.of_run(cell, run) for cell, run in found]
    return Outcome(
        target.name,
        target.title,
        request.scale.name,
        request.about,
        results,
        [f"{c.row}, {c.column}" for c, run in zip(cells, runs, strict=True) if not run],
        judge(target.name, results),
        sorted({_versions(run) for _, run in found}),
        request.command(target),
    )


def with_recorded(outcome: Outcome, cells: Sequence[Cell], path: Path) -> Outcome:
    """Returns the outcome with the cells of an earlier record whose runs are elsewhere by now.

    Args:
      outcome: what the runs at hand gave.
      cells: what was requested; a recorded cell of another name is not kept.
      path: the earlier record; it need not exist.
    """
    if not path.exists():
        return outcome
    earlier = read_record(path, Outcome)
    known = {(each.row, each.column, each.cell): each for each in [*earlier.cells, *outcome.cells]}
    keys = [(cell.row, cell.column, cell.training) for cell in cells]
    results = [known[key] for key in keys if key in known]
    return replace(
        outcome,
        cells=results,
        missing=[f"{key[0]}, {key[1]}" for key in keys if key not in known],
        claims=judge(outcome.target, results),
        versions=sorted({*earlier.versions, *outcome.versions}),
    )


def read_outcomes(folder: Path) -> dict[str, Outcome]:
    """Returns the outcomes in a folder by the stem of their files, in the paper's order.

    Raises:
      DataCorrupt: a file does not hold an outcome.
    """
    found = {path.stem: _judged(read_record(path, Outcome)) for path in folder.glob("*.json")}
    position = list(TARGETS).index
    return dict(sorted(found.items(), key=lambda pair: (position(pair[1].target), pair[0])))


def without_replaced(outcomes: Mapping[str, Outcome]) -> dict[str, Outcome]:
    """Returns the outcomes without partial ones whose every cell another one has at full size."""
    whole = {
        (outcome.target, cell.row, cell.column)
        for outcome in outcomes.values()
        for cell in outcome.cells
        if not _is_partial(cell)
    }
    return {
        name: outcome
        for name, outcome in outcomes.items()
        if not any(_is_partial(cell) for cell in outcome.cells)
        or not all((outcome.target, cell.row, cell.column) in whole for cell in outcome.cells)
    }


def _judged(outcome: Outcome) -> Outcome:
    """Returns the outcome with its claims judged by the present rules."""
    return replace(outcome, claims=judge(outcome.target, outcome.cells))


def _is_partial(cell: CellResult) -> bool:
    return cell.num_tasks is not None or cell.num_samples is not None


def _run_of(cell: Cell, store: Path) -> Run | None:
    """Returns the run of a cell, if one of its seeds has finished, diverged or failed."""
    folder = cell.folder(store)
    if not (folder / "settings.json").exists():
        return None
    run = read_run(folder)
    over = (seed.ended or seed.status.state is SeedState.FAILED for seed in run.seeds)
    return run if any(over) else None


def _versions(run: Run) -> str:
    return ", ".join(f"{name} {run.environment.versions[name]}" for name in PACKAGES)
