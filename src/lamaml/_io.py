"""Atomic file writes, locks, digests and JSON."""

import hashlib
import itertools
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from filelock import FileLock

from lamaml.errors import DataCorrupt, LamamlError, Unwritable


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` when the block ends without an error.

    The content is synchronised to disk first, so a crash leaves either the old file or the new one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with unfinished.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
        _sync_folder(path.parent)
    finally:
        unfinished.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Synchronise a folder, so that a renamed file survives a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Allow one process at a time to create `path`; the others wait.

    The operating system releases the lock of a killed process. Temporary files that such a process
    left behind are removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name(f".{path.name}.lock")):
        for leftover in path.parent.glob(f"{path.name}.*.part"):
            leftover.unlink()
        yield


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn any OSError of the block into `Unwritable`, which names the file and the reason."""
    try:
        yield
    except LamamlError:
        raise
    except OSError as error:
        raise Unwritable(f"{path} cannot be written ({error.strerror})") from error


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    with writing(path), atomic_write(path) as file:
        file.write(text.encode())


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file atomically; NaN and infinity become null."""
    write_text(path, json.dumps(plain(value), indent=1, allow_nan=False) + "\n")


def append_json(path: Path, values: Iterable[Any]) -> None:
    """Append one JSON line per value. Readers must ignore a last line without its newline."""
    lines = (json.dumps(plain(v), allow_nan=False, separators=(",", ":")) + "\n" for v in values)
    with writing(path), path.open("ab") as file:
        file.write("".join(lines).encode())


def keep_lines(path: Path, count: int) -> None:
    """Truncate a file after its first `count` lines.

    Raises:
      DataCorrupt: the file has fewer complete lines; it is left unchanged.
    """
    with writing(path), path.open("ab+") as file:
        file.seek(0)
        complete = sum(1 for line in itertools.islice(file, count) if line.endswith(b"\n"))
        if complete < count:
            raise DataCorrupt(f"{path} has {complete} of {count} lines")
        file.truncate(file.tell())


def plain(value: Any) -> Any:
    """Return a value as JSON types: dict, list, number, string or None.

    >>> plain({"rates": np.float32([0.1, np.nan]), "sizes": (np.int64(5), 5)})
    {'rates': [0.1, None], 'sizes': [5, 5]}
    """
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(item) for item in value]
    if isinstance(value, np.float32):
        value = float(str(value))  # the shortest digits that round to the same bits
    elif isinstance(value, np.generic):
        value = value.item()
    elif isinstance(value, Path):
        return str(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def fingerprint(value: Any) -> str:
    """Return the SHA-256 of a value's JSON, in hexadecimal; the order of keys does not matter."""
    return hashlib.sha256(json.dumps(plain(value), sort_keys=True).encode()).hexdigest()


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal; remembered until the file changes."""
    status = path.stat()
    return _file_digest(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=16)
def _file_digest(path: Path, size: int, modified: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
