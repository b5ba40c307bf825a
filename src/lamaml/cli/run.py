"""`lamaml run`: train a learner on a benchmark."""

from functools import partial
from typing import Annotated

import typer

from lamaml.cli.shared import (
    Json,
    Out,
    Overwrite,
    Processes,
    Samples,
    Tasks,
    show_runs,
    with_progress,
)

EXAMPLES = (
    "lamaml run digits_rotations la_maml",
    "lamaml run mnist_rotations la_maml --seeds 5 --out runs/rotations",
    "lamaml run mnist_permutations c_maml --set inner_steps=5 --set max_norm=none",
    "lamaml run cifar100 la_maml --protocol multiple --preset paper --tasks 5",
    "lamaml run arrays la_maml --set path=mine.npz --json > result.json",
    "lamaml run digits_rotations my_module:my_learner --set learning_rate=0.1",
    "lamaml run arrays la_maml --set path=mine.npz --model my_module:my_network",
)


def run(
    benchmark: Annotated[
        str,
        typer.Argument(
            help="Benchmark of [bold]lamaml list[/], or module:function for your own stream."
        ),
    ],
    learner: Annotated[
        str, typer.Argument(help="Learner of [bold]lamaml list[/], or module:function.")
    ],
    protocol: Annotated[
        str | None,
        typer.Option(help="single or multiple (passes). Default: the benchmark's first."),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(help="authors, paper or tuned. Default: what reproduces the paper's table."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="mlp, cnn or module:function. Default: the benchmark's network."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Set a hyper-parameter (repeatable)."),
    ] = None,
    probe: Annotated[
        list[str] | None,
        typer.Option(
            help="Also measure alignment, look_ahead or inter_task during training (repeatable).",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds.")] = 1,
    first_seed: Annotated[int, typer.Option(min=0, help="First seed.")] = 0,
    tasks: Tasks = None,
    samples: Samples = None,
    out: Out = None,
    processes: Processes = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads per worker process.")] = 1,
    checkpoint_every: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Checkpoint every N updates (0: only at task ends). Default: 500, CNN 50.",
        ),
    ] = None,
    as_json: Json = False,
    overwrite: Overwrite = False,
) -> None:
    """Train a learner on a benchmark, once per seed, and store the results in a run folder.

    Prints mean ± sd over seeds next to the paper's value. With --json: accuracies
    in percent, seconds and updates per seed, null for unknown values. Ctrl-C and
    SIGTERM write checkpoints; [bold]lamaml resume[/] continues from them.

    Exit code: 0; 1 if a seed failed; 2 for a usage error; 3 if the only seed
    diverged; 130 if interrupted.
    """
    from lamaml.experiments.recipes.overrides import read_settings
    from lamaml.experiments.running.run import run as run_experiment

    values = read_settings(
        benchmark, learner, settings or [], protocol=protocol, preset=preset, model=model
    )
    work = partial(
        run_experiment,
        benchmark,
        learner,
        seeds=range(first_seed, first_seed + seeds),
        protocol=protocol,
        preset=preset,
        settings=values,
        probes=probe or (),
        num_tasks=tasks,
        num_samples=samples,
        out=out,
        processes=processes,
        threads=threads,
        checkpoint_every=checkpoint_every,
        overwrite=overwrite,
        model=model,
    )
    show_runs(with_progress(lambda: [work()]), as_json)
