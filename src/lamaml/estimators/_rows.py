"""The rows of one call on the host: offsets, bad rows, and whether a dtype holds them."""

from typing import NamedTuple

import numpy as np

from lamaml.errors import InvalidArgument


class Rows(NamedTuple):
    """The rows of one call that are learned from: none is bad, none has weight 0."""

    x: np.ndarray  # (n, columns) float32
    y: np.ndarray  # (n,) int32 outputs; or float32 targets, (n, targets) if there are several
    weight: np.ndarray  # (n,) float32, relative to their mean
    mean_weight: float = 1.0  # what an update with these rows counts, beside one of weight 1

    def take(self, which: np.ndarray | slice) -> "Rows":
        """Return the chosen rows."""
        return Rows(self.x[which], self.y[which], self.weight[which], self.mean_weight)

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self.y)


class Offsets(NamedTuple):
    """Numbers subtracted in float64, so that float32 can tell large values apart; None for 0."""

    inputs: np.ndarray | None = None  # (columns,) float64
    target: np.ndarray | None = None  # (1,) float64, of a regression


def find_offset(values: np.ndarray) -> np.ndarray | None:
    """Return the first number of each column whose values are too large for float32, such as dates.

    The offset of the other columns is 0. Returns None if no column needs one.

    >>> find_offset(np.array([[1.7e9, 3.0], [1.7e9 + 0.5, 4.0]])).tolist()
    [1700000000.0, 0.0]
    """
    finite = np.isfinite(values)
    first = np.take_along_axis(values, finite.argmax(axis=0)[None], axis=0)[0].astype(np.float64)
    is_large = finite.any(axis=0) & (np.abs(first) >= 2**24)
    return np.where(is_large, first, 0.0) if is_large.any() else None


def find_offsets(x: np.ndarray | None, y: np.ndarray | None) -> Offsets:
    """Return the offsets of a first call's inputs and targets; None for those not to be shifted."""
    inputs = find_offset(x) if x is not None and len(x) else None
    return Offsets(inputs, find_offset(y.reshape(len(y), -1)) if y is not None and len(y) else None)


def bad_rows_error(bad: np.ndarray, what: str, advice: str, where: str = "") -> InvalidArgument:
    """Return the error that names the first bad rows of `what`, such as "Input X".

    Args:
      bad: the indices of the rows.
      what: what contains them.
      advice: what to do.
      where: the column, such as ", column 'amount'".
    """
    more = f" and {len(bad) - 10} more" if len(bad) > 10 else ""
    return InvalidArgument(
        f"{what} contains NaN, infinity or a value too large for dtype('float32') in rows "
        f"{bad[:10].tolist()}{more}{where}: {advice}"
    )


def holds_exactly(dtype: str, x: np.ndarray) -> bool:
    """Return whether rows can be stored in a dtype without a change, "uint8" or "float32".

    >>> holds_exactly("uint8", np.array([0.0, 16.0], np.float32))
    True
    >>> holds_exactly("uint8", np.array([0.5, -1.0], np.float32))
    False
    """
    if dtype == x.dtype:
        return True
    with np.errstate(invalid="ignore"):  # a cast that overflows is compared, not used
        return np.array_equal(x.astype(dtype), x)
