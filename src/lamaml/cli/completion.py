"""Names that a shell completes: benchmarks and learners. Nothing slow is imported."""

import contextlib

import typer

from lamaml.errors import LamamlError


def complete_benchmark(incomplete: str) -> list[str]:
    """Returns the benchmarks whose names begin so."""
    from lamaml.experiments.recipes.files import benchmarks

    return [name for name in benchmarks() if name.startswith(incomplete)]


def complete_learner(context: typer.Context, incomplete: str) -> list[str]:
    """Returns the learners whose names begin so and that the benchmark has recipes for."""
    from lamaml.experiments.recipes.files import learners_with_recipes

    names: list[str] = []
    with contextlib.suppress(LamamlError, OSError):  # a name that is no benchmark
        names = learners_with_recipes(str(context.params.get("benchmark") or "digits_rotations"))
    return [name for name in names if name.startswith(incomplete)]
