"""Golden trajectories: a few updates of every learner, as stored in `golden/LEARNER.json`.

    python tests/learners/golden.py [LEARNER ...]

writes them anew. Numbers are compared to rounding on every machine and, where one with the same
processor, versions and compiler flags has stored its digest before, to the bit.
"""

import functools
import hashlib
import inspect
import json
import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
from sklearn.datasets import load_digits

from lamaml.learners import LEARNERS, RESULTS_VERSIONS
from lamaml.models import cnn, cross_entropy, mlp, task_heads
from lamaml.streams import arrays, digits_rotations
from lamaml.streams.transforms import CropFlip, Standardise
from lamaml.training import Schedule, train
from lamaml.types import Model, Stream

FOLDER = Path(__file__).parent / "golden"
MEMORY = {"memory_size": 30}
META = {**MEMORY, "inner_steps": 5, "first_order": True}
SETTINGS: dict[str, dict[str, Any]] = {
    "online": {"learning_rate": 0.1},
    "er": {"learning_rate": 0.1, **MEMORY},
    "c_maml": {"inner_rate": 0.1, "outer_rate": 0.1, **META},
    "sync_la_maml": {"initial_rate": 0.1, "outer_rate": 0.1, "hyper_rate": 0.1, **META},
    "la_er": {"initial_rate": 0.1, "hyper_rate": 0.1, "inner_steps": 5, **MEMORY},
    "la_maml": {"initial_rate": 0.1, "hyper_rate": 0.1, **META},
    "dark_la_maml": {"initial_rate": 0.1, "hyper_rate": 0.1, **META},
    "der": {"learning_rate": 0.1, **MEMORY},
    "er_ace": {"learning_rate": 0.1, **MEMORY},
    "fast_and_slow": MEMORY,
    "independent": {"learning_rate": 0.1},
    "ewc": {"learning_rate": 0.1, "penalty": 10.0, "max_norm": 2.0},
    "gem": {"learning_rate": 0.1, **MEMORY},
    "a_gem": {"learning_rate": 0.1, **MEMORY},
    "mer": {"inner_rate": 0.1, "within_rate": 0.1, "num_batches": 2, **MEMORY},
    "mer_single": {"inner_rate": 0.1, "across_rate": 0.1, **MEMORY},
    "icarl": {"learning_rate": 0.1, "task_size": 65, **MEMORY},
    "meta_bgd": {"learning_rate": 50.0, "initial_std": 0.02, "num_monte_carlo": 2, **META},
}
LOOK_AHEAD = ("c_maml", "sync_la_maml", "la_maml", "dark_la_maml", "meta_bgd")
SECOND_ORDER = {"first_order": False, "inner_clamp": 1.0}  # where a learner has such arguments


@functools.cache
def problems() -> dict[str, tuple[Stream, Model, Schedule, dict[str, Any]]]:
    """Stream, network, schedule and changed settings: the MNIST way, and the CIFAR-100 way.

    The MNIST way is followed twice by learners that look ahead: in function space, and unrolled.
    """
    rotations = digits_rotations(seed=0, num_tasks=2, num_samples=65)
    x, y = load_digits(return_X_y=True)
    kept = y < 6
    images = np.repeat(x[kept].reshape(-1, 8, 8, 1) * 15, 3, axis=-1).astype(np.uint8)
    split = arrays(images, y[kept], seed=0, classes_per_task=2, num_tasks=2, num_samples=40)
    split = replace(split, augment=CropFlip(Standardise((0.5,) * 3, (0.25,) * 3), brightness=0.2))
    network = cnn((8, 8, 3), 6, num_convolutions=2, num_filters=6, hidden_sizes=(8,))
    unrolled, model = (
        mlp(64, 10, hidden_sizes=(20, 20), function_space=is_used) for is_used in (False, True)
    )
    return {
        "rotations": (rotations, unrolled, Schedule(10, 1, 2), {}),
        "function_space": (rotations, model, Schedule(10, 1, 2), {}),
        "split": (split, network, Schedule(10, 2, 1), SECOND_ORDER),
    }


def trajectories(name: str, **changes: Any) -> dict[str, Any]:
    """Losses, accuracies and norms of a learner on every problem, a digest of its last state."""
    looks_ahead = name in LOOK_AHEAD
    return {
        problem: _trajectory(name, problem, changes)
        for problem in problems()
        if looks_ahead or problem != "function_space"
    }


def _trajectory(name: str, problem: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    stream, model, schedule, special = problems()[problem]
    heads = task_heads(stream.num_classes, stream.classes_per_task)
    known = {
        "apply": model.apply,
        "num_tasks": len(stream.tasks),
        "num_classes": stream.num_classes,
        "heads": heads,
    }
    asked = inspect.signature(LEARNERS[name]).parameters
    settings = {word: value for word, value in (known | special).items() if word in asked}
    loss = cross_entropy(model, heads)
    learner = LEARNERS[name](loss, **(SETTINGS[name] | settings | changes))
    losses: list[float] = []
    for at in train(stream, model, learner, schedule, seed=0):
        losses += at.infos["loss"].tolist()
    leaves = jax.tree.leaves(at.state)
    arrays = [
        np.asarray(leaf)
        for leaf in leaves
        if not jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    ]
    digest = hashlib.sha256(b"".join(np.ascontiguousarray(leaf).tobytes() for leaf in arrays))
    return {
        "loss": losses,
        "accuracy": np.nan_to_num(at.matrix, nan=-1.0).tolist(),
        "norms": [float(np.linalg.norm(leaf.astype(np.float64))) for leaf in arrays],
        "digest": digest.hexdigest(),
    }


def difference(name: str, found: Mapping[str, Any]) -> str | None:
    """What differs from the stored trajectories, and what to do about it; None if nothing does."""
    stored = json.loads((FOLDER / f"{name}.json").read_text())
    if stored["results_version"] != RESULTS_VERSIONS[name]:
        return (
            f"{name} has another results_version: python {Path(__file__).name} {name} stores anew"
        )
    advice = f"raise {name}'s results_version, or find out why"
    for problem, was in stored["problems"].items():
        now = found[problem]
        for part in ("loss", "accuracy", "norms"):
            if np.shape(was[part]) != np.shape(now[part]) or not np.allclose(
                was[part], now[part], rtol=1e-3, atol=1e-5
            ):
                return f"{name} on {problem}: {part} changed; {advice}"
        bits = was["digests"].get(environment(), now["digest"])
        if bits != now["digest"]:
            return f"{name} on {problem}: the last state is no longer the same bits; {advice}"
    return None


def environment() -> str:
    """What bits depend on besides the code: processor, compiler and its flags."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else [platform.processor()]
    cpu = sorted({line for line in lines if line.startswith(("model name", "flags"))})
    mark = hashlib.sha256("\n".join(cpu).encode()).hexdigest()[:12]
    flags = os.environ.get("XLA_FLAGS", "")
    return (
        f"cpu {mark}, jaxlib {jax.lib.__version__}, {len(os.sched_getaffinity(0))} cores, {flags}"
    )


def store(name: str) -> None:
    """Write the trajectories of this machine; digests of others stay while the numbers do."""
    path, found = FOLDER / f"{name}.json", trajectories(name)
    kept: dict[str, dict[str, str]] = {}
    if path.exists() and difference(name, found) is None:
        kept = {p: was["digests"] for p, was in json.loads(path.read_text())["problems"].items()}
    for problem, now in found.items():
        now["digests"] = kept.get(problem, {}) | {environment(): now.pop("digest")}
    content = {"results_version": RESULTS_VERSIONS[name], "problems": found}
    path.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for wanted in sys.argv[1:] or LEARNERS:
        store(wanted)
