"""Learning from a stream without forgetting: La-MAML, its variants and its baselines."""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lamaml.estimators import (
        LaMAMLClassifier,
        LaMAMLRegressor,
        evaluate_prequential,
        plot_forgetting,
        plot_rates,
    )

try:
    __version__ = version("lamaml")
except PackageNotFoundError:  # run from a source tree that is not installed
    __version__ = "0+unknown"

__all__ = [
    "LaMAMLClassifier",
    "LaMAMLRegressor",
    "__version__",
    "evaluate_prequential",
    "plot_forgetting",
    "plot_rates",
]


def __getattr__(name: str) -> Any:
    """An estimator, imported when it is first asked for: `import lamaml` alone loads nothing."""
    if name in __all__:
        return getattr(import_module("lamaml.estimators"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
