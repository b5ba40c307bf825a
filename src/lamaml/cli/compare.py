"""`lamaml compare`: paired differences between runs."""

from typing import Annotated

import typer

from lamaml.cli.shared import Json, Runs, print_json, print_table

EXAMPLES = (
    "lamaml compare runs/sweep",
    "lamaml compare runs/la_maml runs/er --baseline er",
    "lamaml compare runs/sweep --metric bti --json",
)


def compare(
    runs: Runs,
    baseline: Annotated[
        str | None,
        typer.Option(
            help="Learner or run folder to compare the others with. Default: the best run is "
            "compared with each of the others."
        ),
    ] = None,
    metric: Annotated[str, typer.Option(help="ra, bti, la or fwt.")] = "ra",
    as_json: Json = False,
) -> None:
    """Compare runs seed by seed: mean differences with 95 % intervals.

    Only runs of the same benchmark, protocol and size are compared, over the seeds
    that both have finished. Runs of equal settings are joined first. Differences
    are in points of percent; p is that of the paired t-test. With --json: one
    object per pair.
    """
    from lamaml.experiments.reporting.comparison import comparison_tables, comparisons
    from lamaml.experiments.storing.joining import read_runs

    found = comparisons(read_runs(runs), baseline, metric)
    if as_json:
        for pair in found:
            print_json(pair)
    else:
        for table in comparison_tables(found):
            print_table(table.terminal)
