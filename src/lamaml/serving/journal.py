"""The journal: an SQLite file in which everything stands that the model's state depends on.

Rows and rollbacks are numbered entries. The learner takes consecutive entries as one batch, and
writes down where each batch ends: the entries and these ends alone determine the state, to the bit.

One thread writes. It commits everything that has arrived since the last commit in one transaction
and synchronises it to disk (WAL mode, synchronous=FULL); only then are the callers told.
"""

import contextlib
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from lamaml.errors import DataCorrupt, LamamlError, Unwritable

FORMAT = 1
"""Number of the file format."""
_SCHEMA = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE entries (
  number INTEGER PRIMARY KEY,
  time REAL NOT NULL,      -- accepted, in seconds since 1970
  rollback_to INTEGER,     -- number of a version; NULL for rows
  dtype TEXT, x BLOB,      -- the rows, see rows.pack
  labels TEXT,             -- JSON, one per row
  told TEXT,               -- JSON, what was predicted earlier; NULL if nothing was
  delay REAL               -- seconds from that prediction to its label
) STRICT;
CREATE TABLE batches (number INTEGER PRIMARY KEY, last_entry INTEGER NOT NULL) STRICT;
CREATE TABLE versions (
  number INTEGER PRIMARY KEY, last_entry INTEGER NOT NULL, record TEXT NOT NULL
) STRICT;
CREATE TABLE predictions (
  number INTEGER PRIMARY KEY,
  request_id TEXT UNIQUE NOT NULL,
  time REAL NOT NULL,
  is_labelled INTEGER NOT NULL,
  dtype TEXT, x BLOB,      -- NULL once labelled or expired
  told TEXT NOT NULL
) STRICT;
CREATE INDEX predictions_by_time ON predictions (time);
CREATE TABLE keys (number INTEGER PRIMARY KEY, key TEXT UNIQUE NOT NULL, last_entry INTEGER)
  STRICT;
CREATE TABLE positions (source TEXT PRIMARY KEY, position TEXT NOT NULL) STRICT;
"""
_PATIENCE = 0.05  # seconds that a write which nobody waits for may wait for others
_MAX_GROUP = 4096  # writes in one transaction

Result = TypeVar("Result")
Operation = Callable[[sqlite3.Connection], Result]
"""Reads and writes inside a transaction. It raises before its first write, or not at all."""


@dataclass(frozen=True)
class _Write:
    operation: Operation[Any]
    future: Future[Any]
    is_awaited: bool


class Journal:
    """An open journal with its writing thread.

    Args:
      path: of the file, created if it does not exist.

    Raises:
      DataCorrupt: the file is no journal, or of another format.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection = _connect(path)
        self._queue: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="lamaml-journal", daemon=True)
        self._thread.start()

    def submit(
        self,
        operation: Operation[Result],
        *,
        is_awaited: bool = True,
        on_commit: Callable[[Future[Result]], None] | None = None,
    ) -> "Future[Result]":
        """Run an operation in the next transaction.

        Args:
          operation: what to do.
          is_awaited: False lets it wait for up to 50 ms for others to share a commit with.
          on_commit: called in the order of the operations, by the writing thread.

        Returns:
          Its result, once it is on disk. An error of SQLite becomes `Unwritable`.
        """
        future: Future[Result] = Future()
        if on_commit is not None:
            future.add_done_callback(on_commit)
        if self._is_closed:
            raise Unwritable(f"{self._path} is closed")
        self._queue.put(_Write(operation, future, is_awaited))
        return future

    def close(self) -> None:
        """Write everything submitted so far, and close the file."""
        if not self._is_closed:
            self._is_closed = True
            self._queue.put(None)
            self._thread.join()
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()

    def _run(self) -> None:
        is_open = True
        while is_open:
            group: list[_Write] = []
            for write in self._next_group():
                if write is None:
                    is_open = False
                else:
                    group.append(write)
            if group:
                self._commit(group)

    def _next_group(self) -> Iterator[_Write | None]:
        """Yield a write, then all others that have arrived or, if nobody waits, arrive soon."""
        write = self._queue.get()
        yield write
        until = time.monotonic() + _PATIENCE
        for _ in range(_MAX_GROUP):
            is_urgent = write is None or write.is_awaited
            try:
                if is_urgent:
                    write = self._queue.get_nowait()
                else:
                    write = self._queue.get(timeout=max(until - time.monotonic(), 0))
            except queue.Empty:
                return
            yield write

    def _commit(self, group: list[_Write]) -> None:
        results: list[Any] = []
        try:
            with transaction(self._connection):
                for write in group:
                    try:
                        results.append(write.operation(self._connection))
                    except LamamlError as error:
                        results.append(error)
        except sqlite3.Error as error:
            failure = Unwritable(f"{self._path} cannot be written ({error})")
            results = [failure] * len(group)
        except Exception as error:  # noqa: BLE001  (a defect: the callers must hear of it)
            results = [error] * len(group)
        for write, result in zip(group, results, strict=True):
            if isinstance(result, Exception):
                write.future.set_exception(result)
            else:
                write.future.set_result(result)


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit what the block writes, or nothing of it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _connect(path: Path) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as error:
        raise Unwritable(f"{path} cannot be opened ({error})") from error
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA journal_size_limit = 67108864")
        (found,) = connection.execute("PRAGMA user_version").fetchone()
        if not found and not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
            create = f"BEGIN; {_SCHEMA} PRAGMA user_version = {FORMAT}; COMMIT"
            connection.executescript(create)
            found = FORMAT
    except sqlite3.DatabaseError as error:
        connection.close()
        kind = Unwritable if isinstance(error, sqlite3.OperationalError) else DataCorrupt
        raise kind(f"{path} is not a journal that can be used ({error})") from error
    if found != FORMAT:
        connection.close()
        raise DataCorrupt(f"{path}: format {found}, expected format {FORMAT}")
    return connection
