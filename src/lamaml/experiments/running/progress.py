"""How far jobs are, on standard error: a bar a job for a person, now and then a line for a log."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from lamaml.experiments.running.engines import Event, Job

SILENCE = 5.0  # seconds from one line of a log to the next
MOST_BARS = 12  # jobs up to which each has a bar from the beginning


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
    """A bar a job; of many jobs only those at work have one, under a bar for all."""

    def __init__(self, labels: dict[Path, str], progress: Progress) -> None:
        self.progress, self.labels = progress, labels
        self.paces: dict[Path, _Pace] = {}
        self.num_tasks: dict[Path, int] = {}
        self.totals: dict[Path, int] = {}
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

    def show(self, event: Event) -> None:
        job, data = event.job.folder, event.data
        if event.kind == "note":
            self.progress.console.print(data["message"], highlight=False, soft_wrap=True)
            return
        if job not in self.rows:
            self.rows[job] = self._row(self.labels[job])
        row = self.rows[job]
        self._count(event)
        if event.kind == "ready":
            self.paces[job], self.num_tasks[job] = _Pace(), data["num_tasks"]
            self.totals[job] = data["num_updates"]
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

    def _count(self, event: Event) -> None:
        """Move the bar for all, and take away that of a job that has ended."""
        job, data = event.job.folder, event.data
        row = self.rows[job]
        if event.kind == "progress":
            self.shares[job] = data["updates"] / self.totals[job]
        elif event.kind == "ended":
            self.shares[job] = 1.0
        if self.all is not None:
            ended = sum(share == 1.0 for share in self.shares.values())
            place = f"{ended} of {len(self.labels)}"
            self.progress.update(self.all, completed=sum(self.shares.values()), place=place)
            self.progress.update(row, visible=event.kind != "ended")


class _Lines:
    def __init__(self, labels: dict[Path, str], console: Console) -> None:
        self.labels, self.console = labels, console
        self.quiet_until = time.monotonic() + SILENCE
        self.paces: dict[Path, _Pace] = {}
        self.totals: dict[Path, tuple[int, int]] = {}
        self.tasks: dict[Path, int] = {}
        self.began, self.num_ended = time.monotonic(), 0

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
        else:
            self.num_ended += 1
            if len(self.labels) > MOST_BARS:
                self._count(job, data["status"])

    def _count(self, job: Path, status: str) -> None:
        count = len(self.labels)
        left = (time.monotonic() - self.began) / self.num_ended * (count - self.num_ended)
        line = f"{self.num_ended} of {count} runs ended, about {left:.0f} s left: "
        self.console.print(f"{line}{self.labels[job]} {status}", highlight=False, soft_wrap=True)

    def _write(self, job: Path, task: int, updates: int, pace: float, retained: float) -> None:
        num_tasks, num_updates = self.totals[job]
        line = f"{self.labels[job]}: {task}/{num_tasks} tasks, RA {100 * retained:.1f} %"
        if pace:
            left = (num_updates - updates) / pace
            line += f", {pace:,.0f} updates/s, {left:.0f} s left"
        self.console.print(line, highlight=False, soft_wrap=True)


def _labels(jobs: Sequence[Job]) -> dict[Path, str]:
    """A name for each job, by its folder."""
    benchmarks = len({job.recipe.benchmark for job in jobs}) > 1
    several = benchmarks or len({job.recipe.learner for job in jobs}) > 1

    def label(job: Job) -> str:
        words = [job.recipe.benchmark] if benchmarks else []
        return " ".join([*words, job.recipe.learner if several else "seed", str(job.seed)])

    return {job.folder: label(job) for job in jobs}
