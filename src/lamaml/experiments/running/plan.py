"""Plans become run folders: every seed of every plan is a job, and each folder gets a summary."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from lamaml._io import write_json
from lamaml._records import to_json
from lamaml.errors import InvalidArgument
from lamaml.experiments.running.engines import Workers
from lamaml.experiments.running.jobs import Event, Job, Note
from lamaml.experiments.storing.records import RunSettings
from lamaml.experiments.storing.results import Run, read_run
from lamaml.experiments.storing.run_folder import (
    OpenRun,
    created,
    extended,
    opened,
    resume_command,
    settings_in,
)

OnEvent = Callable[[Job, Event], None]
"""Is called with every event of every job."""


@dataclass(frozen=True)
class Plan:
    """What is to be run, and in which folder."""

    settings: RunSettings
    folder: Path


@dataclass(frozen=True)
class Work:
    """Locked run folders and the jobs left in them."""

    open_runs: Sequence[OpenRun]

    def __post_init__(self) -> None:
        if len({each.run.settings.threads for each in self.open_runs}) > 1:
            raise InvalidArgument("these runs have different numbers of threads: resume one by one")

    @property
    def jobs(self) -> list[Job]:
        """One per seed that has not ended, seed by seed.

        In this order, processes do not compile the same learner at the same time.
        """
        runs = [each.run for each in self.open_runs]
        jobs = [
            Job(run.settings, seed.seed, seed.folder)
            for run in runs
            for seed in run.seeds
            if not seed.ended
        ]
        return sorted(jobs, key=lambda job: job.seed)

    def run(self, on_event: OnEvent, workers: Workers | None = None) -> list[Run]:
        """Run the jobs, write the summaries, and return what is then in the folders.

        Args:
          on_event: is called with every event.
          workers: where the jobs run; None for one local process per core.
        """
        self._note_previous_owners(on_event)
        jobs = self.jobs
        if jobs:
            threads, locks = jobs[0].settings.threads, [r.lock.descriptor for r in self.open_runs]
            with ExitStack() as stack:
                engine = (workers or Workers()).start(len(jobs), threads, locks)
                stack.callback(engine.stop)
                for job in jobs:
                    engine.submit(job)
                for job, event in engine.events():
                    on_event(job, event)
        runs = [read_run(each.run.folder) for each in self.open_runs]
        for run in runs:
            write_json(run.folder / "summary.json", to_json(run.summary))
        return runs

    def _note_previous_owners(self, on_event: OnEvent) -> None:
        for run, lock in self.open_runs:
            if lock.taken_over:
                message = f"{run.folder} is taken over from {lock.taken_over}, and is gone"
                seed = run.seeds[0]
                on_event(Job(run.settings, seed.seed, seed.folder), Note(message))


@contextmanager
def new_runs(plans: Sequence[Plan], *, overwrite: bool = False) -> Iterator[Work]:
    """Make the folders of new runs; they are removed if they are refused before a seed starts.

    A run that is there already with the same settings gets the seeds it does not have.

    Raises:
      InvalidArgument: a folder holds another run, or there is nothing to do.
    """
    same = [] if overwrite else [plan for plan in plans if _extends(plan)]
    if len(same) == len(plans) > 1 and all(map(_has_all_seeds, same)):
        folder = plans[0].folder.parent
        raise InvalidArgument(
            f"out = {str(folder)!r}: holds these runs already; `{resume_command([folder])}` "
            "continues them, --overwrite replaces them (from Python: overwrite=True)"
        )
    with ExitStack() as stack:
        runs = [
            created(plan.folder, plan.settings, overwrite=overwrite)
            if plan not in same or (len(plans) == 1 and _has_all_seeds(plan))  # which is refused
            else extended(plan.folder, plan.settings)
            for plan in plans
            if len(plans) == 1 or plan not in same or not _complete(plan)
        ]
        yield Work([stack.enter_context(run) for run in runs])


@contextmanager
def existing_runs(folders: Sequence[Path]) -> Iterator[Work]:
    """Open runs to continue them."""
    with ExitStack() as stack:
        yield Work([stack.enter_context(opened(folder)) for folder in folders])


@contextmanager
def missing_runs(plans: Sequence[Plan]) -> Iterator[Work]:
    """Make or extend the folders of the plans that have seeds left; finished ones stay closed."""
    with ExitStack() as stack:
        left = [plan for plan in plans if not _complete(plan)]
        runs = [extended(plan.folder, plan.settings) for plan in left]
        yield Work([stack.enter_context(run) for run in runs])


def default_out(*words: str) -> Path:
    """A new folder name under `runs/`, from words and the time."""
    stem = Path("runs") / "-".join([*words, f"{datetime.now():%Y%m%d-%H%M%S}"])
    candidates = (stem, *(stem.with_name(f"{stem.name}-{n}") for n in range(2, 100)))
    return next(folder for folder in candidates if not folder.exists())


def _extends(plan: Plan) -> bool:
    """Whether the folder holds a run of the plan's settings, perhaps with other seeds."""
    there = settings_in(plan.folder)
    return there is not None and not plan.settings.differences(there)


def _has_all_seeds(plan: Plan) -> bool:
    there = settings_in(plan.folder)
    return there is not None and set(plan.settings.seeds) <= set(there.seeds)


def _complete(plan: Plan) -> bool:
    return _has_all_seeds(plan) and all(seed.ended for seed in read_run(plan.folder).seeds)
