"""Making, opening and extending run folders. Each is locked while it is open."""

import shlex
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from lamaml._io import write_json, writing
from lamaml._records import to_json
from lamaml.errors import DataCorrupt, InUse, InvalidArgument, LamamlError
from lamaml.experiments.storing.environment import Environment
from lamaml.experiments.storing.locks import NAME as LOCK
from lamaml.experiments.storing.locks import Lock, locked
from lamaml.experiments.storing.records import RunSettings, read_record
from lamaml.experiments.storing.results import Run, find_runs, read_run


class OpenRun(NamedTuple):
    """A run folder that this process has locked."""

    run: Run
    lock: Lock


@contextmanager
def created(folder: Path, settings: RunSettings, *, overwrite: bool = False) -> Iterator[OpenRun]:
    """Make the folder of a new run, and lock it for the block.

    Args:
      folder: must not hold a run, unless `overwrite` is set.
      settings: of the run.
      overwrite: replace an older run. It is restored if the block raises a LamamlError before a
        seed has started.

    Raises:
      InUse: another command works on the folder.
      InvalidArgument: the folder cannot be used.
    """
    if (folder / LOCK).exists():
        with locked(folder):  # refused while another command works there
            pass
    with _replaced(folder, settings, overwrite), locked(folder) as lock:
        _write(folder, settings)
        yield OpenRun(read_run(folder), lock)


@contextmanager
def opened(folder: Path) -> Iterator[OpenRun]:
    """Lock an existing run for the block.

    Raises:
      DataUnavailable: it is not a run folder.
      InUse: another command works on it.
    """
    (folder,) = find_runs(folder)
    with locked(folder) as lock:
        clear_leftovers(folder)
        yield OpenRun(read_run(folder), lock)


@contextmanager
def extended(folder: Path, settings: RunSettings) -> Iterator[OpenRun]:
    """Lock a run; it gets the seeds of `settings` that it lacks, and is made if there is none.

    Raises:
      InUse: another command works on it.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with locked(folder) as lock:
        clear_leftovers(folder)
        if (folder / "settings.json").exists():
            there = read_record(folder / "settings.json", RunSettings)
            new = [seed for seed in settings.seeds if seed not in there.seeds]
            if new:
                _write_settings(folder, replace(there, seeds=[*there.seeds, *new]))
        else:
            _write(folder, settings)
        yield OpenRun(read_run(folder), lock)


def settings_in(folder: Path) -> RunSettings | None:
    """The settings of the run in a folder; None if there is none, or its file is damaged."""
    try:
        return read_record(folder / "settings.json", RunSettings)
    except DataCorrupt:
        return None


def resume_command(folders: Sequence[Path]) -> str:
    """The command that continues these runs.

    >>> resume_command([Path("runs/my run")])
    "lamaml resume 'runs/my run'"
    """
    return shlex.join(["lamaml", "resume", *map(str, folders)])


def clear_leftovers(folder: Path) -> None:
    """Remove half-written files and replaced runs that killed processes left."""
    for leftover in folder.glob("*.part"):
        leftover.unlink()
    if any(folder.glob("seed-*")):
        shutil.rmtree(_backup(folder), ignore_errors=True)


def _write(folder: Path, settings: RunSettings) -> None:
    write_json(folder / "environment.json", to_json(Environment.here()))
    _write_settings(folder, settings)


def _write_settings(folder: Path, settings: RunSettings) -> None:
    write_json(folder / "settings.json", to_json(settings))


@contextmanager
def _replaced(folder: Path, settings: RunSettings, overwrite: bool) -> Iterator[None]:
    """An empty folder. An older run is restored if the block raises before a seed has started."""
    backup = _backup(folder)
    try:
        _make_room(folder, backup, settings, overwrite)
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if isinstance(error, LamamlError):
            raise
        raise InvalidArgument(f"{_out(folder)} cannot be made ({error.strerror})") from error
    try:
        yield
    except InUse:  # by another command, which made the folder at the same time
        raise
    except LamamlError:
        if not any(folder.glob("seed-*")):
            shutil.rmtree(folder)
            if backup.exists():
                backup.rename(folder)
        raise
    finally:
        shutil.rmtree(backup, ignore_errors=True)


def _make_room(folder: Path, backup: Path, settings: RunSettings, overwrite: bool) -> None:
    if folder.absolute() == Path.cwd():
        raise InvalidArgument(f"{_out(folder)} is the current folder; choose another")
    if not folder.exists() or (folder.is_dir() and _never_started(folder)):
        return
    if not (folder / "settings.json").is_file():
        raise InvalidArgument(f"{_out(folder)} exists and is not a run folder; choose another")
    if not overwrite:
        there = settings_in(folder)
        other = settings.differences(there) if there else ["its settings are damaged"]
        which = f"another run ({', '.join(other)})" if other else "this run"
        raise InvalidArgument(
            f"{_out(folder)} holds {which} already; `{resume_command([folder])}` continues it, "
            "--overwrite replaces it (from Python: overwrite=True)"
        )
    shutil.rmtree(backup, ignore_errors=True)
    folder.rename(backup)


def _out(folder: Path) -> str:
    return f"out = {str(folder)!r}:"


def _never_started(folder: Path) -> bool:
    """Whether the folder holds at most what a command leaves that was killed at its start."""
    return all(
        path.name in (LOCK, "environment.json") or path.suffix == ".part"
        for path in folder.iterdir()
    )


def _backup(folder: Path) -> Path:
    """Where an older run is kept until the run that replaces it has started."""
    folder = folder.absolute()  # "." has no name
    return folder.with_name(f".{folder.name}.replaced")
