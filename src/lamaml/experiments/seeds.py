"""One seed of a run, from its last checkpoint to its end.

What it finds goes into its folder: `facts.json` (what the seed decided in the stream),
`accuracy.json` (rewritten at every task end), `diagnostics.jsonl` (a line an update), `status.json`
and checkpoints. On every path the folder's files are written before the checkpoint that counts on
them, and cut back to it before the seed goes on: so they end as if it had never been cut short.
"""

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lamaml.evaluation import metrics
from lamaml.experiments.checkpoints import Note, Origin, latest_good, written_beside
from lamaml.experiments.environment import PACKAGES, revision, versions
from lamaml.experiments.folders import append_json, fingerprint, keep_lines, write_json, writing
from lamaml.experiments.protocol import Checkpoint, train, untrained, updates_per_task
from lamaml.experiments.recipes import Experiment
from lamaml.types import Stream

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
    """Show the stream to the learner, from its last checkpoint on, writing down what happens."""
    stream, updates = experiment.stream, updates_per_task(experiment.stream, experiment.schedule)
    every, apart = EVERY[job["recipe"]["model"]], job["checkpoint_every"]
    origin, log = origin_of(job, stream), folder / "diagnostics.jsonl"
    write_json(folder / "status.json", {"status": "running", "message": ""})
    write_json(folder / "facts.json", stream.facts)
    with writing(folder):
        last = go_on(
            experiment, job["seed"], folder, origin, lambda text: report("note", message=text)
        )
    done = _num_made(last, updates) if last else 0
    size = {"num_tasks": len(updates), "num_updates": sum(updates)}
    report("ready", **size, updates=done, pid=os.getpid())
    parts = (stream, experiment.model, experiment.learner, experiment.schedule, job["seed"])
    with written_beside(folder, origin, log) as write:
        since = 0
        for at in train(*parts, every=min(every, apart or every), start=last, stop=stop):
            append_json(log, diagnostics(at, updates))
            last, task_ended, since = at, at.update == 0, since + at.num_new
            if task_ended:
                write_accuracy(folder, at)
            if task_ended or stop() or 0 < apart <= since:
                write(at)
                since = 0
            report("progress", task=at.task, updates=_num_made(at, updates), retained=at.retained)
    if last is None or last.task < len(updates):
        return {"status": "interrupted", "message": "stopped by a signal"}
    return {
        "status": "finished",
        "message": "",
        "num_updates": sum(updates),
        "seconds": last.seconds._asdict(),
        "facts_sha256": fingerprint(stream.facts),
    }


def go_on(
    experiment: Experiment,
    seed: int,
    folder: Path,
    origin: Origin,
    note: Note,
) -> Checkpoint | None:
    """The last good checkpoint, with the folder's files as they were then; None to begin anew."""
    stream, log = experiment.stream, folder / "diagnostics.jsonl"
    updates = updates_per_task(stream, experiment.schedule)
    for leftover in folder.glob("*.part"):  # of a killed process: nobody else is here
        leftover.unlink()
    at = latest_good(
        folder,
        lambda: untrained(stream, experiment.model, experiment.learner, seed),
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
    words = ("benchmark", "learner", "protocol", "preset", "stream", "model")
    given = {name: job[name] for name in ("seed", "num_tasks", "num_samples", "threads")}
    installed = versions()
    return Origin(
        {name: recipe[name] for name in words} | given | recipe["settings"],
        {package: installed[package] for package in PACKAGES},
        fingerprint(
            {
                "facts": stream.facts,
                "sizes": [len(task.train) for task in stream.tasks],
                "first": hashlib.sha256(stream.tasks[0].train.x.tobytes()).hexdigest(),
            }
        ),
        revision()["revision"],
    )


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


def _num_made(at: Checkpoint, updates: Sequence[int]) -> int:
    return sum(updates[: at.task]) + at.update
