"""A bar on standard error for the few things that take long, where a person is looking."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn


class Bar:
    """How far one thing is."""

    def __init__(self, progress: Progress, row: TaskID) -> None:
        self._progress = progress
        self._row = row

    def advance(self, amount: int) -> None:
        """So much more is done."""
        self._progress.advance(self._row, amount)

    def reach(self, done: int, total: int | None = None) -> None:
        """So much is done, of so much."""
        self._progress.update(self._row, completed=done, total=total)


@contextmanager
def progress_bar(label: str, total: int | None = None) -> Iterator[Bar]:
    """A bar for the time of the block; nothing where standard error is not a terminal."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f}%"),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        yield Bar(progress, progress.add_task(label, total=total))
