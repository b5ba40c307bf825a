"""How long a user waits for imports and compilers: each case in a fresh process.

The processes have the environment of a user: no number of threads is set, and no variable of the
memory allocator. A case is measured without a cache of compiled programs
(LAMAML_COMPILATION_CACHE=off) and with one that an earlier process has filled. The best of several
processes counts. Python's bytecode is always there, as after an installation: an earlier process
has written it to a folder of its own, also where PYTHONDONTWRITEBYTECODE is set.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from lamaml.bench.records import Stall

IMPORTS = ("import lamaml", "from lamaml import LaMAMLClassifier")
CALLS = (
    "first partial_fit",
    "first partial_fit, la_maml",
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
    with tempfile.TemporaryDirectory(prefix="lamaml-") as bytecode:
        _in_fresh_process((*IMPORTS, *calls)[-1], "off", bytecode)
        for case in (*IMPORTS, *calls):
            on_progress(f"stall, {case}")
            yield _best(case, "off", "off", bytecode, rounds)
            if case in calls:
                with tempfile.TemporaryDirectory(prefix="lamaml-") as folder:
                    _in_fresh_process(case, folder, bytecode)
                    yield _best(case, "warm", folder, bytecode, rounds)


def _best(case: str, cache: str, setting: str, bytecode: str, rounds: int) -> Stall:
    found = [_in_fresh_process(case, setting, bytecode) for _ in range(rounds)]
    return Stall(case, cache, *min(found))


def _in_fresh_process(case: str, setting: str, bytecode: str) -> tuple[float, float]:
    """Returns the seconds of a case and the resident memory after it, in 10⁶ bytes.

    Args:
      case: one of IMPORTS or CALLS.
      setting: of the cache of compiled programs, "off" or a folder.
      bytecode: the folder of Python's bytecode.
    """
    not_a_users = ("JAX_", "PYTHONDONTWRITEBYTECODE")
    variables = {k: v for k, v in os.environ.items() if not k.startswith(not_a_users)}
    variables |= {
        _CACHE: setting,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "PYTHONPYCACHEPREFIX": bytecode,
    }
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
