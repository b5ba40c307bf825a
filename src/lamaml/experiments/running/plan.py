"""Plans become run folders: every seed of every plan is a job, and each folder gets its summary.

A run that was cut short is its folder: `resume` reads the plan there and does what is left of it.
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any

from lamaml._io import write_json
from lamaml.errors import DataCorrupt, InvalidArgument, Mismatch, require
from lamaml.experiments.recipes.load import Recipe
from lamaml.experiments.running.engines import Event, Job, default_processes, run_jobs
from lamaml.experiments.storing.environment import environment
from lamaml.experiments.storing.folders import clear_leftovers, new_folder
from lamaml.experiments.storing.locks import NAME as LOCK
from lamaml.experiments.storing.locks import locked
from lamaml.experiments.storing.results import Run, read_run, summary

CHECKPOINT_EVERY = {"mlp": 500, "cnn": 50}  # updates: seconds of work, at a hundredth of their cost


@dataclass(frozen=True)
class Plan:
    """One learner on one benchmark, over seeds.

    Attributes:
      recipe: every choice but seed and size.
      seeds: in the order they are run.
      out: the run folder.
      changed: the settings that are not the recipe's own.
      num_tasks: only the first so many tasks; None for all.
      num_samples: training rows a task; None for the benchmark's number.
      threads: of each process.
      checkpoint_every: updates from one checkpoint to the next, 0 for task ends alone; None for the
        network's own number.
    """

    recipe: Recipe
    seeds: Sequence[int]
    out: Path
    changed: Sequence[str] = ()
    num_tasks: int | None = None
    num_samples: int | None = None
    threads: int = 1
    checkpoint_every: int | None = None

    def __post_init__(self) -> None:
        for seed in self.seeds:
            require(0 <= seed < 2**32, "seed", seed, "from 0 to 2³² − 1")

    @property
    def jobs(self) -> list[Job]:
        """One a seed."""
        sizes, how = (self.num_tasks, self.num_samples), (self.threads, self._apart)
        folders = {seed: self.out / f"seed-{seed}" for seed in self.seeds}
        return [Job(self.recipe, seed, *sizes, folders[seed], *how) for seed in self.seeds]

    def settings(self) -> dict[str, Any]:
        """What `settings.json` holds."""
        own = {"changed": list(self.changed), "seeds": list(self.seeds), "threads": self.threads}
        sizes = {"num_tasks": self.num_tasks, "num_samples": self.num_samples}
        return asdict(self.recipe) | own | sizes | {"checkpoint_every": self._apart}

    @classmethod
    def of_run(cls, run: Run) -> "Plan":
        """The plan a run folder was made by."""
        settings = {"probes": (), **run.settings}  # an older lamaml had none
        try:
            return cls(
                Recipe(**{field.name: settings[field.name] for field in fields(Recipe)}),
                [seed.seed for seed in run.seeds],
                run.folder,
                settings["changed"],
                settings["num_tasks"],
                settings["num_samples"],
                int(settings["threads"]),
                settings["checkpoint_every"],
            )
        except KeyError as error:
            message = f"{run.folder} was made by a lamaml without checkpoints: it lacks {error}"
            raise Mismatch(message) from error
        except (TypeError, ValueError) as error:
            raise DataCorrupt(f"{run.folder / 'settings.json'} is damaged: {error}") from error

    def left(self) -> list[Job]:
        """The jobs whose seeds have not ended, as the folder stands."""
        seeds = read_run(self.out).seeds
        return [job for job, seed in zip(self.jobs, seeds, strict=True) if not seed.ended]

    @property
    def _apart(self) -> int:
        if self.checkpoint_every is not None:
            return self.checkpoint_every
        return CHECKPOINT_EVERY.get(self.recipe.model, min(CHECKPOINT_EVERY.values()))


def execute(
    plans: Sequence[Plan],
    on_event: Callable[[Event], None],
    *,
    processes: int | None = None,
    overwrite: bool = False,
) -> list[Run]:
    """Run plans side by side; returns what is then in their folders.

    Args:
      plans: all with the same number of threads.
      on_event: is told what happens.
      processes: how many seeds at once; None for one a core.
      overwrite: replace older runs in the plans' folders.

    Raises:
      LamamlError: settings or data are refused, and no folder is left; or a disk is, and what was
        learned is kept.
    """
    for plan in plans:
        if (plan.out / LOCK).exists():
            with locked(plan.out):  # refused while another command works there
                pass
    with contextlib.ExitStack() as stack:
        for plan in plans:
            stack.enter_context(new_folder(plan.out, overwrite=overwrite))
        locks = _lock(plans, stack, on_event)
        for plan in plans:
            write_json(plan.out / "environment.json", environment())
            write_json(plan.out / "settings.json", plan.settings())
        return _work(
            plans, [job for plan in plans for job in plan.jobs], on_event, processes, locks
        )


def resume(
    plans: Sequence[Plan], on_event: Callable[[Event], None], *, processes: int | None = None
) -> list[Run]:
    """Go on with runs, each seed from its last good checkpoint; what has ended is left alone.

    Args:
      plans: of the runs, see `Plan.of_run`.
      on_event: is told what happens.
      processes: how many seeds at once; None for one a core.

    Raises:
      LamamlError: a folder is in use, or its checkpoints are of another run.
    """
    if len({plan.threads for plan in plans}) > 1:
        raise InvalidArgument("these runs have different numbers of threads: resume one by one")
    with contextlib.ExitStack() as stack:
        locks = _lock(plans, stack, on_event)
        for plan in plans:
            clear_leftovers(plan.out)
        jobs = [job for plan in plans for job in plan.left()]
        return _work(plans, jobs, on_event, processes, locks)


def _lock(
    plans: Sequence[Plan], stack: contextlib.ExitStack, on_event: Callable[[Event], None]
) -> list[int]:
    locks = [stack.enter_context(locked(plan.out)) for plan in plans]
    for plan, lock in zip(plans, locks, strict=True):
        if lock.taken_over:
            message = f"{plan.out} is taken over from {lock.taken_over}, and is gone"
            on_event(Event(plan.jobs[0], "note", {"message": message}))
    return [lock.descriptor for lock in locks]


def _work(
    plans: Sequence[Plan],
    jobs: Sequence[Job],
    on_event: Callable[[Event], None],
    processes: int | None,
    locks: Sequence[int],
) -> list[Run]:
    # Seed by seed, so that processes do not compile the same learner at the same time.
    jobs, threads = sorted(jobs, key=lambda job: job.seed), plans[0].threads
    num_processes = processes or default_processes(len(jobs), threads)
    with contextlib.closing(
        run_jobs(jobs, processes=num_processes, threads=threads, locks=locks)
    ) as events:
        for event in events:
            on_event(event)
    runs = [read_run(plan.out) for plan in plans]
    for run in runs:
        write_json(run.folder / "summary.json", summary(run))
    return runs


def default_out(*words: str) -> Path:
    """A new folder name under `runs/`, from words and the time."""
    stem = Path("runs") / "-".join([*words, f"{datetime.now():%Y%m%d-%H%M%S}"])
    candidates = (stem, *(stem.with_name(f"{stem.name}-{n}") for n in range(2, 100)))
    return next(folder for folder in candidates if not folder.exists())
