"""Bodies of requests: JSON, NDJSON (one row per line) and CSV (a header, then one row per line)."""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lamaml.errors import InvalidArgument
from lamaml.serving.errors import BadRows
from lamaml.serving.rows import Schema

JSON, NDJSON, CSV = "application/json", "application/x-ndjson", "text/csv"
MEDIA_TYPES = (JSON, NDJSON, CSV)
LABEL_COLUMN = "y"
"""Name of the label's column in CSV, and of its entry in NDJSON; `x` is the entry of the row."""


class Malformed(InvalidArgument):
    """A body that is not of the format that its media type says."""


@dataclass(frozen=True)
class Body:
    """A parsed body; an entry that it does not have is None."""

    rows: Any = None
    labels: Any = None
    request_id: str | None = None
    key: str | None = None
    keep: bool = True


def parse_body(data: bytes, media_type: str, schema: Schema | None) -> Body:
    """Return the entries of a body.

    Args:
      data: the bytes.
      media_type: one of MEDIA_TYPES.
      schema: of the service, which says how to read CSV.

    Raises:
      Malformed: it is not of this format.
      BadRows: a line is not.
    """
    if media_type == JSON:
        return _from_object(_load(data))
    text = _text(data)
    return parse_ndjson(text) if media_type == NDJSON else parse_csv(text, schema)


def _from_object(found: Any) -> Body:
    if not isinstance(found, dict):
        raise Malformed("the body must be a JSON object")
    allowed = {"rows", "labels", "label", "request_id", "key", "keep"}
    unknown = found.keys() - allowed
    if unknown:
        raise Malformed(f"unknown entry {min(unknown)!r:.50}: {', '.join(sorted(allowed))}")
    for name in ("request_id", "key"):
        if not isinstance(found.get(name), str | None):
            raise Malformed(f"{name}: must be a string")
    if not isinstance(found.get("keep", True), bool):
        raise Malformed("keep: must be true or false")
    labels = [found["label"]] if "label" in found else found.get("labels")
    return Body(
        rows=found.get("rows"),
        labels=labels,
        request_id=found.get("request_id"),
        key=found.get("key"),
        keep=found.get("keep", True),
    )


def parse_ndjson(text: str) -> Body:
    """Return the rows `x` and labels `y` of lines of JSON; empty lines are ignored."""
    rows, labels, reasons = [], [], {}
    lines = [line for line in text.splitlines() if line.strip()]
    for index, line in enumerate(lines):
        try:
            found = _load(line)
        except Malformed as error:
            reasons[index] = str(error)
            continue
        if not isinstance(found, dict) or "x" not in found:
            reasons[index] = 'must be an object like {"x": [1, 2], "y": "label"}'
            continue
        rows.append(found["x"])
        labels.append(found.get(LABEL_COLUMN))
    if reasons:
        raise BadRows(reasons)
    return Body(rows=rows, labels=labels)


def parse_csv(text: str, schema: Schema | None) -> Body:
    """Return the rows and, if there is a column `y`, the labels of CSV with a header."""
    try:
        header, *lines = csv.reader(io.StringIO(text), strict=True)
    except (csv.Error, ValueError) as error:
        raise Malformed(f"the body is not CSV with a header: {error}") from error
    if len(set(header)) < len(header):
        raise Malformed("two columns of the CSV header have the same name")
    lines = [line for line in lines if line]
    has_labels = LABEL_COLUMN in header
    place = header.index(LABEL_COLUMN) if has_labels else None
    names = [name for name in header if name != LABEL_COLUMN]
    by_name = schema is None or schema.columns is not None
    rows: list[Any] = []
    words, reasons = [], {}
    for index, line in enumerate(lines):
        if len(line) != len(header):
            reasons[index] = f"has {len(line)} fields, and the header {len(header)}"
            continue
        if place is not None:
            words.append(line.pop(place))
        try:
            values = [float(word) for word in line]
        except ValueError as error:
            reasons[index] = str(error)
            continue
        rows.append(dict(zip(names, values, strict=True)) if by_name else values)
    if reasons:
        raise BadRows(reasons)
    return Body(rows=rows, labels=_csv_labels(words, schema) if has_labels else None)


def _csv_labels(words: Sequence[str], schema: Schema | None) -> list[Any]:
    """Return the labels in the kind of the service's; without one, integers if all are."""
    kind = schema.label_kind if schema else None
    if kind == "string":
        return list(words)
    if kind == "boolean":
        return [{"true": True, "false": False}.get(word.lower(), word) for word in words]
    read = float if kind == "number" else int
    try:
        return [read(word) for word in words]
    except ValueError:
        return list(words)  # strings; where numbers are expected, each is named as bad


def _load(data: str | bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"not valid JSON ({str(error)[:80]})") from error


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Malformed("the body is not UTF-8") from error
