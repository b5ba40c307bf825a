"""How far jobs are, on standard error: a bar a job for a person, now and then a line for a log."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from lamaml.experiments.engines import Event, Job

SILENCE = 5.0  # seconds from one line of a log to the next


@contextmanager
def shown_progress(jobs: Sequence[Job], console: Console) -> Iterator[Callable[[Event], None]]:
    """A function to be told what happens to the jobs, for the time of the block."""
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
    progress = Progress(*columns, console=console, transient=True)
    try:
        yield _Bars(labels, progress).show
    finally:
        progress.stop()


class _Pace:
    """Updates a second of a job, since its first news."""

    def __init__(self) -> None:
        self.began, self.first = time.monotonic(), 0

    def __call__(self, updates: int) -> float:
        if not self.first:  # compiling is not counted
            self.began, self.first = time.monotonic(), updates
        spent = time.monotonic() - self.began
        return (updates - self.first) / spent if spent else 0.0


class _Bars:
    def __init__(self, labels: dict[Path, str], progress: Progress) -> None:
        self.progress = progress
        self.rows = {
            job: progress.add_task(
                label, total=None, start=False, place="[dim]waiting[/]", speed="", retained=""
            )
            for job, label in labels.items()
        }
        self.paces: dict[Path, _Pace] = {}
        self.num_tasks: dict[Path, int] = {}

    def show(self, event: Event) -> None:
        job, data = event.job.folder, event.data
        if event.kind == "note":
            self.progress.console.print(data["message"], highlight=False, soft_wrap=True)
            return
        row = self.rows[job]
        if event.kind == "ready":
            self.paces[job], self.num_tasks[job] = _Pace(), data["num_tasks"]
            self.progress.start()  # not before: a download may have a bar of its own
            self.progress.start_task(row)
            done = data["updates"]
            self.progress.update(row, total=data["num_updates"], completed=done, place="compiling")
        elif event.kind == "progress":
            pace = self.paces[job](data["updates"])
            number = min(data["task"] + 1, self.num_tasks[job])
            retained = data["retained"]
            self.progress.update(
                row,
                completed=data["updates"],
                place=f"task {number}/{self.num_tasks[job]}",
                speed=f"{pace:,.0f} updates/s" if pace else "",
                retained="" if retained is None else f"RA {100 * retained:.1f} %",
            )
        elif data["status"] != "finished":
            self.progress.update(row, place=f"[red]{data['status']}[/]", speed="")


class _Lines:
    def __init__(self, labels: dict[Path, str], console: Console) -> None:
        self.labels, self.console = labels, console
        self.quiet_until = time.monotonic() + SILENCE
        self.paces: dict[Path, _Pace] = {}
        self.totals: dict[Path, tuple[int, int]] = {}
        self.tasks: dict[Path, int] = {}

    def show(self, event: Event) -> None:
        job, data = event.job.folder, event.data
        if event.kind == "note":
            self.console.print(data["message"], highlight=False, soft_wrap=True)
        elif event.kind == "ready":
            self.paces[job], self.tasks[job] = _Pace(), 0
            self.totals[job] = (data["num_tasks"], data["num_updates"])
        elif event.kind == "progress":
            pace = self.paces[job](data["updates"])
            if data["task"] > self.tasks[job] and time.monotonic() > self.quiet_until:
                self.quiet_until = time.monotonic() + SILENCE
                self._write(job, data["task"], data["updates"], pace, data["retained"])
            self.tasks[job] = data["task"]

    def _write(self, job: Path, task: int, updates: int, pace: float, retained: float) -> None:
        num_tasks, num_updates = self.totals[job]
        line = f"{self.labels[job]}: {task}/{num_tasks} tasks, RA {100 * retained:.1f} %"
        if pace:
            left = (num_updates - updates) / pace
            line += f", {pace:,.0f} updates/s, {left:.0f} s left"
        self.console.print(line, highlight=False, soft_wrap=True)


def _labels(jobs: Sequence[Job]) -> dict[Path, str]:
    """A name for each job, by its folder."""
    several = len({job.recipe.learner for job in jobs}) > 1
    return {job.folder: f"{job.recipe.learner if several else 'seed'} {job.seed}" for job in jobs}
