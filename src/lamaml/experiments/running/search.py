"""The request of a study: which settings are searched, where, and on which rows."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lamaml._records import to_json
from lamaml.errors import InvalidArgument, require, unknown_name
from lamaml.experiments.recipes.load import Recipe, check_names
from lamaml.experiments.recipes.overrides import read_value, setting_types
from lamaml.experiments.recipes.settings import search_space
from lamaml.experiments.storing.records import RunSettings
from lamaml.experiments.storing.studies import Request, is_study, read_study
from lamaml.types import Choices, Range

PROTOCOLS = ("prefix", "validation")
PREFIX = 3  # tasks, as in the cross-validation of A-GEM (Chaudhry et al., 2019)

Space = Mapping[str, Range | Choices]
"""Where each setting is searched."""


def make_request(
    recipe: Recipe,
    *,
    on: str = "prefix",
    seeds: int = 1,
    num_tasks: int | None = None,
    num_samples: int | None = None,
    threads: int = 1,
    fixed: Sequence[str] = (),
    searches: Mapping[str, Range | Choices] | None = None,
    start: Mapping[str, Any] | None = None,
) -> tuple[Request, Space]:
    """Returns what a study searches.

    Args:
      recipe: with the settings that are not searched.
      on: "prefix" or "validation".
      seeds: number of seeds per trial.
      num_tasks: of the prefix, or of the stream; None for three, or all.
      num_samples: training rows per task; None for the benchmark's number.
      threads: per process.
      fixed: names of settings that the recipe was given, which are not searched.
      searches: ranges that replace or add to those declared in the learner's signature.
      start: values of the first trial; the recipe's own for the others.

    Raises:
      InvalidArgument: a name is unknown, or nothing is left to search.
    """
    require(on in PROTOCOLS, "on", on, " or ".join(PROTOCOLS))
    space = {**search_space(recipe), **(searches or {})}
    if recipe.protocol == "multiple":  # glances belong to the single pass
        space = {name: where for name, where in space.items() if name != "glances"}
    space = {name: where for name, where in space.items() if name not in fixed}
    if not space:
        raise InvalidArgument(
            f"nothing to search: {recipe.learner} declares no ranges; give --search NAME=LOW:HIGH"
        )
    for name in start or {}:
        if name not in space:
            raise unknown_name("searched setting", name, space)
    first = {name: _within(where, recipe.settings.get(name)) for name, where in space.items()}
    settings = RunSettings(
        recipe,
        range(seeds),
        changed=list(fixed),
        num_tasks=num_tasks or (PREFIX if on == "prefix" else None),
        num_samples=num_samples,
        threads=threads,
        split="validation",
    )
    words = {name: str(where) for name, where in space.items()}
    return Request(settings, on, words, {**first, **(start or {})}), space


def read_search(text: str, annotation: Any = float) -> Range | Choices:
    """Where to search, from text: `0.001:0.1` or `1,2,5`.

    >>> str(read_search("0.001:0.1")), str(read_search("1,5", int))
    ('[0.001, 0.1]', '{1, 5}')
    """
    low, colon, high = text.partition(":")
    if not colon:
        return Choices(tuple(read_value("search", part, annotation) for part in text.split(",")))
    found = Range(*(float(read_value("search", part, float)) for part in (low, high)))
    require(0 < found.low < found.high, "search", text, "LOW:HIGH with 0 < LOW < HIGH")
    return found


def read_searches(recipe: Recipe, texts: Mapping[str, str]) -> dict[str, Range | Choices]:
    """Where to search each setting, from text: `0.001:0.1` or `1,2,5`.

    Raises:
      InvalidArgument: a setting is unknown, or a text is neither of the two.
    """
    hints = setting_types(recipe)
    check_names(texts, hints, f"{recipe.learner} on {recipe.benchmark}")
    return {name: read_search(text, hints[name]) for name, text in texts.items()}


def check_folder(request: Request, out: Path) -> None:
    """Raise InvalidArgument if a folder holds something else than a study of this request."""
    if not is_study(out):
        if out.exists() and any(out.iterdir()):
            raise InvalidArgument(f"out = {str(out)!r}: exists and is not a study; choose another")
        return
    there = read_study(out).request
    differences = request.settings.differences(there.settings)
    if len(there.settings.seeds) != len(request.settings.seeds):
        differences.append(f"seeds {len(there.settings.seeds)} there")
    for name in ("on", "space"):
        if to_json(getattr(there, name)) != to_json(getattr(request, name)):
            differences.append(f"{name} {getattr(there, name)} there")
    if differences:
        raise InvalidArgument(
            f"out = {str(out)!r}: holds another study ({', '.join(differences)}); choose another"
        )


def _within(where: Range | Choices, value: Any) -> Any:
    """The value, or the nearest that the search allows."""
    if isinstance(where, Choices):
        return value if value in where.values else where.values[0]
    return min(max(where.high if value is None else value, where.low), where.high)
