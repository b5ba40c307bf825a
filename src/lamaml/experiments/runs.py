"""Plans become run folders: every seed of every plan is a job, and each folder gets its summary."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from lamaml.experiments.engines import Event, Job, default_processes, run_jobs
from lamaml.experiments.environment import environment
from lamaml.experiments.folders import new_folder, write_json
from lamaml.experiments.recipes import Recipe
from lamaml.experiments.results import Run, read_run, summary


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
    """

    recipe: Recipe
    seeds: range
    out: Path
    changed: Sequence[str] = ()
    num_tasks: int | None = None
    num_samples: int | None = None
    threads: int = 1

    @property
    def jobs(self) -> list[Job]:
        """One a seed."""
        sizes = (self.num_tasks, self.num_samples)
        return [Job(self.recipe, seed, *sizes, self.out / f"seed-{seed}") for seed in self.seeds]

    def settings(self) -> dict[str, Any]:
        """What `settings.json` holds."""
        own = {"changed": list(self.changed), "seeds": list(self.seeds), "threads": self.threads}
        sizes = {"num_tasks": self.num_tasks, "num_samples": self.num_samples}
        return asdict(self.recipe) | own | sizes


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
      LamamlError: settings or data are refused; no folder is left.
    """
    # Seed by seed, so that processes do not compile the same learner at the same time.
    jobs = sorted((job for plan in plans for job in plan.jobs), key=lambda job: job.seed)
    threads = plans[0].threads
    with contextlib.ExitStack() as stack:
        for plan in plans:
            stack.enter_context(new_folder(plan.out, overwrite=overwrite))
            write_json(plan.out / "settings.json", plan.settings())
            write_json(plan.out / "environment.json", environment())
        num_processes = processes or default_processes(len(jobs), threads)
        events = run_jobs(jobs, processes=num_processes, threads=threads)
        stack.callback(events.close)
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
