"""The figures of runs: comparisons of runs on one benchmark, and figures of each run."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from lamaml.experiments.reporting.figures import Drawing, Key
from lamaml.experiments.reporting.plots import Series, curves, heat_map, histograms, task_lines
from lamaml.experiments.storing.results import Run

_MOST_CLASSES = 20  # of a confusion matrix that can still be read

Points = tuple[np.ndarray, np.ndarray]
"""x, and y of shape (seeds, points)."""


class Line(NamedTuple):
    """A run, and how its line looks in shared figures."""

    run: Run
    key: Key


class _Kind(NamedTuple):
    """A shared figure: the end of its name, its caption, its points, its axes."""

    name: str
    caption: str
    points: Callable[[Run], Points]
    x_label: str
    percent: bool


def shared_figures(name: str, lines: Sequence[Line]) -> list[Drawing]:
    """Returns every figure that compares runs on one benchmark and has points to show.

    Args:
      name: the name of the benchmark.
      lines: one per run.
    """
    drawings = []
    for kind in _SHARED:
        found = [(line.key, *kind.points(line.run)) for line in lines if line.run.finished]
        shown = [(key, x, y) for key, x, y in found if y.size]
        if shown:
            series = [Series(x, y, key.colour, key.dashes) for key, x, y in shown]
            draw = partial(curves, series, kind.x_label, percent=kind.percent)
            legend = [key for key, _, _ in shown]
            drawings.append(Drawing(f"{name}-{kind.name}", kind.caption, legend, draw))
    return drawings


def own_figures(name: str, run: Run) -> list[Drawing]:
    """Returns the figures of one run: accuracy matrix, accuracy per task, rates per layer.

    Args:
      name: the name of the run among the others.
      run: without a finished seed it has no figures.
    """
    if not run.finished:
        return []
    matrix = _matrices(run).mean(axis=0)
    drawings = [
        Drawing(f"{name}-matrix", "Accuracy after each task", (), partial(heat_map, matrix)),
        Drawing(
            f"{name}-tasks", "Accuracy of each task over time", (), partial(task_lines, matrix)
        ),
    ]
    counts = run.confusion
    if counts is not None and len(counts) <= _MOST_CLASSES:
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        draw = partial(heat_map, shares, x_label="answered, from class 1", y_label="class")
        drawings.append(Drawing(f"{name}-confusion", "Answers after the last task", (), draw))
    for layer, (edges, shares) in _rate_histograms(run).items():
        draw = partial(histograms, edges, shares, "tasks learned")
        drawings.append(Drawing(f"{name}-rates-{layer}", f"Learning rates of {layer}", (), draw))
    return drawings


def _rate_histograms(run: Run) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Returns (edges, shares per task) of every layer, over all finished seeds."""
    seeds = [found for seed in run.finished if (found := seed.rates())]
    layers: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for name in seeds[0][0] if seeds else ():
        high = max(task[name].high for tasks in seeds for task in tasks)
        edges = np.linspace(0.0, max(high, 1e-9), 41)
        num_tasks = min(len(tasks) for tasks in seeds)
        counts = np.zeros((num_tasks, len(edges) - 1))
        for tasks in seeds:
            for number in range(num_tasks):
                layer = tasks[number][name]
                bins = np.linspace(layer.low, layer.high, len(layer.counts) + 1)
                centres = (bins[:-1] + bins[1:]) / 2
                counts[number] += np.histogram(centres, edges, weights=layer.counts)[0]
        layers[name] = edges, counts / counts.sum(axis=1, keepdims=True)
    return layers


def _matrices(run: Run) -> np.ndarray:
    """Returns the accuracy matrices of the finished seeds, (seeds, T, T)."""
    return np.array([seed.matrix for seed in run.finished])


def _seen_so_far(run: Run) -> Points:
    """Mean accuracy on the tasks so far, after each task where all of them were tested."""
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
    """Returns a function that gives a diagnostic at the updates where all seeds measured it."""

    def points(run: Run) -> Points:
        found = [seed.diagnostics().get(name, np.empty(0)) for seed in run.finished]
        known = np.flatnonzero(np.isfinite(np.array(found)).all(axis=0))
        return known + 1, np.array(found)[:, known]

    return points


def _over_updates(name: str, caption: str, diagnostic: str, *, percent: bool) -> _Kind:
    return _Kind(name, caption, _diagnostic(diagnostic), "updates", percent)


_SHARED = (
    _Kind("seen", "Accuracy on the tasks seen so far", _seen_so_far, "tasks learned", True),
    _Kind("last", "Accuracy on each task, after the last", _after_the_last, "task", True),
    _Kind(
        "forgetting",
        "Forgetting: accuracy by age of the task",
        _forgetting,
        "tasks learned since",
        True,
    ),
    _over_updates("rates", "Mean learning rate in use", "rate_mean", percent=False),
    _over_updates("still", "Share of weights with a rate of 0", "rates_at_zero", percent=True),
    _over_updates(
        "alignment",
        "Cosine of new and replayed gradients, trunk",
        "alignment_trunk",
        percent=False,
    ),
    _over_updates("inner", "Accuracy after the inner updates", "accuracy_inner", percent=True),
    _over_updates("after", "Accuracy after the meta-update", "accuracy_after", percent=True),
    _over_updates(
        "between",
        "Cosine among the gradients of old tasks, trunk",
        "inter_task_cosine_trunk",
        percent=False,
    ),
)
