"""Writing a run folder: every file is there whole or not at all."""

import hashlib
import itertools
import json
import math
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from lamaml._io import written_whole
from lamaml.errors import DataCorrupt, InUse, InvalidArgument, LamamlError, Unwritable


@contextmanager
def new_folder(folder: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A folder for a run.

    An older run in its place is set aside, and comes back if the new one is refused before it has
    begun, that is, if the block raises a LamamlError.
    """
    aside = _aside(folder)
    try:
        _make_room(folder, aside, overwrite)
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if isinstance(error, LamamlError):
            raise
        raise InvalidArgument(f"--out {folder}: cannot be made ({error.strerror})") from error
    try:
        yield folder
    except InUse:  # by another command, which made the folder at the same time
        raise
    except LamamlError:
        if not any(folder.glob("seed-*")):
            shutil.rmtree(folder)
            if aside.exists():
                aside.rename(folder)
        raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _make_room(folder: Path, aside: Path, overwrite: bool) -> None:
    if folder.absolute() == Path.cwd():
        raise InvalidArgument(f"--out {folder}: is the folder you are in; choose another")
    if not folder.exists() or (folder.is_dir() and _never_begun(folder)):
        return
    if not (folder / "settings.json").is_file():
        raise InvalidArgument(f"--out {folder}: exists and is not a run folder; choose another")
    if not overwrite:
        command = resume_command([folder])
        raise InvalidArgument(
            f"--out {folder}: there is a run already; `{command}` goes on with it, "
            "--overwrite replaces it"
        )
    shutil.rmtree(aside, ignore_errors=True)
    folder.rename(aside)


def _never_begun(folder: Path) -> bool:
    """Whether there is nothing, or only what a command leaves that was killed as it began."""
    return all(
        path.name in ("lock", "environment.json") or path.suffix == ".part"
        for path in folder.iterdir()
    )


def resume_command(folders: Sequence[Path]) -> str:
    """What to type to go on.

    >>> resume_command([Path("runs/my run")])
    "lamaml resume 'runs/my run'"
    """
    return shlex.join(["lamaml", "resume", *map(str, folders)])


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Says in one line that a file cannot be written, and why."""
    try:
        yield
    except LamamlError:
        raise
    except OSError as error:
        raise Unwritable(f"{path} cannot be written ({error.strerror})") from error


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file atomically; NaN and infinity become null."""
    write_text(path, json.dumps(plain(value), indent=1, allow_nan=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a text atomically."""
    with writing(path), written_whole(path) as file:
        file.write(text.encode())


def append_json(path: Path, values: Iterable[Any]) -> None:
    """Append JSON lines; a reader that meets one without its newline is to leave it out."""
    lines = (json.dumps(plain(v), allow_nan=False, separators=(",", ":")) + "\n" for v in values)
    with writing(path), path.open("ab") as file:
        file.write("".join(lines).encode())


def keep_lines(path: Path, count: int) -> None:
    """Cut a file of lines after so many of them.

    Raises:
      DataCorrupt: it has fewer; it is as it was.
    """
    with writing(path), path.open("ab+") as file:
        file.seek(0)
        whole = sum(1 for line in itertools.islice(file, count) if line.endswith(b"\n"))
        if whole < count:
            raise DataCorrupt(f"{path} has {whole} of {count} lines")
        file.truncate(file.tell())


def clear_leftovers(folder: Path) -> None:
    """Remove what killed processes left, half-written or set aside, when nobody else is there."""
    for leftover in folder.glob("*.part"):
        leftover.unlink()
    if any(folder.glob("seed-*")):
        shutil.rmtree(_aside(folder), ignore_errors=True)


def _aside(folder: Path) -> Path:
    """Where an older run waits until the one in its place has begun."""
    folder = folder.absolute()  # "." has no name
    return folder.with_name(f".{folder.name}.replaced")


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
