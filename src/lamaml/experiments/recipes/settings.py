"""The settings of a recipe: value, values of other presets, search range and meaning of each."""

import inspect
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, get_args, get_type_hints

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from lamaml._registry import find_learner, find_model, find_stream
from lamaml.experiments.recipes.load import Recipe, presets, recipe, setting_owners
from lamaml.training import Schedule
from lamaml.types import Choices, Range

OWNERS = ("learner", "schedule", "model", "stream")


@dataclass(frozen=True)
class Setting:
    """One setting of a recipe.

    Attributes:
      name: as `--set` takes it.
      owner: "learner", "schedule", "model" or "stream".
      value: of the recipe, or the default; None also where it must be given.
      source: where the value is from: "recipe", "default" or "required".
      presets: its value in each preset of the recipe.
      search: where `lamaml tune` searches, or None.
      meaning: from the documentation of its owner.
    """

    name: str
    owner: str
    value: Any
    source: str
    presets: Mapping[str, Any]
    search: Range | Choices | None
    meaning: str


def settings_of(
    benchmark: str,
    learner: str,
    *,
    protocol: str | None = None,
    preset: str | None = None,
    model: str | None = None,
) -> tuple[Recipe, list[Setting]]:
    """Returns a recipe and every setting that it takes; the arguments are those of `recipe`.

    Example:
      >>> chosen, found = settings_of("mnist_rotations", "la_maml")
      >>> rate = next(each for each in found if each.name == "hyper_rate")
      >>> rate.value, rate.presets, str(rate.search)
      (0.3, {'authors': 0.3, 'paper': 0.15, 'tuned': 0.1}, '[0.0001, 0.3]')
    """
    chosen = recipe(benchmark, learner, protocol=protocol, preset=preset, model=model)
    known = presets(benchmark, chosen.protocol, learner)
    each = {
        name: recipe(benchmark, learner, protocol=chosen.protocol, preset=name, model=model)
        for name in known
    }
    owners = setting_owners(chosen.stream, chosen.model, learner)
    builders = _builders(chosen)
    defaults = {owner: _defaults(builder) for owner, builder in builders.items()}
    searches = {owner: _searches(builder) for owner, builder in builders.items()}
    meanings = {owner: argument_docs(builder) for owner, builder in builders.items()}
    found = []
    for owner, name in ((o, n) for o in OWNERS for n in defaults[o] if owners.get(n) == o):
        default = defaults[owner][name]
        needed = default is inspect.Parameter.empty and name not in chosen.settings
        value = None if needed else chosen.settings.get(name, default)
        source = "recipe" if name in chosen.settings else "required" if needed else "default"
        values = {
            preset: value if needed else other.settings.get(name, default)
            for preset, other in each.items()
        }
        search, meaning = searches[owner].get(name), meanings[owner].get(name, "")
        found.append(Setting(name, owner, value, source, values, search, meaning))
    return chosen, found


def search_space(chosen: Recipe) -> dict[str, Range | Choices]:
    """Returns where the settings of a recipe are searched: those whose annotations say so."""
    owners = setting_owners(chosen.stream, chosen.model, chosen.learner)
    searches = {owner: _searches(builder) for owner, builder in _builders(chosen).items()}
    found = {name: searches[owner].get(name) for name, owner in owners.items()}
    return {name: search for name, search in found.items() if search is not None}


def argument_docs(builder: Callable[..., Any]) -> dict[str, str]:
    """Returns the documentation of each argument, from a docstring in Google's style."""
    lines = inspect.getdoc(builder) or ""
    part = re.search(r"^(?:Args|Attributes):\n(.*?)(?:\n\S|\Z)", lines, re.DOTALL | re.MULTILINE)
    if part is None:
        return {}
    items = re.split(r"^  (?=\S)", part[1], flags=re.MULTILINE)
    pairs = [item.partition(":") for item in items if ":" in item]
    return {name.strip(): " ".join(text.split()) for name, _, text in pairs}


def settings_table(chosen: Recipe, found: Sequence[Setting]) -> RenderableType:
    """Returns the settings for a terminal, one table per owner."""
    known = list(found[0].presets) if found else []
    differ = [name for name in known if any(s.presets[name] != s.value for s in found)]
    others = [name for name in differ if name != chosen.preset]
    title = (
        f"{chosen.learner} on {chosen.benchmark}, {chosen.protocol} pass, preset {chosen.preset}"
    )
    parts: list[RenderableType] = [Text(title, style="bold")]
    for owner, members in groupby(found, key=lambda setting: setting.owner):
        name = {"model": f"network ({chosen.model})", "stream": f"stream ({chosen.stream})"}
        table = Table(
            title=name.get(owner, owner), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False
        )
        table.add_column("setting", style="cyan", no_wrap=True)
        for column in ("value", *others):
            table.add_column(column, justify="right", no_wrap=True)
        table.add_column("search", no_wrap=True)
        table.add_column("meaning", max_width=46)
        for setting in members:
            row = [setting.name, _value(setting)]
            values = [setting.presets[name] for name in others]
            row += ["" if value == setting.value else _text(value) for value in values]
            row += [str(setting.search or ""), textwrap.fill(setting.meaning, 46)]
            table.add_row(*map(Text, row))
        parts.append(table)
    return Group(*parts)


def _builders(chosen: Recipe) -> dict[str, Callable[..., Any]]:
    return {
        "learner": find_learner(chosen.learner),
        "schedule": Schedule,
        "model": find_model(chosen.model),
        "stream": find_stream(chosen.stream),
    }


def _defaults(builder: Callable[..., Any]) -> dict[str, Any]:
    parameters = inspect.signature(builder).parameters.values()
    return {parameter.name: parameter.default for parameter in parameters}


def _searches(builder: Callable[..., Any]) -> dict[str, Range | Choices]:
    found = {}
    for name, hint in get_type_hints(builder, include_extras=True).items():
        for extra in get_args(hint)[1:]:
            if isinstance(extra, Range | Choices):
                found[name] = extra
    return found


def _value(setting: Setting) -> str:
    return "required" if setting.source == "required" else _text(setting.value)


def _text(value: Any) -> str:
    return "none" if value is None else str(value)
