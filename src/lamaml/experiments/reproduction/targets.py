"""The tables and figures of the paper, and ours beyond it, as lists of cells."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from lamaml.errors import unknown_name
from lamaml.experiments.recipes import load as recipes
from lamaml.experiments.reproduction import beyond
from lamaml.experiments.reproduction.cells import Cell, cell
from lamaml.experiments.reproduction.scales import Scale


class Target(NamedTuple):
    """A table or a figure.

    Attributes:
      name: its name on the command line.
      title: what it shows.
      cells: returns its cells at a scale.
      of_paper: whether the paper has it.
    """

    name: str
    title: str
    cells: Callable[[Scale], list[Cell]]
    of_paper: bool = True


METHODS = {
    "iid": "IID",
    "online": "Online",
    "ewc": "EWC",
    "er": "ER",
    "icarl": "iCaRL",
    "gem": "GEM",
    "a_gem": "A-GEM",
    "mer": "MER",
    "meta_bgd": "Meta-BGD",
    "c_maml": "C-MAML",
    "la_er": "La-ER",
    "sync_la_maml": "Sync",
    "la_maml": "La-MAML",
}
MNIST = {
    "Rotations": "mnist_rotations",
    "Permutations": "mnist_permutations",
    "Many": "mnist_many_permutations",
}
IMAGES = {"CIFAR-100": "cifar100", "TinyImagenet": "tiny_imagenet"}
SPLITS: Mapping[str, tuple[str, Mapping[str, int]]] = {
    "Split MNIST": ("split_mnist", {}),
    "Split CIFAR-100": ("split_cifar100", {"glances": 1}),
}
"""Benchmark of each column of `class-incremental`, and what is less than in its recipe."""
RATES = {
    "c_maml": {"α": "inner_rate", "β": "outer_rate"},
    "sync_la_maml": {"α₀": "initial_rate", "η": "hyper_rate", "β": "outer_rate"},
    "la_maml": {"α₀": "initial_rate", "η": "hyper_rate"},
}
"""The learning rates that the robustness figures vary, by learner and symbol."""

_TABLE1 = ("online", "ewc", "gem", "mer", "c_maml", "sync_la_maml", "la_maml")
_TABLE3 = (
    *("er", "icarl", "gem", "a_gem", "mer", "meta_bgd"),
    *("c_maml", "la_er", "sync_la_maml", "la_maml"),
)


def _table1(scale: Scale) -> list[Cell]:
    return [
        cell(scale, METHODS[learner], column, benchmark, learner)
        for column, benchmark in MNIST.items()
        for learner in _TABLE1
    ]


def _table2(scale: Scale) -> list[Cell]:
    return [
        cell(scale, METHODS[learner], column, MNIST[column], learner)
        for column in ("Rotations", "Permutations")
        for learner in ("la_maml", "mer")
    ]


def _table3(scale: Scale) -> list[Cell]:
    found = []
    for data, benchmark in IMAGES.items():
        for protocol in ("multiple", "single"):
            column = f"{data}, {protocol}"
            if protocol == "multiple":
                joint = (f"joint_{benchmark}", "online")
                found.append(cell(scale, "IID", column, *joint, protocol=protocol))
            known = recipes.cells(benchmark)
            found += [
                cell(scale, METHODS[learner], column, benchmark, learner, protocol=protocol)
                for learner in _TABLE3
                if (protocol, learner) in known
            ]
    return found


def _table4(scale: Scale) -> list[Cell]:
    return [
        cell(scale, METHODS[learner], data, benchmark, learner, probes=["alignment"])
        for data, benchmark in IMAGES.items()
        for learner in ("er", "c_maml", "sync_la_maml", "la_maml")
    ]


def _look_ahead(scale: Scale) -> list[Cell]:
    return [cell(scale, "La-MAML", "CIFAR-100", "cifar100", "la_maml", probes=["look_ahead"])]


def _inter_task(scale: Scale) -> list[Cell]:
    return [
        cell(scale, METHODS[learner], "CIFAR-100", "cifar100", learner, probes=["inter_task"])
        for learner in ("c_maml", "la_maml")
    ]


def _robustness(scale: Scale) -> list[Cell]:
    return [
        _varied(scale, learner, {name: value}, f"{symbol} = {value:g}")
        for learner, rates in RATES.items()
        for symbol, name in rates.items()
        for value in scale.rates
    ]


def _robustness_grid(scale: Scale) -> list[Cell]:
    found = []
    for learner in ("c_maml", "la_maml"):
        (first, one), (second, other) = RATES[learner].items()
        found += [
            _varied(scale, learner, {one: a, other: b}, f"{first} = {a:g}, {second} = {b:g}")
            for a in scale.rates
            for b in scale.rates
        ]
    return found


def _time(scale: Scale) -> list[Cell]:
    return [
        cell(
            scale, METHODS[learner], "CIFAR-100, multiple", "cifar100", learner, protocol="multiple"
        )
        for learner in ("er", "icarl", "gem", "a_gem", "la_maml")
    ]


def _class_incremental(scale: Scale) -> list[Cell]:
    return [
        cell(scale, row, column, benchmark, learner, changed={"scenario": "class", **fewer})
        for column, (benchmark, fewer) in SPLITS.items()
        for row, learner in (
            ("ER", "er"),
            ("DER++", "der"),
            ("La-MAML", "la_maml"),
            (beyond.SUCCESSOR, "dark_la_maml"),
        )
    ]


def _varied(scale: Scale, learner: str, rates: Mapping[str, float], column: str) -> Cell:
    return cell(scale, METHODS[learner], column, "cifar100", learner, changed=rates)


TARGETS = {
    target.name: target
    for target in (
        Target("table1", "RA and BTI on the MNIST benchmarks", _table1),
        Target("table2", "Running times of La-MAML and MER", _table2),
        Target("table3", "RA and BTI on CIFAR-100 and TinyImagenet", _table3),
        Target("table4", "Alignment of new and replayed gradients", _table4),
        Target("figure-lookahead", "RA during inner updates and after meta-updates", _look_ahead),
        Target("figure-intertask", "Alignment among old tasks as tasks are added", _inter_task),
        Target("figure-robustness", "RA against one learning rate", _robustness),
        Target("figure-robustness-grid", "RA against two learning rates", _robustness_grid),
        Target("figure-time", "RA against wall-clock time", _time),
        Target("beyond", "Beyond the paper: the successor and its rivals", beyond.beyond, False),
        Target(
            "class-incremental",
            "Class-incremental: split MNIST and split CIFAR-100",
            _class_incremental,
            False,
        ),
        Target("figure-cost", "RA against the cost of more glances", beyond.cost, False),
        Target(
            "figure-dark-weight",
            "RA of the successor on validation rows against λ",
            beyond.dark_weights,
            False,
        ),
    )
}


def targets_named(names: list[str]) -> list[Target]:
    """Returns targets by name, in the paper's order; "all" stands for every one of the paper."""
    for name in names:
        if name not in ("all", *TARGETS):
            raise unknown_name("table or figure", name, ("all", *TARGETS))
    return [
        target
        for name, target in TARGETS.items()
        if name in names or ("all" in names and target.of_paper)
    ]
