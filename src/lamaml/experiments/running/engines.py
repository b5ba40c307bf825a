"""Where jobs run: fresh processes on this machine.

A job is one seed of one recipe. It leaves its results in its own folder; what comes back are
events, for whoever draws progress. Each process has its own threads, so a run's bits do not depend
on how many run beside it.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import IO, TYPE_CHECKING, Any, NamedTuple, cast

from lamaml import errors
from lamaml._io import plain, write_json
from lamaml.experiments.storing.environment import num_cores

if TYPE_CHECKING:
    from lamaml.experiments.recipes.load import Recipe

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


@dataclass(frozen=True)
class Job:
    """One seed of a recipe, and the folder for what it finds.

    With a checkpoint in its folder the job goes on from there. A new one is written at task ends
    and every so many updates; 0 for task ends alone.
    """

    recipe: "Recipe"
    seed: int
    num_tasks: int | None
    num_samples: int | None
    folder: Path
    threads: int = 1
    checkpoint_every: int = 0


class Event(NamedTuple):
    """News of a job: `ready`, `progress`, `note` or `ended`."""

    job: Job
    kind: str
    data: Mapping[str, Any]


def worker_environment(threads: int, compiled: str | None = None) -> dict[str, str]:
    """The environment variables of a process that computes with so many threads.

    Args:
      threads: of each matrix product.
      compiled: a folder where processes find what others have compiled; one that the user has
        named in JAX_COMPILATION_CACHE_DIR goes before it.
    """
    # NPROC is the number of threads XLA gives its CPU client.
    names = ("NPROC", "PJRT_NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    variables = {**os.environ, **dict.fromkeys(names, str(threads)), **_KEEP_MEMORY}
    if compiled is not None:
        variables.setdefault("JAX_COMPILATION_CACHE_DIR", compiled)
        variables["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    return variables


def default_processes(num_jobs: int, threads: int) -> int:
    """As many as there are jobs, and cores for them."""
    return min(num_jobs, max(1, num_cores() // threads))


def run_jobs(
    jobs: Sequence[Job], *, processes: int, threads: int = 1, locks: Sequence[int] = ()
) -> Generator[Event]:
    """Run jobs, so many at a time, and yield what they report.

    A job that diverges or fails is an event like any other. Leaving the iteration early ends the
    processes, which write checkpoints of what they were doing.

    Args:
      jobs: in this order.
      processes: at a time.
      threads: of each.
      locks: descriptors of locks that the processes are to hold as well.

    Raises:
      LamamlError: a job was refused for its settings, data, checkpoint or disk, which every job
        would be.
    """
    waiting, unfinished = deque(jobs), len(jobs)
    news: _News = SimpleQueue()
    with tempfile.TemporaryDirectory(prefix="lamaml-") as compiled, contextlib.ExitStack() as stack:
        workers: list[_Worker] = []
        stack.callback(_dismiss, workers)

        def hire() -> _Worker:
            workers.append(_Worker(worker_environment(threads, compiled), news, locks))
            return workers[-1]

        for _ in range(min(processes, len(jobs))):
            hire().give(waiting.popleft())
        while unfinished:
            worker, message = news.get()
            job = worker.job
            if job is None:  # an idle worker has left
                continue
            kind, died = message.pop("kind"), message.pop("died", False)
            if kind == "ended":
                worker.job, unfinished = None, unfinished - 1
                _settle(job, message, died)
                if waiting:
                    left = died or message["status"] == "interrupted"
                    (hire() if left else worker).give(waiting.popleft())
            yield Event(job, kind, message)


def _settle(job: Job, ending: Mapping[str, Any], died: bool) -> None:
    if ending["status"] == "refused":
        raise getattr(errors, ending["error"])(ending["message"])
    if died:  # it could not write so itself
        write_json(job.folder / "status.json", ending)


def _dismiss(workers: "Sequence[_Worker]") -> None:
    """End processes: each finishes its update and writes a checkpoint, or is killed in the end."""
    deadline = time.monotonic() + STOP_SECONDS
    for worker in workers:
        worker.release()
    # A second Ctrl-C is from a person in a hurry.
    with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
        for worker in workers:
            worker.process.wait(timeout=max(0.0, deadline - time.monotonic()))
    for worker in workers:
        worker.end()


class _Worker:
    """A process that does one job after the other."""

    def __init__(self, variables: Mapping[str, str], news: "_News", locks: Sequence[int]) -> None:
        self.job: Job | None = None
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
        self.listener = threading.Thread(target=self._listen, args=(news,), daemon=True)
        self.listener.start()

    def give(self, job: Job) -> None:
        """Start a job."""
        self.job = job
        with contextlib.suppress(BrokenPipeError):  # it has died: the listener will say so
            self._input.write(json.dumps(plain(asdict(job))) + "\n")
            self._input.flush()

    def release(self) -> None:
        """Have the process end in its own time."""
        with contextlib.suppress(BrokenPipeError):
            self._input.close()

    def end(self) -> None:
        """See that the process is gone; what it could not end itself is marked as interrupted."""
        self.process.kill()
        self.listener.join()
        status = self.job.folder / "status.json" if self.job else None
        if status and status.exists() and json.loads(status.read_bytes())["status"] == "running":
            with contextlib.suppress(errors.Unwritable):  # the disk may be why it ends
                write_json(status, {"status": "interrupted", "message": "its process was ended"})

    def _listen(self, news: "_News") -> None:
        with self._output as lines:
            for line in lines:
                if line.endswith("\n"):  # else it was killed in the middle of it
                    news.put((self, json.loads(line)))
        code = self.process.wait()
        reason = f"signal {-code}" if code < 0 else f"exit code {code}"
        message = f"its process ended with {reason}"
        news.put((self, {"kind": "ended", "status": "failed", "message": message, "died": True}))


_News = SimpleQueue[tuple[_Worker, dict[str, Any]]]
