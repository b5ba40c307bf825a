"""Writing a run folder: every file is there whole or not at all."""

import shlex
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lamaml.errors import InUse, InvalidArgument, LamamlError


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
