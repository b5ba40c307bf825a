"""Options and output that several commands share."""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.console import Console, RenderableType

from lamaml.errors import InvalidArgument

if TYPE_CHECKING:
    from lamaml.experiments.storing.results import Run

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]
Out = Annotated[Path | None, typer.Option(help="Run folder (default: a new folder in runs/).")]
Protocol = Annotated[
    str | None, typer.Option(help="single or multiple (passes). Default: the benchmark's first.")
]
Preset = Annotated[
    str | None,
    typer.Option(help="authors, paper or tuned. Default: what reproduces the paper's table."),
]
ModelName = Annotated[
    str | None,
    typer.Option(help="mlp, cnn, resnet18 or module:function. Default: the benchmark's network."),
]
Processes = Annotated[
    int | None, typer.Option(min=1, help="Worker processes (default: one per core or CPU).")
]
Threads = Annotated[int, typer.Option(min=1, help="Threads per worker process.")]
Engine = Annotated[
    str, typer.Option(help="local (processes on this machine) or ray (a Ray cluster).")
]
Address = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        help="Ray cluster. Default: that of RAY_ADDRESS, or a new one on this machine.",
    ),
]
Log = Annotated[
    list[str] | None,
    typer.Option(
        help="Also write numbers to csv, tensorboard, mlflow or wandb while training (repeatable)."
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing run in --out.")]
Runs = Annotated[list[Path], typer.Argument(help="Run folders, or folders that contain them.")]
Tasks = Annotated[
    int | None, typer.Option(min=1, help="Number of tasks to run (default: all of them).")
]
Samples = Annotated[
    int | None, typer.Option(min=1, help="Training rows per task (default: the benchmark's).")
]


def with_progress(work: "Callable[[], list[Run]]") -> "list[Run]":
    """Run work that may be stopped, and print which seeds failed."""
    from lamaml.experiments.running.console import Stopped, failures

    try:
        runs = work()
    except Stopped as stop:
        print_error(str(stop))
        raise typer.Exit(130) from None
    for failure in failures(runs):
        typer.echo(failure.traceback, err=True, nl=False)
        print_error(failure.message)
    return runs


def show_runs(runs: "Sequence[Run]", as_json: bool) -> NoReturn:
    """Print each run and exit."""
    from lamaml.experiments.reporting.tables import run_table
    from lamaml.experiments.running.console import exit_code

    for run in runs:
        if as_json:
            print_json(run.summary)
        else:
            print_table(run_table(run.summary))
            page = f"lamaml report {run.folder} --out report.html"
            typer.echo(f"\nRun folder: {run.folder}    ({page})")
    raise typer.Exit(exit_code(runs))


def show_sweep(runs: "Sequence[Run]", as_json: bool) -> NoReturn:
    """Print runs as one table, or one JSON object per run, and exit."""
    from lamaml.experiments.reporting.sweeps import advice, sweep_table
    from lamaml.experiments.running.console import exit_code

    if as_json:
        for run in runs:
            print_json(run.summary)
    else:
        print_table(sweep_table(runs))
        typer.echo("".join(f"\n{line}" for line in [advice(runs)] if line))
        folder = runs[0].folder.parent
        typer.echo(f"Run folders: {folder}    (lamaml report {folder} --out report.html)")
    raise typer.Exit(exit_code(runs))


def run_folders(given: Sequence[Path]) -> list[Path]:
    """Returns the run folders in the given folders, each once."""
    from lamaml.experiments.storing.results import find_runs
    from lamaml.experiments.storing.studies import is_study

    for path in given:
        if is_study(path):
            advice = "the `lamaml tune` command that made it continues it"
            raise InvalidArgument(f"{path} is a study, not a run: {advice}")
    found = [folder for path in given for folder in find_runs(path)]
    return list({folder.resolve(): folder for folder in found}.values())


def print_table(table: RenderableType) -> None:
    """Print a table, at its full width if the output is a file or a pipe."""
    console = Console()
    if not (console.is_terminal or "COLUMNS" in os.environ):
        console.width = console.measure(table, options=console.options.update(width=1000)).maximum
    console.print(table)


def print_json(value: Any) -> None:
    """Print a record, or a container of records, as one line of JSON."""
    from lamaml._records import to_json

    typer.echo(json.dumps(to_json(value), allow_nan=False))


def print_error(message: str) -> None:
    """Print one line on standard error."""
    typer.echo(f"lamaml: {' '.join(message.split())}", err=True)
