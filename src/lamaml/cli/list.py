"""`lamaml list`: benchmarks, learners, networks and recipes."""

from lamaml.cli.shared import Json, print_json, print_table

EXAMPLES = ("lamaml list", "lamaml list --json")


def list_(as_json: Json = False) -> None:
    """List benchmarks, learners, networks and recipes; those of other packages too."""
    from lamaml._registry import entry_point_names
    from lamaml.experiments.recipes.catalogue import (
        Benchmark,
        benchmarks,
        learners,
        listing,
        models,
    )

    added = {
        kind: {name: f"from {value}" for name, value in entry_point_names(kind).items()}
        for kind in ("learner", "stream", "model")
    }
    streams = [Benchmark(name, about, name, []) for name, about in added["stream"].items()]
    streams, algorithms = benchmarks() + streams, learners() | added["learner"]
    networks = models() | added["model"]
    if as_json:
        print_json({"streams": streams, "learners": algorithms, "models": networks})
    else:
        print_table(listing(streams, algorithms, networks))
