"""Generated streams whose concepts change: river's generators, and two linear concepts."""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice, pairwise
from typing import Any

import numpy as np

from lamaml.errors import DataUnavailable
from lamaml.panel.rows import LabelledRows


def sea(seed: int, num_rows: int) -> LabelledRows:
    """Three numbers, two of which are added and compared with one of four thresholds."""
    return _concepts(
        [_synth("SEA", variant=variant, noise=0.1, seed=seed + variant) for variant in range(4)],
        num_rows,
    )


def agrawal(seed: int, num_rows: int) -> LabelledRows:
    """Loan applications judged by four rules, one after the other."""
    rules = [
        _synth("Agrawal", classification_function=rule, perturbation=0.05, seed=seed + rule)
        for rule in (0, 3, 6, 9)
    ]
    return _concepts(rules, num_rows)


def stagger(seed: int, num_rows: int) -> LabelledRows:
    """Size, colour and shape under three rules that return: A B C A B C A B C."""
    rules = [
        _synth("STAGGER", classification_function=number % 3, seed=seed + number)
        for number in range(9)
    ]
    return _concepts(rules, num_rows)


def hyperplane(seed: int, num_rows: int) -> LabelledRows:
    """Ten numbers on either side of a plane that turns slowly."""
    plane = _synth(
        "Hyperplane", seed=seed, n_features=10, n_drift_features=5, mag_change=0.001, sigma=0.1
    )
    return _concepts([plane], num_rows)


def rbf_drift(seed: int, num_rows: int) -> LabelledRows:
    """Fifty clouds of four classes, all of which move."""
    clouds = _synth(
        "RandomRBFDrift",
        seed_model=seed,
        seed_sample=seed + 1,
        n_classes=4,
        n_features=10,
        n_centroids=50,
        change_speed=0.001,
        n_drift_centroids=50,
    )
    return _concepts([clouds], num_rows)


def led_drift(seed: int, num_rows: int) -> LabelledRows:
    """Seven-segment digits with a tenth of the segments wrong; their places change three times."""
    displays = [
        _synth(
            "LEDDrift",
            seed=seed + number,
            noise_percentage=0.1,
            irrelevant_features=True,
            n_drift_features=number * 2,
        )
        for number in range(4)
    ]
    return _concepts(displays, num_rows)


def reversal(seed: int, num_rows: int) -> LabelledRows:
    """Points above a sine curve are 1, then 0: every label is turned round, twice."""
    curves = [
        _synth("Sine", classification_function=function, seed=seed + number)
        for number, function in enumerate((0, 1, 0))
    ]
    return _concepts(curves, num_rows)


def linear_concepts(seed: int, num_rows: int) -> LabelledRows:
    """Ten normal numbers on either side of a plane, then of another that contradicts it.

    The cosine of the two planes' normals is −0.8: four in five labels change.
    """
    rng = np.random.default_rng([seed, 2])
    x = rng.standard_normal((num_rows, 10)).astype(np.float32)
    first, other = np.linalg.qr(rng.standard_normal((10, 2)))[0].T
    second = -0.8 * first + 0.6 * other
    half = num_rows // 2
    y = np.concatenate([x[:half] @ first, x[half:] @ second]) > 0
    return LabelledRows(x, y.astype(int), drifts=(half,))


def friedman_drift(seed: int, num_rows: int) -> LabelledRows:
    """Friedman's function of ten numbers, half of which exchange their roles twice."""
    places = (num_rows // 3, 2 * num_rows // 3)
    rows = _synth("FriedmanDrift", drift_type="gra", position=places, seed=seed)
    return _concepts([rows], num_rows)._replace(drifts=places)


def _concepts(parts: Sequence[Iterable[tuple[dict[Any, Any], Any]]], num_rows: int) -> LabelledRows:
    """Return rows of each part in turn, the same number of each."""
    edges = np.linspace(0, num_rows, len(parts) + 1).astype(int).tolist()
    xs, ys = [], []
    for part, (start, stop) in zip(parts, pairwise(edges), strict=True):
        for x, y in islice(iter(part), stop - start):
            xs.append(list(x.values()))
            ys.append(y)
    y = np.array(ys)
    y = y if y.dtype.kind == "f" else y.astype(int)
    return LabelledRows(np.array(xs, np.float32), y, drifts=tuple(edges[1:-1]))


def _synth(name: str, **settings: Any) -> Any:
    try:
        from river.datasets import synth
    except ImportError as error:
        advice = "install the packages of the panel: pip install 'lamaml[panel]'"
        raise DataUnavailable(f"river is not installed: {advice}") from error
    return getattr(synth, name)(**settings)


Maker = Callable[[int, int], LabelledRows]
"""(seed, number of rows) -> rows."""
