"""Running with progress on the console; Ctrl-C and SIGTERM stop it and keep what was learned."""

import _thread
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from lamaml.errors import Unwritable
from lamaml.experiments.running.engines import Workers
from lamaml.experiments.running.loggers import check_loggers, logged
from lamaml.experiments.running.plan import Work
from lamaml.experiments.running.progress import shown_progress
from lamaml.experiments.storing.results import Run, read_run
from lamaml.experiments.storing.run_folder import resume_command


class Stopped(KeyboardInterrupt):
    """The user has stopped the runs; the message says what is kept."""


class Failure(NamedTuple):
    """A seed that did not finish.

    Attributes:
      message: one line.
      traceback: "" if there is none.
    """

    message: str
    traceback: str


def run_with_progress(
    opening: AbstractContextManager[Work],
    folders: Sequence[Path],
    console: Console,
    workers: Workers | None = None,
    announce: Callable[[Work], None] = lambda work: None,
    loggers: Sequence[str] = (),
) -> list[Run]:
    """Run the seeds that have not ended, with progress on the console.

    Args:
      opening: `new_runs`, `existing_runs` or `missing_runs`.
      folders: of the runs.
      console: shows the progress.
      workers: where the seeds run; None for one local process per core.
      announce: is called with the work before it starts.
      loggers: names of `LOGGERS`, which write the numbers of the seeds elsewhere too.

    Returns:
      The runs that were opened.

    Raises:
      Stopped: by Ctrl-C or SIGTERM.
      LamamlError: a folder, its checkpoints, settings or data are refused.
    """
    check_loggers(loggers)
    with stoppable(lambda: _kept(folders)), opening as work:
        announce(work)
        with (
            shown_progress(work.jobs, console) as show,
            logged(loggers, show) as on_event,
        ):
            return work.run(on_event, workers)


@contextmanager
def stoppable(kept: Callable[[], str]) -> Iterator[None]:
    """Turn Ctrl-C and SIGTERM into `Stopped`; it and a full disk say what is kept.

    Args:
      kept: returns what is kept, and how to continue.
    """
    try:
        with sigterm_as_interrupt():
            yield
    except KeyboardInterrupt:
        raise Stopped(f"stopped; {kept()}") from None
    except Unwritable as error:
        raise Unwritable(f"{error}; what was written before is intact: {kept()}") from error


def failures(runs: Sequence[Run]) -> Iterator[Failure]:
    """Every seed that did not finish, and why."""
    for run in runs:
        for seed in run.seeds:
            if not seed.finished:
                status = f"{seed.status.state}: {seed.status.message}"
                message = f"{run.settings.recipe.learner}, seed {seed.seed} {status}"
                if not seed.ended:
                    message += f"; `{resume_command([run.folder])}` tries again"
                yield Failure(message, seed.status.traceback or "")


def exit_code(runs: Sequence[Run]) -> int:
    """1 if a seed has not ended, 3 if the only seed diverged, else 0.

    A seed that diverges among others is a result.
    """
    seeds = [seed for run in runs for seed in run.seeds]
    if not all(seed.ended for seed in seeds):
        return 1
    return 3 if len(seeds) == 1 and not seeds[0].finished else 0


def _kept(folders: Sequence[Path]) -> str:
    known = [folder for folder in folders if (folder / "settings.json").exists()]
    if not known:
        return "nothing was started"
    seeds = [seed for folder in known for seed in read_run(folder).seeds]
    finished = sum(seed.finished for seed in seeds)
    return f"{finished} of {len(seeds)} seeds are finished; `{resume_command(known)}` continues"


@contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """SIGTERM ends the block as Ctrl-C does, and neither is lost in a garbage collection."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before, hook = signal.signal(signal.SIGTERM, signal.default_int_handler), sys.unraisablehook

    def interrupt_again(unraisable: "sys.UnraisableHookArgs") -> None:
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            _thread.start_new_thread(_terminate_soon, ())
        else:
            hook(unraisable)

    sys.unraisablehook = interrupt_again
    try:
        yield
    finally:
        sys.unraisablehook = hook
        signal.signal(signal.SIGTERM, before)


def _terminate_soon() -> None:
    """Send SIGTERM to the main thread in a moment.

    KeyboardInterrupt has no effect in a callback of the garbage collector (JAX has one) or of a
    weak reference, which is over by then.
    """
    time.sleep(0.01)
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
