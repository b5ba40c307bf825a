"""One seed of a run, trained from its last checkpoint to its end.

Its folder gets `facts.json` (what the seed decided in the stream), `accuracy.json` (rewritten at
every task end), `confusion.json` (the answers at the end), `rates/` (one file per task, where rates
are learned), `diagnostics.jsonl` (one line per update), `status.json` and checkpoints. The other
files are written before the checkpoint that relies on them, and cut back to it or rewritten when
the seed is resumed. So they end as if it had never been interrupted.
"""

import os
import resource
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import jax
import numpy as np

from lamaml._io import append_json, fingerprint, keep_lines, write_json, writing
from lamaml._records import to_json
from lamaml.evaluation import confusion_matrix, metrics
from lamaml.experiments.recipes.load import Experiment
from lamaml.experiments.running.jobs import Event, Job, Note, Progress, Ready
from lamaml.experiments.storing.checkpoints import (
    Found,
    checkpoint_writer,
    newest_good,
    set_aside,
)
from lamaml.experiments.storing.origin import Origin, origin_of
from lamaml.experiments.storing.records import Accuracy, Confusion, SeedState, SeedStatus
from lamaml.experiments.storing.run_folder import clear_leftovers
from lamaml.training import Checkpoint, train
from lamaml.training.loop import initial_state
from lamaml.training.schedule import updates_per_task

LOG = "diagnostics.jsonl"
RATES = "rates"
RATE_BINS = 60
EVERY = {"mlp": 100, "cnn": 10, "resnet18": 1}  # updates between two events: a second or two


def train_seed(
    experiment: Experiment, job: Job, stop: Callable[[], bool]
) -> Generator[Event, None, SeedStatus]:
    """Train from the last checkpoint on; yields events and returns the final status.

    Raises:
      Diverged: a loss or a number of the state is no longer finite.
      LamamlError: the checkpoint is of another run, or the disk is full.
    """
    stream, schedule, folder = experiment.stream, experiment.schedule, job.folder
    every = EVERY.get(job.settings.recipe.model, EVERY["cnn"])
    interval = job.settings.checkpoint_every or 0
    updates, origin = updates_per_task(stream, schedule), origin_of(job.settings, job.seed, stream)
    found = restore(experiment, job, origin)
    yield from map(Note, found.notes)
    last = found.checkpoint
    write_json(folder / "facts.json", stream.facts)
    write_json(folder / "status.json", to_json(SeedStatus(SeedState.RUNNING)))
    yield Ready(len(updates), sum(updates), _num_made(last, updates), os.getpid())
    parts = (stream, experiment.model, experiment.learner, schedule, job.seed)
    every, split = min(every, interval or every), job.settings.split
    run = train(*parts, every=every, start=last, stop=stop, split=split)
    for last in recorded(run, updates, folder, origin, interval, stop):
        retained = last.retained if np.isfinite(last.retained) else None
        yield Progress(last.task, _num_made(last, updates), retained)
    if last is None or last.task < len(updates):
        return SeedStatus(SeedState.INTERRUPTED, "stopped by a signal")
    final = (experiment.model, experiment.learner, stream, last.state)
    counts = Confusion(confusion_matrix(*final, split=split).tolist())
    write_json(folder / "confusion.json", to_json(counts))
    return SeedStatus(
        SeedState.FINISHED,
        num_updates=sum(updates),
        seconds=last.seconds,
        facts_sha256=fingerprint(stream.facts),
        data=origin.data,
        peak_memory=peak_memory(),
    )


def peak_memory() -> int:
    """The largest resident memory of this process so far, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def recorded(
    run: Iterable[Checkpoint],
    updates: Sequence[int],
    folder: Path,
    origin: Origin,
    interval: int,
    stop: Callable[[], bool],
) -> Iterator[Checkpoint]:
    """The checkpoints of a run, each yielded once its results are in the folder.

    Args:
      run: the training.
      updates: per task.
      folder: of the seed.
      origin: of the run.
      interval: updates between checkpoints on disk; 0 for task ends only.
      stop: whether the next checkpoint is the last.
    """
    log, since = folder / LOG, 0
    with checkpoint_writer(folder, origin, log) as write:
        for at in run:
            append_json(log, diagnostics(at, updates))
            task_ended, since = at.update == 0, since + at.num_new
            if task_ended:
                write_accuracy(folder, at)
                write_rates(folder, at)
            if task_ended or stop() or 0 < interval <= since:
                write(at)
                since = 0
            yield at


def restore(experiment: Experiment, job: Job, origin: Origin) -> Found:
    """The newest good checkpoint, with the folder's files as they were then."""
    updates, folder = updates_per_task(experiment.stream, experiment.schedule), job.folder
    log, parts = folder / LOG, (experiment.stream, experiment.model, experiment.learner)
    with writing(folder):
        clear_leftovers(folder)
        found = newest_good(
            folder,
            lambda: initial_state(*parts, job.seed),
            len(updates),
            origin,
            check=lambda at: keep_lines(log, _num_made(at, updates)),
        )
        set_aside(found)
        at = found.checkpoint
        if at is None:
            log.unlink(missing_ok=True)
        if at is None or at.task == 0:
            (folder / "accuracy.json").unlink(missing_ok=True)
        else:
            write_accuracy(folder, at)
    return found


def diagnostics(at: Checkpoint, updates: Sequence[int]) -> Iterator[dict[str, float | int]]:
    """One record per update since the last checkpoint."""
    task, end = (at.task, at.update) if at.update else (at.task - 1, updates[at.task - 1])
    values = zip(*at.infos.values(), strict=True)
    for number, found in enumerate(values, end - at.num_new + 1):
        yield {"task": task, "update": number, **dict(zip(at.infos, found, strict=True))}


def write_accuracy(folder: Path, at: Checkpoint) -> None:
    """Write the accuracy matrix so far and, once it is complete, its metrics."""
    complete = at.task == len(at.matrix)
    found = metrics(at.matrix, at.baseline) if complete else None
    write_json(folder / "accuracy.json", to_json(Accuracy(at.matrix, at.baseline, found)))


def write_rates(folder: Path, at: Checkpoint) -> None:
    """Write the distribution of each layer's learning rates, if they are learned."""
    rates = getattr(at.state, "rates", None)
    if rates is None:
        return
    layers = {}
    for name, leaves in groupby(jax.tree.leaves_with_path(rates), key=_layer):
        values = np.concatenate([np.ravel(leaf) for _, leaf in leaves])
        counts, edges = np.histogram(np.maximum(values, 0.0), bins=RATE_BINS)
        layers[name] = {"low": edges[0], "high": edges[-1], "counts": counts}
    with writing(folder / RATES):
        (folder / RATES).mkdir(exist_ok=True)
    write_json(folder / RATES / f"task-{at.task}.json", layers)


def _layer(leaf: tuple[Sequence[Any], Any]) -> str:
    """The name of the layer that an array belongs to, in a pytree of any kind."""
    return jax.tree_util.keystr(tuple(leaf[0][:1]), simple=True)


def _num_made(at: Checkpoint | None, updates: Sequence[int]) -> int:
    return sum(updates[: at.task]) + at.update if at else 0
