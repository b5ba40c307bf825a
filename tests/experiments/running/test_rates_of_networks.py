"""Learned rates are written per layer, whatever the kind of pytree that a network has."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import equinox
import jax
import numpy as np
import pytest

from lamaml.experiments.running.seed import write_rates
from lamaml.models import from_equinox

LAYERS = {"b": {"weight": np.full((2, 3), 0.1), "bias": np.full(2, -0.1)}, "a": np.full(4, 0.2)}


@pytest.mark.parametrize(
    ("rates", "sizes"),
    [
        (LAYERS, {"b": 8, "a": 4}),
        ([np.ones(2), np.ones((3, 2))], {"0": 2, "1": 6}),  # of keras
    ],
)
def test_rates_are_counted_per_layer(rates: Any, sizes: dict[str, int], tmp_path: Path) -> None:
    assert counted(rates, tmp_path) == sizes


def test_rates_of_an_equinox_module(tmp_path: Path) -> None:
    network = equinox.nn.MLP(4, 3, 8, 1, key=jax.random.key(0))
    params = from_equinox(network).init(jax.random.key(0))
    assert counted(params, tmp_path) == {"layers": 4 * 8 + 8 + 8 * 3 + 3}


def counted(rates: Any, folder: Path) -> dict[str, int]:
    write_rates(folder, SimpleNamespace(state=SimpleNamespace(rates=rates), task=1))
    layers = json.loads((folder / "rates/task-1.json").read_text())
    return {name: sum(layer["counts"]) for name, layer in layers.items()}
