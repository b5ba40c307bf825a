"""The command line: one module per command."""

from lamaml.cli.app import main

__all__ = ["main"]
