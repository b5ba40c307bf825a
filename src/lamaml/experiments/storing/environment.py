"""What a result depends on besides its settings: versions, machine, revision of the code."""

import os
import platform
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("lamaml", "jax", "jaxlib", "numpy")


def environment() -> dict[str, Any]:
    """The facts of `environment.json`."""
    return {
        "versions": versions(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpus": num_cores(),
        **revision(),
    }


def versions() -> dict[str, str]:
    """The packages whose version can change a number."""
    found = {package: package_version(package) for package in PACKAGES}
    return {**found, "python": platform.python_version()}


def package_version(package: str) -> str:
    """A package's installed version, found without importing it."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:  # run from a checkout that was never installed
        return "not installed"


def num_cores() -> int:
    """The cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def revision() -> dict[str, Any]:
    """The commit of the checkout this file belongs to, and whether it has changes."""
    here = Path(__file__)
    if _git("ls-files", "--error-unmatch", here.name) is None:
        return {"revision": None, "dirty": None}
    changes = _git("status", "--porcelain", "--", str(here.parents[2]))
    return {"revision": _git("rev-parse", "--verify", "HEAD"), "dirty": bool(changes)}


def _git(*arguments: str) -> str | None:
    command = ["git", "-C", str(Path(__file__).parent), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
