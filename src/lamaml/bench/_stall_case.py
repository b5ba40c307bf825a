"""One stall, measured in a process of its own: a script that uses the public estimators alone.

    python _stall_case.py CASE          prints {"seconds": ..., "resident_mb": ...}

Nothing of `lamaml` is imported before the clock starts.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any


def seconds(case: str) -> float:
    """Returns the seconds of the call or import that a case is about."""
    if case.startswith(("import", "from")):
        return _timed(lambda: exec(case))  # noqa: S102  (one of `stalls.IMPORTS`)
    import numpy as np

    from lamaml import LaMAMLClassifier

    rng = np.random.default_rng(0)

    def rows(count: int, num_classes: int = 8, low: int = 0) -> tuple[Any, Any]:
        return rng.integers(low, 10, (count, 20)), np.arange(count) % num_classes

    model = LaMAMLClassifier()
    if case.startswith("first partial_fit"):
        if case.endswith(", la_maml"):
            model = LaMAMLClassifier("la_maml")
        return _timed(lambda: model.partial_fit(*rows(10)))
    model.partial_fit(*rows(10))
    calls = {
        "second partial_fit": lambda: model.partial_fit(*rows(10)),
        "11 rows after 10": lambda: model.partial_fit(*rows(11)),
        "1,000 rows after 10": lambda: model.partial_fit(*rows(1000)),
        "9th class": lambda: model.partial_fit(*rows(10, 9)),
        "17th class": lambda: model.partial_fit(*rows(20, 17)),
        "first negative number": lambda: model.partial_fit(*rows(10, low=-10)),
        "another random_state": lambda: LaMAMLClassifier(random_state=1).partial_fit(*rows(10)),
        "first predict": lambda: model.predict(rows(1)[0]),
    }
    if case == "all of these calls":
        return sum(map(_timed, calls.values()))
    if case == "17th class":
        model.partial_fit(*rows(20, 16))
    return _timed(calls[case])


def resident_mb() -> float:
    """Returns the resident memory of this process, in 10⁶ bytes."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) * 1.024e-3


def _timed(call: Any) -> float:
    clock = time.perf_counter()
    call()
    return time.perf_counter() - clock


if __name__ == "__main__":
    measured = seconds(sys.argv[1])
    json.dump({"seconds": measured, "resident_mb": resident_mb()}, sys.stdout)
