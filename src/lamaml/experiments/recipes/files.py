"""Recipe files: one TOML file per benchmark, in this folder or the user's own.

Reading one imports neither JAX nor the learners, so that names are completed at once in a shell.
"""

import tomllib
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from lamaml.errors import DataCorrupt, DataUnavailable

PROTOCOLS = ("single", "multiple")
SUCCESSORS = {"dark_la_maml": "la_maml", "der": "er", "er_ace": "er"}
"""Learners that have the settings of another."""


def benchmarks() -> list[str]:
    """The names of the package's recipe files."""
    folder = resources.files("lamaml.experiments.recipes")
    return sorted(
        file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml")
    )


def is_recipe_file(benchmark: str) -> bool:
    """Whether a benchmark is one of the package's, or the path of a file of one's own."""
    return benchmark.endswith(".toml") or benchmark in benchmarks()


def about(benchmark: str) -> str:
    """What a benchmark is, in one line."""
    return _text(benchmark).partition("\n")[0].removeprefix("#").strip()


@cache
def read_recipes(benchmark: str) -> dict[str, Any]:
    """The content of a recipe file, with the recipes of `SUCCESSORS`.

    Raises:
      DataUnavailable: there is no file at the path.
      DataCorrupt: the file is not a recipe file.
    """
    try:
        file = tomllib.loads(_text(benchmark))
    except ValueError as error:
        raise DataCorrupt(f"{benchmark} is not a TOML file: {error}") from error
    if missing := [name for name in ("stream", "model") if name not in file]:
        raise DataCorrupt(f"{benchmark} is not a recipe file: it has no {' and no '.join(missing)}")
    for recipes in (file[protocol] for protocol in PROTOCOLS if protocol in file):
        for learner, like in SUCCESSORS.items():
            if like in recipes:
                inherited = {key: part for key, part in recipes[like].items() if key != "published"}
                recipes[learner] = inherited | recipes.get(learner, {})
    return file


def learners_with_recipes(benchmark: str) -> list[str]:
    """The learners that a benchmark has recipes for, in any protocol."""
    file = read_recipes(benchmark)
    return list(dict.fromkeys(name for part in PROTOCOLS for name in file.get(part, {})))


def _text(benchmark: str) -> str:
    if not benchmark.endswith(".toml"):
        path = resources.files("lamaml.experiments.recipes") / f"{benchmark}.toml"
        return path.read_text("utf-8")
    try:
        return Path(benchmark).read_text("utf-8")
    except OSError as error:
        raise DataUnavailable(f"{benchmark} cannot be read ({error.strerror})") from error
