"""Beyond the paper: our successor beside La-MAML and its rivals, on the paper's seven columns.

Every method sees each row as often and remembers as many rows. DER++ and the successor keep logits
with each row; a row "equal bytes" has as many rows fewer as these logits take room.
"""

from typing import Any

from lamaml.experiments.recipes import load as recipes
from lamaml.experiments.reproduction.cells import Cell, cell
from lamaml.experiments.reproduction.scales import Scale

SUCCESSOR = "Dark La-MAML"
EQUAL_BYTES = ", equal bytes"
GLANCES = (1, 2, 3, 5, 10)
DARK_WEIGHTS = (0.03, 0.1, 0.3, 1.0, 3.0)
VALIDATION_SEEDS = range(7, 10)  # settings are chosen on other seeds than results are reported on

_METHODS = (
    ("ER", "er", "tuned"),
    ("ER-ACE", "er_ace", None),
    ("DER++", "der", None),
    ("MER", "mer", None),
    ("La-MAML", "la_maml", None),
    ("La-MAML, tuned", "la_maml", "tuned"),
    (SUCCESSOR, "dark_la_maml", None),
)
"""(row, learner, preset) of each; None for the preset that reproduces the paper's table."""
_KEEP_LOGITS = ("der", "dark_la_maml")
_MNIST = {
    "Rotations": "mnist_rotations",
    "Permutations": "mnist_permutations",
    "Many": "mnist_many_permutations",
}
_COLUMNS = {
    **{column: (benchmark, "single") for column, benchmark in _MNIST.items()},
    "CIFAR-100, single": ("cifar100", "single"),
    "CIFAR-100, multiple": ("cifar100", "multiple"),
    "TinyImagenet, single": ("tiny_imagenet", "single"),
    "TinyImagenet, multiple": ("tiny_imagenet", "multiple"),
}
_SHAPES = {
    **dict.fromkeys(_MNIST.values(), (28 * 28, 10)),
    "cifar100": (32 * 32 * 3, 100),
    "tiny_imagenet": (64 * 64 * 3, 200),
}
"""Numbers per row, and outputs, of each benchmark."""


def beyond(scale: Scale) -> list[Cell]:
    """The methods on every column, those that keep logits a second time at equal bytes."""
    found = []
    for column in _COLUMNS:
        for row, learner, preset in _METHODS:
            if not _has(column, learner, preset):
                continue
            one = _cell(scale, row, column, learner, preset=preset)
            found.append(one)
            if learner in _KEEP_LOGITS:
                rows = rows_at_equal_bytes(_COLUMNS[column][0], one.recipe.settings["memory_size"])
                changed = {"memory_size": rows}
                found.append(_cell(scale, row + EQUAL_BYTES, column, learner, changed=changed))
    return found


def cost(scale: Scale) -> list[Cell]:
    """Four methods on two columns, with more and more glances at each batch."""
    shown = [method for method in _METHODS if method[0] in ("ER", "DER++", "La-MAML", SUCCESSOR)]
    return [
        _cell(scale, row, column, learner, preset=preset, changed={"glances": glances})
        for column in ("Rotations", "Permutations")
        for row, learner, preset in shown
        for glances in GLANCES
    ]


def dark_weights(scale: Scale) -> list[Cell]:
    """The successor with other values of λ, on validation rows."""
    return [
        _cell(
            scale,
            SUCCESSOR,
            column,
            "dark_la_maml",
            changed={"dark_weight": weight},
            validation_seeds=VALIDATION_SEEDS,
        )
        for column in _MNIST
        for weight in DARK_WEIGHTS
    ]


def rows_at_equal_bytes(benchmark: str, memory_size: int) -> int:
    """The rows with logits that need no more memory than `memory_size` rows without.

    A row has its numbers, a label and a task, 4 bytes each. Each logit needs 5: whether its output
    competed is kept with it.

    >>> rows_at_equal_bytes("mnist_rotations", 200)
    196
    """
    numbers, outputs = _SHAPES[benchmark]
    row = 4 * (numbers + 2)
    return memory_size * row // (row + 5 * outputs)


def _has(column: str, learner: str, preset: str | None) -> bool:
    """Whether there is a recipe; ER on images has its published settings only."""
    benchmark, protocol = _COLUMNS[column]
    if (protocol, learner) not in recipes.cells(benchmark):
        return False
    known = recipes.presets(benchmark, protocol, learner)
    return preset is None or preset in known or learner == "er"


def _cell(
    scale: Scale, row: str, column: str, learner: str, *, preset: str | None = None, **options: Any
) -> Cell:
    benchmark, protocol = _COLUMNS[column]
    if preset not in recipes.presets(benchmark, protocol, learner):
        preset = None
    return cell(scale, row, column, benchmark, learner, protocol=protocol, preset=preset, **options)
