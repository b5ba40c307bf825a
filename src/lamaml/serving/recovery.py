"""Opening a folder: the last good version, and the journal's batches since then, learned again."""

import json
import logging
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.base import clone, is_classifier

from lamaml.errors import DataCorrupt, InvalidArgument, Mismatch
from lamaml.estimators import LaMAMLClassifier, LaMAMLRegressor
from lamaml.serving.config import Settings
from lamaml.serving.entries import (
    Entry,
    read_batches,
    read_entries,
    read_fact,
    read_schema,
    store_fact,
)
from lamaml.serving.journal import Journal
from lamaml.serving.learning import Estimator, Version, is_fitted, next_version
from lamaml.serving.monitor import Monitor
from lamaml.serving.rows import Label, Schema
from lamaml.serving.versions import VersionStore

_LOG = logging.getLogger("lamaml.serving")
_CLASSES = {kind.__name__: kind for kind in (LaMAMLClassifier, LaMAMLRegressor)}


@dataclass(frozen=True)
class Recovered:
    """The state of a folder.

    Attributes:
      version: after the last batch in the journal.
      entries: those that are in no batch yet.
      schema: of all rows; None if there are none.
      classes: all labels that were accepted; empty for a regression.
    """

    version: Version
    entries: list[Entry]
    schema: Schema | None
    classes: set[Label]


def open_versions(
    folder: Path, journal: Journal, estimator: Estimator | None, settings: Settings
) -> VersionStore:
    """Return the versions of a folder, and write down what estimator they are of.

    Args:
      folder: of the service.
      journal: of the folder.
      estimator: not fitted; None for the folder's own.
      settings: of the service.

    Raises:
      Mismatch: the folder was created with another estimator.
    """
    return VersionStore(
        folder / "versions",
        journal,
        journal.submit(lambda connection: _template(connection, estimator, folder)).result(),
        keep=settings.keep_versions,
        keep_journal=settings.keep_journal,
    )


def _template(
    connection: sqlite3.Connection, estimator: Estimator | None, folder: Path
) -> Estimator:
    stored = read_fact(connection, "estimator")
    if stored is None:
        template = clone(LaMAMLClassifier() if estimator is None else estimator)
        if estimator is not None and is_fitted(estimator):
            raise InvalidArgument("estimator: must not be fitted; the service learns from row one")
        store_fact(connection, "estimator", _described(template))
        return template
    if estimator is not None:
        _check_same(stored, _described(estimator), folder)
        return clone(estimator)
    kind, parameters = _CLASSES[stored["class"]], stored["parameters"]
    if parameters.pop("model") is not None or ":" in str(parameters["learner"]):
        raise InvalidArgument(f"{folder} has a network or learner of yours: pass its estimator")
    return kind(**parameters)


def _described(estimator: Estimator) -> dict[str, Any]:
    """Return the class and the parameters of an estimator as JSON types; functions by name."""
    parameters = estimator.get_params(deep=False)
    text = json.dumps(parameters, default=_name, sort_keys=True)
    return {"class": type(estimator).__name__, "parameters": json.loads(text)}


def _name(value: Any) -> str:
    if callable(value):
        module, name = getattr(value, "__module__", ""), getattr(value, "__qualname__", repr(value))
        return f"{module}:{name}"
    if hasattr(value, "tolist"):
        return value.tolist()
    return type(value).__name__


def _check_same(stored: dict[str, Any], given: dict[str, Any], folder: Path) -> None:
    if stored["class"] != given["class"]:
        raise Mismatch(f"{folder} has a {stored['class']}, not a {given['class']}: use another one")
    before, now = stored["parameters"], given["parameters"]
    changed = [name for name in now if now[name] != before.get(name)]
    if changed:
        words = ", ".join(f"{name} = {before.get(name)!r}, not {now[name]!r}" for name in changed)
        raise Mismatch(f"{folder} was created with {words}: use another folder, or these")


def recover(journal: Journal, store: VersionStore) -> Recovered:
    """Return the state of a folder: what was accepted is learned exactly once.

    Raises:
      DataCorrupt: no version can be read, and the journal does not begin at the first entry.
    """
    version = store.newest(_LOG.warning) or Version(0, 0, store.template, Monitor())
    schema = journal.submit(read_schema).result()
    batches = journal.submit(lambda c: read_batches(c, version.number)).result()
    entries = journal.submit(lambda c: list(read_entries(c, version.last_entry, schema))).result()
    _check_complete(version, entries)
    if batches:
        _LOG.info("version %d: learning %d batches again", version.number, len(batches))
    for number, last in batches:
        size = last - version.last_entry
        version = next_version(version, entries[:size], store.load_model)
        if version.number != number or version.last_entry != last:
            raise DataCorrupt(f"the journal has no complete batch {version.number}")
        entries = entries[size:]
    classes: set[Label] = {label for entry in entries for label in entry.labels}
    if version.is_fitted and is_classifier(version.model):
        classes |= set(version.model.classes_.tolist())
    return Recovered(version, entries, schema, classes)


def _check_complete(version: Version, entries: list[Entry]) -> None:
    if entries and entries[0].number != version.last_entry + 1:
        raise DataCorrupt(
            f"the journal begins at entry {entries[0].number}, and no version that has learned the "
            "entries before it can be read: restore the folder from a copy"
        )
