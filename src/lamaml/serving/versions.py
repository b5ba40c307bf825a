"""Versions on disk: one safetensors file per version, and its place in the journal.

A version is written after a number of rows or seconds, when the service stops, after a rollback
and on request. The newest `keep_versions` are kept, and those that a rollback in the journal
returns to. Entries that the oldest of the newest has learned are deleted from the journal.
"""

import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lamaml._records import from_json, to_json
from lamaml.errors import DataCorrupt, DataUnavailable
from lamaml.serving.journal import Journal, Operation
from lamaml.serving.learning import Estimator, Version
from lamaml.serving.monitor import Monitor


@dataclass(frozen=True)
class StoredVersion:
    """What is known of a version on disk.

    Attributes:
      number: of the version.
      last_entry: last entry of the journal that it has learned.
      time: at which it was written, in seconds since 1970.
      reason: "scheduled", "asked", "stopped", "rollback" or "alarm".
      monitor: counts and scores at that time.
      bytes: size of the file.
    """

    number: int
    last_entry: int
    time: float
    reason: str
    monitor: Monitor
    bytes: int


class VersionStore:
    """The stored versions of a service.

    Args:
      folder: of their files.
      journal: in which they are listed.
      template: an estimator like theirs, from which functions (network, learner) are taken.
      keep: number of the newest versions that are kept.
      keep_journal: whether to keep all entries of the journal.
    """

    def __init__(
        self, folder: Path, journal: Journal, template: Estimator, *, keep: int, keep_journal: bool
    ) -> None:
        self._folder, self._journal, self.template = folder, journal, template
        self._keep, self._keep_journal = keep, keep_journal
        folder.mkdir(parents=True, exist_ok=True)
        self._stored = {stored.number: stored for stored in journal.submit(_read).result()}
        self._delete_unlisted()

    def list(self) -> list[StoredVersion]:
        """Return the stored versions, oldest first."""
        return sorted(self._stored.values(), key=lambda stored: stored.number)

    def save(self, version: Version, reason: str, time: float) -> StoredVersion:
        """Write a version, and delete what is not needed any more."""
        path = self._path(version.number)
        version.model.save(path)
        stored = StoredVersion(
            number=version.number,
            last_entry=version.last_entry,
            time=time,
            reason=reason,
            monitor=version.monitor,
            bytes=path.stat().st_size,
        )
        listed = self._journal.submit(_add(stored, self._keep, self._keep_journal)).result()
        known = {**self._stored, stored.number: stored}
        self._stored = {number: known[number] for number in listed}
        self._delete_unlisted()
        return stored

    def load_model(self, number: int) -> Estimator:
        """Return the model of a version.

        Raises:
          DataCorrupt, DataUnavailable: its file is damaged or missing.
        """
        template = self.template
        learner = None if isinstance(template.learner, str) else template.learner
        return type(template).load(self._path(number), model=template.model, learner=learner)

    def newest(self, on_damage: Callable[[str], None]) -> Version | None:
        """Return the newest version that can be read; None if there is none.

        Args:
          on_damage: called with a line for each version that cannot be read.
        """
        for stored in reversed(self.list()):
            try:
                model = self.load_model(stored.number)
            except (DataCorrupt, DataUnavailable) as error:
                on_damage(f"version {stored.number} cannot be read ({error}): using an older one")
                continue
            return Version(stored.number, stored.last_entry, model, stored.monitor)
        return None

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:012d}.safetensors"

    def _delete_unlisted(self) -> None:
        listed = {self._path(number).name for number in self._stored}
        for path in self._folder.iterdir():
            if path.name not in listed:
                path.unlink()


def _read(connection: sqlite3.Connection) -> list[StoredVersion]:
    records = connection.execute("SELECT record FROM versions ORDER BY number")
    return [from_json(StoredVersion, json.loads(record)) for (record,) in records]


def _add(stored: StoredVersion, keep: int, keep_journal: bool) -> Operation[list[int]]:
    """Return the operation that lists a version; its result is the numbers of all that are kept."""

    def write(connection: sqlite3.Connection) -> list[int]:
        record = json.dumps(to_json(stored))
        values = (stored.number, stored.last_entry, record)
        connection.execute("INSERT OR REPLACE INTO versions VALUES (?, ?, ?)", values)
        oldest, last = connection.execute(
            "SELECT number, last_entry FROM (SELECT number, last_entry FROM versions "
            "ORDER BY number DESC LIMIT ?) ORDER BY number LIMIT 1",
            (keep,),
        ).fetchone()
        if not keep_journal:
            connection.execute("DELETE FROM entries WHERE number <= ?", (last,))
            connection.execute("DELETE FROM batches WHERE number <= ?", (oldest,))
        connection.execute(
            "DELETE FROM versions WHERE number < ? AND number NOT IN "
            "(SELECT rollback_to FROM entries WHERE rollback_to IS NOT NULL)",
            (oldest,),
        )
        return [number for (number,) in connection.execute("SELECT number FROM versions")]

    return write
