"""Anyone's rows on their way to a network: checked, stored as narrowly as is exact, padded."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from lamaml.errors import InvalidArgument

DTYPES = (np.dtype(np.uint8), np.dtype(np.int16), np.dtype(np.float32))
"""What rows are stored as, narrowest first; float32 is all that a network reads."""
DIGITS = 4
"""Columns behind a stored row: its place in the stream, in digits that fit every dtype above."""


class Rows(NamedTuple):
    """Good rows of one call, on the host."""

    x: np.ndarray  # (n, columns) float32
    y: np.ndarray  # (n,) int32 outputs, or float32 targets
    weight: np.ndarray  # (n,) float32, none of them 0

    def part(self, which: np.ndarray | slice) -> "Rows":
        """Some of the rows."""
        return Rows(self.x[which], self.y[which], self.weight[which])

    def copy(self) -> "Rows":
        """The same, in memory of their own: a caller may use his again."""
        return Rows(self.x.copy(), self.y.copy(), self.weight.copy())

    @property
    def size(self) -> int:
        """Their number."""
        return len(self.y)


class Origins(NamedTuple):
    """What numbers are counted from, so that float32 can tell them apart; None for zero."""

    inputs: np.ndarray | None = None  # (columns,) float64
    target: np.ndarray | None = None  # (1,) float64, of a regression


def origin_of(values: np.ndarray) -> np.ndarray | None:
    """The first number of each column that begins where float32 has no fractions, such as dates.

    >>> origin_of(np.array([[1.7e9, 3.0], [1.7e9 + 0.5, 4.0]])).tolist()
    [1700000000.0, 0.0]
    """
    finite = np.isfinite(values)
    first = np.take_along_axis(values, finite.argmax(axis=0)[None], axis=0)[0].astype(np.float64)
    is_far = finite.any(axis=0) & (np.abs(first) >= 2**24)
    return np.where(is_far, first, 0.0) if is_far.any() else None


def as_float32(values: np.ndarray, origin: np.ndarray | None = None) -> np.ndarray:
    """What a network can read; what float32 cannot hold becomes infinite."""
    with np.errstate(over="ignore"):
        if origin is not None:
            values = values - origin
        return np.ascontiguousarray(values, np.float32)


def bad_rows(*columns: np.ndarray) -> np.ndarray:
    """The places of rows in which some number is NaN or infinite."""
    finite = np.ones(len(columns[0]), bool)
    for values in columns:
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            finite &= np.isfinite(values).reshape(len(values), -1).all(axis=1)
    return np.flatnonzero(~finite)


def missing_labels(y: np.ndarray) -> np.ndarray:
    """The places of labels that are none, among objects: None, NaN, pandas' NA.

    >>> missing_labels(np.array(["a", None, float("nan"), "nan"], object)).tolist()
    [1, 2]
    """
    if y.dtype != object:
        return np.zeros(0, int)
    names = (type(label).__name__ for label in y)
    gone = [
        label is None or name == "NAType" or (name == "float" and label != label)
        for label, name in zip(y, names, strict=True)
    ]
    return np.flatnonzero(gone)


def refusal(bad: np.ndarray, names: str) -> InvalidArgument:
    """The error that names bad rows."""
    more = f" and {len(bad) - 10} more" if len(bad) > 10 else ""
    return InvalidArgument(
        f"{names} contains NaN, infinity or a value too large for dtype('float32') in rows "
        f"{bad[:10].tolist()}{more}: mend or drop them, or learn with on_bad_rows='skip'"
    )


def narrowest(x: np.ndarray, at_least: np.dtype) -> np.dtype:
    """The first of DTYPES that holds every number exactly, none narrower than `at_least`.

    >>> narrowest(np.array([0.0, 16.0], np.float32), np.dtype(np.uint8))
    dtype('uint8')
    """
    with np.errstate(invalid="ignore"):  # the cast of what does not fit is compared, not used
        for dtype in DTYPES[DTYPES.index(at_least) : -1]:
            if np.array_equal(x.astype(dtype), x):
                return dtype
    return DTYPES[-1]


def numbered(x: np.ndarray, places: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Rows as they are stored: their numbers, then the digits of their places in the stream."""
    stored = np.empty((len(x), x.shape[1] + DIGITS), dtype)
    stored[:, :-DIGITS] = x
    stored[:, -DIGITS:] = places.astype("<u4").view(np.uint8).reshape(-1, DIGITS)
    return stored


def places_of(stored: np.ndarray) -> np.ndarray:
    """The place in the stream of each stored row.

    >>> places_of(numbered(np.zeros((2, 3)), np.array([299, 300]), np.dtype(np.int16))).tolist()
    [299, 300]
    """
    digits = np.ascontiguousarray(stored[:, -DIGITS:].astype(np.uint8))
    return digits.view("<u4").reshape(-1).astype(np.int64)


def padded(values: np.ndarray, size: int) -> np.ndarray:
    """The rows, filled up with zeros to the given number of them."""
    if len(values) == size:
        return values
    full = np.zeros((size, *values.shape[1:]), values.dtype)
    full[: len(values)] = values
    return full


def smallest(sizes: Iterable[int], needed: int) -> int:
    """The smallest of the sizes that holds so many, or the largest of all."""
    sizes = tuple(sizes)
    return next((size for size in sizes if size >= needed), sizes[-1])
