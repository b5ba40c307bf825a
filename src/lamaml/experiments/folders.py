"""Writing a run folder: every file is there whole or not at all."""

import hashlib
import json
import math
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from lamaml.errors import InvalidArgument, LamamlError
from lamaml.streams.files import written_whole


@contextmanager
def new_folder(folder: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A folder for a run.

    An older run in its place is set aside, and comes back if the new one is refused before it has
    begun, that is, if the block raises a LamamlError.
    """
    aside = folder.with_name(f".{folder.name}.replaced")
    try:
        _make_room(folder, aside, overwrite)
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if isinstance(error, LamamlError):
            raise
        raise InvalidArgument(f"--out {folder}: cannot be made ({error.strerror})") from error
    try:
        yield folder
    except LamamlError:
        shutil.rmtree(folder)
        if aside.exists():
            aside.rename(folder)
        raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _make_room(folder: Path, aside: Path, overwrite: bool) -> None:
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not (folder / "settings.json").is_file():
        raise InvalidArgument(f"--out {folder}: exists and is not a run folder; choose another")
    if not overwrite:
        raise InvalidArgument(
            f"--out {folder}: there is a run already; add --overwrite to replace it"
        )
    shutil.rmtree(aside, ignore_errors=True)
    folder.rename(aside)


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file atomically; NaN and infinity become null."""
    with written_whole(path) as file:
        file.write(json.dumps(plain(value), indent=1, allow_nan=False).encode() + b"\n")


def append_json(path: Path, value: Any) -> None:
    """Append one JSON line in one write, so that a reader sees all of it or no newline."""
    line = json.dumps(plain(value), allow_nan=False, separators=(",", ":")).encode() + b"\n"
    with path.open("ab", buffering=0) as file:
        file.write(line)


def fingerprint(value: Any) -> str:
    """The SHA-256 of a value's JSON."""
    return hashlib.sha256(json.dumps(plain(value), sort_keys=True).encode()).hexdigest()


def plain(value: Any) -> Any:
    """A value as JSON knows it: mappings, lists, numbers, text, null.

    >>> plain({"rates": np.float32([0.1, np.nan]), "sizes": (np.int64(5), 5)})
    {'rates': [0.1, None], 'sizes': [5, 5]}
    """
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(item) for item in value]
    if isinstance(value, np.float32):
        value = float(str(value))  # the shortest digits that give these bits again
    elif isinstance(value, np.generic):
        value = value.item()
    elif isinstance(value, Path):
        return str(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value
