"""`lamaml show`: every setting of a learner on a benchmark."""

from typing import Annotated

import typer

from lamaml.cli.completion import complete_benchmark, complete_learner
from lamaml.cli.shared import Json, ModelName, Preset, Protocol, print_json, print_table

EXAMPLES = (
    "lamaml show mnist_rotations la_maml",
    "lamaml show cifar100 la_maml --protocol multiple --preset paper",
    "lamaml show digits_rotations er --json",
)


def show(
    benchmark: Annotated[
        str,
        typer.Argument(
            help="Benchmark of [bold]lamaml list[/].", autocompletion=complete_benchmark
        ),
    ],
    learner: Annotated[
        str,
        typer.Argument(help="Learner of [bold]lamaml list[/].", autocompletion=complete_learner),
    ],
    protocol: Protocol = None,
    preset: Preset = None,
    model: ModelName = None,
    as_json: Json = False,
) -> None:
    """Show every setting of a recipe: value, other presets, search range, meaning.

    These are the names that --set of [bold]lamaml run[/] takes. "search" is where
    [bold]lamaml tune[/] looks: a range on a log scale, or a set of values.
    """
    from lamaml.experiments.recipes.settings import settings_of, settings_table

    chosen, found = settings_of(benchmark, learner, protocol=protocol, preset=preset, model=model)
    if as_json:
        print_json({"recipe": chosen, "settings": found})
    else:
        print_table(settings_table(chosen, found))
