"""Small services and streams that the tests share."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from lamaml import LaMAMLClassifier, LaMAMLRegressor
from lamaml.serving import Service, Settings

PARAMETERS: dict[str, Any] = {"learner": "er", "hidden_sizes": (8,), "memory_size": 50}
DIGITS = load_digits(return_X_y=True)


def classifier(**changes: Any) -> LaMAMLClassifier:
    return LaMAMLClassifier(**PARAMETERS | changes)


def regressor() -> LaMAMLRegressor:
    return LaMAMLRegressor(**PARAMETERS)


def rows(start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns rows of two columns; their class is the sign of the first one."""
    x = np.random.default_rng(0).normal(size=(stop, 2))[start:].round(3)
    return x, np.where(x[:, 0] > 0, "up", "down")


def service(folder: Path, estimator: Any = None, **settings: Any) -> Service:
    chosen = {"batch_delay": 0.0, "snapshot_seconds": 3600.0} | settings
    return Service(folder, estimator or classifier(), Settings(**chosen))


def learned(opened: Service, *batches: tuple[Any, Any]) -> Service:
    """Has a service learn rows, one batch after the other."""
    for x, y in batches:
        assert opened.wait(opened.learn(x, y), timeout=60)
    return opened


def query(folder: Path, text: str) -> list[tuple[Any, ...]]:
    """Returns what a query finds in the journal of a service that is closed or killed."""
    connection = sqlite3.connect(folder / "journal.db", isolation_level=None)
    try:
        return connection.execute(text).fetchall()
    finally:
        connection.close()


def same_model(one: Any, other: Any, folder: Path) -> bool:
    """Returns whether two models have the same bits, but for the time spent."""
    from safetensors import safe_open

    found = []
    for name, model in (("one", one), ("other", other)):
        model.save(folder / name)
        with safe_open(folder / name, framework="numpy") as file:
            content = json.loads(file.metadata()["content"])
            tensors = {key: file.get_tensor(key).tobytes() for key in file.keys()}  # noqa: SIM118
        content.pop("seconds")
        found.append((content, tensors))
    return found[0] == found[1]
