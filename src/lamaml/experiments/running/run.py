"""`run` and `sweep`: experiments from Python, with the results of the command line."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict, Unpack

from rich.console import Console

from lamaml._registry import name_of
from lamaml.errors import require
from lamaml.experiments.recipes.grids import known_settings, points
from lamaml.experiments.recipes.load import Recipe, recipe
from lamaml.experiments.recipes.probes import in_order
from lamaml.experiments.running.console import run_with_progress
from lamaml.experiments.running.engines import Workers
from lamaml.experiments.running.plan import Plan, default_out, new_runs
from lamaml.experiments.storing.joining import Runs
from lamaml.experiments.storing.records import RunSettings
from lamaml.experiments.storing.results import Run, read_run
from lamaml.types import Learner, Model, Stream

LearnerName = str | Callable[..., Learner]
StreamName = str | Callable[..., Stream]


def run(
    benchmark: StreamName,
    learner: LearnerName,
    *,
    seeds: int | Sequence[int] = 1,
    protocol: str | None = None,
    preset: str | None = None,
    settings: Mapping[str, Any] | None = None,
    probes: Sequence[str] = (),
    num_tasks: int | None = None,
    num_samples: int | None = None,
    out: str | Path | None = None,
    processes: int | None = None,
    threads: int = 1,
    checkpoint_every: int | None = None,
    overwrite: bool = False,
    progress: bool = True,
    model: str | Callable[..., Model] | None = None,
    split: str = "test",
    engine: str = "local",
    address: str | None = None,
    loggers: Sequence[str] = (),
) -> Run:
    """Train a learner on a benchmark, once per seed, and store the results in a run folder.

    This is `lamaml run` from Python. Seeds run in worker processes, which import learner, stream
    and model by name: functions of your own must be in a module, not in `__main__`.

    Args:
      benchmark: a benchmark of `lamaml list`, or your own stream: an entry point,
        "module:function" or a function.
      learner: a learner of `lamaml list`, or your own: as above.
      seeds: the number of seeds, or the seeds themselves.
      protocol: "single" or "multiple" passes; None for the benchmark's first.
      preset: "authors", "paper" or "tuned"; None for what reproduces the paper's table.
      settings: hyper-parameters that replace the recipe's.
      probes: what to measure during training: "alignment", "look_ahead", "inter_task".
      num_tasks: the number of tasks; None for all.
      num_samples: training rows per task; None for the benchmark's number.
      out: the run folder; None for a new one in `runs/`. A run that is there with the same settings
        gets the seeds it does not have.
      processes: the number of worker processes; None for one per core, or per CPU of the cluster.
      threads: threads per worker process.
      checkpoint_every: updates between checkpoints, 0 for task ends only; None for the default.
      overwrite: whether to replace an existing run in `out`.
      progress: whether to show progress on standard error.
      model: "mlp", "cnn", "resnet18" or your own: as above; None for the benchmark's network.
      split: the rows that accuracy is measured on, "test" or "validation".
      engine: "local" for processes on this machine, or "ray" for a Ray cluster; `out` must then be
        on storage that every node sees.
      address: HOST:PORT of the Ray cluster; None for the one in RAY_ADDRESS, or a new one on this
        machine.
      loggers: where numbers are written while training, besides `out`: "csv", "tensorboard",
        "mlflow", "wandb".

    Returns:
      The run, with `summary` and `to_frame()` (accuracies in percent), `matrix` (R[i, t] in [0, 1])
      and the results of every seed. A seed that diverged or failed says so in its status.

    Raises:
      InvalidArgument: a name, setting or size is not allowed.
      KeyboardInterrupt: after Ctrl-C, once the checkpoints are written.

    Examples:
      >>> import tempfile
      >>> folder = tempfile.mkdtemp()
      >>> found = run("digits_rotations", "online", num_tasks=2, num_samples=30,
      ...             out=f"{folder}/run", progress=False)
      >>> found.summary.statuses, found.matrix.shape
      (['finished'], (2, 2))
    """
    options = Options(
        seeds=seeds,
        protocol=protocol,
        preset=preset,
        probes=probes,
        num_tasks=num_tasks,
        num_samples=num_samples,
        threads=threads,
        checkpoint_every=checkpoint_every,
        out=out,
        processes=processes,
        overwrite=overwrite,
        progress=progress,
        model=model,
        split=split,
        engine=engine,
        address=address,
        loggers=loggers,
    )
    names = name_of(benchmark), name_of(learner)
    plan = Plan(_run_settings(*names, settings or {}, options), _folder(names, options))
    return _execute([plan], options)[0]


class Options(TypedDict, total=False):
    """The arguments of `run` besides benchmark, learner and settings."""

    seeds: int | Sequence[int]
    protocol: str | None
    preset: str | None
    probes: Sequence[str]
    num_tasks: int | None
    num_samples: int | None
    threads: int
    checkpoint_every: int | None
    out: str | Path | None
    processes: int | None
    overwrite: bool
    progress: bool
    model: str | Callable[..., Model] | None
    split: str
    engine: str
    address: str | None
    loggers: Sequence[str]


def sweep(
    benchmark: StreamName,
    learners: LearnerName | Sequence[LearnerName],
    *,
    grid: Mapping[str, Sequence[Any]] | None = None,
    settings: Mapping[str, Any] | None = None,
    **options: Unpack[Options],
) -> Runs:
    """Train several learners, or one with several values of its settings, side by side.

    Every point of the grid is a run in a folder of its own. If a setting has several values,
    accuracy is measured on validation rows: choosing the best by test rows would flatter it.

    Args:
      benchmark: as `run` takes it.
      learners: one or several, as `run` takes them.
      grid: the values of each setting that is varied. A learner that lacks one of the settings is
        run without it.
      settings: hyper-parameters of all runs that replace the recipes'; left out where a learner
        lacks them.
      **options: the other arguments of `run`. `out` is the folder of the run folders; runs that
        are there with the same settings get the seeds that they do not have.

    Returns:
      The runs, one per point, with `to_frame()`.

    Raises:
      InvalidArgument: a name, setting or size is not allowed.
      KeyboardInterrupt: after Ctrl-C, once the checkpoints are written.

    Examples:
      >>> import tempfile
      >>> found = sweep("digits_rotations", ["online", "er"], num_tasks=2, num_samples=30,
      ...               out=f"{tempfile.mkdtemp()}/sweep", progress=False)
      >>> [run.settings.recipe.learner for run in found]
      ['online', 'er']
    """
    fixed, varied = dict(settings or {}), dict(grid or {})
    for name, values in varied.items():
        require(len(values) > 0, f"grid[{name!r}]", values, "at least one value")
        require(name not in fixed, f"grid[{name!r}]", values, "given once, not in settings too")
    given = [learners] if isinstance(learners, str) or callable(learners) else learners
    words, stream = [name_of(learner) for learner in given], name_of(benchmark)
    require(len(words) > 0, "learners", words, "at least one")
    several = any(len(values) > 1 for values in varied.values())
    shared: Options = {"split": "validation" if several else "test", **options}
    folder = _folder((stream, *words[:3]), shared)
    return _execute(_plans(stream, words, fixed, varied, shared, folder), shared)


def _plans(
    benchmark: str,
    learners: Sequence[str],
    fixed: Mapping[str, Any],
    varied: Mapping[str, Sequence[Any]],
    options: Options,
    folder: Path,
) -> list[Plan]:
    bare = [_recipe(benchmark, learner, {}, options) for learner in learners]
    names = [*fixed, *varied]
    owners = known_settings(bare[0].stream, bare[0].model, learners, names, benchmark)
    plans = []
    for point in points(learners, varied, owners):
        has = owners[point.learner]
        settings = {name: value for name, value in fixed.items() if name in has}
        chosen = _run_settings(benchmark, point.learner, {**settings, **point.settings}, options)
        plans.append(Plan(chosen, folder / point.name))
    return plans


def _execute(plans: Sequence[Plan], options: Options) -> Runs:
    opening = new_runs(plans, overwrite=options.get("overwrite", False))
    folders = [plan.folder for plan in plans]
    console = Console(stderr=True, quiet=not options.get("progress", True))
    where = (options.get("processes"), options.get("engine", "local"), options.get("address"))
    loggers = options.get("loggers", ())
    run_with_progress(opening, folders, console, Workers(*where), loggers=loggers)
    return Runs(read_run(folder) for folder in folders)


def _folder(words: Sequence[str], options: Options) -> Path:
    out = options.get("out")
    return Path(out) if out else default_out(*(word.replace(":", ".") for word in words))


def _run_settings(
    benchmark: str, learner: str, settings: Mapping[str, Any], options: Options
) -> RunSettings:
    seeds = options.get("seeds", 1)
    is_sequence = isinstance(seeds, Sequence) and not isinstance(seeds, str)
    require(isinstance(seeds, int) or is_sequence, "seeds", seeds, "a number or several seeds")
    chosen = _recipe(benchmark, learner, settings, options)
    return RunSettings(
        replace(chosen, probes=in_order(options.get("probes", ()))),
        range(seeds) if isinstance(seeds, int) else list(dict.fromkeys(seeds)),
        changed=list(settings),
        num_tasks=options.get("num_tasks"),
        num_samples=options.get("num_samples"),
        threads=options.get("threads", 1),
        checkpoint_every=options.get("checkpoint_every"),
        split=options.get("split", "test"),
    )


def _recipe(benchmark: str, learner: str, settings: Mapping[str, Any], options: Options) -> Recipe:
    model = options.get("model")
    return recipe(
        benchmark,
        learner,
        protocol=options.get("protocol"),
        preset=options.get("preset"),
        model=None if model is None else name_of(model),
        overrides=settings,
    )
