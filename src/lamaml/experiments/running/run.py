"""`run` and `load_run`: experiments from Python, with the results of the command line."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from lamaml._registry import name_of
from lamaml.errors import require
from lamaml.experiments.recipes.load import recipe
from lamaml.experiments.recipes.probes import in_order
from lamaml.experiments.running.console import run_with_progress
from lamaml.experiments.running.plan import Plan, default_out, new_runs
from lamaml.experiments.storing.records import RunSettings
from lamaml.experiments.storing.results import Run, read_run
from lamaml.types import Learner, Model, Stream


def run(
    benchmark: str | Callable[..., Stream],
    learner: str | Callable[..., Learner],
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
      out: the run folder; None for a new one in `runs/`.
      processes: the number of worker processes; None for one per core.
      threads: threads per worker process.
      checkpoint_every: updates between checkpoints, 0 for task ends only; None for the default.
      overwrite: whether to replace an existing run in `out`.
      progress: whether to show progress on standard error.
      model: "mlp", "cnn" or your own: as above; None for the benchmark's network.

    Returns:
      The run: `summary` (accuracies in percent), `matrix` (R[i, t] in [0, 1]), `to_frame()`, and
      the results of every seed. A seed that diverged or failed says so in its status.

    Raises:
      InvalidArgument: a name, setting or size is not allowed.
      KeyboardInterrupt: after Ctrl-C, once the checkpoints are written.

    Example:
      >>> import tempfile
      >>> folder = tempfile.mkdtemp()
      >>> found = run("digits_rotations", "online", num_tasks=2, num_samples=30,
      ...             out=f"{folder}/run", progress=False)
      >>> found.summary.statuses, found.matrix.shape
      (['finished'], (2, 2))
    """
    is_sequence = isinstance(seeds, Sequence) and not isinstance(seeds, str)
    require(isinstance(seeds, int) or is_sequence, "seeds", seeds, "a number or several seeds")
    names = name_of(benchmark), name_of(learner)
    chosen = recipe(
        *names,
        protocol=protocol,
        preset=preset,
        model=None if model is None else name_of(model),
        overrides=settings,
    )
    run_settings = RunSettings(
        replace(chosen, probes=in_order(probes)),
        range(seeds) if isinstance(seeds, int) else seeds,
        changed=list(settings or ()),
        num_tasks=num_tasks,
        num_samples=num_samples,
        threads=threads,
        checkpoint_every=checkpoint_every,
    )
    folder = Path(out) if out else default_out(*(name.replace(":", ".") for name in names))
    console = Console(stderr=True, quiet=not progress)
    opening = new_runs([Plan(run_settings, folder)], overwrite=overwrite)
    return run_with_progress(opening, [folder], console, processes)[0]


def load_run(folder: str | Path) -> Run:
    """Returns the run in a folder, made by `run` or by the command line.

    Args:
      folder: a run folder.

    Raises:
      DataUnavailable: it is not a run folder.
      DataCorrupt: one of its files is damaged.

    Example:
      >>> import tempfile
      >>> folder = f"{tempfile.mkdtemp()}/run"
      >>> made = run("digits_rotations", "online", num_tasks=2, num_samples=30,
      ...            out=folder, progress=False)
      >>> load_run(folder).summary == made.summary
      True
    """
    return read_run(Path(folder))
