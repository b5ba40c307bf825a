"""What is drawn of runs: those of one benchmark together, and each for itself."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from lamaml.experiments.reporting.figures import (
    Drawn,
    Key,
    Series,
    curves,
    heat_map,
    histograms,
    task_lines,
)
from lamaml.experiments.storing.results import Run

Points = tuple[np.ndarray, np.ndarray]
"""x, and a row of values a seed."""


class Line(NamedTuple):
    """How a run is drawn among others."""

    run: Run
    key: Key


def shared_figures(name: str, lines: Sequence[Line]) -> list[Drawn]:
    """Every figure in which runs of one benchmark can be compared.

    Args:
      name: of the benchmark.
      lines: a run each.
    """
    drawn = []
    for word, caption, points_of, x_label, percent in _FIGURES:
        found = [(line, *points_of(line.run)) for line in lines if line.run.finished]
        shown = [(line.key, x, y) for line, x, y in found if y.size]
        if shown:
            series = [Series(x, y, key.colour, key.dashes) for key, x, y in shown]
            draw = partial(curves, series, x_label, percent=percent)
            drawn.append(Drawn(f"{name}-{word}", caption, [key for key, _, _ in shown], draw))
    return drawn


def own_figures(name: str, run: Run) -> list[Drawn]:
    """Every figure of one run: its accuracy matrix, how each task fades, its rates by layer.

    Args:
      name: of the run among the others.
      run: with at least one finished seed, or nothing is drawn.
    """
    if not run.finished:
        return []
    matrix = _matrices(run).mean(axis=0)
    drawn = [
        Drawn(f"{name}-matrix", "Accuracy after each task", (), partial(heat_map, matrix)),
        Drawn(f"{name}-tasks", "How each task fades", (), partial(task_lines, matrix)),
    ]
    for layer, (edges, counts) in _rate_histograms(run).items():
        draw = partial(histograms, edges, counts, "tasks learned")
        drawn.append(Drawn(f"{name}-rates-{layer}", f"Learning rates of {layer}", (), draw))
    return drawn


def _rate_histograms(run: Run) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """(edges, shares by task) of every layer, over all finished seeds."""
    seeds = [found for seed in run.finished if (found := seed.rates())]
    layers: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for name in seeds[0][0] if seeds else ():
        high = max(task[name]["high"] for tasks in seeds for task in tasks)
        edges = np.linspace(0.0, max(high, 1e-9), 41)
        num_tasks = min(len(tasks) for tasks in seeds)
        counts = np.zeros((num_tasks, len(edges) - 1))
        for tasks in seeds:
            for number in range(num_tasks):
                found = tasks[number][name]
                bins = np.linspace(found["low"], found["high"], len(found["counts"]) + 1)
                centres = (bins[:-1] + bins[1:]) / 2
                counts[number] += np.histogram(centres, edges, weights=found["counts"])[0]
        layers[name] = edges, counts / counts.sum(axis=1, keepdims=True)
    return layers


def _matrices(run: Run) -> np.ndarray:
    """(seeds, T, T), of the finished seeds."""
    return np.array([seed.matrix for seed in run.finished])


def _seen_so_far(run: Run) -> Points:
    """After each task that all tasks so far were tested after."""
    matrices = _matrices(run)
    rows = [matrices[:, task, : task + 1] for task in range(matrices.shape[1])]
    tested = [row for row in rows if np.isfinite(row).all()]
    return np.array([row.shape[1] for row in tested]), np.array([r.mean(axis=1) for r in tested]).T


def _forgetting(run: Run) -> Points:
    """Mean accuracy on a task, by the number of tasks learned since."""
    matrices = _matrices(run)
    diagonals = {
        age: np.diagonal(matrices, offset=-age, axis1=1, axis2=2)
        for age in range(matrices.shape[1])
    }
    tested = {age: d for age, d in diagonals.items() if np.isfinite(d).any(axis=1).all()}
    return np.array(list(tested)), np.array([np.nanmean(d, axis=1) for d in tested.values()]).T


def _after_the_last(run: Run) -> Points:
    accuracies = _matrices(run)[:, -1]
    return np.arange(1, accuracies.shape[1] + 1), accuracies


def _diagnostic(name: str) -> Callable[[Run], Points]:
    """Of the updates at which it was measured."""

    def points(run: Run) -> Points:
        found = [seed.diagnostics().get(name, np.empty(0)) for seed in run.finished]
        known = np.flatnonzero(np.isfinite(np.array(found)).all(axis=0))
        return known + 1, np.array(found)[:, known]

    return points


_FIGURES: tuple[tuple[str, str, Callable[[Run], Points], str, bool], ...] = (
    ("seen", "Accuracy on the tasks seen so far", _seen_so_far, "tasks learned", True),
    ("last", "Accuracy on each task, after the last", _after_the_last, "task", True),
    ("forgetting", "Forgetting: accuracy as a task ages", _forgetting, "tasks learned since", True),
    ("rates", "Mean learning rate in use", _diagnostic("rate_mean"), "updates", False),
    (
        "still",
        "Share of weights held still, with a rate of 0",
        _diagnostic("rates_at_zero"),
        "updates",
        True,
    ),
    (
        "alignment",
        "Cosine of new and replayed gradients, trunk",
        _diagnostic("alignment_trunk"),
        "updates",
        False,
    ),
    (
        "inner",
        "Accuracy right after inner updates",
        _diagnostic("accuracy_inner"),
        "updates",
        True,
    ),
    (
        "after",
        "Accuracy right after meta-updates",
        _diagnostic("accuracy_after"),
        "updates",
        True,
    ),
    (
        "between",
        "Cosine among the gradients of old tasks, trunk",
        _diagnostic("inter_task_cosine_trunk"),
        "updates",
        False,
    ),
)
