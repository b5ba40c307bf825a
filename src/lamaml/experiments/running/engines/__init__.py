"""Engines: where jobs run. Local processes are the only one so far."""

from collections.abc import Iterator
from typing import Protocol

from lamaml.experiments.running.jobs import Event, Job


class Engine(Protocol):
    """Runs jobs. A job leaves its results in its own folder; events say how far it is."""

    def submit(self, job: Job) -> None:
        """Have a job run as soon as there is room for it."""

    def events(self) -> Iterator[tuple[Job, Event]]:
        """The events of the submitted jobs, until the last of them has ended.

        A job that diverges or fails ends like any other.

        Raises:
          LamamlError: a job was refused for its settings, data, checkpoint or disk, as every job
            would be.
        """

    def stop(self) -> None:
        """End the jobs that still run. Each writes a checkpoint first."""
