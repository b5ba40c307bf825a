"""The engine of one machine: every job runs in a fresh process.

Each process has its own threads, so a run's bits do not depend on how many run beside it.
"""

import contextlib
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from queue import SimpleQueue

from lamaml._io import write_json
from lamaml._records import to_json
from lamaml.errors import Unwritable
from lamaml.experiments.running.engines.process import (
    STOP_SECONDS,
    WorkerProcess,
    worker_environment,
)
from lamaml.experiments.running.jobs import Ended, Event, Job, Refused, event_from_line
from lamaml.experiments.storing.environment import num_cores
from lamaml.experiments.storing.records import SeedState, SeedStatus, read_record


def default_processes(num_jobs: int, threads: int) -> int:
    """The number of processes: one per job, but not more than there are cores for."""
    return min(num_jobs, max(1, num_cores() // threads))


class LocalProcesses:
    """An engine that runs jobs in processes on this machine, in the order they are submitted.

    Args:
      processes: the number of jobs at a time.
      threads: per process.
      locks: descriptors of locks that the processes hold as well.
    """

    def __init__(self, processes: int, threads: int = 1, locks: Sequence[int] = ()) -> None:
        self._processes, self._locks = processes, locks
        self._variables = worker_environment(threads)
        self._waiting = deque[Job]()
        self._workers: list[_Worker] = []
        self._messages: _Messages = SimpleQueue()

    def submit(self, job: Job) -> None:
        """Give the job to an idle process or a new one; queue it if all processes are busy."""
        if sum(worker.job is not None for worker in self._workers) >= self._processes:
            self._waiting.append(job)
            return
        idle = (w for w in self._workers if w.job is None and w.alive and not w.closing)
        (next(idle, None) or self._start()).submit(job)

    def cancel(self, job: Job) -> None:
        """End a job; it writes a checkpoint first, and ends as interrupted."""
        self._waiting = deque(other for other in self._waiting if other is not job)
        for worker in self._workers:
            if worker.job is job:
                worker.close()

    def events(self) -> Iterator[tuple[Job, Event]]:
        """The events of the submitted jobs, until the last of them has ended."""
        while any(worker.job is not None for worker in self._workers):
            worker, message = self._messages.get()
            job = worker.job
            if job is None:  # an idle worker has exited
                worker.alive = not isinstance(message, _Exited)
                continue
            if isinstance(message, Refused):
                worker.job = None
                raise message.error
            if isinstance(message, _Exited):
                message = Ended(SeedStatus(SeedState.FAILED, f"its process {message.reason}"))
                write_json(job.folder / "status.json", to_json(message.status))
                worker.alive = False
            if isinstance(message, Ended):
                self._finish(worker, message)
            yield job, message

    def stop(self) -> None:
        """End the processes: each finishes its update and writes a checkpoint, or is killed."""
        deadline = time.monotonic() + STOP_SECONDS
        for worker in self._workers:
            worker.close()
        # A second Ctrl-C does not wait.
        with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
            for worker in self._workers:
                worker.child.process.wait(timeout=max(0.0, deadline - time.monotonic()))
        for worker in self._workers:
            worker.shutdown()

    def _start(self) -> "_Worker":
        self._workers.append(_Worker(self._variables, self._messages, self._locks))
        return self._workers[-1]

    def _finish(self, worker: "_Worker", ended: Ended) -> None:
        """Give the next job to the worker, or to a new one if it exits."""
        worker.job = None
        worker.closing |= ended.status.state is SeedState.INTERRUPTED
        if self._waiting:
            self.submit(self._waiting.popleft())


class _Exited:
    """The last message of a worker: its process has ended."""

    def __init__(self, code: int) -> None:
        self.reason = f"ended with {f'signal {-code}' if code < 0 else f'exit code {code}'}"


class _Worker:
    """A worker process that runs one job after the other, and a thread that reads its events."""

    def __init__(
        self, variables: Mapping[str, str], messages: "_Messages", locks: Sequence[int]
    ) -> None:
        self.job: Job | None = None
        self.alive, self.closing = True, False
        self.child = WorkerProcess(variables, locks)
        self._reader = threading.Thread(target=self._read, args=(messages,), daemon=True)
        self._reader.start()

    def submit(self, job: Job) -> None:
        """Send a job to the process."""
        self.job = job
        self.child.send(job.to_line())

    def close(self) -> None:
        """Have the process finish its update and exit."""
        self.closing = True
        self.child.close()

    def shutdown(self) -> None:
        """Kill the process if it still runs; mark a job it could not end itself as interrupted."""
        self.child.finish(0.0)
        self._reader.join()
        if self.job is not None:
            mark_interrupted(self.job.folder / "status.json")

    def _read(self, messages: "_Messages") -> None:
        for line in self.child.lines():
            messages.put((self, event_from_line(line)))
        messages.put((self, _Exited(self.child.process.wait())))


def mark_interrupted(path: Path) -> None:
    """Write that a seed was interrupted if its status still says that it runs."""
    if path.exists() and read_record(path, SeedStatus).state is SeedState.RUNNING:
        status = SeedStatus(SeedState.INTERRUPTED, "its process was ended")
        with contextlib.suppress(Unwritable):  # the disk may be why it ends
            write_json(path, to_json(status))


_Messages = SimpleQueue[tuple[_Worker, Event | Refused | _Exited]]
