"""What there is to run, read from the files themselves: no module of it is imported.

A recipe file's first comment says what its benchmark is; a learner is what `learners/__init__.py`
imports from the file of that name, whose first docstring line says what it is.
"""

import ast
import tomllib
from importlib import resources
from typing import Any, NamedTuple


class Cell(NamedTuple):
    """One recipe."""

    protocol: str
    learner: str
    presets: list[str]
    default: str
    published: dict[str, list[float]]  # the paper's [mean, sd] by metric, in percent


class Benchmark(NamedTuple):
    """A recipe file."""

    name: str
    about: str
    stream: str
    cells: list[Cell]


def learners() -> dict[str, str]:
    """The learners and what they are."""
    folder = resources.files("lamaml") / "learners"
    registry = ast.parse((folder / "__init__.py").read_text("utf-8"))
    names = [
        alias.name
        for node in registry.body
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lamaml.learners.")
        for alias in node.names
    ]
    modules = {name: ast.parse((folder / f"{name}.py").read_text("utf-8")) for name in names}
    docs = {name: ast.get_docstring(module) or "" for name, module in modules.items()}
    return {name: doc.partition("\n")[0] for name, doc in docs.items()}


def benchmarks() -> list[Benchmark]:
    """The benchmarks and the recipes of the learners there are."""
    folder = resources.files("lamaml.experiments.recipes")
    known = learners()
    return [
        _benchmark(file.name.removesuffix(".toml"), file.read_text("utf-8"), known)
        for file in sorted(folder.iterdir(), key=lambda f: f.name)
        if file.name.endswith(".toml")
    ]


def _benchmark(name: str, text: str, known: dict[str, str]) -> Benchmark:
    about = text.partition("\n")[0].removeprefix("#").strip()
    file = tomllib.loads(text)
    cells = [
        _cell(protocol, learner, file[protocol][learner])
        for protocol in ("single", "multiple")
        for learner in file.get(protocol, {})
        if learner in known
    ]
    return Benchmark(name, about, file["stream"], cells)


def _cell(protocol: str, learner: str, cell: dict[str, Any]) -> Cell:
    default = cell.get("default", "authors")
    presets = ["authors", "paper", *(["tuned"] if "tuned" in cell else [])]
    return Cell(protocol, learner, presets, default, cell.get("published", {}))
