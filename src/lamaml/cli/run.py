"""`lamaml run`: train one or several learners on a benchmark."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from lamaml.cli.completion import complete_benchmark, complete_learner
from lamaml.cli.shared import (
    Address,
    Engine,
    Json,
    Log,
    ModelName,
    Out,
    Overwrite,
    Preset,
    Processes,
    Protocol,
    Samples,
    Tasks,
    Threads,
    show_runs,
    show_sweep,
    with_progress,
)
from lamaml.errors import InvalidArgument

if TYPE_CHECKING:
    from lamaml.experiments.running.run import Options

EXAMPLES = (
    "lamaml run digits_rotations la_maml",
    "lamaml run mnist_rotations la_maml --seeds 5 --out runs/rotations",
    "lamaml run mnist_rotations la_maml er c_maml --seeds 5",
    "lamaml run digits_rotations la_maml --set hyper_rate=0.1,0.3 --set glances=1,5",
    "lamaml run mnist_permutations c_maml --set inner_steps=5 --set max_norm=none",
    "lamaml run cifar100 la_maml --protocol multiple --preset paper --tasks 5",
    "lamaml run arrays la_maml --set path=mine.npz --json > result.json",
    "lamaml run digits_rotations my_module:my_learner --set learning_rate=0.1",
    "lamaml run arrays la_maml --set path=mine.npz --model my_module:my_network",
    "lamaml run cifar100 er --model resnet18 --set num_filters=32",
)


def run(
    benchmark: Annotated[
        str,
        typer.Argument(
            help="Benchmark of [bold]lamaml list[/], module:function for your own stream, or a "
            "recipe file.",
            autocompletion=complete_benchmark,
        ),
    ],
    learners: Annotated[
        list[str],
        typer.Argument(
            help="Learners of [bold]lamaml list[/], or module:function.",
            autocompletion=complete_learner,
        ),
    ],
    protocol: Protocol = None,
    preset: Preset = None,
    model: ModelName = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE[,VALUE…]",
            help="Set a hyper-parameter; several values make a grid (repeatable).",
        ),
    ] = None,
    probe: Annotated[
        list[str] | None,
        typer.Option(
            help="Also measure alignment, look_ahead or inter_task during training (repeatable).",
        ),
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Number of seeds (default: 1).")] = None,
    first_seed: Annotated[int, typer.Option(min=0, help="First seed.")] = 0,
    seed: Annotated[
        list[int] | None,
        typer.Option(min=0, help="One seed, instead of --seeds (repeatable)."),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            help="Rows that accuracy is measured on: test or validation. Default: test; for a grid "
            "of values, validation."
        ),
    ] = None,
    tasks: Tasks = None,
    samples: Samples = None,
    out: Out = None,
    processes: Processes = None,
    engine: Engine = "local",
    address: Address = None,
    log: Log = None,
    threads: Threads = 1,
    checkpoint_every: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Checkpoint every N updates (0: only at task ends). Default: 500, CNN 50, "
            "ResNet 10.",
        ),
    ] = None,
    as_json: Json = False,
    overwrite: Overwrite = False,
) -> None:
    """Train learners on a benchmark, once per seed, and store the results in run folders.

    Prints mean ± sd over seeds next to the paper's value. Several learners, or a
    grid of values, are run side by side in one folder and printed as one table, the
    best first. If --out has the run already, --seeds adds the seeds it lacks.

    With --json: one object per run, accuracies in percent, seconds and updates per
    seed, null for unknown values. Ctrl-C and SIGTERM write checkpoints;
    [bold]lamaml resume[/] continues from them.

    Exit code: 0; 1 if a seed failed; 2 for a usage error; 3 if the only seed
    diverged; 130 if interrupted.
    """
    from lamaml.experiments.recipes.overrides import read_grid
    from lamaml.experiments.running.run import run as run_experiment
    from lamaml.experiments.running.run import sweep

    choices = {"protocol": protocol, "preset": preset, "model": model}
    values = read_grid(benchmark, learners, settings or [], **choices)
    fixed = {name: found[0] for name, found in values.items() if len(found) == 1}
    grid = {name: found for name, found in values.items() if len(found) > 1}
    if seed and (seeds is not None or first_seed):
        raise InvalidArgument("--seed and --seeds or --first-seed: give one of them")
    options: Options = {
        "seeds": seed or range(first_seed, first_seed + (seeds or 1)),
        "protocol": protocol,
        "preset": preset,
        "model": model,
        "probes": probe or (),
        "num_tasks": tasks,
        "num_samples": samples,
        "threads": threads,
        "checkpoint_every": checkpoint_every,
        "out": out,
        "processes": processes,
        "engine": engine,
        "address": address,
        "loggers": log or (),
        "overwrite": overwrite,
    }
    if split is not None:
        options["split"] = split
    if len(set(learners)) == 1 and not grid:
        work = partial(run_experiment, benchmark, learners[0], settings=fixed, **options)
        show_runs(with_progress(lambda: [work()]), as_json)
    work_all = partial(sweep, benchmark, learners, grid=grid, settings=fixed, **options)
    show_sweep(with_progress(work_all), as_json)
