"""`lamaml reproduce`: regenerate the paper's tables and figures."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from lamaml.cli.shared import (
    Address,
    Engine,
    Json,
    Processes,
    Samples,
    Threads,
    print_error,
    print_json,
    print_table,
)

EXAMPLES = (
    "lamaml reproduce all --scale quick     every table and figure, on digits",
    "lamaml reproduce table1                the paper's Table 1, on MNIST, 5 seeds",
    'lamaml reproduce table3 --tasks 5 --seeds 1 --only "cifar-100, single"',
    "lamaml reproduce figure-lookahead --scale small --out lookahead",
    "lamaml reproduce figure-robustness --rate 0.01 --rate 0.1 --only la-maml",
)


def reproduce(
    targets: Annotated[
        list[str],
        typer.Argument(
            help="table1 … table4, figure-lookahead, figure-intertask, figure-robustness, "
            "figure-robustness-grid, figure-time, or all. "
            "Not in the paper: beyond, class-incremental, figure-cost, figure-dark-weight."
        ),
    ],
    scale: Annotated[
        str,
        typer.Option(
            help="quick (digits), small (fewer tasks, rows, seeds) or full (the paper's)."
        ),
    ] = "full",
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Number of seeds (default: the scale's).")
    ] = None,
    tasks: Annotated[
        int | None, typer.Option(min=1, help="Number of tasks to run (default: the scale's).")
    ] = None,
    samples: Samples = None,
    rate: Annotated[
        list[float] | None,
        typer.Option(
            min=0,
            help="Learning rate of the robustness figures (repeatable; default: the scale's).",
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="Run only cells whose method and data have words with these prefixes (repeatable)."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for runs, tables and figures.")] = Path(
        "reproduction"
    ),
    record: Annotated[
        Path | None,
        typer.Option(
            help="Also store the results as small JSON files in this folder. Cells recorded there "
            "by other machines stay."
        ),
    ] = None,
    stored: Annotated[
        bool, typer.Option("--stored", help="Run nothing; write tables of the finished cells.")
    ] = False,
    processes: Processes = None,
    threads: Threads = 1,
    engine: Engine = "local",
    address: Address = None,
    as_json: Json = False,
) -> None:
    """Run the paper's experiments and compare each number and claim with the paper's.

    Prints an estimate of the time before it starts. After an interruption, the
    same command continues; finished cells are not run again. Writes tables
    (Markdown, LaTeX, CSV), figures (SVG, PDF), JSON and report.html to --out.
    With --json: one object per target.

    Exit code: 0; 1 if a run failed; 2 for a usage error; 130 if interrupted. A run
    that diverges is a result.
    """
    from lamaml.experiments.reproduction import run as reproduction
    from lamaml.experiments.reproduction.request import Request
    from lamaml.experiments.reproduction.scales import scale_named
    from lamaml.experiments.reproduction.tables import tables
    from lamaml.experiments.reproduction.targets import targets_named
    from lamaml.experiments.running.console import Stopped
    from lamaml.experiments.running.engines import Workers

    wanted = targets_named(targets)
    rates = sorted({*(rate or ())})
    request = Request(wanted, scale_named(scale), seeds, tasks, samples, rates, only or (), threads)
    try:
        found = reproduction.reproduce(
            request,
            out,
            Console(stderr=True),
            workers=Workers(processes, engine, address),
            record=record,
            stored_only=stored,
        )
    except Stopped:
        print_error("stopped; the same command continues")
        raise typer.Exit(130) from None
    for outcome in found:
        if as_json:
            print_json(outcome)
        else:
            for table in tables(outcome):
                print_table(table.terminal)
    if not as_json:
        typer.echo(f"Report: {out / scale / 'report.html'}")
    statuses = {word for outcome in found for cell in outcome.cells for word in cell.statuses}
    raise typer.Exit(0 if statuses <= {"finished", "diverged"} else 1)
