"""The process that runs jobs: one JSON line in is a job, each JSON line out is news of it.

When its input ends, or at SIGTERM, it finishes the update under way and writes a checkpoint:
nothing is lost with the command that started it.
"""

import json
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Mapping
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from lamaml._io import plain, write_json
from lamaml.errors import Diverged, LamamlError
from lamaml.experiments.recipes.load import Recipe, realize
from lamaml.experiments.running.seed import Report, learn


class Stop:
    """Whether the process is to end, and whether there is something to save before."""

    def __init__(self) -> None:
        self.asked, self.learning = threading.Event(), threading.Event()

    def ask(self, *_: object) -> None:
        """Have the job stop after its update; without one leave at once."""
        self.asked.set()
        if not self.learning.is_set():
            os._exit(0)

    def __call__(self) -> bool:
        """Whether it was asked for."""
        return self.asked.is_set()


def main() -> None:
    """Do jobs until the input ends."""
    # Only news may go to the pipe: whatever prints is sent to standard error.
    pipe = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    stop, jobs = Stop(), SimpleQueue[dict[str, Any]]()

    def report(kind: str, **data: Any) -> None:
        try:
            pipe.write(json.dumps(plain({"kind": kind, **data}), allow_nan=False) + "\n")
            pipe.flush()
        except BrokenPipeError:  # nobody is listening any more
            stop.asked.set()

    def listen() -> None:
        for line in sys.stdin:
            jobs.put(json.loads(line))
        stop.ask()

    signal.signal(signal.SIGTERM, stop.ask)
    signal.signal(signal.SIGINT, stop.ask)
    # Two processes that compile the same at once may see each other's half-written file.
    warnings.filterwarnings("ignore", message="Error .* persistent compilation cache")
    threading.Thread(target=listen, daemon=True).start()
    while not stop():
        run_job(jobs.get(), report, stop)
    os._exit(0)  # a thread that still reads would hold up the usual way


def run_job(job: Mapping[str, Any], report: Report, stop: Stop) -> None:
    """Do one job, and say how it ended."""
    folder = Path(job["folder"])
    try:
        ending = attempt(job, folder, report, stop)
        write_json(folder / "status.json", ending)
    except LamamlError as error:
        ending = {"status": "refused", "error": type(error).__name__, "message": str(error)}
    stop.learning.clear()
    report("ended", **ending)


def attempt(job: Mapping[str, Any], folder: Path, report: Report, stop: Stop) -> dict[str, Any]:
    """Learn, and turn what goes wrong with one seed alone into an ending of it."""
    try:
        sizes = {"num_tasks": job["num_tasks"], "num_samples": job["num_samples"]}
        experiment = realize(Recipe(**job["recipe"]), job["seed"], **sizes)
        stop.learning.set()
        return learn(experiment, job, folder, report, stop)
    except Diverged as error:
        place = {"task": error.task, "update": error.update}
        return {"status": "diverged", "message": str(error), **place}
    except LamamlError:
        raise
    except Exception as error:  # noqa: BLE001  (another seed may still succeed)
        message = f"{type(error).__name__}: {error}"
        return {"status": "failed", "message": message, "traceback": traceback.format_exc()}
