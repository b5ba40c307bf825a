"""`lamaml panel`: our estimators beside what one would use instead, on many streams."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lamaml.cli.shared import Json, Processes, print_error, print_json, print_table

if TYPE_CHECKING:
    from lamaml.panel.judge import Result

EXAMPLES = (
    "lamaml panel --quick                       a small form, about three minutes",
    "lamaml panel --out panel                   all streams, all models, three seeds",
    "lamaml panel --stream sea --model auto --model mlp --seeds 1",
)


def panel(
    out: Annotated[Path, typer.Option(help="Folder for results and the page.")] = Path("panel"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Few streams of at most 1,000 rows, one seed.")
    ] = False,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Number of seeds (default: 3; quick: 1).")
    ] = None,
    stream: Annotated[
        list[str] | None, typer.Option(help="Run only this stream (repeatable).")
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option(help="Run only this model (repeatable).")
    ] = None,
    processes: Processes = None,
    as_json: Json = False,
) -> None:
    """Run our estimators and their rivals over streams, and compare them.

    Every model predicts ten rows, then learns them; a tenth of all rows is held
    out, to measure what is retained. Results are stored one by one: after an
    interruption the same command continues. Writes panel.json and panel.html to
    --out. Needs the packages of the extra `panel`; streams whose data is missing are
    named and left out.
    """
    from lamaml.experiments.storing.environment import num_cores
    from lamaml.panel.page import write_page
    from lamaml.panel.run import FULL, QUICK, plan, run
    from lamaml.panel.tables import tables

    form = QUICK if quick else FULL
    jobs = plan(form, seeds or (1 if quick else 3), stream or (), model or ())

    def show(done: int, total: int, result: "Result") -> None:
        scores = f"{result.prequential:.3f} / {result.retained:.3f}"
        line = f"{done} of {total}: {result.stream}, {result.model}, seed {result.seed}: {scores}"
        typer.echo(line, err=True)

    try:
        found = run(jobs, out, form, processes=processes or num_cores(), on_result=show)
    except KeyboardInterrupt:
        print_error("stopped; the same command continues")
        raise typer.Exit(130) from None
    for name, reason in found.missing.items():
        print_error(f"{name} was left out: {reason}")
    write_page(found, out / "panel.html")
    if as_json:
        print_json(found)
        return
    for table in tables(found):
        print_table(table.terminal)
    typer.echo(f"Report: {out / 'panel.html'}")
