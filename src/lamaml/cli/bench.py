"""`lamaml bench`: measure the speed of this machine and of each learner."""

from typing import Annotated

import typer

from lamaml.cli.shared import Json, print_json, print_table

EXAMPLES = ("lamaml bench", "lamaml bench --quick", "lamaml bench --json")

Quick = Annotated[bool, typer.Option("--quick", help="Measure only ER, La-MAML and three stalls.")]


def bench(quick: Quick = False, as_json: Json = False) -> None:
    """Measure each learner's update as a share of the matrix-product rate, and the stalls."""
    from lamaml.bench import measure

    measured = measure(quick=quick, on_progress=lambda line: typer.echo(line, err=True))
    if as_json:
        print_json(measured)
    else:
        print_table(measured.terminal)
