"""The tables of a panel: means and ranks per half, every stream, drifts, regression."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from lamaml.experiments.reporting.table import Table
from lamaml.panel.judge import Result
from lamaml.panel.models import MODELS
from lamaml.panel.run import Panel
from lamaml.panel.streams import CHOOSING, JUDGING, STREAMS

_AFTER = ((0, 1_000), (1_000, 3_000), (4_000, 6_000))  # rows after the change of linear_concepts
_DIVERGED = 1e6  # larger mean absolute errors are not printed


class Means(NamedTuple):
    """The mean over seeds of one number, (streams, models); NaN where there is no result."""

    streams: list[str]
    models: list[str]
    values: np.ndarray

    def ranks(self) -> np.ndarray:
        """Return the mean rank of each model over the streams, 1 for best."""
        return rankdata(-self.values.round(6), axis=1).mean(axis=0)

    def of(self, streams: Sequence[str]) -> "Means":
        """Return the part of some streams."""
        kept = [number for number, name in enumerate(self.streams) if name in streams]
        return Means([self.streams[k] for k in kept], self.models, self.values[kept])

    def complete(self) -> list[str]:
        """Return the streams that every model has a result for."""
        known = ~np.isnan(self.values).any(axis=1)
        return [name for name, is_known in zip(self.streams, known, strict=True) if is_known]


def means(
    panel: Panel,
    number: Callable[[Result], float],
    *,
    half: str | None = None,
    is_regression: bool = False,
) -> Means:
    """Return the mean over seeds of a number of each result.

    Args:
      panel: the results.
      number: of a result, such as its retained accuracy.
      half: "choosing" or "judging"; None for both.
      is_regression: the streams of numbers, or those of classes.
    """
    found: dict[tuple[str, str], list[float]] = {}
    for result in panel.results:
        found.setdefault((result.stream, result.model), []).append(number(result))
    streams = [
        name
        for name, stream in STREAMS.items()
        if stream.is_regression == is_regression
        and half in (None, stream.half)
        and any(name == key[0] for key in found)
    ]
    models = [name for name in MODELS if any(name == key[1] for key in found)]
    values = [[np.mean(found.get((s, m), [np.nan])) for m in models] for s in streams]
    return Means(streams, models, np.array(values).reshape(len(streams), len(models)))


def summary_table(panel: Panel, half: str) -> Table:
    """Return one row per model: means and mean ranks over the streams of classes of a half.

    Streams that not all models have a result for are left out.
    """
    complete = means(panel, lambda r: r.retained, half=half).complete()
    if not complete:
        return Table(f"summary_{half}", "", [], [])

    def over(number: Callable[[Result], float]) -> Means:
        return means(panel, number, half=half).of(complete)

    prequential, retained = over(lambda r: r.prequential), over(lambda r: r.retained)
    columns = {
        "prequential %": [_percent(v) for v in _mean(prequential)],
        "rank": [_number(v, 1) for v in prequential.ranks()],
        "retained %": [_percent(v) for v in _mean(retained)],
        "rank ": [_number(v, 1) for v in retained.ranks()],
        "after drifts %": [_percent(v) for v in _mean(over(lambda r: r.after_drifts))],
        "balanced %": [_percent(v) for v in _mean(over(lambda r: r.balanced))],
        "log loss": [_number(v, 3) for v in _mean(over(lambda r: r.log_loss))],
        "s / 1,000 rows": [_number(v, 2) for v in _mean(over(lambda r: r.seconds))],
        "kB": [_number(v / 1e3, 0) for v in _mean(over(lambda r: float(r.num_bytes)))],
    }
    title = f"Streams of classes, {half} half ({len(prequential.streams)} streams), means"
    rows = zip(prequential.models, *columns.values(), strict=True)
    return Table(f"summary_{half}", title, ["model", *columns], [list(row) for row in rows])


def streams_table(panel: Panel) -> Table:
    """Return prequential / retained accuracy of every model on every stream of classes."""
    first = means(panel, lambda r: r.prequential)
    second = means(panel, lambda r: r.retained)
    rows = [
        [
            name,
            STREAMS[name].half,
            *(
                f"{_number(100 * a, 0)}/{_number(100 * b, 0)}"
                for a, b in zip(first.values[i], second.values[i], strict=True)
            ),
        ]
        for i, name in enumerate(first.streams)
    ]
    title = "Prequential / retained accuracy, %"
    return Table("streams", title, ["stream", "half", *first.models], rows)


def regression_table(panel: Panel) -> Table:
    """Return prequential / retained mean absolute error, every model on every stream of numbers."""
    first = means(panel, lambda r: r.prequential, is_regression=True)
    second = means(panel, lambda r: r.retained, is_regression=True)
    rows = [
        [
            name,
            STREAMS[name].half,
            *(
                f"{_number(a, 2)}/{_number(b, 2)}"
                for a, b in zip(first.values[i], second.values[i], strict=True)
            ),
        ]
        for i, name in enumerate(first.streams)
    ]
    title = "Prequential / retained mean absolute error"
    return Table("regression", title, ["stream", "half", *first.models], rows)


def change_table(panel: Panel) -> Table:
    """Return the accuracy after the change of `linear_concepts`, by the number of rows since."""

    def after(start: int, stop: int) -> Means:
        chosen = [r for r in panel.results if r.stream == "linear_concepts"]
        return means(
            Panel(panel.version, panel.form, chosen, {}, panel.environment),
            lambda r: r.scores(r.drifts[0] + start, r.drifts[0] + stop),
        )

    columns = [after(*window) for window in _AFTER]
    rows = []
    for number, model in enumerate(columns[0].models):
        rows.append([model, *(_percent(found.values[0, number]) for found in columns)])
    header = ["model", *(f"rows {start:,}–{stop:,}" for start, stop in _AFTER)]
    return Table("change", "Accuracy after the change of linear_concepts, %", header, rows)


def tables(panel: Panel) -> Sequence[Table]:
    """Return all tables that have a row."""
    found = [
        summary_table(panel, JUDGING),
        summary_table(panel, CHOOSING),
        streams_table(panel),
        change_table(panel),
        regression_table(panel),
    ]
    return [table for table in found if table is not None and table.rows]


def _mean(found: Means) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        known = ~np.isnan(found.values)
        return np.where(known, found.values, 0).sum(axis=0) / known.sum(axis=0)


def _percent(share: float) -> str:
    return _number(100 * share, 1)


def _number(value: float, digits: int) -> str:
    if value > _DIVERGED:
        return "diverged"
    return "–" if np.isnan(value) else f"{value:.{digits}f}"
