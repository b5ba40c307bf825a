"""`lamaml bench`: measure the speed of this machine and of each learner."""

import typer

from lamaml.cli.shared import Json, print_json, print_table

EXAMPLES = ("lamaml bench", "lamaml bench --json")


def bench(as_json: Json = False) -> None:
    """Measure matrix products per second, and each learner's update as a share of that rate."""
    from lamaml.bench import measure

    measured = measure(on_progress=lambda line: typer.echo(line, err=True))
    if as_json:
        print_json(measured)
    else:
        print_table(measured.terminal)
