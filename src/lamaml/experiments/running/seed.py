"""One seed of a run, from its last checkpoint to its end.

What it finds goes into its folder: `facts.json` (what the seed decided in the stream),
`accuracy.json` (rewritten at every task end), `rates/` (a file a task, where rates are learned),
`diagnostics.jsonl` (a line an update), `status.json` and checkpoints. The other files are written
before the checkpoint that counts on them, and cut back to it, or written again, when the seed goes
on: so they end as if it had never been cut short.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from lamaml._io import append_json, fingerprint, keep_lines, write_json, writing
from lamaml.evaluation import metrics
from lamaml.experiments.recipes.load import Experiment
from lamaml.experiments.storing.checkpoints import Note, Origin, latest_good, written_beside
from lamaml.experiments.storing.environment import PACKAGES, revision, versions
from lamaml.experiments.storing.folders import clear_leftovers
from lamaml.training.loop import Checkpoint, train, untrained, updates_per_task
from lamaml.types import Stream

LOG = "diagnostics.jsonl"
RATES = "rates"
RATE_BINS = 60
EVERY = {"mlp": 100, "cnn": 10}  # updates to news of them: a second or two

Report = Callable[..., None]
"""(kind, **data), sends news."""


def learn(
    experiment: Experiment,
    job: Mapping[str, Any],
    folder: Path,
    report: Report,
    stop: Callable[[], bool],
) -> dict[str, Any]:
    """Show the stream to the learner, from its last checkpoint on; how that ended."""
    stream, schedule = experiment.stream, experiment.schedule
    every, apart = EVERY.get(job["recipe"]["model"], min(EVERY.values())), job["checkpoint_every"]
    updates, origin = updates_per_task(stream, schedule), origin_of(job, stream)
    last = go_on(experiment, job["seed"], folder, origin, lambda text: report("note", message=text))
    write_json(folder / "facts.json", stream.facts)
    write_json(folder / "status.json", {"status": "running", "message": ""})
    size = {"num_tasks": len(updates), "num_updates": sum(updates)}
    report("ready", **size, updates=_num_made(last, updates), pid=os.getpid())
    parts = (stream, experiment.model, experiment.learner, schedule, job["seed"])
    run = train(*parts, every=min(every, apart or every), start=last, stop=stop)
    for last in written_down(run, updates, folder, origin, apart, stop):
        done = _num_made(last, updates)
        report("progress", task=last.task, updates=done, retained=last.retained)
    if last is None or last.task < len(updates):
        return {"status": "interrupted", "message": "stopped by a signal"}
    return {
        "status": "finished",
        "message": "",
        "num_updates": sum(updates),
        "seconds": last.seconds._asdict(),
        "facts_sha256": fingerprint(stream.facts),
        "data": origin.data,
    }


def written_down(
    run: Iterable[Checkpoint],
    updates: Sequence[int],
    folder: Path,
    origin: Origin,
    apart: int,
    stop: Callable[[], bool],
) -> Iterator[Checkpoint]:
    """What a run yields, once it is in the folder.

    Args:
      run: is being made.
      updates: of each task.
      folder: of the seed.
      origin: of the run.
      apart: updates from one checkpoint on the disk to the next; 0 for task ends alone.
      stop: says whether the next checkpoint is the last.
    """
    log, since = folder / LOG, 0
    with written_beside(folder, origin, log) as write:
        for at in run:
            append_json(log, diagnostics(at, updates))
            task_ended, since = at.update == 0, since + at.num_new
            if task_ended:
                write_accuracy(folder, at)
                write_rates(folder, at)
            if task_ended or stop() or 0 < apart <= since:
                write(at)
                since = 0
            yield at


def go_on(
    experiment: Experiment,
    seed: int,
    folder: Path,
    origin: Origin,
    note: Note,
) -> Checkpoint | None:
    """The last good checkpoint, with the folder's files as they were then; None to begin anew."""
    updates, log = updates_per_task(experiment.stream, experiment.schedule), folder / LOG
    with writing(folder):
        clear_leftovers(folder)
        at = latest_good(
            folder,
            lambda: untrained(experiment.stream, experiment.model, experiment.learner, seed),
            len(updates),
            origin,
            check=lambda at: keep_lines(log, _num_made(at, updates)),
            note=note,
        )
        if at is None:
            log.unlink(missing_ok=True)
        if at is None or at.task == 0:
            (folder / "accuracy.json").unlink(missing_ok=True)
        else:
            write_accuracy(folder, at)
    return at


def origin_of(job: Mapping[str, Any], stream: Stream) -> Origin:
    """What a checkpoint of this job must agree with."""
    recipe = job["recipe"]
    words = ("benchmark", "learner", "protocol", "preset", "stream", "model", "probes")
    given = {name: job[name] for name in ("seed", "num_tasks", "num_samples", "threads")}
    installed = versions()
    return Origin(
        {name: recipe[name] for name in words} | given | recipe["settings"],
        {package: installed[package] for package in PACKAGES},
        fingerprint_of(stream),
        revision()["revision"],
    )


def fingerprint_of(stream: Stream) -> str:
    """Of its facts and of every row: of other data it is another."""
    digest = hashlib.blake2b(digest_size=32)
    for task in stream.tasks:
        for rows in (task.train, task.validation, task.test):
            for array in (rows.x, rows.y):
                digest.update(f"{array.dtype.str} {array.shape}".encode())
                digest.update(np.ascontiguousarray(array).data)
    return fingerprint({"facts": stream.facts, "rows": digest.hexdigest()})


def diagnostics(at: Checkpoint, updates: Sequence[int]) -> Iterator[dict[str, Any]]:
    """A record for each update since the last checkpoint."""
    task, end = (at.task, at.update) if at.update else (at.task - 1, updates[at.task - 1])
    values = zip(*at.infos.values(), strict=True)
    for number, found in enumerate(values, end - at.num_new + 1):
        yield {"task": task, "update": number, **dict(zip(at.infos, found, strict=True))}


def write_accuracy(folder: Path, at: Checkpoint) -> None:
    """The accuracy matrix so far and, once it is full, what it says; shares in [0, 1]."""
    found = {"matrix": at.matrix, "baseline": at.baseline}
    if at.task == len(at.matrix):
        found |= metrics(at.matrix, at.baseline)._asdict()
    write_json(folder / "accuracy.json", found)


def write_rates(folder: Path, at: Checkpoint) -> None:
    """How the learning rates of each layer are distributed, if they are learned; a file a task."""
    rates = getattr(at.state, "rates", None)
    if rates is None:
        return
    layers = {}
    for name, layer in rates.items():
        values = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(layer)])
        counts, edges = np.histogram(np.maximum(values, 0.0), bins=RATE_BINS)
        layers[name] = {"low": edges[0], "high": edges[-1], "counts": counts}
    with writing(folder / RATES):
        (folder / RATES).mkdir(exist_ok=True)
    write_json(folder / RATES / f"task-{at.task}.json", layers)


def _num_made(at: Checkpoint | None, updates: Sequence[int]) -> int:
    return sum(updates[: at.task]) + at.update if at else 0
