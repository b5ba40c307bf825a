"""One file for an estimator: every array exact, every setting as JSON, a digest over both.

The format is safetensors, so reading a file never runs code. A file takes its name once all of it
is on the disk: whoever dies on the way leaves the old one.
"""

import hashlib
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from lamaml._io import atomic_write
from lamaml.errors import DataCorrupt, DataUnavailable, InvalidArgument, Mismatch
from lamaml.estimators._budget import shape_of
from lamaml.estimators._config import Design, Network
from lamaml.estimators._holdout import HeldOut
from lamaml.estimators._labels import Labels
from lamaml.estimators._rows import Origins, Rows
from lamaml.estimators._scaling import Moments
from lamaml.estimators._state import Learned, view_of
from lamaml.types import Model, State

VERSION = 2
"""Of the format; a reader refuses versions it does not know."""
_KIND = "lamaml estimator"


def write(path: str | Path, settings: dict[str, Any], learned: Learned) -> None:
    """Save what was learned, with the settings and counts of its estimator, in one atomic step."""
    tensors = _tensors(learned)
    content = {"version": VERSION, "settings": settings, "learned": _facts(learned)}
    try:
        text = json.dumps(content, sort_keys=True, allow_nan=False, default=_number)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"a setting cannot be saved: {error}") from error
    header = {"kind": _KIND, "content": text, "sha256": _digest(text, tensors)}
    with atomic_write(Path(path)) as file:
        file.write(to_bytes(tensors, header))


def read(path: str | Path, model: Network | None) -> tuple[dict[str, Any], Learned]:
    """The settings and what was learned, exactly as they were saved.

    Raises:
      DataUnavailable: there is no such file.
      DataCorrupt: it is truncated, altered, of another kind or of a later version.
      Mismatch: its weights are not those of the model.
    """
    if not Path(path).is_file():
        raise DataUnavailable(f"{path}: no such file")
    try:
        with safe_open(path, framework="numpy") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise DataCorrupt(f"{path}: not a whole safetensors file ({error})") from error
    if header.get("kind") != _KIND:
        raise DataCorrupt(f"{path}: not a file that an estimator's save() wrote")
    if header.get("sha256") != _digest(header.get("content", ""), tensors):
        raise DataCorrupt(f"{path}: its content is not what was written")
    content = json.loads(header["content"])
    if content["version"] > VERSION:
        raise DataCorrupt(f"{path}: format {content['version']}, this lamaml reads up to {VERSION}")
    return content["settings"], _learned(content["learned"], tensors, model)


def _facts(learned: Learned) -> dict[str, Any]:
    """All of it that is not an array."""
    design = {part.name: getattr(learned.design, part.name) for part in fields(learned.design)}
    network = learned.design.network
    is_own = isinstance(network, Model) or callable(network)
    classes = learned.labels.classes
    return {
        "design": design | {"network": None if is_own else network},
        "classes": {"values": classes.tolist(), "dtype": classes.dtype.str},
        "tasks": list(learned.labels.tasks),
        "num_rows": {
            "inputs": learned.inputs.num_rows,
            "targets": learned.targets.num_rows,
            "held_out": learned.held_out.num_seen,
            "all": learned.num_rows,
        },
        "num_updates": learned.num_updates,
        "task": learned.task,
        "last_task": learned.last_task,
        "seed": learned.seed,
        "is_scaled": learned.is_scaled,
        "memory_budget": learned.memory_budget,
    }


def _tensors(learned: Learned) -> dict[str, np.ndarray]:
    named, _ = jax.tree.flatten_with_path(learned.state)
    tensors = {f"state{jax.tree_util.keystr(path)}": leaf for path, leaf in named}
    tensors |= {f"inputs.{name}": getattr(learned.inputs, name) for name in ("mean", "scatter")}
    tensors |= {f"targets.{name}": getattr(learned.targets, name) for name in ("mean", "scatter")}
    tensors |= {
        f"held_out.{name}": getattr(learned.held_out, name) for name in HeldOut._fields[:-1]
    }
    tensors |= {f"last.{name}": getattr(learned.last, name) for name in Rows._fields}
    tensors |= {
        f"origins.{name}": origin
        for name, origin in learned.origins._asdict().items()
        if origin is not None
    }
    tensors |= {"labels.outputs": learned.labels.outputs, "labels.heads": learned.labels.heads}
    return {name: np.asarray(tensor, order="C") for name, tensor in tensors.items()}


def _learned(facts: dict[str, Any], tensors: dict[str, np.ndarray], model: Any) -> Learned:
    stored = facts["design"]
    network = stored["network"]
    if network is None and model is None:
        raise InvalidArgument("this file was saved with a model of its own: pass it as model=")
    stored |= {
        "network": tuple(network) if network is not None else model,
        "settings": tuple((name, value) for name, value in stored["settings"]),
        "input_shape": tuple(stored["input_shape"]),
    }
    design = Design(**stored)
    counts, classes = facts["num_rows"], facts["classes"]
    labels = Labels(
        np.array(classes["values"], classes["dtype"]),
        tensors["labels.outputs"],
        tuple(facts["tasks"]),
        tensors["labels.heads"],
    )
    inputs, targets = (
        Moments(counts[name], tensors[f"{name}.mean"], tensors[f"{name}.scatter"])
        for name in ("inputs", "targets")
    )
    aside = {name: tensors[f"held_out.{name}"] for name in HeldOut._fields[:-1]}
    return Learned(
        design,
        _state(shape_of(design), tensors),
        labels,
        inputs,
        targets,
        HeldOut(**aside, num_seen=counts["held_out"]),
        view_of(design, labels, inputs, targets),
        Rows(*(tensors[f"last.{name}"] for name in Rows._fields)),
        Origins(*(tensors.get(f"origins.{name}") for name in Origins._fields)),
        facts["seed"],
        facts["is_scaled"],
        facts["memory_budget"],
        facts["task"],
        counts["all"],
        facts["num_updates"],
        facts.get("last_task", facts["task"]),  # an earlier lamaml did not tell
    )


def _state(like: State, tensors: dict[str, np.ndarray]) -> State:
    """The tensors of a state, each in its place and of its shape."""
    named, structure = jax.tree.flatten_with_path(like)
    wanted = {f"state{jax.tree_util.keystr(path)}": leaf for path, leaf in named}
    there = {name for name in tensors if name.startswith("state")}
    for name in sorted(wanted.keys() | there):
        # A file of an earlier lamaml has numbers that stand alone in rows of one.
        found = tensors[name].shape if name in there else None
        expected = wanted[name].shape if name in wanted else None
        if found != expected and (found, expected) != ((1,), ()):
            raise Mismatch(
                f"{name} has shape {found} in the file and {expected} in the model: load it with "
                "the model it was saved with"
            )
    leaves = [tensors[name].reshape(leaf.shape) for name, leaf in wanted.items()]
    return jax.tree.unflatten(structure, leaves)


def _number(value: Any) -> Any:
    """A setting that NumPy made, as Python's own."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} is not a number, a text or a list of them")


def _digest(text: str, tensors: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256(text.encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype.str} {tensor.shape}".encode())
        digest.update(tensor.tobytes())
    return digest.hexdigest()
