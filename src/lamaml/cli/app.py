"""The command line. Heavy modules are imported where they are used, so that help comes at once."""

import io
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.console import Console, RenderableType

from lamaml.errors import LamamlError
from lamaml.experiments.storing.environment import package_version

if TYPE_CHECKING:
    from lamaml.experiments.storing.results import Run

DEMO_LEARNERS = ("online", "er", "c_maml", "la_maml")
DEMO_SEEDS = 3

app = typer.Typer(
    help="Learning from a stream without forgetting: La-MAML, its variants and its baselines.",
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _examples(*lines: str) -> str:
    return "\n".join(["[bold]Examples[/]", *(f"  {line}" for line in lines)])


Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")]
Out = Annotated[Path | None, typer.Option(help="The run folder. Default: a new one in runs/.")]
Processes = Annotated[
    int | None, typer.Option(min=1, help="Seeds at once. Default: one a core; 1: one by one.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the run in --out.")]


@app.callback(
    invoke_without_command=True,
    epilog=_examples(
        "lamaml demo                                    see it work, offline",
        "lamaml list                                    what there is to run",
        "lamaml run mnist_rotations la_maml --seeds 5   a cell of the paper's Table 1",
        "lamaml resume runs/rotations                   go on where it was cut short",
    ),
)
def lamaml(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Learning from a stream without forgetting: La-MAML, its variants and its baselines."""
    if version:
        typer.echo(f"lamaml {package_version('lamaml')}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("list", epilog=_examples("lamaml list", "lamaml list --json"))
def list_command(as_json: Json = False) -> None:
    """Show benchmarks, learners, and which recipes there are for them."""
    from lamaml.experiments.recipes.catalogue import benchmarks, learners, listing

    if as_json:
        streams = [b._asdict() | {"cells": [c._asdict() for c in b.cells]} for b in benchmarks()]
        _print_json({"streams": streams, "learners": learners()})
    else:
        _print(listing(benchmarks(), learners()))


@app.command(
    epilog=_examples(
        "lamaml run digits_rotations la_maml",
        "lamaml run mnist_rotations la_maml --seeds 5 --out runs/rotations",
        "lamaml run mnist_permutations c_maml --set inner_steps=5 --set max_norm=none",
        "lamaml run cifar100 la_maml --protocol multiple --preset paper --tasks 5",
        "lamaml run arrays la_maml --set path=mine.npz --json > result.json",
    )
)
def run(
    benchmark: Annotated[str, typer.Argument(help="A benchmark of [bold]lamaml list[/].")],
    learner: Annotated[str, typer.Argument(help="A learner of [bold]lamaml list[/].")],
    protocol: Annotated[
        str | None, typer.Option(help="single (pass) or multiple. Default: the benchmark's first.")
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(help="authors, paper or tuned. Default: what reproduces the paper's table."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="mlp, cnn or module:function. Default: the benchmark's own."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Change a hyper-parameter; repeatable."),
    ] = None,
    probe: Annotated[
        list[str] | None,
        typer.Option(
            help="Measure on the way: alignment, look_ahead or inter_task; repeatable.",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds.")] = 1,
    first_seed: Annotated[int, typer.Option(min=0, help="The first of them.")] = 0,
    tasks: Annotated[int | None, typer.Option(min=1, help="Only the first so many tasks.")] = None,
    samples: Annotated[int | None, typer.Option(min=1, help="Training rows a task.")] = None,
    out: Out = None,
    processes: Processes = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads of each process.")] = 1,
    checkpoint_every: Annotated[
        int | None,
        typer.Option(
            min=0, help="Updates to a checkpoint; 0: at task ends alone. Default: 500, CNN 50."
        ),
    ] = None,
    as_json: Json = False,
    overwrite: Overwrite = False,
) -> None:
    """Teach a benchmark to a learner, over seeds; the results stay in a run folder.

    Prints mean ± sd over seeds beside the paper's value. --json prints one
    object: accuracies in percent, seconds and updates a seed, null where
    nothing is known. Stopped by Ctrl-C or SIGTERM it writes checkpoints, and
    says how to go on. Exit code: 0, 1 if a seed failed, 2 for a mistake of
    yours, 3 if the only seed diverged, 130 if you stopped it.
    """
    from lamaml.experiments.recipes.overrides import recipe_with, split_assignment
    from lamaml.experiments.recipes.probes import in_order
    from lamaml.experiments.running.console import execute_with_progress
    from lamaml.experiments.running.plan import Plan, default_out
    from lamaml.experiments.storing.records import RunSettings

    given = settings or []
    recipe = recipe_with(benchmark, learner, given, protocol=protocol, preset=preset, model=model)
    run_settings = RunSettings(
        replace(recipe, probes=in_order(probe or [])),
        range(first_seed, first_seed + seeds),
        changed=list(dict.fromkeys(split_assignment(text)[0] for text in given)),
        num_tasks=tasks,
        num_samples=samples,
        threads=threads,
        checkpoint_every=checkpoint_every,
    )
    plan = Plan(run_settings, out or default_out(benchmark, learner))
    _show(
        _watched(lambda console: execute_with_progress([plan], console, processes, overwrite)),
        as_json,
    )


@app.command(
    epilog=_examples(
        "lamaml resume runs/rotations",
        "lamaml resume runs/demo            every run in a folder",
        "lamaml resume runs/rotations --json > result.json",
    )
)
def resume(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, or folders of them.")],
    processes: Processes = None,
    as_json: Json = False,
) -> None:
    """Go on with runs that were stopped, killed or cut off, each seed from its last checkpoint.

    They end with the same bits as if nothing had happened. Finished and
    diverged seeds are left alone. A damaged checkpoint is refused, and the
    one before it used. Prints what [bold]lamaml run[/] prints; --json one
    object a run.
    """
    from lamaml.experiments.running.console import resume_with_progress

    folders = _run_folders(runs)
    _show(_watched(lambda console: resume_with_progress(folders, console, processes)), as_json)


@app.command(epilog=_examples("lamaml demo", "lamaml demo --report report.html --out runs/demo"))
def demo(
    report: Annotated[Path, typer.Option(help="The page to write.")] = Path("report.html"),
    out: Out = None,
    overwrite: Overwrite = False,
) -> None:
    """Learn ten tasks of rotated digits with four learners, from nothing but this package."""
    from lamaml.experiments.recipes.load import recipe
    from lamaml.experiments.reporting.page import write_report
    from lamaml.experiments.reporting.tables import comparison_table, reading
    from lamaml.experiments.running.console import execute_with_progress, exit_code
    from lamaml.experiments.running.plan import Plan, default_out
    from lamaml.experiments.storing.records import RunSettings

    folder = out or default_out("demo")
    plans = [
        Plan(RunSettings(recipe("digits_rotations", learner), range(DEMO_SEEDS)), folder / learner)
        for learner in DEMO_LEARNERS
    ]
    console = Console()
    console.print("Ten tasks, one after the other: digits, each task turned 18° further.")
    runs = _watched(lambda console: execute_with_progress(plans, console, None, overwrite))
    summaries = [run.summary.to_json() for run in runs]
    console.print(comparison_table(summaries, f"digits_rotations, {DEMO_SEEDS} seeds"))
    console.print(f"\n{reading(summaries)}", highlight=False)
    write_report(runs, report)
    typer.echo(f"\nReport: {report}    Run folders: {folder}")
    raise typer.Exit(exit_code(runs))


@app.command(epilog=_examples("lamaml bench", "lamaml bench --json"))
def bench(as_json: Json = False) -> None:
    """Measure this machine's matrix-product rate, and each learner's update as a share of it."""
    from lamaml.bench import measure

    measured = measure(on_progress=lambda line: typer.echo(line, err=True))
    if as_json:
        _print_json(measured.to_json())
    else:
        _print(measured.terminal)


@app.command(
    epilog=_examples(
        "lamaml report runs/digits_rotations-la_maml-20261115-120000 --out report.html",
        "lamaml report runs/demo --files figures",
    )
)
def report(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, or folders of them.")],
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("report.html"),
    files: Annotated[
        Path | None,
        typer.Option(help="A folder for figures (SVG, PDF) and tables (Markdown, LaTeX, CSV)."),
    ] = None,
) -> None:
    """Write one self-contained page: tables, curves, heat maps, learning rates, settings.

    Learners that share seeds are compared seed by seed, with an interval.
    """
    from lamaml.experiments.reporting.page import write_report
    from lamaml.experiments.storing.results import read_run

    write_report([read_run(folder) for folder in _run_folders(runs)], out, files)
    typer.echo(f"Report: {out}")


@app.command(
    epilog=_examples(
        "lamaml reproduce all --scale quick     every table and figure, on digits",
        "lamaml reproduce table1                the paper's Table 1, on MNIST, 5 seeds",
        'lamaml reproduce table3 --tasks 5 --seeds 1 --only "cifar-100, single"',
        "lamaml reproduce figure-lookahead --scale small --out lookahead",
        "lamaml reproduce figure-robustness --rate 0.01 --rate 0.1 --only la-maml",
    )
)
def reproduce(
    targets: Annotated[
        list[str],
        typer.Argument(
            help="table1 … table4, figure-lookahead, figure-intertask, figure-robustness, "
            "figure-robustness-grid, figure-time, or all."
        ),
    ],
    scale: Annotated[
        str,
        typer.Option(
            help="quick (digits), small (fewer tasks, rows, seeds) or full (the paper's)."
        ),
    ] = "full",
    seeds: Annotated[int | None, typer.Option(min=1, help="In place of the scale's.")] = None,
    tasks: Annotated[
        int | None, typer.Option(min=1, help="The first so many, in place of the scale's.")
    ] = None,
    samples: Annotated[int | None, typer.Option(min=1, help="Training rows a task.")] = None,
    rate: Annotated[
        list[float] | None,
        typer.Option(min=0, help="Of the robustness figures, in place of the scale's; repeatable."),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Cells whose method and data have words that begin so; repeatable."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Where cells, tables and figures go.")] = Path(
        "reproduction"
    ),
    record: Annotated[
        Path | None, typer.Option(help="Store what was found as small JSON files there, too.")
    ] = None,
    stored: Annotated[
        bool, typer.Option("--stored", help="Run nothing; write what the finished cells say.")
    ] = False,
    processes: Processes = None,
    as_json: Json = False,
) -> None:
    """Run the paper's experiments again, and compare each number and claim with the paper's.

    Says how long it will take before it starts. Stopped or killed, the same
    command goes on; finished cells are never computed again. Leaves tables
    (Markdown, LaTeX, CSV), figures (SVG, PDF), JSON and report.html in --out.
    --json prints one object a target. Exit code: 0, 1 if a run failed, 2 for a
    mistake of yours, 130 if you stopped it; a run that diverges is a result.
    """
    from lamaml.experiments.reproduction import reproduce as reproduction
    from lamaml.experiments.reproduction.scales import scale_named
    from lamaml.experiments.reproduction.tables import tables
    from lamaml.experiments.reproduction.targets import targets_named
    from lamaml.experiments.running.console import Stopped

    wanted = targets_named(targets)
    request = reproduction.Request(
        wanted, scale_named(scale), seeds, tasks, samples, sorted({*(rate or ())}), only or ()
    )
    try:
        found = reproduction.reproduce(
            request,
            out,
            Console(stderr=True),
            processes=processes,
            record=record,
            stored_only=stored,
        )
    except Stopped:
        _complain("stopped; the same command goes on")
        raise typer.Exit(130) from None
    for outcome in found:
        if as_json:
            _print_json(outcome)
        else:
            for table in tables(outcome):
                _print(table.terminal)
    if not as_json:
        typer.echo(f"Report: {out / scale / 'report.html'}")
    statuses = {word for outcome in found for cell in outcome["cells"] for word in cell["statuses"]}
    raise typer.Exit(0 if statuses <= {"finished", "diverged"} else 1)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; every error a user can make is one line and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # not every terminal knows "±"
            stream.reconfigure(errors="replace")
    try:
        code = app(args=arguments, prog_name="lamaml", standalone_mode=False)
    except LamamlError as error:
        _complain(str(error))
        code = 2
    except typer.TyperException as error:
        _complain(error.format_message())
        code = 2
    except (KeyboardInterrupt, typer.Abort):
        _complain("stopped")
        code = 130
    except OSError as error:
        if error.filename is not None or error.strerror is None:
            raise
        _complain(f"standard output cannot be written ({error.strerror})")
        code = 2
    sys.exit(code or 0)


def _watched(work: "Callable[[Console], list[Run]]") -> "list[Run]":
    """Do work with progress on standard error, and say what went wrong."""
    from lamaml.experiments.running.console import Stopped, failures

    try:
        runs = work(Console(stderr=True))
    except Stopped as stop:
        _complain(str(stop))
        raise typer.Exit(130) from None
    for failure in failures(runs):
        typer.echo(failure.traceback, err=True, nl=False)
        _complain(failure.message)
    return runs


def _show(runs: "Sequence[Run]", as_json: bool) -> NoReturn:
    """Print runs, each for itself, and end."""
    from lamaml.experiments.reporting.tables import run_table
    from lamaml.experiments.running.console import exit_code

    for run in runs:
        if as_json:
            _print_json(run.summary.to_json())
        else:
            _print(run_table(run.summary.to_json()))
            page = f"lamaml report {run.folder} --out report.html"
            typer.echo(f"\nRun folder: {run.folder}    ({page})")
    raise typer.Exit(exit_code(runs))


def _run_folders(given: Sequence[Path]) -> list[Path]:
    """The folders of runs in what the user names, each once."""
    from lamaml.experiments.storing.results import find_runs

    found = [folder for path in given for folder in find_runs(path)]
    return list({folder.resolve(): folder for folder in found}.values())


def _print(table: RenderableType) -> None:
    """Show a table; in a file or a pipe, as wide as it is."""
    console = Console()
    if not (console.is_terminal or "COLUMNS" in os.environ):
        console.width = console.measure(table, options=console.options.update(width=1000)).maximum
    console.print(table)


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, allow_nan=False))


def _complain(message: str) -> None:
    typer.echo(f"lamaml: {' '.join(message.split())}", err=True)
