"""Rows and labels as clients send them: checked, and turned into arrays.

A row is a list of numbers (nested for images), or an object with one number per column. A label is
an integer, a string or a boolean, all labels of a service of the same kind; the target of a
regression is a number. A request is accepted whole or not at all.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lamaml._rows import as_float32
from lamaml.errors import InvalidArgument, require
from lamaml.serving.errors import BadRows

MAX_LABEL_LENGTH = 200
"""Characters in a label: all labels are stored at the length of the longest."""
_LARGEST = 1e38  # the difference of two such numbers is finite in float32
_LARGEST_LABEL = 2**53  # beyond it, JSON readers disagree about integers
_DTYPES = ("|u1", "<f4", "<f8")

Label = int | str | bool | float


@dataclass(frozen=True)
class Schema:
    """What all rows of a service have in common; fixed by the first rows that are accepted.

    Attributes:
      row_shape: shape of one row.
      columns: names of the columns, if rows came as objects; else None.
      label_kind: "integer", "string" or "boolean"; "number" for a regression.
    """

    row_shape: tuple[int, ...]
    columns: tuple[str, ...] | None
    label_kind: str

    @property
    def row_size(self) -> int:
        """Number of values in a row."""
        return math.prod(self.row_shape)


def read_rows(rows: Any, schema: Schema | None) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """Return rows as float64, and the names of their columns if they have names.

    Args:
      rows: a sequence of rows, or an array.
      schema: that of the rows before, which these must have; None for the first ones.

    Raises:
      BadRows: a row is not numeric or finite, or differs in shape or columns from the others.
      InvalidArgument: there is no row, or `rows` is no sequence.
    """
    is_sequence = isinstance(rows, list | tuple | np.ndarray)
    if not is_sequence or not len(rows):
        raise InvalidArgument("rows: must be a list of at least one row")
    columns = schema.columns if schema else None
    if not isinstance(rows, np.ndarray) and any(isinstance(row, Mapping) for row in rows):
        columns = columns or tuple(str(name) for name in _first_object(rows))
        rows = _from_objects(rows, columns, schema)
    x = _as_array(rows, schema)
    with np.errstate(invalid="ignore"):
        bad = ~(np.abs(x) <= _LARGEST).reshape(len(x), -1).all(axis=1)
    if bad.any():
        reason = f"a value is NaN, infinite or beyond ±{_LARGEST:g}"
        raise BadRows({int(index): reason for index in np.flatnonzero(bad)})
    return x, columns


def _first_object(rows: Sequence[Any]) -> Mapping[str, Any]:
    return next(row for row in rows if isinstance(row, Mapping))


def _from_objects(
    rows: Sequence[Any], columns: tuple[str, ...], schema: Schema | None
) -> list[list[Any]]:
    """Return rows that are objects as lists, in the order of the columns."""
    if schema and not schema.columns:
        raise BadRows({0: "must be a list of numbers: the first rows had no column names"})
    reasons = {}
    for index, row in enumerate(rows):
        if not isinstance(row, Mapping):
            reasons[index] = "must be an object like the other rows of the request"
        elif row.keys() != set(columns):
            missing, unknown = set(columns) - row.keys(), row.keys() - set(columns)
            words = [f"{word} {sorted(n)[:3]}" for word, n in _named(missing, unknown) if n]
            reasons[index] = f"columns differ: {', '.join(words)}"
    if reasons:
        raise BadRows(reasons)
    return [[row[name] for name in columns] for row in rows]


def _named(missing: set[str], unknown: set[str]) -> list[tuple[str, set[str]]]:
    return [("missing", missing), ("unknown", unknown)]


def _as_array(rows: Any, schema: Schema | None) -> np.ndarray:
    try:
        x = np.array(rows)
    except (ValueError, OverflowError):  # rows of different lengths
        x = np.array(None)
    expected = schema.row_shape if schema else x.shape[1:]
    if x.dtype.kind in "fiub" and x.ndim >= 2 and x.shape[1:] == expected and x.size:
        return x.astype(np.float64)
    found = [_row_array(row) for row in rows]
    shapes = [row.shape for row in found if isinstance(row, np.ndarray) and row.size]
    expected = schema.row_shape if schema else (shapes[0] if shapes else ())
    allowed = "a list of numbers" if len(expected) < 2 else f"numbers of shape {expected}"
    reasons = {}
    for index, row in enumerate(found):
        if not isinstance(row, np.ndarray) or not row.size:
            reasons[index] = f"must be {allowed}"
        elif row.shape != expected:
            reasons[index] = f"has {_size(row.shape)}, expected {_size(expected)}"
    if reasons:
        raise BadRows(reasons)
    return np.stack([row for row in found if row is not None]).astype(np.float64)


def _row_array(row: Any) -> np.ndarray | None:
    try:
        found = np.array(row)
    except (ValueError, OverflowError):
        return None
    return found if found.dtype.kind in "fiub" and found.ndim else None


def _size(shape: tuple[int, ...]) -> str:
    return f"{shape[0]} values" if len(shape) == 1 else f"shape {shape}"


def read_labels(labels: Any, num_rows: int, is_regression: bool, kind: str | None) -> list[Label]:
    """Return one checked label per row, as Python objects.

    Args:
      labels: a sequence of labels, or an array.
      num_rows: number of rows that they belong to.
      is_regression: whether they are targets.
      kind: of the labels before; None for the first ones.

    Raises:
      BadRows: a label is missing, of another kind, or too long.
      InvalidArgument: their number is not `num_rows`.
    """
    if isinstance(labels, np.ndarray):
        labels = labels.tolist()
    require(isinstance(labels, list | tuple), "labels", labels, "a list with one label per row")
    require(len(labels) == num_rows, "number of labels", len(labels), f"{num_rows}, one per row")
    read: Callable[[Any], Label] = _read_target if is_regression else _read_class
    found: list[Label] = []
    reasons = {}
    for index, label in enumerate(labels):
        try:
            found.append(read(label.item() if isinstance(label, np.generic) else label))
            kind = kind or label_kind(found[-1], is_regression)
            if label_kind(found[-1], is_regression) != kind:
                raise ValueError(f"label {label!r:.50}: must be of type {kind}, as those before")
        except ValueError as error:
            reasons[index] = str(error)
    if reasons:
        raise BadRows(reasons)
    return found


def label_kind(label: Label, is_regression: bool) -> str:
    """Return the kind of a label that has been read."""
    if is_regression:
        return "number"
    kinds = {bool: "boolean", int: "integer", str: "string"}
    return kinds[type(label)]


def _read_target(value: Any) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not abs(value) <= _LARGEST:
        raise ValueError(f"target {value!r:.50}: must be a finite number")
    return float(value)


def _read_class(label: Any) -> Label:
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    if isinstance(label, str):
        if not 0 < len(label) <= MAX_LABEL_LENGTH or "\0" in label or not _is_text(label):
            raise ValueError(f"label of {len(label)} characters: must be 1 to {MAX_LABEL_LENGTH}")
        return label
    if not isinstance(label, bool | int) or abs(label) > _LARGEST_LABEL:
        raise ValueError(f"label {label!r:.50}: must be an integer, a string or a boolean")
    return label


def _is_text(label: str) -> bool:
    try:
        label.encode()
    except UnicodeEncodeError:
        return False
    return True


def pack(x: np.ndarray) -> tuple[str, bytes]:
    """Return the smallest dtype that holds the values exactly, and their bytes in it.

    >>> pack(np.array([[49.0, 65.0]]))
    ('|u1', b'1A')
    """
    for dtype in _DTYPES:
        with np.errstate(invalid="ignore", over="ignore"):
            packed = as_float32(x) if dtype == "<f4" else x.astype(dtype)
        if np.array_equal(packed, x):
            break
    return dtype, packed.tobytes()


def unpack(dtype: str, data: bytes, row_shape: Iterable[int]) -> np.ndarray:
    """Return the float64 rows that `pack` was given."""
    return np.frombuffer(data, dtype).reshape(-1, *row_shape).astype(np.float64)
