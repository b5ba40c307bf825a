"""The figures of the paper, drawn from outcomes."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from lamaml.experiments.reporting.figures import Drawing, Key
from lamaml.experiments.reporting.plots import Point, Series, curves, points, rate_map
from lamaml.experiments.reproduction.outcomes import Outcome
from lamaml.experiments.reproduction.results import CellResult
from lamaml.experiments.reproduction.targets import RATES

Cells = Sequence[CellResult]

COLOURS = {
    "La-MAML": 0,
    "C-MAML": 1,
    "Sync": 2,
    "La-ER": 3,
    "ER": 4,
    "Online": 5,
    "MER": 6,
    "GEM": 7,
    "A-GEM": 8,
    "EWC": 9,
    "iCaRL": 9,
    "DER++": 1,
    "Dark La-MAML": 3,
}
"""The colour of each method: its number in `Palette.series`."""


def figures(outcome: Outcome) -> list[Drawing]:
    """Returns the figures of a target that have something to show."""
    build = _BUILDERS.get(outcome.target)
    return build(outcome.cells) if build else []


def _look_ahead(cells: Cells) -> list[Drawing]:
    drawings = []
    for cell in cells:
        if cell.measured.updates:
            x = np.array(cell.measured.updates)
            inner, after = (
                Series(x, cell.measured.curve(name), colour)
                for name, colour in (("accuracy_inner", 6), ("accuracy_after", 0))
            )
            legend = [Key("at θ_K, after inner updates", inner.colour)]
            legend.append(Key("at θ_0, after the meta-update", after.colour))
            caption = f"{cell.row} on {cell.column}: accuracy on the tasks seen so far"
            draw = partial(curves, [inner, after], "updates")
            drawings.append(Drawing("figure-lookahead", caption, legend, draw))
    return drawings


def _inter_task(cells: Cells) -> list[Drawing]:
    series, legend = [], []
    for cell in cells:
        values = cell.measured.curve("inter_task_cosine_trunk")
        if values.size:
            tasks = np.arange(3, 3 + values.shape[1])
            series.append(Series(tasks, values, COLOURS[cell.row]))
            legend.append(Key(cell.row, COLOURS[cell.row]))
    if not series:
        return []
    draw = partial(curves, series, "task t that is streaming", percent=False)
    caption = "Mean cosine of the gradients of tasks 1 … t−1"
    return [Drawing("figure-intertask", caption, legend, draw)]


def _robustness(cells: Cells) -> list[Drawing]:
    drawings = []
    for learner, rates in RATES.items():
        series, legend, row = [], [], ""
        for (symbol, name), colour in zip(rates.items(), (0, 1, 4), strict=False):
            found = {
                cell.changed[name]: cell
                for cell in cells
                if cell.learner == learner
                and list(cell.changed) == [name]
                and cell.ra.mean is not None
            }
            if found:
                x = np.array(sorted(found))
                y = np.array([[(found[rate].ra.mean or 0.0) / 100 for rate in x]])
                series.append(Series(x, y, colour))
                legend.append(Key(symbol, colour))
                row = next(iter(found.values())).row
        if series:
            draw = partial(curves, series, "learning rate", log=True)
            caption = f"{row}: RA as one rate varies, the others at their optimum"
            drawings.append(Drawing(f"figure-robustness-{learner}", caption, legend, draw))
    return drawings


def _robustness_grid(cells: Cells) -> list[Drawing]:
    drawings = []
    for learner in ("c_maml", "la_maml"):
        (first, one), (second, other) = RATES[learner].items()
        found = [cell for cell in cells if cell.learner == learner]
        if not found:
            continue
        xs = sorted({cell.changed[one] for cell in found})
        ys = sorted({cell.changed[other] for cell in found})
        values = np.full((len(ys), len(xs)), np.nan)
        for cell in found:
            if cell.ra.mean is not None:
                where = ys.index(cell.changed[other]), xs.index(cell.changed[one])
                values[where] = cell.ra.mean / 100
        draw = partial(rate_map, values, xs, ys, (first, second))
        caption = f"{found[0].row}: RA in percent over {first} and {second}"
        drawings.append(Drawing(f"figure-robustness-grid-{learner}", caption, [], draw))
    return drawings


def _time(cells: Cells) -> list[Drawing]:
    marks = [
        Point(cell.row, cell.mean_train_seconds, cell.ra.mean / 100, COLOURS[cell.row])
        for cell in cells
        if cell.mean_train_seconds is not None and cell.ra.mean is not None
    ]
    if not marks:
        return []
    draw = partial(points, marks, "training seconds per seed")
    return [Drawing("figure-time", "RA against training time", [], draw)]


def _cost(cells: Cells) -> list[Drawing]:
    """RA against training time, one line per method, its points the numbers of glances."""
    drawings = []
    for column in dict.fromkeys(cell.column for cell in cells):
        lines: dict[str, list[CellResult]] = {}
        for cell in cells:
            if cell.column == column and cell.ra.mean is not None:
                lines.setdefault(cell.row, []).append(cell)
        series = [
            Series(
                np.array([cell.mean_train_seconds for cell in found], float),
                np.array([[(cell.ra.mean or 0.0) / 100 for cell in found]]),
                COLOURS[row],
            )
            for row, found in lines.items()
        ]
        legend = [Key(row, COLOURS[row]) for row in lines]
        draw = partial(curves, series, "training seconds per seed")
        caption = f"{column}: RA against training time, with more and more glances"
        drawings.append(Drawing(f"figure-cost-{column.lower()}", caption, legend, draw))
    return drawings


def _dark_weight(cells: Cells) -> list[Drawing]:
    """RA on validation rows against λ, one line per stream."""
    series, legend = [], []
    for colour, column in enumerate(dict.fromkeys(cell.column for cell in cells)):
        found = {
            cell.changed["dark_weight"]: cell.ra.mean / 100
            for cell in cells
            if cell.column == column and cell.ra.mean is not None
        }
        series.append(Series(np.array([*found]), np.array([[*found.values()]]), colour))
        legend.append(Key(column, colour))
    draw = partial(curves, series, "λ", log=True)
    caption = "RA of Dark La-MAML on validation rows, as λ varies"
    return [Drawing("figure-dark-weight", caption, legend, draw)] if series else []


_BUILDERS: dict[str, Callable[[Cells], list[Drawing]]] = {
    "figure-lookahead": _look_ahead,
    "figure-intertask": _inter_task,
    "figure-robustness": _robustness,
    "figure-robustness-grid": _robustness_grid,
    "figure-time": _time,
    "figure-cost": _cost,
    "figure-dark-weight": _dark_weight,
}
