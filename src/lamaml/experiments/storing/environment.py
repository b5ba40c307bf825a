"""The environment of a result: package versions, machine, revision of the code."""

import os
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

PACKAGES = ("lamaml", "jax", "jaxlib", "numpy")


@dataclass(frozen=True)
class Environment:
    """`environment.json`: where a run was made.

    Attributes:
      versions: of the packages that can change a number, and of Python.
      platform: operating system and release.
      machine: processor type.
      cpus: cores the process could use.
      revision: commit of the checkout; None for an installed package.
      dirty: whether the checkout had changes.
    """

    versions: Mapping[str, str]
    platform: str = ""
    machine: str = ""
    cpus: int = 0
    revision: str | None = None
    dirty: bool | None = None

    @classmethod
    def here(cls) -> "Environment":
        """The environment of this process."""
        revision, dirty = checkout()
        system, machine = platform.platform(), platform.machine()
        return cls(versions(), system, machine, num_cores(), revision, dirty)


def versions() -> dict[str, str]:
    """The versions of the packages that can change a number, and of Python."""
    found = {package: package_version(package) for package in PACKAGES}
    return {**found, "python": platform.python_version()}


def package_version(package: str) -> str:
    """A package's installed version, found without importing it."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:  # run from a checkout that was never installed
        return "not installed"


def num_cores() -> int:
    """The number of cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def checkout() -> tuple[str | None, bool | None]:
    """The commit of the checkout this file belongs to, and whether it has changes."""
    here = Path(__file__)
    if _git("ls-files", "--error-unmatch", here.name) is None:
        return None, None
    changes = _git("status", "--porcelain", "--", str(here.parents[2]))
    return _git("rev-parse", "--verify", "HEAD"), bool(changes)


def _git(*arguments: str) -> str | None:
    command = ["git", "-C", str(Path(__file__).parent), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
