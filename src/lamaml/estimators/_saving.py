"""Saved estimators: one safetensors file with every array, the settings as JSON, and a digest.

Reading a file runs no code: networks and learners from outside the package are passed by the
caller. Writing is atomic.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from lamaml._io import atomic_write
from lamaml._registry import entry_point_names, name_of
from lamaml.errors import DataCorrupt, DataUnavailable, InvalidArgument, Mismatch
from lamaml.estimators._budget import state_shapes
from lamaml.estimators._choice import AUTO
from lamaml.estimators._columns import Encoding
from lamaml.estimators._config import Builder, Config, Network, learner_name
from lamaml.estimators._holdout import Holdout
from lamaml.estimators._labels import Labels
from lamaml.estimators._rows import Offsets
from lamaml.estimators._scaling import Moments
from lamaml.estimators._state import FittedState, LastBatch, make_loss_inputs
from lamaml.learners import LEARNERS
from lamaml.types import Model, State

VERSION = 2
"""Number of the file format: 1 had neither class weights nor an
encoding of columns; it is still read."""
_KIND = "lamaml estimator"
_KEYED = {"class_weight", "columns"}  # parameters that may map labels or names
_COUNTS = ("task", "num_rows", "num_updates", "seed", "is_scaled", "memory_budget")


@dataclass(frozen=True, kw_only=True)
class SavedEstimator:
    """The content of a file."""

    class_name: str
    parameters: Mapping[str, Any]  # of the constructor, without `model`
    feature_names: list[str] | None
    num_bad_rows: int
    seconds: float
    fitted: FittedState


def write_estimator(path: str | Path, saved: SavedEstimator) -> None:
    """Write an estimator to a file, in one atomic step."""
    content = {
        "version": VERSION,
        "class": saved.class_name,
        "parameters": _parameters_to_json(saved.parameters),
        "feature_names": saved.feature_names,
        "num_bad_rows": saved.num_bad_rows,
        "seconds": saved.seconds,
        "fitted": _to_json(saved.fitted),
    }
    tensors = _to_tensors(saved.fitted)
    try:
        text = json.dumps(content, sort_keys=True, allow_nan=False, default=_plain_number)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"a parameter cannot be saved: {error}") from error
    header = {"kind": _KIND, "content": text, "sha256": _digest(text, tensors)}
    with atomic_write(Path(path)) as file:
        file.write(to_bytes(tensors, header))


def read_estimator(
    path: str | Path, model: Network | None, learner: str | Builder | None
) -> SavedEstimator:
    """Return the content of a file, exactly as it was saved.

    Raises:
      DataUnavailable: there is no such file.
      DataCorrupt: it is truncated, altered, or of another kind or format.
      InvalidArgument: it needs the `model` or the `learner` that it was saved with.
      Mismatch: its arrays do not fit the model or the learner.
    """
    if not Path(path).is_file():
        raise DataUnavailable(f"{path}: no such file")
    try:
        with safe_open(path, framework="numpy") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise DataCorrupt(f"{path}: not a complete safetensors file ({error})") from error
    if header.get("kind") != _KIND:
        raise DataCorrupt(f"{path}: not a file that an estimator's save() wrote")
    if header.get("sha256") != _digest(header.get("content", ""), tensors):
        raise DataCorrupt(f"{path}: the content does not match its SHA-256 digest")
    content = json.loads(header["content"])
    if content["version"] not in range(1, VERSION + 1):
        raise DataCorrupt(f"{path}: format {content['version']}, expected format {VERSION}")
    parameters, facts = content["parameters"], content["fitted"]
    for stored in (parameters, facts["config"]):
        stored["learner"] = _known_or_given(stored["learner"], learner)
    return SavedEstimator(
        class_name=content["class"],
        parameters=_parameters_from_json(parameters),
        feature_names=content["feature_names"],
        num_bad_rows=content["num_bad_rows"],
        seconds=content["seconds"],
        fitted=_to_fitted(facts, tensors, model),
    )


def _parameters_to_json(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters with the learner's name; JSON would turn all keys into strings."""
    stored = dict(parameters) | {"learner": _stored(parameters["learner"])}
    for name in _KEYED & stored.keys():
        if isinstance(stored[name], Mapping):
            stored[name] = [[key, value] for key, value in stored[name].items()]
    return stored


def _parameters_from_json(stored: dict[str, Any]) -> dict[str, Any]:
    parameters = stored | {"hidden_sizes": tuple(stored["hidden_sizes"])}
    for name in _KEYED & stored.keys():
        if isinstance(stored[name], list):
            parameters[name] = dict(stored[name])
    return parameters


def _stored(learner: str | Builder) -> str:
    """Return the name under which a learner is stored."""
    try:
        return name_of(learner)
    except InvalidArgument:  # a local function: the caller of load has it
        return f"a function named {learner_name(learner)}"


def _known_or_given(name: str, learner: str | Builder | None) -> str | Builder:
    """Return the learner: by name if it is installed, else the one given. Nothing is imported."""
    if learner is not None:
        return learner
    if name == AUTO or name in LEARNERS or name in entry_point_names("learner"):
        return name
    raise InvalidArgument(
        f"this file was saved with the learner {name!r}, which is not installed by name: pass it "
        "as learner="
    )


def _to_json(fitted: FittedState) -> dict[str, Any]:
    """Return everything in the state that is not an array."""
    config = {part.name: getattr(fitted.config, part.name) for part in fields(fitted.config)}
    network = fitted.config.network
    is_given = isinstance(network, Model) or callable(network)
    config |= {"network": None if is_given else network, "learner": _stored(fitted.config.learner)}
    classes = fitted.labels.classes
    return {name: getattr(fitted, name) for name in _COUNTS} | {
        "config": config,
        "classes": {"values": classes.tolist(), "dtype": classes.dtype.str},
        "tasks": list(fitted.labels.tasks),
        "num_input_rows": fitted.input_moments.num_rows,
        "num_target_rows": fitted.target_moments.num_rows,
        "num_held_out": fitted.holdout.num_seen,
        "last_batch_task": fitted.last_batch.task,
        "columns": None if fitted.encoding is None else fitted.encoding.kinds,
    }


def _to_tensors(fitted: FittedState) -> dict[str, np.ndarray]:
    named, _ = jax.tree.flatten_with_path(fitted.learner_state)
    tensors = {f"state{jax.tree_util.keystr(path)}": leaf for path, leaf in named}
    groups = {
        "inputs": fitted.input_moments._asdict(),
        "targets": fitted.target_moments._asdict(),
        "holdout": fitted.holdout._asdict(),
        "last_batch": fitted.last_batch._asdict(),
        "offsets": fitted.offsets._asdict(),
        "encoding": {} if fitted.encoding is None else fitted.encoding._asdict(),
        "labels": {
            name: value for name, value in fitted.labels._asdict().items() if name != "classes"
        },
    }
    tensors |= {
        f"{group}.{name}": value
        for group, values in groups.items()
        for name, value in values.items()
        if isinstance(value, np.ndarray)
    }
    return {name: np.asarray(tensor, order="C") for name, tensor in tensors.items()}


def _to_fitted(
    facts: dict[str, Any], tensors: dict[str, np.ndarray], model: Network | None
) -> FittedState:
    stored = facts["config"]
    network = stored["network"]
    if network is None and model is None:
        raise InvalidArgument("this file was saved with a model of its own: pass it as model=")
    stored |= {
        "network": tuple(network) if network is not None else model,
        "settings": tuple((name, value) for name, value in stored["settings"]),
        "input_shape": tuple(stored["input_shape"]),
    }
    config = Config(**stored)

    def group(name: str) -> dict[str, Any]:
        start = f"{name}."
        return {key[len(start) :]: tensors[key] for key in tensors if key.startswith(start)}

    classes = np.array(facts["classes"]["values"], facts["classes"]["dtype"])
    counts = {"num_rows": np.zeros(len(classes), int), "class_weight": np.ones(len(classes))}
    labels = Labels(classes=classes, tasks=tuple(facts["tasks"]), **(counts | group("labels")))
    inputs = Moments(num_rows=facts["num_input_rows"], **group("inputs"))
    targets = Moments(num_rows=facts["num_target_rows"], **group("targets"))
    kinds = facts.get("columns")
    return FittedState(
        config=config,
        learner_state=_to_learner_state(state_shapes(config), tensors),
        labels=labels,
        input_moments=inputs,
        target_moments=targets,
        loss_inputs=make_loss_inputs(config, labels, inputs, targets),
        holdout=Holdout(num_seen=facts["num_held_out"], **group("holdout")),
        last_batch=LastBatch(task=facts["last_batch_task"], **group("last_batch")),
        offsets=Offsets(**group("offsets")),
        encoding=Encoding(tuple(kinds), **group("encoding")) if kinds else None,
        **{name: facts[name] for name in _COUNTS},
    )


def _to_learner_state(shapes: State, tensors: dict[str, np.ndarray]) -> State:
    """Return the tensors as a learner's state; raise Mismatch if one has another shape."""
    named, structure = jax.tree.flatten_with_path(shapes)
    expected = {f"state{jax.tree_util.keystr(path)}": leaf.shape for path, leaf in named}
    found = {name: tensors[name].shape for name in tensors if name.startswith("state")}
    for name in sorted(expected.keys() | found.keys()):
        if found.get(name) != expected.get(name):
            raise Mismatch(
                f"{name} has shape {found.get(name)} in the file and {expected.get(name)} in the "
                "model: load it with the model it was saved with"
            )
    return jax.tree.unflatten(structure, [tensors[name] for name in expected])


def _plain_number(value: Any) -> Any:
    """Return a NumPy number as a Python number."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} is not a number, a string or a list of them")


def _digest(text: str, tensors: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256(text.encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype.str} {tensor.shape}".encode())
        digest.update(tensor.tobytes())
    return digest.hexdigest()
