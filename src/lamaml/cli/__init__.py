"""The command line."""

from lamaml.cli.app import main

__all__ = ["main"]
