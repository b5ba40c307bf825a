"""Columns of pandas and polars frames as numbers, dates or texts, in one form for both."""

import datetime
import decimal
import sys
from typing import Any, NamedTuple

import numpy as np

from lamaml.errors import InvalidArgument

NUMBER, DATE, CATEGORY = "number", "date", "category"
KINDS = (NUMBER, DATE, CATEGORY)
"""What a column can hold."""
_HELD = {NUMBER: "numbers", DATE: "dates", CATEGORY: "strings or categories"}  # for messages
_NUMBERS = (bool, int, float, decimal.Decimal, np.number, np.bool_)


class Column(NamedTuple):
    """A column of a frame."""

    name: Any
    kind: str | None  # None where no value is there
    values: np.ndarray  # (n,) float64, NaN where missing; of a category: str, None where missing


def is_frame(X: Any) -> bool:
    """Return whether X is a frame of pandas or polars."""
    modules = (sys.modules.get("pandas"), sys.modules.get("polars"))
    return any(module is not None and isinstance(X, module.DataFrame) for module in modules)


def read_columns(X: Any) -> list[Column]:
    """Return the columns of a frame.

    Dates are seconds since 1970-01-01 UTC; those without a time zone are taken as UTC. Durations
    and times of the day are numbers: seconds.

    Raises:
      InvalidArgument: a column holds something else, such as lists; it is named.
    """
    is_polars = type(X).__module__.startswith("polars")
    read = _from_polars if is_polars else _from_pandas
    parts = X.get_columns() if is_polars else [X.iloc[:, place] for place in range(X.shape[1])]
    return [read(name, part) for name, part in zip(X.columns, parts, strict=True)]


def as_kind(column: Column, kind: str) -> Column:
    """Return a column as the kind that the user has named: numbers as categories, and so on.

    Raises:
      InvalidArgument: a value cannot be read as this kind.
    """
    if column.kind in (kind, None):
        values = column.values
        if column.kind is None:
            is_text = kind == CATEGORY
            values = np.full(len(values), None if is_text else np.nan, object if is_text else float)
        return Column(column.name, kind, values)
    if kind == CATEGORY:
        texts = [None if number != number else _text(number) for number in column.values]
        return Column(column.name, kind, np.array(texts, object))
    if column.kind != CATEGORY:
        return Column(column.name, kind, column.values)
    missing = np.array([value is None for value in column.values], bool)
    values = np.full(len(missing), np.nan)
    try:
        given = column.values[~missing].tolist()
        dates = np.array(given, "datetime64[us]") if kind == DATE else None
        values[~missing] = np.array(given, float) if dates is None else _seconds(dates)
    except ValueError as error:
        raise InvalidArgument(
            f"column {column.name!r} of X cannot be read as a {kind}, as columns= has it: {error}"
        ) from error
    return Column(column.name, kind, values)


def held(kind: str | None) -> str:
    """Return what a column of a kind holds, for a message."""
    return "no value" if kind is None else _HELD[kind]


def _from_pandas(name: Any, series: Any) -> Column:
    types, dtype = sys.modules["pandas"].api.types, series.dtype
    if types.is_datetime64_any_dtype(dtype):
        return Column(name, DATE, _seconds(series.to_numpy("datetime64[us]")))
    if types.is_timedelta64_dtype(dtype):
        return Column(name, NUMBER, _seconds(series.to_numpy("timedelta64[us]")))
    is_category = type(dtype).__name__ == "CategoricalDtype"
    if not is_category and (types.is_bool_dtype(dtype) or types.is_numeric_dtype(dtype)):
        if types.is_complex_dtype(dtype):
            raise _refusal(name, "complex numbers")
        return Column(name, NUMBER, series.to_numpy(np.float64, na_value=np.nan))
    column = _from_objects(name, series.astype(object).to_numpy())
    return as_kind(column, CATEGORY) if is_category else column


def _from_polars(name: str, series: Any) -> Column:
    polars, dtype = sys.modules["polars"], series.dtype
    if dtype.is_numeric() or dtype == polars.Boolean:
        return Column(name, NUMBER, _numbers(polars, series))
    if dtype in (polars.Date, polars.Datetime):
        return Column(name, DATE, _numbers(polars, series.dt.epoch("us")) / 1e6)
    if dtype == polars.Duration:
        return Column(name, NUMBER, _numbers(polars, series.dt.total_microseconds()) / 1e6)
    if dtype == polars.Time:
        return Column(name, NUMBER, _numbers(polars, series.cast(polars.Int64)) / 1e9)
    if dtype in (polars.String, polars.Categorical, polars.Enum):
        return Column(name, CATEGORY, np.array(series.cast(polars.String).to_list(), object))
    if dtype == polars.Null:
        return Column(name, None, np.full(len(series), None))
    raise _refusal(name, str(dtype))


def _numbers(polars: Any, series: Any) -> np.ndarray:
    return np.array(series.cast(polars.Float64).fill_null(float("nan")).to_numpy())


def _from_objects(name: Any, values: np.ndarray) -> Column:
    missing = np.array([_is_missing(value) for value in values], bool)
    present = values[~missing]
    if not len(present):
        return Column(name, None, np.full(len(values), None))
    if all(isinstance(value, str) for value in present):
        return Column(
            name,
            CATEGORY,
            np.array([text if isinstance(text, str) else None for text in values], object),
        )
    numbers = np.full(len(values), np.nan)
    if all(isinstance(value, _NUMBERS) for value in present):
        numbers[~missing] = present.astype(np.float64)
        return Column(name, NUMBER, numbers)
    if all(isinstance(value, datetime.date | np.datetime64) for value in present):
        numbers[~missing] = [_timestamp(value) for value in present]
        return Column(name, DATE, numbers)
    kinds = sorted({type(value).__name__ for value in present})
    raise _refusal(name, f"values of type {', '.join(kinds)}")


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and bool(value != value)


def _timestamp(value: Any) -> float:
    if isinstance(value, datetime.datetime):
        zoned = value if value.tzinfo else value.replace(tzinfo=datetime.UTC)
        return zoned.timestamp()
    return float(_seconds(np.array([value], "datetime64[us]"))[0])


def _seconds(moments: np.ndarray) -> np.ndarray:
    """Return dates or durations in microseconds as seconds; NaN where they are missing."""
    numbers = moments.astype(np.int64) / 1e6
    return np.where(np.isnat(moments), np.nan, numbers)


def _text(number: float) -> str:
    """Return the text of a number that is a category: 7.0 is "7"."""
    return str(int(number)) if float(number).is_integer() else repr(float(number))


def _refusal(name: Any, found: str) -> InvalidArgument:
    return InvalidArgument(
        f"column {name!r} of X holds {found}: must be numbers, booleans, dates, strings or "
        "categories; leave it out or convert it"
    )
