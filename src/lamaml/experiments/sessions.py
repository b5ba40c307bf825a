"""Running plans while a person watches, who may stop them."""

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console

from lamaml.experiments.progress import shown_progress
from lamaml.experiments.results import Run, read_run
from lamaml.experiments.runs import Plan, execute


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
    try:
        with _stopped_by_sigterm(), shown_progress(jobs, console) as on_event:
            return execute(plans, on_event, processes=processes, overwrite=overwrite)
    except KeyboardInterrupt:
        raise Stopped(f"stopped; {_kept(plans)}") from None


def misfortunes(runs: Sequence[Run]) -> Iterator[tuple[str, str]]:
    """(traceback or nothing, message) of every seed that did not finish."""
    for run in runs:
        for seed in run.seeds:
            if not seed.finished:
                status = f"{seed.status['status']}: {seed.status['message']}"
                message = f"{run.settings['learner']}, seed {seed.seed} {status}"
                yield seed.status.get("traceback", ""), message


def exit_code(runs: Sequence[Run]) -> int:
    """1 if a seed failed, else 3 if one diverged, else 0."""
    statuses = {seed.status["status"] for run in runs for seed in run.seeds}
    return 1 if "failed" in statuses else 3 if "diverged" in statuses else 0


def _kept(plans: Sequence[Plan]) -> str:
    folders = [plan.out for plan in plans if (plan.out / "environment.json").exists()]
    if not folders:
        return "nothing was begun"
    seeds = [seed for folder in folders for seed in read_run(folder).seeds]
    finished = sum(seed.finished for seed in seeds)
    where = ", ".join(map(str, folders))
    return f"{finished} of {len(seeds)} seeds are finished, and kept with the rest in {where}"


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
