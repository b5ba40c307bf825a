"""The worker process: reads jobs from standard input, one per line, and writes their events.

When its input ends, or at SIGTERM, it finishes the current update and writes a checkpoint: nothing
is lost when the command that started it dies.
"""

import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, nullcontext
from queue import SimpleQueue

from lamaml._compilation import use_compilation_cache
from lamaml._io import write_json
from lamaml._records import to_json
from lamaml.errors import Diverged, LamamlError
from lamaml.experiments.running.jobs import Ended, Event, Job, Refused, event_to_line
from lamaml.experiments.running.seed import train_seed
from lamaml.experiments.storing.locks import locked
from lamaml.experiments.storing.records import SeedState, SeedStatus


class Stop:
    """Whether the process should exit, and whether it has something to save before that."""

    def __init__(self) -> None:
        self.requested, self.training = threading.Event(), threading.Event()

    def request(self, *_: object) -> None:
        """Stop the job after its update; exit at once if there is none."""
        self.requested.set()
        if not self.training.is_set():
            os._exit(0)

    def __call__(self) -> bool:
        """Whether a stop was requested."""
        return self.requested.is_set()


def main() -> None:
    """Run jobs until the input ends."""
    # Only events may go to the pipe: whatever prints goes to standard error.
    pipe = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    stop, jobs = Stop(), SimpleQueue[Job]()

    def read_jobs() -> None:
        for line in sys.stdin:
            jobs.put(Job.from_line(line))
        stop.request()

    signal.signal(signal.SIGTERM, stop.request)
    signal.signal(signal.SIGINT, stop.request)
    # Two processes that compile the same at once may see each other's half-written file.
    warnings.filterwarnings("ignore", message="Error .* persistent compilation cache")
    use_compilation_cache()
    threading.Thread(target=read_jobs, daemon=True).start()
    while not stop():
        for event in run_job(jobs.get(), stop):
            try:
                pipe.write(event_to_line(event))
                pipe.flush()
            except BrokenPipeError:  # the command that started this process is gone
                stop.requested.set()
    os._exit(0)  # the thread that reads would block the usual exit


def run_job(job: Job, stop: Stop) -> Iterator[Event | Refused]:
    """Run one job, and write how it ended."""
    try:
        with _exclusive(job):
            status = yield from _attempt(job, stop)
            write_json(job.folder / "status.json", to_json(status))
    except LamamlError as error:
        ended: Ended | Refused = Refused(error)
    else:
        ended = Ended(status)
    stop.training.clear()
    yield ended


def _exclusive(job: Job) -> AbstractContextManager[object]:
    """The lock of a seed: the process of an earlier attempt may still write its checkpoint."""
    if not job.is_exclusive:
        return nullcontext()
    return locked(job.folder.parent, f"{job.folder.name}.lock", wait_for_anyone=True)


def _attempt(job: Job, stop: Stop) -> Generator[Event, None, SeedStatus]:
    """Train one seed, and turn an error that concerns this seed only into its status."""
    try:
        experiment = job.settings.experiment(job.seed)
        stop.training.set()
        return (yield from train_seed(experiment, job, stop))
    except Diverged as error:
        return SeedStatus(SeedState.DIVERGED, str(error), task=error.task, update=error.update)
    except LamamlError:
        raise
    except Exception as error:  # noqa: BLE001  (another seed may still succeed)
        message = f"{type(error).__name__}: {error}"
        return SeedStatus(SeedState.FAILED, message, traceback=traceback.format_exc())
