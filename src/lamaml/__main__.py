"""`python -m lamaml`."""

from lamaml.cli import main

main()
