"""The process that runs jobs: one JSON line in is a job, each JSON line out is news of it.

What it finds goes into the job's folder: `facts.json` (what the seed decided in the stream),
`accuracy.json` (rewritten at every task end), `diagnostics.jsonl` (one line a checkpoint) and
`status.json`.
"""

import json
import os
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lamaml.errors import Diverged, LamamlError
from lamaml.evaluation import metrics
from lamaml.experiments.folders import append_json, fingerprint, plain, write_json
from lamaml.experiments.protocol import Checkpoint, train, updates_per_task
from lamaml.experiments.recipes import Experiment, Recipe, realize

EVERY = {"mlp": 100, "cnn": 10}  # updates to a checkpoint: a second or two

Report = Callable[..., None]
"""(kind, **data), sends news."""


def main() -> None:
    """Do jobs until the input ends."""
    # Only news may go to the pipe: whatever prints is sent to standard error.
    pipe = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def report(kind: str, **data: Any) -> None:
        pipe.write(json.dumps(plain({"kind": kind, **data}), allow_nan=False) + "\n")
        pipe.flush()

    # Two processes that compile the same at once may see each other's half-written file.
    warnings.filterwarnings("ignore", message="Error .* persistent compilation cache")
    try:
        for line in sys.stdin:
            run_job(json.loads(line), report)
    except (BrokenPipeError, KeyboardInterrupt):
        os._exit(1)  # nobody is listening any more


def run_job(job: dict[str, Any], report: Report) -> None:
    """Do one job, and say how it ended."""
    folder = Path(job["folder"])
    recipe, seed = Recipe(**job["recipe"]), job["seed"]
    try:
        sizes = {"num_tasks": job["num_tasks"], "num_samples": job["num_samples"]}
        experiment = realize(recipe, seed, **sizes)
        folder.mkdir(parents=True, exist_ok=True)
        ending = learn(experiment, seed, EVERY[recipe.model], folder, report)
    except Diverged as error:
        ending = {"status": "diverged", "message": str(error)}
    except BrokenPipeError:
        raise
    except LamamlError as error:
        report("ended", status="refused", error=type(error).__name__, message=str(error))
        return
    except Exception as error:  # noqa: BLE001  (another seed may still succeed)
        ending = {
            "status": "failed",
            "message": f"{type(error).__name__}: {error}",
            "traceback": traceback.format_exc(),
        }
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "status.json", ending)
    report("ended", **ending)


def learn(
    experiment: Experiment, seed: int, every: int, folder: Path, report: Report
) -> dict[str, Any]:
    """Show the stream to the learner, writing down what happens."""
    stream, schedule = experiment.stream, experiment.schedule
    updates = updates_per_task(stream, schedule)
    write_json(folder / "facts.json", stream.facts)
    write_json(folder / "status.json", {"status": "running", "message": ""})
    report("ready", num_tasks=len(updates), num_updates=sum(updates), pid=os.getpid())
    for at in train(stream, experiment.model, experiment.learner, schedule, seed, every=every):
        task_ended = at.update == 0
        task = at.task - task_ended
        update = updates[task] if task_ended else at.update
        append_json(folder / "diagnostics.jsonl", {"task": task, "update": update, **at.infos})
        if task_ended:
            write_accuracy(folder, at)
        done = sum(updates[: at.task]) + at.update
        report("progress", task=at.task, updates=done, retained=at.retained)
    return {
        "status": "finished",
        "message": "",
        "num_updates": sum(updates),
        "seconds": at.seconds._asdict(),
        "facts_sha256": fingerprint(stream.facts),
    }


def write_accuracy(folder: Path, at: Checkpoint) -> None:
    """The accuracy matrix so far and, once it is full, what it says; shares in [0, 1]."""
    found = {"matrix": at.matrix, "baseline": at.baseline}
    if at.task == len(at.matrix):
        found |= metrics(at.matrix, at.baseline)._asdict()
    write_json(folder / "accuracy.json", found)
