"""`lamaml bench`: measure the speed of this machine and of each learner."""

from typing import Annotated

import typer

from lamaml.cli.shared import Json, print_json, print_table

EXAMPLES = ("lamaml bench", "lamaml bench --quick", "lamaml bench --json", "lamaml bench --ray")

Quick = Annotated[
    bool,
    typer.Option("--quick", help="Measure only ER, La-MAML, the classifier and three stalls."),
]
Ray = Annotated[
    bool, typer.Option("--ray", help="Measure only 8 short jobs on Ray and in local processes.")
]


def bench(quick: Quick = False, ray: Ray = False, as_json: Json = False) -> None:
    """Measure each learner's update as a share of the matrix-product rate, and the stalls."""
    if ray:
        from lamaml.bench.engines import NUM_JOBS, engine_times

        found = engine_times()
        if as_json:
            print_json({**found._asdict(), "ratio": found.ratio})
        else:
            seconds = f"{found.ray_seconds:.1f} s on Ray, {found.local_seconds:.1f} s in processes"
            typer.echo(f"{NUM_JOBS} jobs: {seconds} ({found.ratio:.2f} times), start of Ray aside")
        return
    from lamaml.bench import measure

    measured = measure(quick=quick, on_progress=lambda line: typer.echo(line, err=True))
    if as_json:
        print_json(measured)
    else:
        print_table(measured.terminal)
