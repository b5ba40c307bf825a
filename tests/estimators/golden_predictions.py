"""Streams whose predictions are stored by `python tests/estimators/golden_predictions.py`.

The numbers change only when an algorithm does. A refactoring leaves them as they are.
"""

import json
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from lamaml import LaMAMLClassifier, LaMAMLRegressor
from lamaml.learners import LEARNERS

PATH = Path(__file__).with_name("golden_predictions.json")
OPTIONS = {
    "icarl": {"task_size": 60},
    "mer": {"num_batches": 2},
    "la_maml": {"inner_steps": 2},
    "dark_la_maml": {"inner_steps": 2},
    "sync_la_maml": {"inner_steps": 2},
    "la_er": {"inner_steps": 2},
    "c_maml": {"inner_steps": 2},
    "meta_bgd": {"inner_steps": 2},
}
WIDENED = ("er", "gem", "icarl")
X, Y = load_digits(return_X_y=True)
ASKED = X[1500:1506]


def small(kind, learner, **changes):
    options = OPTIONS.get(learner)
    settings = {"hidden_sizes": (12,), "memory_size": 40, "held_out": 0.1, "batch_size": 25}
    return kind(learner, learner_options=options, **(settings | changes))


def answers(model, **task):
    ask = model.predict_proba if hasattr(model, "predict_proba") else model.predict
    return ask(ASKED, **task).tolist()


def relative(weight):
    """Weights of mean 1: when the numbers were stored, only ratios within a call counted."""
    return weight / weight.mean()


def calls(labels):
    """The rows of those classes in calls of 1, 3, 10 and 25."""
    rows = np.flatnonzero(np.isin(Y, labels))
    return np.split(rows[:39], [1, 4, 14])


def classification(learner):
    """Classes arrive late, weights are given; for some learners fractions widen the memory."""
    model, found = small(LaMAMLClassifier, learner), []
    for rows in calls([0, 1, 2]):
        model.partial_fit(X[rows].astype(np.uint8), Y[rows])
        found.append(answers(model))
    for rows in calls(range(3, 10)):
        model.partial_fit(X[rows], Y[rows], sample_weight=relative(1.0 + rows % 3))
        found.append(answers(model))
    if learner in WIDENED:
        model.partial_fit(X[100:125] + 0.5, Y[100:125])
    report = model.report_
    facts = [report.memory_rows, report.held_out_rows, *(report.memory_ages or ())]
    losses = [report.loss_new, report.loss_replayed, report.alignment, report.score_then]
    return {"stages": [*found, answers(model)], "report": [*facts, *losses]}


def tasks(learner):
    """Two named tasks, and the first one again."""
    model, found = small(LaMAMLClassifier, learner), []
    for name, labels in (("a", [0, 1, 2]), ("b", [2, 3, 4, 5]), ("a", [0, 1, 2])):
        for rows in calls(labels):
            model.partial_fit(X[rows], Y[rows], task=name)
        found.append([answers(model), answers(model, task=name)])
    return {"stages": found}


def regression(learner):
    model, found = small(LaMAMLRegressor, learner), []
    for rows in calls(range(10)):
        model.partial_fit(
            X[rows], 3.0 * X[rows, 20] + Y[rows], sample_weight=relative(1.0 + rows % 2)
        )
        found.append(model.predict(ASKED).tolist())
    return {"stages": found}


def fitted(learner):
    """`fit` in several passes, then a stream within a budget of bytes."""
    batches = {"batch_size": 10, "glances": 2}
    model = small(LaMAMLClassifier, learner, epochs=3, **batches).fit(X[:60], Y[:60])
    found = [answers(model)]
    model = small(LaMAMLClassifier, learner, memory_bytes=8000)
    for start in range(0, 200, 25):
        model.partial_fit(X[start : start + 25], Y[start : start + 25])
    return {"stages": [*found, answers(model)], "memory_rows": model.report_.memory_rows}


CASES = {
    **{f"classification {learner}": (classification, learner) for learner in sorted(LEARNERS)},
    **{f"tasks {name}": (tasks, name) for name in ("er", "ewc", "gem", "icarl", "independent")},
    **{f"regression {name}": (regression, name) for name in ("er", "ewc", "la_maml")},
    "regression auto": (regression, "auto"),
    "classification auto": (classification, "auto"),
    **{f"fit {name}": (fitted, name) for name in ("er", "la_maml")},
}

if __name__ == "__main__":
    numbers = {}
    for name, (case, learner) in CASES.items():
        print(name, flush=True)  # noqa: T201
        numbers[name] = case(learner)
    lines = (f"{json.dumps(name)}: {json.dumps(number)}" for name, number in numbers.items())
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n")
