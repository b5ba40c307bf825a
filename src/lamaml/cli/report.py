"""`lamaml report`: write an HTML page about runs."""

from pathlib import Path
from typing import Annotated

import typer

from lamaml.cli.shared import Runs, run_folders

EXAMPLES = (
    "lamaml report runs/digits_rotations-la_maml-20261115-120000 --out report.html",
    "lamaml report runs/demo --files figures",
)


def report(
    runs: Runs,
    out: Annotated[Path, typer.Option(help="HTML page to write.")] = Path("report.html"),
    files: Annotated[
        Path | None,
        typer.Option(help="Folder for figures (SVG, PDF) and tables (Markdown, LaTeX, CSV)."),
    ] = None,
) -> None:
    """Write one self-contained page: tables, curves, heat maps, learning rates, settings.

    Learners with common seeds are compared seed by seed, with a confidence interval.
    """
    from lamaml.experiments.reporting.page import write_report
    from lamaml.experiments.storing.results import read_run

    write_report([read_run(folder) for folder in run_folders(runs)], out, files)
    typer.echo(f"Report: {out}")
