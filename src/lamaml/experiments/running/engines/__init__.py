"""Engines: where jobs run. Local processes are the default, a Ray cluster is the other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from lamaml.errors import InvalidArgument, unknown_name

if TYPE_CHECKING:  # Ray's workers import this package, and need no JAX
    from lamaml.experiments.running.jobs import Event, Job

ENGINES = ("local", "ray")


class Engine(Protocol):
    """Runs jobs. A job leaves its results in its own folder; events say how far it is."""

    def submit(self, job: "Job") -> None:
        """Have a job run as soon as there is room for it."""

    def events(self) -> "Iterator[tuple[Job, Event]]":
        """The events of the submitted jobs, until the last of them has ended.

        A job that diverges or fails ends like any other. Jobs may be submitted meanwhile.

        Raises:
          LamamlError: a job was refused for its settings, data, checkpoint or disk, as every job
            would be.
        """

    def cancel(self, job: "Job") -> None:
        """End a job. It writes a checkpoint first, and ends as interrupted."""

    def stop(self) -> None:
        """End the jobs that still run. Each writes a checkpoint first."""


@dataclass(frozen=True)
class Workers:
    """Where jobs run, and how many at a time.

    Attributes:
      processes: the number of jobs at a time; None for one per core.
      engine: one of `ENGINES`.
      address: HOST:PORT of a Ray cluster; None for the one in RAY_ADDRESS, or a new one on this
        machine.
    """

    processes: int | None = None
    engine: str = "local"
    address: str | None = None

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise unknown_name("engine", self.engine, ENGINES)
        if self.address is not None and self.engine != "ray":
            raise InvalidArgument(f"--address {self.address}: is for --engine ray")

    def at_once(self, num_jobs: int, threads: int) -> int:
        """The number of these jobs that run at a time."""
        if self.processes is not None:
            return self.processes
        if self.engine == "ray":
            from lamaml.experiments.running.engines.ray_cluster import cluster_cpus

            return min(num_jobs, max(1, cluster_cpus(self.address) // threads))
        from lamaml.experiments.running.engines.local import default_processes

        return default_processes(num_jobs, threads)

    def start(self, num_jobs: int, threads: int, locks: Sequence[int] = ()) -> Engine:
        """An engine for jobs with this number of threads each.

        Args:
          num_jobs: how many will be submitted, as far as is known.
          threads: per job.
          locks: descriptors of locks that processes on this machine hold as well.
        """
        if self.engine == "ray":
            from lamaml.experiments.running.engines.ray_cluster import RayCluster

            return RayCluster(threads, self.address, self.processes)
        from lamaml.experiments.running.engines.local import LocalProcesses

        return LocalProcesses(self.at_once(num_jobs, threads), threads, locks)
