"""`load_run` and `load_runs`: stored experiments from Python."""

from pathlib import Path

from lamaml.errors import InvalidArgument, require
from lamaml.experiments.storing.joining import Runs, read_runs
from lamaml.experiments.storing.results import Run


def load_run(*folders: str | Path) -> Run:
    """Returns a run, made by `run` or by the command line.

    Args:
      *folders: a run folder; or several of equal settings, such as those of an array job, whose
        seeds are joined; or a folder that contains these.

    Raises:
      DataUnavailable: there is no run.
      DataCorrupt: one of its files is damaged.
      InvalidArgument: there are several runs, with different settings.

    Examples:
      >>> import tempfile
      >>> from lamaml import run
      >>> folder = f"{tempfile.mkdtemp()}/run"
      >>> made = run("digits_rotations", "online", num_tasks=2, num_samples=30,
      ...            out=folder, progress=False)
      >>> load_run(folder).summary == made.summary
      True
    """
    require(len(folders) > 0, "folders", folders, "at least one")
    first, *others = read_runs(map(Path, folders))
    for other in others:
        differences = other.settings.differences(first.settings)
        reason = ", ".join(differences) or "a seed of both has different results"
        raise InvalidArgument(
            f"{first.folder} and {other.folder} are different runs ({reason}): use load_runs"
        )
    return first


def load_runs(*folders: str | Path) -> Runs:
    """Returns the runs in folders; those of equal settings are joined into one.

    Args:
      *folders: run folders, or folders that contain them.

    Raises:
      DataUnavailable: a folder has no run.
      DataCorrupt: a file of a run is damaged.

    Examples:
      >>> import tempfile
      >>> from lamaml import run
      >>> folder = tempfile.mkdtemp()
      >>> for seed in (0, 1):
      ...     _ = run("digits_rotations", "online", seeds=[seed], num_tasks=2, num_samples=30,
      ...             out=f"{folder}/{seed}", progress=False)
      >>> [(len(found.folders), found.summary.seeds) for found in load_runs(folder)]
      [(2, [0, 1])]
    """
    return read_runs(map(Path, folders))
