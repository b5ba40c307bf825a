"""Runs every benchmark, each in a process of its own.

Each learner has its own process, as in a run: where several share one, an update has been seen to
take half as long again.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial

from lamaml.bench.checkpoint_cost import checkpoint_cost
from lamaml.bench.latency import estimator_latency
from lamaml.bench.results import KINDS, RECORDS, Measurements, Record
from lamaml.bench.stalls import CALLS, ROUNDS, stalls
from lamaml.bench.updates import (
    LEARNERS_MEASURED,
    NETWORKS,
    gem_times,
    mer_time,
    paths,
    update_times,
)
from lamaml.experiments.running.engines.local import worker_environment
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
    "estimator": lambda threads: [estimator_latency(threads)],
}
"""(number of threads) -> records, for each part."""
_QUICK_PARTS = ("er on", "la_maml on")


def measure(
    threads: Sequence[int] = (1, 2),
    *,
    quick: bool = False,
    on_progress: Callable[[str], None] = lambda line: None,
) -> Measurements:
    """Measures every part in a fresh process, with each number of threads; the best of several.

    Args:
      threads: numbers of threads.
      quick: only La-MAML and ER with the first number of threads, and three stalls, once each.
      on_progress: called with a line of text before each part.
    """
    records: list[Record] = []
    with tempfile.TemporaryDirectory(prefix="lamaml-") as compiled:
        parts = [part for part in PARTS if not quick or part.startswith(_QUICK_PARTS)]
        for count in threads[:1] if quick else threads:
            for number, part in enumerate(parts, 1):
                on_progress(f"{count} threads: {number} of {len(parts)}, {part}")
                done = subprocess.run(  # noqa: S603
                    [sys.executable, "-P", "-c", _START, part, str(count), *sys.path],
                    env=worker_environment(count, compiled),
                    stdout=subprocess.PIPE,
                    text=True,
                    check=False,
                )
                if done.returncode:
                    raise RuntimeError(f"measuring {part} with {count} threads failed")
                records += [RECORDS[kind](**row) for kind, row in json.loads(done.stdout)]
    rounds, calls = (1, CALLS[:3]) if quick else (ROUNDS, CALLS)
    records += stalls(rounds, calls, on_progress)
    return Measurements.collect(records, Environment.here())


def measure_part(part: str, threads: int) -> None:
    """Measures one of `PARTS` in this process, and prints its records as JSON."""
    records = PARTS[part](threads)
    json.dump([(KINDS[type(record)], asdict(record)) for record in records], sys.stdout)
