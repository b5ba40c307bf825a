"""`lamaml report`: write an HTML page about runs."""

from pathlib import Path
from typing import Annotated

import typer

from lamaml.cli.shared import Runs

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
    Runs of equal settings, such as those of an array job, are joined into one.
    """
    from lamaml.experiments.reporting.page import write_report
    from lamaml.experiments.storing.joining import read_runs
    from lamaml.experiments.storing.run_folder import resume_command

    found = read_runs(runs)
    write_report(found, out, files)
    typer.echo(f"Report: {out}")
    for run in found:
        left = [seed for seed in run.seeds if not seed.ended]
        if left:
            folders = list(dict.fromkeys(seed.folder.parent for seed in left))
            count = f"{len(left)} of {len(run.seeds)} seeds of {run.settings.recipe.learner}"
            note = f"have not ended; `{resume_command(folders)}` continues"
            typer.echo(f"lamaml: {count} {note}", err=True)
