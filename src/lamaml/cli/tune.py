"""`lamaml tune`: search the settings of a learner on validation rows."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from lamaml.cli.completion import complete_benchmark, complete_learner
from lamaml.cli.shared import (
    Address,
    Engine,
    Json,
    ModelName,
    Preset,
    Processes,
    Protocol,
    Samples,
    Threads,
    print_error,
    print_json,
    print_table,
)

EXAMPLES = (
    "lamaml tune digits_rotations la_maml",
    "lamaml tune mnist_rotations er --trials 40 --seeds 2 --out tuning/er",
    "lamaml tune mnist_rotations la_maml --on validation --set glances=5",
    "lamaml tune arrays er --set path=mine.npz --search memory_size=50,200,1000",
    "lamaml run tuning/er/tuned.toml er --seeds 5      the best settings, on test rows",
)


def tune(
    benchmark: Annotated[
        str,
        typer.Argument(
            help="Benchmark of [bold]lamaml list[/], or module:function for your own stream.",
            autocompletion=complete_benchmark,
        ),
    ],
    learner: Annotated[
        str,
        typer.Argument(
            help="Learner of [bold]lamaml list[/], or module:function.",
            autocompletion=complete_learner,
        ),
    ],
    trials: Annotated[int, typer.Option(min=1, help="Number of trials, in all.")] = 20,
    on: Annotated[
        str,
        typer.Option(
            help="prefix: the first tasks only; the rest of the stream stays unseen. validation: "
            "the validation rows of all tasks."
        ),
    ] = "prefix",
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds per trial.")] = 1,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Fix a hyper-parameter; it is not searched (repeatable).",
        ),
    ] = None,
    search: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=LOW:HIGH|A,B",
            help="Search here instead of where [bold]lamaml show[/] says (repeatable).",
        ),
    ] = None,
    start: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Begin with this value (repeatable; default: the recipe's).",
        ),
    ] = None,
    tasks: Annotated[
        int | None, typer.Option(min=1, help="Number of tasks (default: 3, or all of them).")
    ] = None,
    samples: Samples = None,
    protocol: Protocol = None,
    preset: Preset = None,
    model: ModelName = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the study (default: a new folder in runs/).")
    ] = None,
    processes: Processes = None,
    threads: Threads = 1,
    engine: Engine = "local",
    address: Address = None,
    as_json: Json = False,
) -> None:
    """Search the settings of a learner on validation rows; test rows are never read.

    Learning rates are searched on a log scale in the range of the paper's grid, and
    the glances at each batch; [bold]lamaml show[/] lists the ranges. Trials that
    fall behind after the first tasks are stopped. Writes the best settings to
    tuned.toml, a recipe file for [bold]lamaml run[/], and report.html to --out.
    After an interruption, the same command with the same --out continues.

    Exit code: 0; 1 if no trial finished; 2 for a usage error; 130 if interrupted.
    """
    from lamaml.experiments.recipes.load import recipe
    from lamaml.experiments.recipes.overrides import read_settings, split_assignment
    from lamaml.experiments.reporting.tuning import (
        MOST_ROWS,
        conclusions,
        trials_table,
        write_page,
    )
    from lamaml.experiments.running.console import Stopped, stoppable
    from lamaml.experiments.running.engines import Workers
    from lamaml.experiments.running.plan import default_out
    from lamaml.experiments.running.search import make_request, read_searches
    from lamaml.experiments.running.tuning import Narrator
    from lamaml.experiments.running.tuning import tune as run_study

    choices = {"protocol": protocol, "preset": preset, "model": model}
    fixed = read_settings(benchmark, learner, settings or [], **choices)
    chosen = recipe(
        benchmark, learner, protocol=protocol, preset=preset, model=model, overrides=fixed
    )
    request, space = make_request(
        chosen,
        on=on,
        seeds=seeds,
        num_tasks=tasks,
        num_samples=samples,
        threads=threads,
        fixed=list(fixed),
        searches=read_searches(chosen, dict(map(split_assignment, search or []))),
        start=read_settings(benchmark, learner, start or [], **choices),
    )
    folder = out or default_out("tune", benchmark.replace(":", "."), learner.replace(":", "."))
    console = Console(stderr=True)
    report = Narrator(console)
    try:
        with stoppable(lambda: f"`--out {folder}` with the same command continues"):
            found = run_study(
                request,
                space,
                folder,
                num_trials=trials,
                workers=Workers(processes, engine, address),
                on_trial=report.trial,
                on_note=report.note,
            )
    except Stopped as stop:
        print_error(str(stop))
        raise typer.Exit(130) from None
    write_page(found, folder / "report.html")
    if as_json:
        print_json(found)
    else:
        table = trials_table(found, MOST_ROWS)
        typer.echo(table.title)
        print_table(table._replace(title="").terminal)
        for line in conclusions(found):
            typer.echo(line)
        typer.echo(f"Recipe: {folder / 'tuned.toml'}    Report: {folder / 'report.html'}")
        if found.best is not None:
            typer.echo(f"On test rows: lamaml run {folder / 'tuned.toml'} {learner} --seeds 5")
    raise typer.Exit(0 if found.best is not None else 1)
