"""`lamaml list`: benchmarks, learners and recipes."""

from lamaml.cli.shared import Json, print_json, print_table

EXAMPLES = ("lamaml list", "lamaml list --json")


def list_(as_json: Json = False) -> None:
    """List benchmarks, learners and the recipes for them; those of other packages too."""
    from lamaml._registry import entry_point_names
    from lamaml.experiments.recipes.catalogue import Benchmark, benchmarks, learners, listing

    added = {
        kind: {name: f"from {value}" for name, value in entry_point_names(kind).items()}
        for kind in ("learner", "stream")
    }
    streams = [Benchmark(name, about, name, []) for name, about in added["stream"].items()]
    streams, algorithms = benchmarks() + streams, learners() | added["learner"]
    if as_json:
        print_json({"streams": streams, "learners": algorithms})
    else:
        print_table(listing(streams, algorithms))
