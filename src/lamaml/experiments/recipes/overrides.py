"""`--set name=value`: text becomes the value its setting's annotation asks for."""

import inspect
import math
import tomllib
import types
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from lamaml._registry import find_learner, find_model, find_stream
from lamaml.errors import InvalidArgument
from lamaml.experiments.recipes.load import Recipe, check_names, recipe, setting_owners
from lamaml.training import Schedule

_WORDS = {"none": None, "true": True, "false": False}
_NAMES = {int: "a whole number", float: "a finite number", bool: "true or false", str: "text"}
_NAMES |= {types.NoneType: "none", Path: "a path"}


def read_settings(
    benchmark: str,
    learner: str,
    assignments: Iterable[str],
    *,
    protocol: str | None = None,
    preset: str | None = None,
    model: str | None = None,
) -> dict[str, Any]:
    """Settings given as text, by name, as values of the types that a recipe's parts ask for.

    >>> read_settings("digits_rotations", "er", ["memory_size=50", "max_norm=none"])
    {'memory_size': 50, 'max_norm': None}
    >>> read_settings("digits_rotations", "er", ["memory_size=abc"])
    Traceback (most recent call last):
    lamaml.errors.InvalidArgument: memory_size = 'abc': must be a whole number
    """
    texts = dict(split_assignment(text) for text in assignments)
    choices = {"protocol": protocol, "preset": preset, "model": model}
    hints = setting_types(recipe(benchmark, learner, overrides=texts, **choices))
    return {name: read_value(name, text, hints[name]) for name, text in texts.items()}


def read_grid(
    benchmark: str,
    learners: Sequence[str],
    assignments: Iterable[str],
    *,
    protocol: str | None = None,
    preset: str | None = None,
    model: str | None = None,
) -> dict[str, list[Any]]:
    """Settings given as text, by name, each with its values: `name=0.1,0.3` has two.

    A setting must be one of at least one learner.

    >>> read_grid("digits_rotations", ["er", "online"], ["memory_size=50,100", "max_norm=none"])
    {'memory_size': [50, 100], 'max_norm': [None]}
    >>> read_grid("digits_rotations", ["er"], ["hidden_sizes=[100, 100],[50]"])
    {'hidden_sizes': [(100, 100), (50,)]}
    """
    texts = dict(split_assignment(text) for text in assignments)
    hints: dict[str, Any] = {}
    for learner in reversed(learners):
        chosen = recipe(benchmark, learner, protocol=protocol, preset=preset, model=model)
        hints |= setting_types(chosen)
    check_names(texts, hints, f"{' or '.join(learners)} on {benchmark}")
    return {
        name: [read_value(name, part, hints[name]) for part in _split_values(text, hints[name])]
        for name, text in texts.items()
    }


def assignment(name: str, value: Any) -> str:
    """The text that `--set` reads as this value.

    >>> assignment("max_norm", None), assignment("hidden_sizes", (50, 50))
    ('max_norm=none', 'hidden_sizes=[50,50]')
    """
    return f"{name}={_text_of(value)}"


def split_assignment(text: str) -> tuple[str, str]:
    """`name=value` as two."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not (name and equals and value):
        raise InvalidArgument(f"--set {text}: must be name=value")
    return name, value


def read_value(name: str, text: str, annotation: Any) -> Any:
    """Text as a value of the annotated type.

    >>> read_value("hidden_sizes", "[100, 100]", tuple[int, ...])
    (100, 100)
    >>> read_value("path", "/tmp/12", str | Path | None)
    PosixPath('/tmp/12')
    >>> read_value("max_norm", "none", float | None), read_value("initializer", "12", str)
    (None, '12')
    """
    value = _literal(text)
    kinds = _kinds(annotation)
    if (str in kinds or Path in kinds) and not isinstance(value, str) and value is not None:
        value = text
    for kind in kinds:
        matches, converted = _convert(value, kind)
        if matches:
            return converted
    allowed = " or ".join(_name(kind) for kind in kinds)
    raise InvalidArgument(f"{name} = {value!r}: must be {allowed}")


def _split_values(text: str, annotation: Any) -> list[str]:
    """The values between commas, except those in brackets; a path is one value."""
    if Path in _kinds(annotation):
        return [text]
    values, depth = [""], 0
    for sign in text:
        depth += (sign in "[({") - (sign in "])}")
        if sign == "," and depth == 0:
            values.append("")
        else:
            values[-1] += sign
    found = [value.strip() for value in values]
    if "" in found:
        raise InvalidArgument(f"{text!r}: has no value before or after a comma")
    return found


def _text_of(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_text_of, value))}]"
    words = {str(known): word for word, known in _WORDS.items()}
    return words.get(str(value), str(value))


def _literal(text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for read in (lambda t: tomllib.loads(f"value = {t}")["value"], float):
        try:
            return read(text)
        except ValueError:  # also tomllib's
            continue
    return text


def setting_types(chosen: Recipe) -> dict[str, Any]:
    """The annotation of every setting that a recipe takes, by name."""
    builders: dict[str, Callable[..., Any]] = {
        "stream": find_stream(chosen.stream),
        "model": find_model(chosen.model),
        "learner": find_learner(chosen.learner),
        "schedule": Schedule,
    }
    hints = {owner: get_type_hints(builder) for owner, builder in builders.items()}
    owners = setting_owners(chosen.stream, chosen.model, chosen.learner)
    return {name: hints[owner].get(name, Any) for name, owner in owners.items()}


def _kinds(annotation: Any) -> tuple[Any, ...]:
    """What a value may be; text comes last, since all that is given is text."""
    if get_origin(annotation) in (Union, types.UnionType):
        return tuple(sorted(get_args(annotation), key=lambda kind: kind is str))
    return (annotation,)


def _convert(value: Any, kind: Any) -> tuple[bool, Any]:
    """Whether the value is of that kind, and the value as such."""
    origin = get_origin(kind) or kind
    if origin in (int, float):
        number = isinstance(value, int | origin) and not isinstance(value, bool)
        return number and math.isfinite(value), (origin(value) if number else value)
    if inspect.isclass(origin) and issubclass(origin, Sequence) and origin is not str:
        if not isinstance(value, list):
            return False, value
        items = [_convert(item, get_args(kind)[0]) for item in value]
        return all(fits for fits, _ in items), tuple(item for _, item in items)
    if kind is Path:  # absolute: the run may be resumed from another folder
        return isinstance(value, str), Path(str(value)).expanduser().absolute()
    if kind in _NAMES:
        return isinstance(value, kind), value
    return True, value  # not a type that text can be checked against


def _name(kind: Any) -> str:
    if get_args(kind):
        return f"a list, each {_NAMES.get(get_args(kind)[0], 'a value')}"
    return _NAMES.get(kind, str(kind))
