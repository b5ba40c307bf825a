"""Loggers: where the numbers of running jobs are written, besides their folders.

csv          RUN/log.csv, one line per number: seed, update, name, value
tensorboard  RUN/tensorboard/seed-K, for `tensorboard --logdir RUN`
mlflow       one MLflow run per seed, at MLFLOW_TRACKING_URI
wandb        one Weights & Biases run per seed, in the project WANDB_PROJECT or "lamaml"

Every logger gets, while a seed is trained, the mean of each diagnostic since the last event and the
accuracies after each task, by number of updates; and at the end its metrics. Accuracies are in
percent. Training does not depend on loggers: their numbers are read from the seed's folder.
"""

import csv
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

from lamaml._io import writing
from lamaml.errors import InvalidArgument, unknown_name
from lamaml.experiments.running.jobs import Ended, Event, Job, Progress
from lamaml.experiments.running.plan import OnEvent
from lamaml.experiments.storing.records import Accuracy, SeedStatus, read_record


class Logger(Protocol):
    """Writes the numbers of one seed."""

    def write(self, values: Mapping[str, float], update: int) -> None:
        """Write finite numbers by name, after this number of updates."""

    def close(self, status: SeedStatus | None) -> None:
        """End, with the status of the seed if it has ended."""


@contextmanager
def logged(names: Sequence[str], on_event: OnEvent) -> Iterator[OnEvent]:
    """A function that passes events on and writes their numbers, for the time of the block.

    Args:
      names: of `LOGGERS`.
      on_event: is called with every event first.

    Raises:
      InvalidArgument: a name is unknown, or its library is not installed.
    """
    check_loggers(names)
    seeds: dict[Path, _Seed] = {}
    with ExitStack() as stack:

        def event_and_log(job: Job, event: Event) -> None:
            on_event(job, event)
            if isinstance(event, Progress | Ended):
                if job.folder not in seeds:
                    seeds[job.folder] = _Seed(job, [LOGGERS[name](job) for name in names])
                    stack.callback(seeds[job.folder].close)
                seeds[job.folder].log(event)

        yield event_and_log if names else on_event


def check_loggers(names: Sequence[str]) -> None:
    """Raise InvalidArgument if a logger is unknown or its library is not installed."""
    for name in names:
        if name not in LOGGERS:
            raise unknown_name("logger", name, LOGGERS)
        for module, package in _NEEDS.get(name, {}).items():
            try:
                __import__(module)
            except ModuleNotFoundError as error:
                message = f"--log {name}: needs {package}: pip install 'lamaml[{name}]'"
                raise InvalidArgument(message) from error


class _Seed:
    """The loggers of one seed, and how far its files have been read."""

    def __init__(self, job: Job, loggers: Sequence[Logger]) -> None:
        self.folder, self.loggers = job.folder, loggers
        self.offset, self.task, self.updates = 0, 0, 0
        self.status: SeedStatus | None = None

    def log(self, event: Progress | Ended) -> None:
        """Write what is new."""
        if isinstance(event, Progress):
            values, self.updates = self._diagnostics(), event.updates
            if event.task > self.task:
                self.task = event.task
                values |= self._accuracies()
        else:
            self.status = event.status
            values = self._diagnostics() | self._metrics()
        finite = {name: value for name, value in values.items() if math.isfinite(value)}
        for logger in self.loggers:
            logger.write(finite, self.updates)

    def close(self) -> None:
        """End the loggers."""
        for logger in self.loggers:
            logger.close(self.status)

    def _diagnostics(self) -> dict[str, float]:
        """The mean of each diagnostic in the lines that are new."""
        path = self.folder / "diagnostics.jsonl"
        if not path.exists():
            return {}
        with path.open("rb") as file:
            if path.stat().st_size < self.offset:  # resumed from an earlier checkpoint
                self.offset = 0
            file.seek(self.offset)
            lines = file.read().splitlines(keepends=True)
        lines = [line for line in lines if line.endswith(b"\n")]
        self.offset += sum(map(len, lines))
        records = [json.loads(line) for line in lines]
        names = [name for name in next(iter(records), {}) if name not in ("task", "update")]
        known = {n: [r[n] for r in records if r.get(n) is not None] for n in names}
        return {name: sum(values) / len(values) for name, values in known.items() if values}

    def _accuracies(self) -> dict[str, float]:
        path = self.folder / "accuracy.json"
        if not path.exists():
            return {}
        row = read_record(path, Accuracy).matrix[self.task - 1]
        found = {f"accuracy/task_{number + 1}": 100 * share for number, share in enumerate(row)}
        seen = row[: self.task]
        return found | {"retained_accuracy": float(100 * seen.mean())}

    def _metrics(self) -> dict[str, float]:
        path = self.folder / "accuracy.json"
        metrics = read_record(path, Accuracy).metrics if path.exists() else None
        shares = metrics._asdict() if metrics is not None else {}
        return {f"final/{name}": 100 * share for name, share in shares.items()}


class _Csv:
    """Lines of RUN/log.csv, shared by the seeds of a run."""

    def __init__(self, job: Job) -> None:
        self.path, self.seed = job.folder.parent / "log.csv", job.seed

    def write(self, values: Mapping[str, float], update: int) -> None:
        with writing(self.path), self.path.open("a", newline="") as file:
            table = csv.writer(file, lineterminator="\n")
            if file.tell() == 0:
                table.writerow(["seed", "update", "name", "value"])
            table.writerows([self.seed, update, name, value] for name, value in values.items())

    def close(self, status: SeedStatus | None) -> None:
        pass


class _TensorBoard:
    def __init__(self, job: Job) -> None:
        from tensorboardX import SummaryWriter

        folder = job.folder.parent / "tensorboard" / job.folder.name
        self.writer = SummaryWriter(str(folder))
        self.writer.add_text("settings", json.dumps(job.settings.decisive, indent=1))

    def write(self, values: Mapping[str, float], update: int) -> None:
        for name, value in values.items():
            self.writer.add_scalar(name, value, update)

    def close(self, status: SeedStatus | None) -> None:
        self.writer.close()


class _MLflow:
    def __init__(self, job: Job) -> None:
        import mlflow

        self.client = mlflow.MlflowClient()
        name = job.settings.recipe.benchmark
        experiment = self.client.get_experiment_by_name(name)
        number = experiment.experiment_id if experiment else self.client.create_experiment(name)
        words = f"{job.settings.recipe.learner}, seed {job.seed}"
        tags = {"folder": str(job.folder.absolute())}
        self.run = self.client.create_run(number, run_name=words, tags=tags).info.run_id
        for setting, value in {"seed": job.seed, **job.settings.decisive}.items():
            self.client.log_param(self.run, setting, value)

    def write(self, values: Mapping[str, float], update: int) -> None:
        for name, value in values.items():
            self.client.log_metric(self.run, name, value, step=update)

    def close(self, status: SeedStatus | None) -> None:
        ended = status is not None and status.ended
        self.client.set_terminated(self.run, "FINISHED" if ended else "KILLED")


class _WandB:
    def __init__(self, job: Job) -> None:
        import wandb

        recipe = job.settings.recipe
        self.run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", "lamaml"),
            group=job.folder.parent.name,
            name=f"{recipe.learner}, seed {job.seed}",
            config={"seed": job.seed, **job.settings.decisive},
            dir=str(job.folder.parent),
            reinit="create_new",
        )

    def write(self, values: Mapping[str, float], update: int) -> None:
        self.run.log(dict(values), step=update)

    def close(self, status: SeedStatus | None) -> None:
        self.run.finish(exit_code=0 if status is not None and status.ended else 1)


LOGGERS: dict[str, Callable[[Job], Logger]] = {
    "csv": _Csv,
    "tensorboard": _TensorBoard,
    "mlflow": _MLflow,
    "wandb": _WandB,
}
_NEEDS = {
    "tensorboard": {"tensorboardX": "tensorboardX"},
    "mlflow": {"mlflow": "MLflow"},
    "wandb": {"wandb": "wandb"},
}
