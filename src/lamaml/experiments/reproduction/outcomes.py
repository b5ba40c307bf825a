"""What was found for a target, as one small JSON object: what is committed, drawn and compared."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lamaml.evaluation.alignment import ALIGNMENTS
from lamaml.experiments.reporting.statistics import Sample, sample, verdict
from lamaml.experiments.reproduction.cells import Cell
from lamaml.experiments.reproduction.claims import judged
from lamaml.experiments.reproduction.estimates import num_updates
from lamaml.experiments.reproduction.scales import MNIST, Scale
from lamaml.experiments.reproduction.targets import TARGETS, Target
from lamaml.experiments.storing.environment import PACKAGES
from lamaml.experiments.storing.records import METRICS, SeedState, read_object
from lamaml.experiments.storing.results import Run, Seed, read_run

Found = dict[str, Any]
"""A cell as it is stored."""

PAPER_SEEDS = dict.fromkeys(MNIST, 5)
"""The paper's seeds, by benchmark; 3 where it is not here."""
_STORED = {"target", "title", "about", "cells", "claims", "command", "missing", "versions"}
_MOST_POINTS = 250  # of a stored curve


def outcome(
    target: Target, scale: Scale, about: str, cells: Sequence[Cell], store: Path
) -> dict[str, Any]:
    """What the finished runs of a target say; a cell of which no seed has ended is missing.

    Args:
      target: the table or figure.
      scale: they were run at.
      about: how much of the paper's protocol that is.
      cells: the target's.
      store: the folder of the cells' folders.
    """
    runs = {number: run for number, cell in enumerate(cells) if (run := _run_of(cell, store))}
    found = [_found(scale, cells[number], run) for number, run in runs.items()]
    return {
        "target": target.name,
        "title": target.title,
        "scale": scale.name,
        "about": about,
        "cells": found,
        "missing": [f"{c.row}, {c.column}" for n, c in enumerate(cells) if n not in runs],
        "claims": judged(target.name, found),
        "versions": sorted({_versions(run) for run in runs.values()}),
    }


def stored(folder: Path) -> dict[str, dict[str, Any]]:
    """The outcomes of a folder, by the name of their file, in the paper's order."""
    found = {path.stem: read_object(path, _STORED) for path in folder.glob("*.json")}
    for outcome in found.values():  # claims as this code judges them, whatever it was made with
        outcome["claims"] = judged(outcome["target"], outcome["cells"])
    place = list(TARGETS).index
    return dict(sorted(found.items(), key=lambda pair: (place(pair[1]["target"]), pair[0])))


def _run_of(cell: Cell, store: Path) -> Run | None:
    """The cell's run, if one of its seeds has finished, diverged or failed."""
    folder = cell.folder(store)
    if not (folder / "settings.json").exists():
        return None
    run = read_run(folder)
    return (
        run
        if any(seed.ended or seed.status.state is SeedState.FAILED for seed in run.seeds)
        else None
    )


def _found(scale: Scale, cell: Cell, run: Run) -> Found:
    wanted = Run(run.folder, run.settings, run.environment, run.seeds[: cell.seeds])
    brief, recipe = wanted.summary.to_json(), cell.recipe
    ours = {metric: _rounded(brief[metric]) for metric in METRICS}
    same = not scale.stand_ins and is_the_papers(cell, brief["num_updates"])
    paper = {metric: list(pair) for metric, pair in recipe.published.items()}
    seeds = PAPER_SEEDS.get(recipe.benchmark, 3)
    verdicts = {
        metric: verdict(
            sample(brief[metric]["values"]) if same else None,
            Sample(pair[0], pair[1], seeds) if len(pair) == 2 else None,
        ).word
        for metric, pair in paper.items()
    }
    return {
        "row": cell.row,
        "column": cell.column,
        "cell": cell.training,
        "benchmark": recipe.benchmark,
        "protocol": recipe.protocol,
        "learner": recipe.learner,
        "preset": recipe.preset,
        "revision": _revision(run),
        "changed": dict(cell.changed),
        "cut": dict(cell.cut),
        "num_tasks": cell.num_tasks,
        "num_samples": cell.num_samples,
        "statuses": brief["statuses"],
        **ours,
        "paper": paper,
        "paper_seeds": seeds,
        "verdicts": verdicts,
        "seconds": _rounded(brief["seconds"]),
        "train_seconds": [
            round(s.status.seconds.train, 2) for s in wanted.finished if s.status.seconds
        ],
        "ms_per_update": _rounded(brief["ms_per_update"]),
        "measured": measured(recipe.probes, wanted.finished),
    }


def is_the_papers(cell: Cell, updates: int | None) -> bool:
    """Whether a cell is the paper's own experiment, by its settings and by the updates it made.

    A part of an archive makes fewer; the joint streams, whose batches span tasks, a few less.
    """
    own = not cell.changed and not cell.cut and cell.num_tasks is cell.num_samples is None
    return own and (updates or 0) > 0.95 * num_updates(cell)


def measured(probes: Sequence[str], seeds: Sequence[Seed]) -> dict[str, Any]:
    """What a target's probe found: a value a seed, or a curve a seed."""
    if not probes or not seeds:
        return {}
    (probe,) = probes
    logs = [seed.diagnostics() for seed in seeds]
    if probe == "alignment":
        return {
            name: [round(float(np.nanmean(log[name])), 5) for log in logs]
            for name in ALIGNMENTS
            if all(np.isfinite(log.get(name, np.nan)).any() for log in logs)
        }
    prefix = {"look_ahead": "accuracy_", "inter_task": "inter_task_"}[probe]
    names = tuple(name for name in logs[0] if name.startswith(prefix))
    known = np.flatnonzero(np.isfinite(logs[0][names[0]]))
    known = known[:: max(1, len(known) // _MOST_POINTS)]
    curves = {name: np.array([log[name][known] for log in logs]) for name in names}
    return {"updates": (known + 1).tolist()} | {
        name: np.round(values, 4).tolist() for name, values in curves.items()
    }


def _rounded(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _rounded(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_rounded(part) for part in value]
    return round(value, 3) if isinstance(value, float) else value


def _versions(run: Run) -> str:
    return ", ".join(f"{name} {run.environment.versions[name]}" for name in PACKAGES)


def _revision(run: Run) -> str:
    revision = run.environment.revision or "unknown"
    return revision[:12] + (" with changes" if run.environment.dirty else "")
