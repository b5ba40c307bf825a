"""Learning from a stream without forgetting: La-MAML, its variants and its baselines."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("lamaml")
except PackageNotFoundError:  # run from a source tree that is not installed
    __version__ = "0+unknown"

__all__ = ["__version__"]
