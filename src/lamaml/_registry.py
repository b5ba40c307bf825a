"""Finds learners, streams and models: by name, by entry point, as "module:function" or given.

A package adds its own by entry points of the groups `lamaml.learners`, `lamaml.streams` and
`lamaml.models`; the name of the entry point is then a name like the package's own.
"""

import sys
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from lamaml.errors import InvalidArgument, require, unknown_name
from lamaml.learners import LEARNERS
from lamaml.models import MODELS
from lamaml.streams import STREAMS
from lamaml.types import Learner, Model, Stream

Made = TypeVar("Made")

_TABLES: dict[str, Mapping[str, Callable[..., Any]]] = {
    "learner": LEARNERS,
    "stream": STREAMS,
    "model": MODELS,
}


def find_learner(learner: str | Callable[..., Learner]) -> Callable[..., Learner]:
    """Returns the function that builds a learner: (loss, *, settings) -> Learner.

    Args:
      learner: a name of `lamaml.learners.LEARNERS` or of an entry point of `lamaml.learners`,
        "package.module:function", or the function itself.

    Example:
      >>> find_learner("la_maml").__name__
      'la_maml'
      >>> find_learner("lamaml.learners.er:er") is find_learner("er")
      True
    """
    return _find("learner", learner)


def find_stream(stream: str | Callable[..., Stream]) -> Callable[..., Stream]:
    """Returns the function that builds a stream: (*, seed, settings) -> Stream.

    Args:
      stream: a name of `lamaml.streams.STREAMS` or of an entry point of `lamaml.streams`,
        "package.module:function", or the function itself.
    """
    return _find("stream", stream)


def find_model(model: str | Callable[..., Model]) -> Callable[..., Model]:
    """Returns the function that builds a network: (input_shape, num_outputs, *, settings) -> Model.

    Args:
      model: a name of `lamaml.models.MODELS` or of an entry point of `lamaml.models`,
        "package.module:function", or the function itself.
    """
    return _find("model", model)


def name_of(builder: str | Callable[..., Any]) -> str:
    """Returns the word that finds a builder again, in another process too.

    Args:
      builder: a function; a string is returned as it is.

    Raises:
      InvalidArgument: no other process could import the function.

    Example:
      >>> from lamaml.learners import er
      >>> name_of(er), name_of(find_learner)
      ('er', 'lamaml._registry:find_learner')
    """
    if isinstance(builder, str):
        return builder
    for table in _TABLES.values():
        for name, known in table.items():
            if known is builder:
                return name
    module = getattr(builder, "__module__", None)
    function = getattr(builder, "__qualname__", "")
    if module == "__main__" or _attribute(sys.modules.get(module or ""), function) is not builder:
        message = f"{builder!r} must be a function of a module, so that other processes can import"
        raise InvalidArgument(f"{message} it: not a local function or lambda, nor in __main__")
    return f"{module}:{function}"


def entry_point_names(kind: str) -> dict[str, str]:
    """Returns the names that other packages add, each with its "module:function".

    Args:
      kind: "learner", "stream" or "model".
    """
    return {name: entry.value for name, entry in _entry_points(kind).items()}


def _find(kind: str, given: str | Callable[..., Made]) -> Callable[..., Made]:
    if not isinstance(given, str):
        require(callable(given), kind, given, 'a name, "module:function" or a function')
        return given
    table = _TABLES[kind]
    added = _entry_points(kind)
    if given in table:
        return table[given]
    if given in added:
        return _imported(f"{kind} {given!r} (an entry point)", added[given].value)
    if ":" in given:
        return _imported(f"{kind} {given!r}", given)
    raise unknown_name(kind, given, [*table, *added])


@cache
def _entry_points(kind: str) -> dict[str, EntryPoint]:
    """Returns the entry points of other packages by name; those that clash are left out."""
    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=f"lamaml.{kind}s"):
        taken = "lamaml" if entry.name in _TABLES[kind] else None
        if entry.name in found and found[entry.name].value != entry.value:
            taken = found[entry.name].value
        if taken:
            message = f"the {kind} {entry.name!r} of {taken} is used, not that of {entry.value}"
            warnings.warn(f"two packages share a name: {message}", stacklevel=2)
        else:
            found.setdefault(entry.name, entry)
    return found


def _imported(what: str, reference: str) -> Callable[..., Any]:
    """Returns the function that "module:function" names."""
    module_name, _, function = (part.strip() for part in reference.partition(":"))
    require(bool(module_name and function), what, reference, "module:function")
    try:
        module = import_module(module_name)
    except (ImportError, SyntaxError, TypeError) as error:  # TypeError: a relative name
        message = f"{what}: the module {module_name!r} cannot be imported: {error}"
        raise InvalidArgument(message) from error
    builder = _attribute(module, function)
    if builder is None:
        names = [name for name, value in vars(module).items() if callable(value)]
        raise unknown_name(f"function of {module_name}", function, names)
    require(callable(builder), what, builder, "a function")
    return builder


def _attribute(module: Any, dotted: str) -> Any:
    found = module
    for part in dotted.split("."):
        found = getattr(found, part, None)
    return found
