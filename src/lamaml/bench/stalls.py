"""How long a user waits for imports and compilers: each case in a fresh process.

The processes have the environment of a user: no number of threads is set, and no variable of the
memory allocator. A case is measured without a cache of compiled programs
(LAMAML_COMPILATION_CACHE=off) and with one that an earlier process has filled. The best of several
processes counts.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from lamaml.bench.results import Stall

IMPORTS = ("import lamaml", "from lamaml import LaMAMLClassifier")
CALLS = (
    "first partial_fit",
    "second partial_fit",
    "11 rows after 10",
    "1,000 rows after 10",
    "9th class",
    "17th class",
    "first negative number",
    "another random_state",
    "first predict",
    "all of these calls",
)
ROUNDS = 2
_SCRIPT = Path(__file__).with_name("_stall_case.py")
_CACHE = "LAMAML_COMPILATION_CACHE"


def stalls(
    rounds: int = ROUNDS,
    calls: Sequence[str] = CALLS,
    on_progress: Callable[[str], None] = lambda line: None,
) -> Iterator[Stall]:
    """Yields each case without a cache and, for calls, with a warm one.

    Args:
      rounds: number of processes per case; the fastest counts.
      calls: those of CALLS to measure.
      on_progress: called with a line of text before each case.
    """
    for case in (*IMPORTS, *calls):
        on_progress(f"stall, {case}")
        yield _best(case, "off", "off", rounds)
        if case in calls:
            with tempfile.TemporaryDirectory(prefix="lamaml-") as folder:
                _in_fresh_process(case, folder)
                yield _best(case, "warm", folder, rounds)


def _best(case: str, cache: str, setting: str, rounds: int) -> Stall:
    found = [_in_fresh_process(case, setting) for _ in range(rounds)]
    return Stall(case, cache, *min(found))


def _in_fresh_process(case: str, setting: str) -> tuple[float, float]:
    """Returns the seconds of a case and the resident memory after it, in 10⁶ bytes."""
    variables = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    variables |= {_CACHE: setting, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-P", str(_SCRIPT), case],
        env=variables,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"measuring {case!r} failed")
    measured = json.loads(done.stdout)
    return measured["seconds"], measured["resident_mb"]
