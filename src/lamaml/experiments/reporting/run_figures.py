"""The figures of runs: comparisons of runs on one benchmark, and figures of each run."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from lamaml.experiments.reporting.canvas import Level, Quantity
from lamaml.experiments.reporting.figures import Drawing, Key
from lamaml.experiments.reporting.heat_maps import accuracy_matrix, confusion_matrix, histograms
from lamaml.experiments.reporting.line_plots import Series, curves, task_lines
from lamaml.experiments.reporting.point_plots import Point, points
from lamaml.experiments.storing.results import Run

_MOST_CLASSES = 20  # of a confusion matrix that can still be read

Points = tuple[np.ndarray, np.ndarray]
"""x, and y of shape (seeds, points)."""

_SMOOTHED = 0.02  # share of a run over which its loss is averaged
_NUM_BINS = 40


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
    quantity: Quantity


def shared_figures(name: str, lines: Sequence[Line], levels: Sequence[Level] = ()) -> list[Drawing]:
    """Returns every figure that compares runs on one benchmark and has points to show.

    Args:
      name: the name of the benchmark.
      lines: one per run.
      levels: lines for reference, in the figures of accuracies.
    """
    drawings = []
    for kind in _SHARED:
        found = [(line.key, *kind.points(line.run)) for line in lines if line.run.finished]
        shown = [(key, x, y) for key, x, y in found if y.size]
        if shown:
            series = [Series(x, y, key.colour, key.dashes, key.word) for key, x, y in shown]
            draw = partial(
                curves,
                series,
                kind.x_label,
                quantity=kind.quantity,
                levels=levels if kind.quantity == "accuracy" else (),
            )
            legend = [key for key, _, _ in shown]
            drawings.append(Drawing(f"{name}-{kind.name}", kind.caption, legend, draw))
    return [*drawings, *_cost(name, lines, levels)]


def own_figures(name: str, run: Run, colour: int = 0) -> list[Drawing]:
    """Returns the figures of one run: accuracy matrix, accuracy per task, rates per layer.

    Args:
      name: the name of the run among the others.
      run: without a finished seed it has no figures.
      colour: of the learner, its number in `Palette.series`.
    """
    if not run.finished:
        return []
    matrix = _matrices(run).mean(axis=0)
    learner = run.settings.recipe.learner
    drawings = [
        Drawing(
            f"{name}-matrix",
            f"{learner}: accuracy matrix",
            (),
            partial(accuracy_matrix, matrix, colour=colour),
        ),
        Drawing(
            f"{name}-tasks",
            f"{learner}: accuracy of each task",
            (),
            partial(task_lines, matrix, colour=colour),
        ),
    ]
    counts = run.confusion
    if counts is not None and len(counts) <= _MOST_CLASSES:
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        draw = partial(confusion_matrix, shares, colour=colour)
        caption = f"{learner}: answers after the last task"
        drawings.append(Drawing(f"{name}-confusion", caption, (), draw))
    layers = _rate_histograms(run)
    most = max((float(shares.max()) for _, shares in layers.values()), default=0.0)
    for layer, (edges, shares) in layers.items():
        draw = partial(histograms, edges, shares, most=most, colour=colour)
        caption = f"{learner}: rates of {layer}"
        drawings.append(Drawing(f"{name}-rates-{layer}", caption, (), draw))
    return drawings


def in_network_order(layers: Sequence[str]) -> list[str]:
    """Returns the layers from the input to the output.

    >>> in_network_order(["convolution_10", "convolution_2", "head", "hidden_1"])
    ['convolution_2', 'convolution_10', 'hidden_1', 'head']
    """

    def place(layer: str) -> tuple[int, list[int], str]:
        kind = re.split(r"[_\d]", layer)[0]
        first = {"convolution": 0, "head": 2}.get(kind, 1)
        return first, [int(number) for number in re.findall(r"\d+", layer)], layer

    return sorted(layers, key=place)


def _cost(name: str, lines: Sequence[Line], levels: Sequence[Level]) -> list[Drawing]:
    """RA against the training time, one point per run."""
    marks = [
        Point(line.key.word, found.seconds.train, found.ra.mean / 100, line.key.colour)
        for line in lines
        if (found := line.run.summary).ra.mean is not None
    ]
    if not marks:
        return []
    draw = partial(points, marks, "training seconds per seed", levels=levels)
    return [Drawing(f"{name}-cost", "Retained accuracy against cost", (), draw)]


def _rate_histograms(run: Run) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Returns (edges, shares per task) of every layer, over all finished seeds, on one scale."""
    seeds = [found for seed in run.finished if (found := seed.rates())]
    layers: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    if not seeds:
        return layers
    highs = (layer.high for tasks in seeds for task in tasks for layer in task.values())
    edges = np.linspace(0.0, max(*highs, 1e-9), _NUM_BINS + 1)
    num_tasks = min(len(tasks) for tasks in seeds)
    for name in in_network_order(list(seeds[0][0])):
        counts = np.zeros((num_tasks, _NUM_BINS))
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

    def points_of(run: Run) -> Points:
        found = [seed.diagnostics().get(name, np.empty(0)) for seed in run.finished]
        known = np.flatnonzero(np.isfinite(np.array(found)).all(axis=0))
        return known + 1, np.array(found)[:, known]

    return points_of


def _loss(run: Run) -> Points:
    """The training loss, averaged over neighbouring updates."""
    x, y = _diagnostic("loss")(run)
    width = max(1, round(_SMOOTHED * len(x)))
    count = len(x) // width
    means = y[:, : count * width].reshape(len(y), count, width).mean(axis=2)
    return x[width - 1 :: width][:count], means


def _over_updates(name: str, caption: str, diagnostic: str, quantity: Quantity) -> _Kind:
    return _Kind(name, caption, _diagnostic(diagnostic), "updates", quantity)


_SHARED = (
    _Kind("seen", "Accuracy on the tasks seen so far", _seen_so_far, "tasks learned", "accuracy"),
    _Kind("last", "Accuracy on each task, after the last", _after_the_last, "task", "accuracy"),
    _Kind(
        "forgetting",
        "Forgetting: accuracy by age of the task",
        _forgetting,
        "tasks learned since",
        "accuracy",
    ),
    _Kind(
        "loss", "Training loss, averaged over fiftieths of the run", _loss, "updates", "positive"
    ),
    _over_updates("rates", "Mean learning rate in use", "rate_mean", "positive"),
    _over_updates("still", "Share of weights with a rate of 0", "rates_at_zero", "share"),
    _over_updates(
        "alignment", "Cosine of new and replayed gradients, trunk", "alignment_trunk", "signed"
    ),
    _over_updates("inner", "Accuracy after the inner updates", "accuracy_inner", "accuracy"),
    _over_updates("after", "Accuracy after the meta-update", "accuracy_after", "accuracy"),
    _over_updates(
        "between",
        "Cosine among the gradients of old tasks, trunk",
        "inter_task_cosine_trunk",
        "signed",
    ),
)
