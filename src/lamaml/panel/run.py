"""Runs the panel: each result in a worker process, stored as soon as it is there.

A folder holds `results/STREAM/MODEL-SEED.json`; the same command goes on where it was stopped.
"""

import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from lamaml._io import write_json, write_text
from lamaml._records import from_json, to_json
from lamaml.errors import DataCorrupt, DataUnavailable, LamamlError, Mismatch
from lamaml.experiments.running.console import sigterm_as_interrupt
from lamaml.experiments.storing.environment import Environment
from lamaml.panel.judge import Result, judge
from lamaml.panel.models import MODELS, model_named
from lamaml.panel.streams import QUICK_STREAMS, STREAMS, stream_named

VERSION = 1
"""Raised by hand when streams, rivals or the protocol change: results of two versions never mix."""
FULL, QUICK = "full", "quick"
_QUICK_ROWS = 1_000


class Job(NamedTuple):
    """One result to compute."""

    stream: str
    model: str
    seed: int
    num_rows: int  # at most


@dataclass(frozen=True)
class Panel:
    """`panel.json`: all results of a folder.

    Attributes:
      version: of streams, rivals and protocol.
      form: "full" or "quick".
      results: sorted by stream, model and seed.
      missing: the streams that could not be run, and why.
      environment: of the process that collected them.
    """

    version: int
    form: str
    results: list[Result]
    missing: dict[str, str]
    environment: Environment


def plan(
    form: str, seeds: int, streams: Sequence[str] = (), models: Sequence[str] = ()
) -> list[Job]:
    """Return the jobs of a panel, seed by seed and stream by stream.

    Args:
      form: "full" or "quick".
      seeds: number of seeds.
      streams: names; empty for all.
      models: names; empty for all.
    """
    for name in models:
        model_named(name)
    chosen = streams or (QUICK_STREAMS if form == QUICK else tuple(STREAMS))
    sizes = {name: stream_named(name).num_rows for name in chosen}
    if form == QUICK:
        sizes = {name: min(size, _QUICK_ROWS) for name, size in sizes.items()}
    return [
        Job(name, model, seed, size)
        for seed in range(seeds)
        for name, size in sizes.items()
        for model in models or MODELS
    ]


def run(
    jobs: Sequence[Job],
    folder: Path,
    form: str,
    *,
    processes: int = 1,
    on_result: Callable[[int, int, Result], None] = lambda done, total, result: None,
) -> Panel:
    """Compute the results that the folder does not have yet, and return all of its results.

    Args:
      jobs: what to compute.
      folder: is made if it does not exist.
      form: "full" or "quick"; a folder holds one of them.
      processes: number of worker processes.
      on_result: called with (number done, total number, result).

    Raises:
      Mismatch: the folder holds results of another form or version.
      LamamlError: a worker process died; the same command continues.
    """
    _claim(folder, form)
    waiting = [job for job in jobs if not _path(folder, job).exists()]
    done, missing = len(jobs) - len(waiting), {}
    with sigterm_as_interrupt():
        for job, outcome in _computed(waiting, folder, processes):
            done += 1
            if isinstance(outcome, Result):
                on_result(done, len(jobs), outcome)
            else:
                missing[job.stream] = str(outcome)
    panel = Panel(VERSION, form, read_results(folder), missing, Environment.here())
    write_text(folder / "panel.json", json.dumps(to_json(panel), separators=(",", ":")) + "\n")
    return panel


def read_panel(path: Path) -> Panel:
    """Return the panel stored in a file."""
    try:
        return from_json(Panel, json.loads(path.read_text("utf-8")))
    except ValueError as error:
        raise DataCorrupt(f"{path} is not a panel ({error})") from error


def read_results(folder: Path) -> list[Result]:
    """Return all results of a folder."""
    found = []
    for path in sorted((folder / "results").glob("*/*.json")):
        try:
            found.append(from_json(Result, json.loads(path.read_text("utf-8"))))
        except ValueError as error:
            message = f"{path} cannot be read ({error}): delete it, and it is computed again"
            raise DataCorrupt(message) from error
    return found


def _claim(folder: Path, form: str) -> None:
    """Write the form and the version of a new folder, or check those of an old one."""
    path, mine = folder / "form.json", {"form": form, "version": VERSION}
    if path.exists():
        found = json.loads(path.read_text("utf-8"))
        if found != mine:
            raise Mismatch(
                f"{folder} holds results of {found}, not of {mine}: choose another --out"
            )
    else:
        folder.mkdir(parents=True, exist_ok=True)
        write_json(path, mine)


def _path(folder: Path, job: Job) -> Path:
    return folder / "results" / job.stream / f"{job.model}-{job.seed}.json"


def _computed(
    jobs: Sequence[Job], folder: Path, processes: int
) -> Iterator[tuple[Job, Result | DataUnavailable]]:
    """Yield the outcome of each job as it ends."""
    if not jobs:
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_start_worker) as pool:
        try:
            futures = {pool.submit(_compute, job, folder): job for job in jobs}
            pending = set(futures)
            while pending:
                ended, pending = wait(pending, return_when=FIRST_COMPLETED)
                for future in ended:
                    yield futures[future], future.result()
        except BrokenProcessPool as error:
            raise LamamlError("a worker process died; the same command continues") from error
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in multiprocessing.active_children():
                worker.terminate()


def _start_worker() -> None:
    """Use one thread per process, leave Ctrl-C to the parent, and end when the parent does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ |= dict.fromkeys(("NPROC", "PJRT_NPROC"), "1")  # read when XLA starts
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _compute(job: Job, folder: Path) -> Result | DataUnavailable:
    try:
        result = judge(*job)
    except DataUnavailable as error:
        return error
    path = _path(folder, job)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, to_json(result))
    return result
