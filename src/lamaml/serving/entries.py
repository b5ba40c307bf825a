"""Entries of the journal: rows with labels, and rollbacks; and the operations that write them."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lamaml.errors import InvalidArgument
from lamaml.serving.errors import AlreadyLabelled, TooLate, UnknownRequest, UnknownVersion
from lamaml.serving.journal import Operation
from lamaml.serving.rows import Label, Schema, pack, unpack

MAX_KEYS = 100_000
"""Number of the latest idempotency keys that are remembered."""


@dataclass(frozen=True)
class Entry:
    """One entry: rows with their labels, or a rollback.

    Attributes:
      number: from 1, without gaps.
      x: (n, ...) float64.
      labels: one per row.
      told: what was predicted for these rows earlier; None if nothing was.
      delay: seconds from that prediction to its label.
      rollback_to: number of the version to return to; None for rows.
    """

    number: int
    x: np.ndarray
    labels: list[Label]
    told: list[Label] | None = None
    delay: float | None = None
    rollback_to: int | None = None

    @property
    def num_rows(self) -> int:
        """Number of rows; 0 for a rollback."""
        return len(self.labels)


@dataclass(frozen=True)
class NewRows:
    """Rows to be journaled, in pieces that become one entry each.

    Attributes:
      pieces: rows and labels.
      time: at which they came, in seconds since 1970.
      schema: of all rows of this service.
      key: identifies the request; one that is repeated is not learned again.
      position: (source, position) that is stored with the rows.
    """

    pieces: Sequence[tuple[np.ndarray, list[Label]]]
    time: float
    schema: Schema
    key: str | None = None
    position: tuple[str, str] | None = None

    def __call__(self, connection: sqlite3.Connection) -> list[Entry]:
        """Return the new entries; none if the key is known."""
        if self.key is not None and last_entry_of_key(connection, self.key) is not None:
            return []
        store_schema(connection, self.schema)
        last = last_entry(connection)
        entries = [
            Entry(last + index, x, labels) for index, (x, labels) in enumerate(self.pieces, 1)
        ]
        for entry in entries:
            _insert(connection, entry, self.time, *pack(entry.x))
            last = entry.number
        if self.key is not None:
            connection.execute("INSERT INTO keys (key, last_entry) VALUES (?, ?)", (self.key, last))
        if self.position is not None:
            connection.execute("INSERT OR REPLACE INTO positions VALUES (?, ?)", self.position)
        return entries


@dataclass(frozen=True)
class LateLabels:
    """Labels for a prediction that was made before."""

    request_id: str
    labels: list[Label]
    time: float
    label_ttl: float
    schema: Schema

    def __call__(self, connection: sqlite3.Connection) -> list[Entry]:
        """Return the new entry.

        Raises:
          UnknownRequest, AlreadyLabelled, TooLate: there is no such prediction, or not any more.
          InvalidArgument: it had another number of rows.
        """
        found = connection.execute(
            "SELECT time, is_labelled, dtype, x, told FROM predictions WHERE request_id = ?",
            (self.request_id,),
        ).fetchone()
        if found is None:
            raise UnknownRequest(f"request_id {self.request_id!r:.80}: no prediction has this id")
        then, is_labelled, dtype, data, told = found
        if is_labelled:
            raise AlreadyLabelled(f"request_id {self.request_id!r:.80}: it has its labels already")
        delay = self.time - then
        if data is None or delay > self.label_ttl:
            raise TooLate(
                f"request_id {self.request_id!r:.80}: labels are accepted for "
                f"{self.label_ttl:g} s (label_ttl)"
            )
        x, told = unpack(dtype, data, self.schema.row_shape), json.loads(told)
        if len(x) != len(self.labels):
            raise InvalidArgument(f"{len(self.labels)} labels for a prediction of {len(x)} rows")
        entry = Entry(last_entry(connection) + 1, x, self.labels, told, max(delay, 0.0))
        _insert(connection, entry, self.time, dtype, data)
        connection.execute(
            "UPDATE predictions SET is_labelled = 1, x = NULL WHERE request_id = ?",
            (self.request_id,),
        )
        return [entry]


def new_rollback(version: int, time: float) -> Operation[list[Entry]]:
    """Return the operation that writes a rollback; it raises UnknownVersion if there is none."""

    def write(connection: sqlite3.Connection) -> list[Entry]:
        known = [number for (number,) in connection.execute("SELECT number FROM versions")]
        if version not in known:
            raise UnknownVersion(f"version {version} is not stored; stored versions: {known}")
        entry = Entry(last_entry(connection) + 1, np.zeros((0, 0)), [], rollback_to=version)
        _insert(connection, entry, time, None, None)
        return [entry]

    return write


def keep_predictions(
    time: float, told: Sequence[tuple[str, np.ndarray, list[Label]]]
) -> Operation[None]:
    """Return the operation that keeps predictions until their labels come.

    A request_id that is used again replaces the earlier prediction, unless that has its label.

    Args:
      time: at which they were made.
      told: request_id, rows and predictions of each.
    """

    def write(connection: sqlite3.Connection) -> None:
        connection.executemany(
            "INSERT INTO predictions (request_id, time, is_labelled, dtype, x, told) "
            "VALUES (?, ?, 0, ?, ?, ?) ON CONFLICT (request_id) DO UPDATE SET "
            "time = excluded.time, dtype = excluded.dtype, x = excluded.x, told = excluded.told "
            "WHERE is_labelled = 0",
            [(name, time, *pack(x), json.dumps(answers)) for name, x, answers in told],
        )

    return write


def forget_old(now: float, label_ttl: float, max_kept: int) -> Operation[None]:
    """Return the operation that deletes predictions that are too old or too many, and old keys.

    The id of an expired or labelled prediction is remembered for `label_ttl` longer.
    """

    def write(connection: sqlite3.Connection) -> None:
        expire = "UPDATE predictions SET x = NULL WHERE time < ? AND x IS NOT NULL"
        connection.execute(expire, (now - label_ttl,))
        connection.execute("DELETE FROM predictions WHERE time < ?", (now - 2 * label_ttl,))
        for table, size in (("predictions", max_kept), ("keys", MAX_KEYS)):
            oldest = f"(SELECT max(number) FROM {table}) - ?"  # noqa: S608
            connection.execute(f"DELETE FROM {table} WHERE number <= {oldest}", (size,))  # noqa: S608

    return write


def end_batch(number: int, last: int) -> Operation[None]:
    """Return the operation that writes down where a batch ends."""

    def write(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO batches VALUES (?, ?)", (number, last))

    return write


def _insert(
    connection: sqlite3.Connection, entry: Entry, time: float, dtype: str | None, x: bytes | None
) -> None:
    labels = json.dumps(entry.labels)
    told = None if entry.told is None else json.dumps(entry.told)
    values = (entry.number, time, entry.rollback_to, dtype, x, labels, told, entry.delay)
    connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)


def last_entry(connection: sqlite3.Connection) -> int:
    """Return the number of the last entry ever written; 0 if there is none."""
    # Entries are deleted once versions have learned them.
    (number,) = connection.execute(
        "SELECT max(coalesce((SELECT max(number) FROM entries), 0), "
        "coalesce((SELECT last_entry FROM versions ORDER BY number DESC LIMIT 1), 0))"
    ).fetchone()
    return int(number)


def last_entry_of_key(connection: sqlite3.Connection, key: str) -> int | None:
    """Return the last entry of the request with this key; None if there was none."""
    found = connection.execute("SELECT last_entry FROM keys WHERE key = ?", (key,)).fetchone()
    return None if found is None else int(found[0])


def read_entries(
    connection: sqlite3.Connection, after: int, schema: Schema | None
) -> Iterator[Entry]:
    """Yield the entries after a number, in order."""
    rows = connection.execute(
        "SELECT number, rollback_to, dtype, x, labels, told, delay FROM entries "
        "WHERE number > ? ORDER BY number",
        (after,),
    )
    shape: Any = schema.row_shape if schema else ()
    for number, rollback_to, dtype, x, labels, told, delay in rows:
        values = np.zeros((0, 0)) if x is None else unpack(dtype, x, shape)
        told = None if told is None else json.loads(told)
        yield Entry(number, values, json.loads(labels), told, delay, rollback_to)


def read_batches(connection: sqlite3.Connection, after: int) -> list[tuple[int, int]]:
    """Return the number and the last entry of each batch after a number."""
    query = "SELECT number, last_entry FROM batches WHERE number > ? ORDER BY number"
    return [(int(n), int(last)) for n, last in connection.execute(query, (after,))]


def read_schema(connection: sqlite3.Connection) -> Schema | None:
    """Return what all rows have in common; None before the first rows."""
    found = read_fact(connection, "schema")
    if found is None:
        return None
    columns = found["columns"]
    shape = tuple(int(size) for size in found["row_shape"])
    return Schema(shape, None if columns is None else tuple(columns), found["label_kind"])


def store_schema(connection: sqlite3.Connection, schema: Schema) -> None:
    """Write down the schema, once."""
    value = {**vars(schema)}
    connection.execute("INSERT OR IGNORE INTO facts VALUES ('schema', ?)", (json.dumps(value),))


def read_fact(connection: sqlite3.Connection, name: str) -> Any:
    """Return a stored value; None if there is none."""
    found = connection.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
    return None if found is None else json.loads(found[0])


def store_fact(connection: sqlite3.Connection, name: str, value: Any) -> None:
    """Write a value, replacing an earlier one."""
    connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, json.dumps(value)))
