"""The throughput of the engines: the same short jobs in local processes and as tasks of Ray."""

import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from lamaml.experiments.recipes.load import recipe
from lamaml.experiments.running.engines import Workers
from lamaml.experiments.running.engines.ray_cluster import connect
from lamaml.experiments.running.plan import Plan, new_runs
from lamaml.experiments.storing.environment import num_cores
from lamaml.experiments.storing.records import RunSettings

NUM_JOBS = 8


class EngineTimes(NamedTuple):
    """Seconds for `NUM_JOBS` short jobs, one per core at a time; the start of Ray is left out."""

    local_seconds: float
    ray_seconds: float

    @property
    def ratio(self) -> float:
        """Ray's time as a multiple of that of local processes."""
        return self.ray_seconds / self.local_seconds


def engine_times(epochs: int = 10) -> EngineTimes:
    """Measures both engines on this machine.

    Args:
      epochs: over each of ten tasks of digits: the length of a job.
    """
    connect(None)
    with tempfile.TemporaryDirectory(prefix="lamaml-") as folder:
        _seconds(Path(folder) / "warm", Workers(1), epochs=1, num_jobs=1)  # fills the disk cache
        cores = num_cores()
        local = _seconds(Path(folder) / "local", Workers(cores), epochs)
        ray = _seconds(Path(folder) / "ray", Workers(cores, "ray"), epochs)
    return EngineTimes(local, ray)


def _seconds(folder: Path, workers: Workers, epochs: int, num_jobs: int = NUM_JOBS) -> float:
    chosen = recipe("digits_rotations", "er", overrides={"epochs": epochs, "glances": 1})
    with new_runs([Plan(RunSettings(chosen, range(num_jobs)), folder)]) as work:
        began = time.perf_counter()
        work.run(lambda job, event: None, workers)
        return time.perf_counter() - began
