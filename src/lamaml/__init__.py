"""Learning from a stream without forgetting: La-MAML, its variants and its baselines.

Everything is imported when it is first used: `import lamaml` alone loads neither JAX nor
scikit-learn.
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lamaml import evaluation, learners, memory, models, streams, testing
    from lamaml.estimators import (
        LaMAMLClassifier,
        LaMAMLRegressor,
        evaluate_prequential,
        plot_forgetting,
        plot_rates,
    )
    from lamaml.experiments.reporting.comparison import compare
    from lamaml.experiments.running.run import run, sweep
    from lamaml.experiments.storing.loading import load_run, load_runs
    from lamaml.streams import load_stream
    from lamaml.training import Schedule, train

try:
    __version__ = version("lamaml")
except PackageNotFoundError:  # run from a source tree that is not installed
    __version__ = "0+unknown"

__all__ = [
    "LaMAMLClassifier",
    "LaMAMLRegressor",
    "Schedule",
    "__version__",
    "compare",
    "evaluate_prequential",
    "evaluation",
    "learners",
    "load_run",
    "load_runs",
    "load_stream",
    "memory",
    "models",
    "plot_forgetting",
    "plot_rates",
    "run",
    "streams",
    "sweep",
    "testing",
    "train",
]
_HOMES = {
    "LaMAMLClassifier": "lamaml.estimators",
    "LaMAMLRegressor": "lamaml.estimators",
    "Schedule": "lamaml.training",
    "compare": "lamaml.experiments.reporting.comparison",
    "evaluate_prequential": "lamaml.estimators",
    "load_run": "lamaml.experiments.storing.loading",
    "load_runs": "lamaml.experiments.storing.loading",
    "load_stream": "lamaml.streams",
    "plot_forgetting": "lamaml.estimators",
    "plot_rates": "lamaml.estimators",
    "run": "lamaml.experiments.running.run",
    "sweep": "lamaml.experiments.running.run",
    "train": "lamaml.training",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in __all__:
        return import_module(f"lamaml.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
