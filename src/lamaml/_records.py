"""JSON of records: dataclasses and named tuples are written by value and read by type hints.

A record is an object with one entry per field. Three choices are made where a field is declared:
`field(metadata=FLAT)` merges a record into the object around it, `field(metadata=SPARSE)` leaves a
None out, `field(metadata={"name": ...})` gives the entry another name. A class with its own
`to_json` and `from_json` is written and read by these.
"""

import types
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

import numpy as np

from lamaml._io import plain

FLAT = {"flat": True}
SPARSE = {"sparse": True}

_Kind = TypeVar("_Kind")


def to_json(value: Any) -> Any:
    """Returns a record, or a container of records, as JSON types; NaN becomes None.

    >>> from dataclasses import make_dataclass
    >>> Found = make_dataclass("Found", {"path": Path, "values": list[float]}.items())
    >>> to_json(Found(Path("a"), [0.5, np.nan]))
    {'path': 'a', 'values': [0.5, None]}
    """
    if hasattr(value, "to_json"):
        return value.to_json()
    kind: Any = type(value)
    if _is_record(kind):
        found: dict[str, Any] = {}
        for field, _, metadata, _ in _fields(kind):
            item = getattr(value, field)
            if "flat" in metadata:
                found |= to_json(item) or {}
            elif item is not None or "sparse" not in metadata:
                found[metadata.get("name", field)] = to_json(item)
        return found
    if isinstance(value, Mapping):
        return {str(name): to_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple | range):
        return [to_json(item) for item in value]
    return value.value if isinstance(value, Enum) else plain(value)


def from_json(kind: type[_Kind], value: Any) -> _Kind:
    """Reads what `to_json` returned. Entries that the record does not have are ignored.

    Args:
      kind: the record, or a container of records: `dict[str, Record]`.
      value: parsed JSON. None becomes NaN where a number is expected.

    Raises:
      ValueError: an entry is missing or of another type; the message names the field.

    >>> from dataclasses import make_dataclass
    >>> Found = make_dataclass("Found", [("count", int)])
    >>> from_json(Found, {"count": "3"})
    Traceback (most recent call last):
    ValueError: count: '3' is not of type int
    """
    return cast(_Kind, _read(kind, value))


def _read(kind: Any, value: Any) -> Any:
    origin, inner = get_origin(kind) or kind, get_args(kind)
    if origin is types.UnionType:  # of something and None
        return None if value is None else _read(inner[0], value)
    if origin is Any:
        return value
    if hasattr(kind, "from_json"):
        return kind.from_json(value)
    if _is_record(kind):
        return kind(**dict(_read_fields(kind, _checked(value, Mapping))))
    if issubclass(origin, Mapping):
        items = _checked(value, Mapping).items()
        return {name: _read_entry(name, inner[1], item) for name, item in items}
    if inner:  # a sequence
        found = [_read(inner[0], item) for item in _checked(value, list)]
        return tuple(found) if origin is tuple else found
    if kind is np.ndarray or (kind is float and value is None):
        return np.array(value, float)[()]  # None becomes NaN
    if issubclass(kind, Enum | Path):
        return kind(value)
    return _checked(value, int | float if kind is float else kind)


def _read_fields(record: Any, value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yields the fields of a record by name. A field without an entry keeps its default."""
    for field, kind, metadata, required in _fields(record):
        name = metadata.get("name", field)
        if "flat" in metadata:
            first, *_ = _fields((*get_args(kind), kind)[0])
            if required or first[0] in value:
                yield field, _read(kind, value)
        elif name in value:
            yield field, _read_entry(name, kind, value[name])
        elif required:
            raise ValueError(f"{name} is missing")


def _read_entry(name: str, kind: Any, value: Any) -> Any:
    try:
        return _read(kind, value)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name}: {error}") from error


def _checked(value: Any, kind: Any) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"{value!r} is not of type {getattr(kind, '__name__', kind)}")
    return value


def _is_record(kind: type[Any]) -> bool:
    return is_dataclass(kind) or hasattr(kind, "_fields")


@cache
def _fields(record: type[Any]) -> list[tuple[str, Any, Mapping[str, Any], bool]]:
    """Returns name, type and metadata of each field, and whether it has no default."""
    hints = get_type_hints(record)
    if is_dataclass(record):
        return [(f.name, hints[f.name], f.metadata, f.default is MISSING) for f in fields(record)]
    return [(name, hints[name], {}, name not in record._field_defaults) for name in record._fields]
