"""Records as JSON: what is written is read back, and errors name the field."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from lamaml._records import FLAT, SPARSE, from_json, to_json


class Colour(StrEnum):
    RED = "red"


class Point(NamedTuple):
    x: float
    y: float = 0.0


class Other:
    """Has its own form."""

    def __init__(self, text: str) -> None:
        self.text = text

    def to_json(self) -> str:
        return self.text

    @classmethod
    def from_json(cls, value: str) -> "Other":
        return cls(value)


@dataclass(frozen=True)
class Record:
    point: Point = field(metadata=FLAT)
    colour: Colour = field(metadata={"name": "color"})
    path: Path
    points: Sequence[Point]
    sizes: tuple[int, ...]
    by_name: Mapping[str, Point | None]
    other: Other
    free: Mapping[str, Any]
    flag: bool = False
    note: str | None = field(default=None, metadata=SPARSE)
    size: int | None = None


RECORD = Record(
    Point(1.5), Colour.RED, Path("a/b"), [Point(1.0, 2.0)], (3, 4), {"none": None}, Other("o"), {}
)
STORED = {
    **{"x": 1.5, "y": 0.0, "color": "red", "path": "a/b", "points": [{"x": 1.0, "y": 2.0}]},
    **{"sizes": [3, 4], "by_name": {"none": None}, "other": "o", "free": {}},
    **{"flag": False, "size": None},
}


def test_a_record_is_read_as_it_was_written() -> None:
    assert to_json(RECORD) == STORED
    found = from_json(Record, json.loads(json.dumps(STORED)))
    assert to_json(found) == STORED
    assert isinstance(found.sizes, tuple)
    assert (found.point, found.colour, found.path) == (Point(1.5), Colour.RED, Path("a/b"))


def test_unknown_entries_are_ignored_and_missing_ones_have_defaults() -> None:
    assert from_json(Point, {"x": 2, "z": 3}) == Point(2, 0.0)


def test_unknown_numbers_are_null() -> None:
    assert to_json(Point(np.nan, np.inf)) == {"x": None, "y": None}
    assert np.isnan(from_json(Point, {"x": None}).x)


@dataclass(frozen=True)
class Measured:
    values: np.ndarray
    mean: Point | None = field(default=None, metadata=FLAT)


def test_arrays_hold_null_for_nan_and_an_absent_flat_record_is_none() -> None:
    stored = {"values": [[0.5, None], [1.0, 2.0]]}
    found = from_json(Measured, stored)
    assert np.isnan(found.values[0, 1])
    assert found.mean is None
    assert to_json(found) == stored
    assert from_json(Measured, {**stored, "x": 1.0}).mean == Point(1.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"color": "blue"}, "color: .*blue"),
        ({"flag": 1}, "flag: 1 is not of type bool"),
        ({"sizes": [True]}, "sizes: True is not of type int"),
        ({"points": {}}, "points: .* list"),
        ({"points": [{"y": 1.0}]}, "points: x is missing"),
        ({"by_name": {"first": {"x": "1"}}}, "by_name: first: x: '1'"),
        ({"x": "1"}, "x: '1'"),
        ({"size": "many"}, "size: 'many'"),
    ],
)
def test_errors_name_the_field(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_json(Record, STORED | change)
