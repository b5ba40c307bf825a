"""Progress of jobs on standard error: bars in a terminal, occasional lines in a log."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from lamaml.experiments.running.jobs import Ended, Event, Job, Note, Progress, Ready
from lamaml.experiments.running.plan import OnEvent
from lamaml.experiments.storing.joining import varying_settings
from lamaml.experiments.storing.records import SeedState

SILENCE = 5.0  # seconds between two lines of a log
MOST_BARS = 12  # jobs up to which each has a bar from the beginning


@contextmanager
def shown_progress(jobs: Sequence[Job], console: Console) -> Iterator[OnEvent]:
    """A function that shows the events of the jobs, for the time of the block."""
    labels = _labels(jobs)
    if not console.is_terminal:
        yield _Lines(labels, console).show
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[place]}"),
        TextColumn("{task.fields[speed]}", justify="right", style="dim"),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[retained]}", style="bold"),
    )
    progress = RichProgress(*columns, console=console, transient=True)
    try:
        yield _Bars(labels, progress).show
    finally:
        progress.stop()


class _Pace:
    """The size of a job and its updates per second since its first progress."""

    def __init__(self, ready: Ready) -> None:
        self.num_tasks, self.num_updates = ready.num_tasks, ready.num_updates
        self.began, self.first, self.task = time.monotonic(), 0, 0

    def per_second(self, updates: int) -> float:
        if not self.first:  # compiling is not counted
            self.began, self.first = time.monotonic(), updates
        spent = time.monotonic() - self.began
        return (updates - self.first) / spent if spent else 0.0


class _Bars:
    """One bar per job; of many jobs only the running ones have one, below a bar for all."""

    def __init__(self, labels: dict[Path, str], progress: RichProgress) -> None:
        self.progress, self.labels = progress, labels
        self.paces: dict[Path, _Pace] = {}
        self.shares: dict[Path, float] = {}
        self.rows: dict[Path, TaskID] = {}
        self.all: TaskID | None = None
        if len(labels) > MOST_BARS:
            self.all = self._row("all runs", total=len(labels))
        else:
            self.rows = {job: self._row(label) for job, label in labels.items()}

    def _row(self, label: str, total: int | None = None) -> TaskID:
        began = total is not None
        place = "" if began else "[dim]waiting[/]"
        return self.progress.add_task(
            label, total=total, start=began, place=place, speed="", retained=""
        )

    def show(self, job: Job, event: Event) -> None:
        folder = job.folder
        if isinstance(event, Note):
            self.progress.console.print(event.message, highlight=False, soft_wrap=True)
            return
        if folder not in self.rows:
            self.rows[folder] = self._row(self.labels[folder])
        row = self.rows[folder]
        if isinstance(event, Ready):
            self.paces[folder] = _Pace(event)
            self.progress.start()  # not before: a download may have a bar of its own
            self.progress.start_task(row)
            total, done = event.num_updates, event.updates
            self.progress.update(row, total=total, completed=done, place="compiling")
        elif isinstance(event, Progress):
            self._advance(row, self.paces[folder], event)
            self.shares[folder] = event.updates / self.paces[folder].num_updates
        else:
            self.shares[folder] = 1.0
            if event.status.state is not SeedState.FINISHED:
                self.progress.update(row, place=f"[red]{event.status.state}[/]", speed="")
        if self.all is not None:
            ended = sum(share == 1.0 for share in self.shares.values())
            place = f"{ended} of {len(self.labels)}"
            self.progress.update(self.all, completed=sum(self.shares.values()), place=place)
            self.progress.update(row, visible=not isinstance(event, Ended))

    def _advance(self, row: TaskID, pace: _Pace, event: Progress) -> None:
        number, speed = min(event.task + 1, pace.num_tasks), pace.per_second(event.updates)
        self.progress.update(
            row,
            completed=event.updates,
            place=f"task {number}/{pace.num_tasks}",
            speed=f"{speed:,.0f} updates/s" if speed else "",
            retained="" if event.retained is None else f"RA {100 * event.retained:.1f} %",
        )


class _Lines:
    """A line now and then; of many jobs, one line per job that has ended."""

    def __init__(self, labels: dict[Path, str], console: Console) -> None:
        self.labels, self.console = labels, console
        self.quiet_until = time.monotonic() + SILENCE
        self.paces: dict[Path, _Pace] = {}
        self.began, self.num_ended = time.monotonic(), 0

    def show(self, job: Job, event: Event) -> None:
        if isinstance(event, Note):
            self._print(event.message)
        elif isinstance(event, Ready):
            self.paces[job.folder] = _Pace(event)
        elif isinstance(event, Progress):
            self._advance(job.folder, self.paces[job.folder], event)
        else:
            self.num_ended += 1
            if len(self.labels) > MOST_BARS:
                self._count(job.folder, event.status.state)

    def _advance(self, job: Path, pace: _Pace, event: Progress) -> None:
        speed, task_ended = pace.per_second(event.updates), event.task > pace.task
        pace.task = event.task
        if not task_ended or event.retained is None or time.monotonic() <= self.quiet_until:
            return
        self.quiet_until = time.monotonic() + SILENCE
        tasks = f"{event.task}/{pace.num_tasks} tasks"
        line = f"{self.labels[job]}: {tasks}, RA {100 * event.retained:.1f} %"
        if speed:
            left = (pace.num_updates - event.updates) / speed
            line += f", {speed:,.0f} updates/s, {left:.0f} s left"
        self._print(line)

    def _count(self, job: Path, state: SeedState) -> None:
        count = len(self.labels)
        left = (time.monotonic() - self.began) / self.num_ended * (count - self.num_ended)
        line = f"{self.num_ended} of {count} runs ended, about {left:.0f} s left: "
        self._print(f"{line}{self.labels[job]} {state}")

    def _print(self, line: str) -> None:
        self.console.print(line, highlight=False, soft_wrap=True)


def _labels(jobs: Sequence[Job]) -> dict[Path, str]:
    """A label for each job, by its folder."""
    recipes = [job.settings.recipe for job in jobs]
    benchmarks = len({recipe.benchmark for recipe in recipes}) > 1
    several = benchmarks or len({recipe.learner for recipe in recipes}) > 1

    varied = [] if benchmarks else varying_settings([job.settings for job in jobs])

    def label(job: Job) -> str:
        recipe = job.settings.recipe
        words = [recipe.benchmark] if benchmarks else []
        words += [recipe.learner] if several or varied else ["seed"]
        words += [f"{name}={recipe.settings[name]}" for name in varied if name in recipe.settings]
        return " ".join([*words, str(job.seed)])

    return {job.folder: label(job) for job in jobs}
