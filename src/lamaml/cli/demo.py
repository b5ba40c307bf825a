"""`lamaml demo`: four learners on ten tasks of rotated digits."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from lamaml.cli.shared import Out, Overwrite, with_progress

EXAMPLES = ("lamaml demo", "lamaml demo --report report.html --out runs/demo")
LEARNERS = ("online", "er", "c_maml", "la_maml")
SEEDS = 3


def demo(
    report: Annotated[Path, typer.Option(help="HTML page to write.")] = Path("report.html"),
    out: Out = None,
    overwrite: Overwrite = False,
) -> None:
    """Compare four learners on ten tasks of rotated digits. Needs no download."""
    from lamaml.experiments.recipes.load import recipe
    from lamaml.experiments.reporting.page import write_report
    from lamaml.experiments.reporting.tables import comparison_table, reading, spread
    from lamaml.experiments.running.console import exit_code, run_with_progress
    from lamaml.experiments.running.plan import Plan, default_out, new_runs
    from lamaml.experiments.storing.records import RunSettings

    folder = out or default_out("demo")
    recipes = {learner: recipe("digits_rotations", learner) for learner in LEARNERS}
    recipes["joint"] = recipe("joint_digits_rotations", "online")  # all tasks at once
    plans = [
        Plan(RunSettings(chosen, range(SEEDS)), folder / name) for name, chosen in recipes.items()
    ]
    console, progress = Console(), Console(stderr=True)
    console.print("Ten tasks in sequence: digits, each task rotated by 18° more.")
    opening, folders = new_runs(plans, overwrite=overwrite), [plan.folder for plan in plans]
    runs = with_progress(lambda: run_with_progress(opening, folders, progress))
    *summaries, joint = [run.summary for run in runs]
    console.print(comparison_table(summaries, f"digits_rotations, {SEEDS} seeds"))
    upper = f"Trained on all tasks at once, the same network reaches {spread(*joint.ra[:2], 1)} %."
    console.print(f"\n{reading(summaries)} {upper}", highlight=False)
    write_report(runs, report)
    typer.echo(f"\nReport: {report}    Run folders: {folder}")
    raise typer.Exit(exit_code(runs))
