"""`lamaml resume`: continue interrupted runs."""

from rich.console import Console

from lamaml.cli.shared import (
    Address,
    Engine,
    Json,
    Log,
    Processes,
    Runs,
    run_folders,
    show_runs,
    with_progress,
)

EXAMPLES = (
    "lamaml resume runs/rotations",
    "lamaml resume runs/demo            every run in a folder",
    "lamaml resume runs/rotations --json > result.json",
)


def resume(
    runs: Runs,
    processes: Processes = None,
    engine: Engine = "local",
    address: Address = None,
    log: Log = None,
    as_json: Json = False,
) -> None:
    """Continue interrupted runs, each seed from its last checkpoint.

    The results are the same, bit for bit, as those of an uninterrupted run.
    Finished and diverged seeds are not run again. If a checkpoint is damaged,
    the one before it is used. Prints what [bold]lamaml run[/] prints, and with
    --json one object per run.
    """
    from lamaml.experiments.running.console import run_with_progress
    from lamaml.experiments.running.engines import Workers
    from lamaml.experiments.running.plan import Work, existing_runs

    folders = run_folders(runs)
    opening, console = existing_runs(folders), Console(stderr=True)

    def announce(work: Work) -> None:
        if not work.jobs:
            console.print("Every seed has ended: nothing is run again.", highlight=False)

    workers = Workers(processes, engine, address)
    found = with_progress(
        lambda: run_with_progress(opening, folders, console, workers, announce, log or ())
    )
    show_runs(found, as_json)
