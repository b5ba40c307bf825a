"""The worker process, as every engine starts it. Nothing slow is imported: Ray needs no JAX."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, cast

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


def worker_environment(threads: int) -> dict[str, str]:
    """The environment variables of a process that computes with this number of threads."""
    # NPROC is the number of threads XLA gives its CPU client.
    names = ("NPROC", "PJRT_NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    keep_all_programs = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    numbers = dict.fromkeys(names, str(threads))
    return {**os.environ, **numbers, **_KEEP_MEMORY, **keep_all_programs}


class WorkerProcess:
    """A process of the worker command: jobs go in, one per line, and events come out.

    Args:
      variables: its environment.
      locks: descriptors of locks that it holds as well.
    """

    def __init__(self, variables: Mapping[str, str], locks: Sequence[int] = ()) -> None:
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

    def send(self, line: str) -> None:
        """Send a job."""
        with contextlib.suppress(BrokenPipeError):  # it has died: its output will end
            self._input.write(line)
            self._input.flush()

    def lines(self) -> Iterator[str]:
        """Its events, one per line, until it ends."""
        while (line := self._output.readline()).endswith("\n"):  # else it was killed while writing
            yield line

    def close(self) -> None:
        """Have it finish its update and exit."""
        with contextlib.suppress(BrokenPipeError):
            self._input.close()

    def finish(self, seconds: float) -> None:
        """Have it finish its update and exit; kill it if that takes longer."""
        self.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=seconds)
        self.process.kill()
        self.process.wait()
        self._output.close()
