"""Running plans while a person watches, who may stop them."""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from lamaml.errors import Unwritable
from lamaml.experiments.running.engines import Event, Job
from lamaml.experiments.running.plan import Plan, execute, resume
from lamaml.experiments.running.progress import shown_progress
from lamaml.experiments.storing.folders import resume_command
from lamaml.experiments.storing.results import Run, read_run


class Stopped(KeyboardInterrupt):
    """The person has stopped the runs; says what is kept."""


def execute_watched(
    plans: Sequence[Plan], console: Console, processes: int | None, overwrite: bool
) -> list[Run]:
    """Run plans, showing progress on the console.

    Raises:
      Stopped: by Ctrl-C or SIGTERM.
      LamamlError: settings or data are refused.
    """
    jobs = [job for plan in plans for job in plan.jobs]
    with _watched(plans, jobs, console) as on_event:
        return execute(plans, on_event, processes=processes, overwrite=overwrite)


def resume_watched(folders: Sequence[Path], console: Console, processes: int | None) -> list[Run]:
    """Go on with runs, showing progress on the console.

    Raises:
      Stopped: by Ctrl-C or SIGTERM.
      LamamlError: a folder or its checkpoints are refused.
    """
    plans = [Plan.of_run(read_run(folder)) for folder in folders]
    jobs = [job for plan in plans for job in plan.left()]
    with _watched(plans, jobs, console) as on_event:
        return resume(plans, on_event, processes=processes)


@contextmanager
def _watched(
    plans: Sequence[Plan], jobs: Sequence[Job], console: Console
) -> Iterator[Callable[[Event], None]]:
    """Progress for the time of the block, which may be stopped; says how to go on then."""
    try:
        with _stopped_by_sigterm(), shown_progress(jobs, console) as on_event:
            yield on_event
    except KeyboardInterrupt:
        raise Stopped(f"stopped; {_kept(plans)}") from None
    except Unwritable as error:
        raise Unwritable(f"{error}; what was written before is intact: {_kept(plans)}") from error


def misfortunes(runs: Sequence[Run]) -> Iterator[tuple[str, str]]:
    """(traceback or nothing, message) of every seed that did not finish."""
    for run in runs:
        for seed in run.seeds:
            if not seed.finished:
                status = f"{seed.status['status']}: {seed.status['message']}"
                message = f"{run.settings['learner']}, seed {seed.seed} {status}"
                if not seed.ended:
                    message += f"; `{resume_command([run.folder])}` tries again"
                yield seed.status.get("traceback", ""), message


def exit_code(runs: Sequence[Run]) -> int:
    """1 if a seed has not ended, 3 if the only one diverged; in a sweep that is a result, and 0."""
    seeds = [seed for run in runs for seed in run.seeds]
    if not all(seed.ended for seed in seeds):
        return 1
    return 3 if len(seeds) == 1 and not seeds[0].finished else 0


def _kept(plans: Sequence[Plan]) -> str:
    folders = [plan.out for plan in plans if (plan.out / "settings.json").exists()]
    if not folders:
        return "nothing was begun"
    seeds = [seed for folder in folders for seed in read_run(folder).seeds]
    finished = sum(seed.finished for seed in seeds)
    command = resume_command(folders)
    return f"{finished} of {len(seeds)} seeds are finished; `{command}` goes on with the rest"


@contextmanager
def _stopped_by_sigterm() -> Iterator[None]:
    """SIGTERM ends the block as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
