"""Runs every benchmark, each in a process of its own.

Each learner has its own process, as in a run: where several share one, an update has been seen to
take half as long again.
"""

import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial

from lamaml._compilation import use_compilation_cache
from lamaml.bench.checkpoint_cost import checkpoint_cost
from lamaml.bench.latency import LEARNERS as LATENCY_LEARNERS
from lamaml.bench.latency import estimator_latencies
from lamaml.bench.results import KINDS, RECORDS, Measurements, Record
from lamaml.bench.serving import can_serve, serving_load
from lamaml.bench.stalls import CALLS, IMPORTS, ROUNDS, stalls
from lamaml.bench.updates import (
    LEARNERS_MEASURED,
    NETWORKS,
    gem_times,
    mer_time,
    paths,
    update_times,
)
from lamaml.experiments.running.engines.process import worker_environment
from lamaml.experiments.storing.environment import Environment

_START = (
    "import sys; part, threads = sys.argv[1:3]; sys.path[:] = sys.argv[3:]; "
    "from lamaml.bench.run import measure_part; measure_part(part, int(threads))"
)

PARTS: dict[str, Callable[[int], Sequence[Record]]] = {
    f"{learner} on the {model}, {path}": partial(update_times, model, learner, path)
    for model in NETWORKS
    for learner in LEARNERS_MEASURED
    for path in paths(model, learner)
} | {
    "mer": lambda threads: [mer_time(threads)],
    "gem": gem_times,
    "checkpoints": lambda threads: [checkpoint_cost(threads)],
    **{
        f"LaMAMLClassifier, {learner}": partial(estimator_latencies, learner)
        for learner in LATENCY_LEARNERS
    },
    "serving": lambda threads: [serving_load()] if threads == 2 and can_serve() else [],
}
"""(number of threads) -> records, for each part."""
_QUICK_PARTS = ("er on", "la_maml on", "LaMAMLClassifier")


def measure(
    threads: Sequence[int] = (1, 2),
    *,
    quick: bool = False,
    on_progress: Callable[[str], None] = lambda line: None,
) -> Measurements:
    """Measures every part in a fresh process, with each number of threads; the best of several.

    Args:
      threads: numbers of threads.
      quick: only La-MAML, ER and the classifier with the first number of threads, and three
        stalls, once each.
      on_progress: called with a line of text before each part.
    """
    counts = threads[:1] if quick else threads
    parts = [part for part in PARTS if not quick or part.startswith(_QUICK_PARTS)]
    rounds, calls = (1, CALLS[:3]) if quick else (ROUNDS, CALLS)
    total = len(counts) * len(parts) + len(IMPORTS) + len(calls)
    number = itertools.count(1)

    def announce(line: str) -> None:
        on_progress(f"{next(number)} of {total}: {line}")

    records: list[Record] = []
    for count in counts:
        for part in parts:
            announce(f"{part}, {count} thread{'s' if count > 1 else ''}")
            records += _in_fresh_process(part, count)
    records += stalls(rounds, calls, announce)
    return Measurements.collect(records, Environment.here())


def _in_fresh_process(part: str, threads: int) -> list[Record]:
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-P", "-c", _START, part, str(threads), *sys.path],
        env=worker_environment(threads),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"measuring {part} with {threads} threads failed")
    return [RECORDS[kind](**row) for kind, row in json.loads(done.stdout)]


def measure_part(part: str, threads: int) -> None:
    """Measures one of `PARTS` in this process, and prints its records as JSON."""
    use_compilation_cache()
    records = PARTS[part](threads)
    json.dump([(KINDS[type(record)], asdict(record)) for record in records], sys.stdout)
