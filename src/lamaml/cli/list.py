"""`lamaml list`: benchmarks, learners and recipes."""

from lamaml.cli.shared import Json, print_json, print_table

EXAMPLES = ("lamaml list", "lamaml list --json")


def list_(as_json: Json = False) -> None:
    """List benchmarks, learners and the recipes for them."""
    from lamaml.experiments.recipes.catalogue import benchmarks, learners, listing

    if as_json:
        streams = [b._asdict() | {"cells": [c._asdict() for c in b.cells]} for b in benchmarks()]
        print_json({"streams": streams, "learners": learners()})
    else:
        print_table(listing(benchmarks(), learners()))
