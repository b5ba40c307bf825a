"""One small run that every test of results, tables and reports reads."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from lamaml.experiments.recipes.load import recipe
from lamaml.experiments.recipes.overrides import read_settings
from lamaml.experiments.running.plan import Plan
from lamaml.experiments.storing.records import RunSettings
from lamaml.experiments.storing.results import Run
from plans import execute


def _plan(out: Path, learner: str = "la_maml", sets: Sequence[str] = (), **changes: Any) -> Plan:
    settings = {"seeds": range(2), "num_tasks": 2, "num_samples": 30, **changes}
    benchmark = settings.pop("benchmark", "digits_rotations")
    chosen = recipe(benchmark, learner, overrides=read_settings(benchmark, learner, sets))
    return Plan(RunSettings(chosen, **settings), out)


@pytest.fixture(scope="session")
def small_plan() -> Callable[..., Plan]:
    """Plans of two seeds, two tasks, three batches a task, unless told otherwise."""
    return _plan


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What one test has compiled the next need not."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.getbasetemp().parent / "compiled"  # for all of xdist's workers
        patch.setenv("JAX_COMPILATION_CACHE_DIR", str(folder))
        yield folder


@pytest.fixture(scope="session")
def events() -> list:
    """What happened in the small run."""
    return []


@pytest.fixture(scope="session")
def small_run(tmp_path_factory: pytest.TempPathFactory, compiled: Path, events: list) -> Run:
    """Its seeds side by side."""
    plan = _plan(tmp_path_factory.mktemp("runs") / "small")
    return execute([plan], lambda job, event: events.append((job, event)), processes=2)[0]
