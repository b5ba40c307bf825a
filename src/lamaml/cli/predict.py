"""`lamaml predict`: answer new rows with the model of a run."""

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lamaml.errors import DataCorrupt, DataUnavailable, require

if TYPE_CHECKING:
    import numpy as np

    from lamaml.experiments.storing.results import Run

EXAMPLES = (
    "lamaml predict runs/mine new.npz                     one class per line",
    "lamaml predict runs/mine new.npz --out answers.csv",
    "lamaml predict runs/mine new.npz --task 3 --seed 1 --out answers.npz",
)


def predict(
    run: Annotated[Path, typer.Argument(help="Run folder.")],
    data: Annotated[Path, typer.Argument(help="NPZ file with rows x, and optionally task.")],
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed of the run (default: the first finished one).")
    ] = None,
    task: Annotated[
        int | None,
        typer.Option(min=0, help="Task of all rows, from 0 (default: task in the file, or none)."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="File to write, .npz or .csv (default: standard output).")
    ] = None,
) -> None:
    """Predict the class of each row of a file with the model that a run has learned.

    Rows have the shape and scale of the run's training rows. For the benchmark
    arrays, the answers are the labels of your own data.
    """
    from lamaml._io import atomic_write, writing
    from lamaml.experiments.storing.loading import load_run

    allowed = "a file that ends in .npz or .csv"
    require(out is None or out.suffix in (".npz", ".csv"), "--out", str(out), allowed)
    found = load_run(run)
    x, tasks = _rows(data)
    classes = found.model(seed).predict(x, tasks if task is None else task)
    answers = _labels(found, seed, classes)
    if out is None:
        typer.echo("\n".join(map(str, answers)))
        return
    with writing(out), atomic_write(out) as file:
        file.write(_npz(answers) if out.suffix == ".npz" else _csv(answers))
    typer.echo(f"Predictions: {out}")


def _rows(path: Path) -> "tuple[np.ndarray, np.ndarray | None]":
    """Returns x and task, None if there is no task."""
    import zipfile

    import numpy as np

    try:
        with np.load(path) as arrays:
            return arrays["x"], arrays.get("task")
    except FileNotFoundError as error:
        raise DataUnavailable(f"{path} does not exist") from error
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        message = f"{path} cannot be read: it must be an NPZ file with an array x ({error})"
        raise DataCorrupt(message) from error


def _labels(run: "Run", seed: int | None, classes: "np.ndarray") -> "np.ndarray":
    """Returns the user's own labels where the stream encoded them."""
    import numpy as np

    if run.settings.recipe.stream != "arrays":
        return classes
    chosen = next(each for each in (*run.finished, *run.seeds) if seed in (None, each.seed))
    facts = json.loads((chosen.folder / "facts.json").read_text("utf-8"))
    return np.asarray(facts["classes"])[classes]


def _npz(answers: "np.ndarray") -> bytes:
    import numpy as np

    file = io.BytesIO()
    np.savez(file, y=answers)
    return file.getvalue()


def _csv(answers: "np.ndarray") -> bytes:
    import csv

    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([["y"], *([answer] for answer in answers)])
    return file.getvalue().encode()
