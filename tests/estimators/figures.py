"""The estimators' figures, printed: `python tests/estimators/figures.py mnist|million`.

mnist    retained accuracy on MNIST Rotations as one unbroken stream, beside MLPClassifier
million  bytes of all rows kept, and of the process, over 1,000,000 rows
"""
# ruff: noqa: T201

import resource
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.neural_network import MLPClassifier

from lamaml import LaMAMLClassifier
from lamaml.estimators.report import stored_bytes
from lamaml.streams import load_stream

HIDDEN_SIZES = (100, 100)


def mnist(num_tasks=20, num_samples=1000, call=10):
    """Single pass, no task labels, rows in calls of 10; the mean over all tasks' test images."""
    stream = load_stream("mnist_rotations", seed=0, num_tasks=num_tasks, num_samples=num_samples)
    rivals = {
        "LaMAMLClassifier": (LaMAMLClassifier("la_maml", hidden_sizes=HIDDEN_SIZES), 1),
        "MLPClassifier": (MLPClassifier(HIDDEN_SIZES, random_state=0), 255),  # it does not scale
    }
    retained = {}
    for name, (classifier, white) in rivals.items():
        clock = time.perf_counter()
        for task in stream.tasks:
            for start in range(0, len(task.train), call):
                rows = slice(start, start + call)
                x, y = task.train.x[rows] / white, task.train.y[rows]
                classifier.partial_fit(x, y, classes=range(10))
        seconds = time.perf_counter() - clock
        scores = [classifier.score(task.test.x / white, task.test.y) for task in stream.tasks]
        retained[name] = float(np.mean(scores))
        print(f"{name:<18} retained {retained[name]:.1%}   {seconds:.0f} s", flush=True)
    gap = retained["LaMAMLClassifier"] - retained["MLPClassifier"]
    print(f"difference {100 * gap:.1f} points")
    return gap


def million(num_rows=1_000_000, budget=1_000_000, call=1000):
    """Rows of 64 numbers through `partial_fit`, whole numbers in the first tenth only.

    Returns:
      The most bytes of rows that were kept after any call, and the resident size at each tenth.
    """
    rng = np.random.default_rng(0)
    centres = 20 * rng.normal(size=(10, 64))
    classifier = LaMAMLClassifier("la_maml", memory_bytes=budget, batch_size=100)
    sizes, most = [], 0
    for end in range(call, num_rows + 1, call):
        y = rng.integers(0, 10, call)
        x = (centres[y] + 20 * rng.normal(size=(call, 64))).astype(np.float32)
        classifier.partial_fit(np.round(x) if end <= num_rows // 10 else x, y)
        most = max(most, stored_bytes(classifier._fitted))
        if end % (num_rows // 10) == 0:
            sizes.append(resident_bytes())
            kept = classifier.report_.memory_rows
            print(
                f"{end:>9,} rows   {kept:>5,} kept, at most {most:,} of {budget:,} bytes so far   "
                f"resident {sizes[-1] / 2**20:.1f} MiB",
                flush=True,
            )
    print(f"resident size grew by {(sizes[-1] - sizes[1]) / 2**20:+.1f} MiB after two tenths")
    return most, sizes


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


if __name__ == "__main__":
    {"mnist": mnist, "million": million}[sys.argv[1]]()
