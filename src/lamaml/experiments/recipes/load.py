"""Recipes: the paper's hyper-parameters as TOML files, and how an experiment is built from them.

A recipe file is named after its benchmark. Its first comment says what the benchmark is. It holds,
by protocol ("single" pass or "multiple" passes) and learner, the settings of each preset and the
published result. `authors` is the published script and its code's behaviour, `paper` the appendix.
Where neither gives the value of the paper's table, `tuned` has settings that come near it; where
the paper has no value, it has the best on validation rows. Each file says how they were found. A
learner of `SUCCESSORS` has the settings of another, except for those in `own`. Settings are one
flat set of names; the signatures of learner, network and stream, and the fields of `Schedule`, are
their only declaration. TOML has no null: `false` stands for None.
"""

import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

from lamaml._registry import entry_point_names, find_learner, find_model, find_stream
from lamaml.errors import InvalidArgument, unknown_name
from lamaml.experiments.recipes.files import (
    PROTOCOLS,
    SUCCESSORS,
    about,
    benchmarks,
    is_recipe_file,
    read_recipes,
)
from lamaml.experiments.recipes.probes import Parts, probed
from lamaml.learners import LEARNERS
from lamaml.models import cross_entropy, task_heads
from lamaml.training import Schedule
from lamaml.training.loop import check_task_ends
from lamaml.types import Augment, Learner, Loss, Model, Stream

__all__ = ["PROTOCOLS", "SUCCESSORS", "about", "benchmarks", "cells", "recipe"]

PRESETS = ("authors", "paper", "tuned")
NO_PRESET = "defaults"  # of a learner that no recipe file knows
_GIVEN = {"seed", "num_tasks", "num_samples"}  # chosen for a run, not by a recipe
_OPTIONS = {
    "seed": ("--seed", "seeds"),
    "num_tasks": ("--tasks", "num_tasks"),
    "num_samples": ("--samples", "num_samples"),
}
_NULLABLE = {"max_norm", "inner_clamp", "inner_max_norm"}
_KNOWN_FROM_STREAM = {
    *("apply", "heads", "num_tasks", "num_classes", "task_size", "augment", "scenario"),
}


@dataclass(frozen=True)
class Recipe:
    """Every choice of a run except its seeds and sizes.

    Attributes:
      benchmark: the name of the recipe file, or of a stream from elsewhere.
      learner: a name as `find_learner` takes it.
      protocol: "single" or "multiple".
      preset: one of `PRESETS`, or `NO_PRESET`.
      stream: a name as `find_stream` takes it.
      model: a name as `find_model` takes it.
      settings: hyper-parameters by name.
      published: the paper's (mean, sd) by metric, in percent.
      probes: names of `PROBES`, in their order: what is measured besides accuracy.
    """

    benchmark: str
    learner: str
    protocol: str
    preset: str
    stream: str
    model: str
    settings: Mapping[str, Any]
    published: Mapping[str, tuple[float, float]]
    probes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Experiment:
    """A recipe built for one seed."""

    stream: Stream
    model: Model
    learner: Learner
    schedule: Schedule


def stream_of(benchmark: str) -> str:
    """The name of a benchmark's stream."""
    return str(_read(benchmark)["stream"])


def cells(benchmark: str) -> list[tuple[str, str]]:
    """The (protocol, learner) pairs that a benchmark has a recipe for."""
    file = _read(benchmark)
    return [(protocol, learner) for protocol in PROTOCOLS for learner in file.get(protocol, {})]


def presets(benchmark: str, protocol: str, learner: str) -> list[str]:
    """The presets of one recipe; all have the first two."""
    cell = _read(benchmark)[protocol].get(learner)
    if cell is None:
        return [NO_PRESET]
    return [name for name in PRESETS if name != "tuned" or name in cell]


def recipe(
    benchmark: str,
    learner: str,
    *,
    protocol: str | None = None,
    preset: str | None = None,
    model: str | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Recipe:
    """Returns the settings of one cell of the paper, or of a learner or stream from elsewhere.

    A learner from elsewhere has the settings that all learners of the benchmark share, a stream
    from elsewhere has those of `arrays`.

    Args:
      benchmark: a recipe file's name, the path of your own recipe file, or a stream from elsewhere
        as `find_stream` takes it.
      learner: a name as `find_learner` takes it.
      protocol: "single" or "multiple"; None for the benchmark's first.
      preset: one of `presets`; None for the one that reproduces the paper's table.
      model: a name as `find_model` takes it; None for the benchmark's own.
      overrides: settings that replace the recipe's.

    Example:
      >>> recipe("mnist_rotations", "la_maml").settings["hyper_rate"]
      0.3
      >>> recipe("mnist_rotations", "la_maml", preset="paper").settings["hyper_rate"]
      0.15
    """
    find_learner(learner)
    file = _read(benchmark)
    protocols = [name for name in PROTOCOLS if name in file]
    protocol = protocol or protocols[0]
    if protocol not in protocols:
        raise unknown_name(f"protocol for {benchmark}", protocol, protocols)
    if learner in LEARNERS and learner not in file[protocol]:
        raise unknown_name(f"recipe for {benchmark}, protocol {protocol},", learner, file[protocol])
    cell = file[protocol].get(learner, {"default": NO_PRESET})
    preset = preset or cell.get("default", "authors")
    there_are = presets(benchmark, protocol, learner)
    if preset not in there_are:
        raise unknown_name(f"preset of {learner} on {benchmark}", preset, there_are)
    model = model or file["model"]
    owners = setting_owners(file["stream"], model, learner)
    own = setting_owners(file["stream"], file["model"], learner)
    shared = {name: value for name, value in file.get("shared", {}).items() if name in owners}
    settings = shared | {
        name: value
        for name, value in (
            cell.get("both", {}) | cell.get(preset, {}) | cell.get("own", {})
        ).items()
        if name in owners or own.get(name) != "model"  # another network has other settings
    }
    check_names([*settings, *(overrides or {})], owners, f"{learner} on {benchmark}")
    settings = {name: _none_if_false(name, value) for name, value in settings.items()}
    published = {metric: tuple(pair) for metric, pair in cell.get("published", {}).items()}
    return Recipe(
        file.get("benchmark", benchmark),
        learner,
        protocol,
        preset,
        file["stream"],
        model,
        settings | dict(overrides or {}),
        published if model == file["model"] else {},
    )


def setting_owners(stream: str, model: str, learner: str) -> dict[str, str]:
    """Returns who takes each setting: "schedule", "model", "stream" or "learner"."""
    owners = dict.fromkeys(_keyword_names(find_stream(stream)) - _GIVEN, "stream")
    owners |= dict.fromkeys(_keyword_names(find_model(model)), "model")
    owners |= dict.fromkeys(_keyword_names(find_learner(learner)) - _KNOWN_FROM_STREAM, "learner")
    return owners | {field.name: "schedule" for field in fields(Schedule)}


def realize(
    recipe: Recipe, seed: int, *, num_tasks: int | None = None, num_samples: int | None = None
) -> Experiment:
    """Build stream, network, learner and schedule for one seed.

    Args:
      recipe: the settings.
      seed: of the stream and of the run.
      num_tasks: number of tasks; None for all.
      num_samples: training rows per task; None for the benchmark's number.
    """
    owners = setting_owners(recipe.stream, recipe.model, recipe.learner)
    check_names(recipe.settings, owners, f"{recipe.learner} on {recipe.benchmark}")
    split: dict[str, dict[str, Any]] = {"stream": {}, "model": {}, "learner": {}, "schedule": {}}
    for name, value in recipe.settings.items():
        split[owners[name]][name] = value
    sizes = {"num_tasks": num_tasks, "num_samples": num_samples}
    given = {name: size for name, size in sizes.items() if size is not None}
    try:
        stream = find_stream(recipe.stream)(seed=seed, **given, **split["stream"])
    except TypeError as error:  # a value of the wrong type, or a stream without sizes
        raise InvalidArgument(f"{recipe.stream}: {error}") from error
    known = {
        "shape": stream.tasks[0].train.x.shape[1:],
        "num_tasks": 1 if stream.is_task_free else len(stream.tasks),
        "num_classes": stream.num_classes,
        "classes_per_task": stream.classes_per_task,
        "task_size": max(len(task.train) for task in stream.tasks),
        "scenario": stream.scenario,
    }
    asked = json.dumps({"model": split["model"], "learner": split["learner"], "known": known})
    try:
        model, loss, learner = _made(recipe.model, recipe.learner, asked, stream.fresh_augment)
    except TypeError as error:  # a value of the wrong type, or a missing setting
        advice = "; give it with --set NAME=VALUE" if "missing" in str(error) else ""
        message = f"{recipe.learner} on {recipe.benchmark}: {error}{advice}"
        raise InvalidArgument(message) from error
    check_task_ends(stream, learner)
    schedule = Schedule(**split["schedule"])
    if recipe.probes:
        parts = Parts(loss, model, stream, schedule, split["learner"])
        learner = probed(recipe.probes, learner, parts)
    return Experiment(stream, model, learner, schedule)


@lru_cache(maxsize=8)
def _made(
    model_name: str, learner_name: str, asked: str, augment: Augment | None
) -> tuple[Model, Loss, Learner]:
    """Network, loss and learner. All seeds share them, so that they are compiled once.

    Args:
      model_name: as `find_model` takes it.
      learner_name: as `find_learner` takes it.
      asked: the settings of both and what is known of the stream, as JSON.
      augment: what the learner does to the rows in every update; None for nothing.
    """
    settings = json.loads(asked)
    known, builder = settings["known"], find_learner(learner_name)
    shape = tuple(known["shape"])
    model = find_model(model_name)(shape, known["num_classes"], **settings["model"])
    known["apply"] = model.apply
    known["heads"] = task_heads(known["num_classes"], known["classes_per_task"])
    known["augment"] = augment
    wanted = {name: known[name] for name in _keyword_names(builder) & _KNOWN_FROM_STREAM}
    if augment and "augment" not in wanted:
        raise InvalidArgument(
            f"fresh_augmentation = True: {learner_name} does not augment rows itself; a learner "
            "that takes `augment` does, such as er, der and dark_la_maml"
        )
    loss = cross_entropy(model, known["heads"])
    return model, loss, builder(loss, **wanted, **settings["learner"])


def _read(benchmark: str) -> dict[str, Any]:
    if is_recipe_file(benchmark):
        return read_recipes(benchmark)
    added = entry_point_names("stream")
    if benchmark not in added and ":" not in benchmark:
        raise unknown_name("stream", benchmark, [*benchmarks(), *added])
    find_stream(benchmark)
    return read_recipes("arrays") | {"stream": benchmark}


def check_names(names: Iterable[str], owners: Iterable[str], whose: str) -> None:
    """Raise InvalidArgument for the first name that is not among the owners' settings."""
    for name in names:
        if name in owners:
            continue
        if name in _OPTIONS:
            option, argument = _OPTIONS[name]
            message = f"{name} is not a setting of {whose}: give it as {option}"
            raise InvalidArgument(f"{message} (from Python: {argument}=)")
        raise unknown_name("setting", name, owners, of=whose)


def _none_if_false(name: str, value: Any) -> Any:
    return None if name in _NULLABLE and value is False else value


def _keyword_names(builder: Callable[..., Any]) -> set[str]:
    parameters = inspect.signature(builder).parameters.values()
    return {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
