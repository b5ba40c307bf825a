"""The encoding of a frame's columns: numbers, dates and categories as a row of fixed width.

    number      the value, or the running mean where it is missing; 1 where it is missing
    date        seconds since 1970-01-01 UTC; sine and cosine of its phase in the day, the week and
                the year; 1 where it is missing
    category    1 where it is missing; a column for each of the first 31 categories; 16 columns that
                all later categories share, two of which are 1 for each of them

The width never changes, so nothing is compiled again and no weight moves when categories come. A
category is known by the 64-bit BLAKE2 hash of its text: the state has a fixed number of bytes too.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from lamaml.errors import InvalidArgument, require, unknown_name
from lamaml.estimators._frames import CATEGORY, DATE, KINDS, NUMBER, Column, as_kind, held

NUM_KNOWN, NUM_SHARED = 31, 16
WIDTHS = {NUMBER: 2, DATE: 8, CATEGORY: 1 + NUM_KNOWN + NUM_SHARED}
"""Number of values that a column of each kind becomes."""
_DAY = 86_400.0
_PERIODS = np.array([_DAY, 7 * _DAY, 365.2425 * _DAY])


class Encoding(NamedTuple):
    """What the encoding has learned of each column of the frame."""

    kinds: tuple[str, ...]  # of each column
    mean: np.ndarray  # (columns,) float64, running, of numbers and dates
    num_values: np.ndarray  # (columns,) int64, values in the mean
    known: np.ndarray  # (categorical columns, 31) uint64, hashes in order of arrival
    num_known: np.ndarray  # (categorical columns,) int64

    @property
    def width(self) -> int:
        """The number of values in an encoded row."""
        return sum(WIDTHS[kind] for kind in self.kinds)

    @property
    def num_bytes(self) -> int:
        """The bytes of all arrays."""
        return sum(part.nbytes for part in self[1:])


def initial_encoding(columns: list[Column]) -> Encoding:
    """Return the encoding before the first row.

    Raises:
      InvalidArgument: a column has no value by which its kind could be known.
    """
    for column in columns:
        if column.kind is None:
            raise InvalidArgument(
                f"column {column.name!r} of X has no value in the first call: leave it out, or "
                f"name its kind, columns={{{column.name!r}: 'category'}}"
            )
    kinds = tuple(column.kind or NUMBER for column in columns)
    num_categorical = kinds.count(CATEGORY)
    return Encoding(
        kinds,
        np.zeros(len(kinds)),
        np.zeros(len(kinds), np.int64),
        np.zeros((num_categorical, NUM_KNOWN), np.uint64),
        np.zeros(num_categorical, np.int64),
    )


def check_columns(columns: Any) -> None:
    """Raise unless the parameter is "auto", "numbers" or a mapping from names to kinds."""
    if isinstance(columns, Mapping):
        for kind in columns.values():
            if kind not in KINDS:
                raise unknown_name("kind in columns", str(kind), KINDS)
        return
    allowed = "'auto', 'numbers', or a mapping from names of columns to their kinds"
    is_word = isinstance(columns, str) and columns in ("auto", "numbers")
    require(is_word, "columns", columns, allowed)


def with_kinds(columns: list[Column], chosen: Any, fixed: tuple[str, ...] | None) -> list[Column]:
    """Return the columns, each as the kind that the user or the first call has given it.

    Args:
      columns: of a frame.
      chosen: the parameter `columns`.
      fixed: the kinds of the first call; None in the first call.

    Raises:
      InvalidArgument: a column holds something else than in the first call, or is not there.
    """
    named = dict(chosen) if isinstance(chosen, Mapping) else {}
    names = [column.name for column in columns]
    for name in named:
        if name not in names:
            raise unknown_name("column in columns", str(name), [str(known) for known in names])
    found = [
        as_kind(column, named[column.name]) if column.name in named else column
        for column in columns
    ]
    if fixed is None:
        return found
    # A frame of one row has NaN, a number, where a string or a date is missing.
    found = [
        column._replace(kind=None)
        if column.kind == NUMBER and np.isnan(column.values).all()
        else column
        for column in found
    ]
    for column, kind in zip(found, fixed, strict=True):
        if column.kind not in (kind, None):
            raise InvalidArgument(
                f"column {column.name!r} of X holds {held(column.kind)}, but held {held(kind)} in "
                f"the first call: convert it, or start with columns={{{column.name!r}: ...}}"
            )
    return [as_kind(column, kind) for column, kind in zip(found, fixed, strict=True)]


def add_columns(encoding: Encoding, columns: list[Column]) -> Encoding:
    """Return the encoding with the values of these columns in its means and its categories."""
    mean, num_values = encoding.mean.copy(), encoding.num_values.copy()
    known, num_known = encoding.known.copy(), encoding.num_known.copy()
    place = 0
    for index, column in enumerate(columns):
        if column.kind == CATEGORY:
            seen = set(known[place, : num_known[place]].tolist())
            for text in dict.fromkeys(column.values):
                code = None if text is None else hash_text(text)
                if code is not None and code not in seen and num_known[place] < NUM_KNOWN:
                    known[place, num_known[place]] = code
                    num_known[place] += 1
                    seen.add(code)
            place += 1
            continue
        values = column.values[np.isfinite(column.values)]
        if len(values):
            num_values[index] += len(values)
            mean[index] += (values - mean[index]).sum() / num_values[index]
    return Encoding(encoding.kinds, mean, num_values, known, num_known)


def encode_columns(encoding: Encoding, columns: list[Column]) -> np.ndarray:
    """Return the rows of a frame as numbers, (n, width) float64; infinite values stay infinite."""
    num_rows = len(columns[0].values)
    x, start, place = np.zeros((num_rows, encoding.width)), 0, 0
    for index, column in enumerate(columns):
        kind = encoding.kinds[index]
        part = x[:, start : start + WIDTHS[kind]]
        start += WIDTHS[kind]
        if kind == CATEGORY:
            _write_categories(part, column.values, encoding.known[place], encoding.num_known[place])
            place += 1
            continue
        missing = np.isnan(column.values)
        part[:, 0] = np.where(missing, encoding.mean[index], column.values)
        part[:, -1] = missing
        if kind == DATE:
            phase = 2 * np.pi * np.where(missing, 0.0, column.values)[:, None] / _PERIODS
            part[:, 1:4], part[:, 4:7] = np.sin(phase), np.cos(phase)
            part[missing, 1:7] = 0.0
    return x


def _write_categories(
    part: np.ndarray, values: np.ndarray, known: np.ndarray, num_known: int
) -> None:
    """Write one-hot rows; while there is room, a category that was never learned stays 0."""
    place_of = {code: 1 + place for place, code in enumerate(known[:num_known].tolist())}
    places: dict[Any, list[int]] = {None: [0]}
    for text in set(values) - {None}:
        code = hash_text(text)
        if code in place_of:
            places[text] = [place_of[code]]
        elif num_known < NUM_KNOWN:
            places[text] = []
        else:
            first, step = code % NUM_SHARED, (code >> 8) % (NUM_SHARED - 1)
            shared = (first, (first + 1 + step) % NUM_SHARED)
            places[text] = [1 + NUM_KNOWN + number for number in shared]
    for row, text in enumerate(values):
        part[row, places[text]] = 1.0


def hash_text(text: str) -> int:
    """Return the hash of a category, the same in every process.

    >>> hash_text("Paris") % 1000
    203
    """
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def encoded_names(encoding: Encoding, names: list[Any]) -> list[Any]:
    """Return the column of the frame that each encoded value comes from."""
    pairs = zip(names, encoding.kinds, strict=True)
    return [name for name, kind in pairs for _ in range(WIDTHS[kind])]
