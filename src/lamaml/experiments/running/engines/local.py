"""The engine of one machine: every job runs in a fresh process.

Each process has its own threads, so a run's bits do not depend on how many run beside it.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import IO, cast

from lamaml._io import write_json
from lamaml._records import to_json
from lamaml.errors import Unwritable
from lamaml.experiments.running.jobs import Ended, Event, Job, Refused, event_from_line
from lamaml.experiments.storing.environment import num_cores
from lamaml.experiments.storing.records import SeedState, SeedStatus, read_record

STOP_SECONDS = 20.0  # for an update, perhaps its compilation, and a checkpoint

# The worker sees the modules this process sees, and not those of the folder it is started in.
_START = (
    "import sys; sys.path[:] = sys.argv[1:]; "
    "from lamaml.experiments.running.worker import main; main()"
)
# Large temporaries stay in the process's heap, on large pages: else the kernel hands them out anew,
# page by page, at every update.
_KEEP_MEMORY = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": "100000000000",
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
}


def worker_environment(threads: int, compiled: str | None = None) -> dict[str, str]:
    """The environment variables of a process that computes with this number of threads.

    Args:
      threads: of each matrix product.
      compiled: a folder where processes share compiled programs; one that the user has named in
        JAX_COMPILATION_CACHE_DIR takes precedence.
    """
    # NPROC is the number of threads XLA gives its CPU client.
    names = ("NPROC", "PJRT_NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    variables = {**os.environ, **dict.fromkeys(names, str(threads)), **_KEEP_MEMORY}
    if compiled is not None:
        variables.setdefault("JAX_COMPILATION_CACHE_DIR", compiled)
        variables["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    return variables


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
        self._compiled = tempfile.TemporaryDirectory(prefix="lamaml-")
        self._variables = worker_environment(threads, self._compiled.name)
        self._waiting = deque[Job]()
        self._workers: list[_Worker] = []
        self._messages: _Messages = SimpleQueue()

    def submit(self, job: Job) -> None:
        """Start the job in a new process, or queue it if all processes are busy."""
        if sum(worker.job is not None for worker in self._workers) < self._processes:
            self._start().submit(job)
        else:
            self._waiting.append(job)

    def events(self) -> Iterator[tuple[Job, Event]]:
        """The events of the submitted jobs, until the last of them has ended."""
        while any(worker.job is not None for worker in self._workers):
            worker, message = self._messages.get()
            job = worker.job
            if job is None:  # an idle worker has exited
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
                worker.process.wait(timeout=max(0.0, deadline - time.monotonic()))
        for worker in self._workers:
            worker.shutdown()
        self._compiled.cleanup()

    def _start(self) -> "_Worker":
        self._workers.append(_Worker(self._variables, self._messages, self._locks))
        return self._workers[-1]

    def _finish(self, worker: "_Worker", ended: Ended) -> None:
        """Give the next job to the worker, or to a new one if it exits."""
        worker.job = None
        if self._waiting:
            stays = worker.alive and ended.status.state is not SeedState.INTERRUPTED
            (worker if stays else self._start()).submit(self._waiting.popleft())


class _Exited:
    """The last message of a worker: its process has ended."""

    def __init__(self, code: int) -> None:
        self.reason = f"ended with {f'signal {-code}' if code < 0 else f'exit code {code}'}"


class _Worker:
    """A process that runs one job after the other."""

    def __init__(
        self, variables: Mapping[str, str], messages: "_Messages", locks: Sequence[int]
    ) -> None:
        self.job: Job | None = None
        self.alive = True
        self.process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-P", "-c", _START, *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=variables,
            text=True,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C is for the parent to handle
            pass_fds=locks,
        )
        self._input = cast(IO[str], self.process.stdin)  # there, because it was asked for
        self._output = cast(IO[str], self.process.stdout)
        self._reader = threading.Thread(target=self._read, args=(messages,), daemon=True)
        self._reader.start()

    def submit(self, job: Job) -> None:
        """Send a job to the process."""
        self.job = job
        with contextlib.suppress(BrokenPipeError):  # it has died: the reader will report it
            self._input.write(job.to_line())
            self._input.flush()

    def close(self) -> None:
        """Have the process finish its update and exit."""
        with contextlib.suppress(BrokenPipeError):
            self._input.close()

    def shutdown(self) -> None:
        """Kill the process if it still runs; mark a job it could not end itself as interrupted."""
        self.process.kill()
        self._reader.join()
        if self.job is not None:
            _mark_interrupted(self.job.folder / "status.json")

    def _read(self, messages: "_Messages") -> None:
        with self._output as lines:
            for line in lines:
                if line.endswith("\n"):  # else it was killed while writing
                    messages.put((self, event_from_line(line)))
        messages.put((self, _Exited(self.process.wait())))


def _mark_interrupted(path: Path) -> None:
    if path.exists() and read_record(path, SeedStatus).state is SeedState.RUNNING:
        status = SeedStatus(SeedState.INTERRUPTED, "its process was ended")
        with contextlib.suppress(Unwritable):  # the disk may be why it ends
            write_json(path, to_json(status))


_Messages = SimpleQueue[tuple[_Worker, Event | Refused | _Exited]]
