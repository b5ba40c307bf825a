"""Questions to a version, and its answers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lamaml.estimators import LaMAMLClassifier
from lamaml.serving.learning import Version
from lamaml.serving.rows import Label


@dataclass(frozen=True)
class Answer:
    """The answer to a prediction.

    Attributes:
      request_id: the caller's or ours; a late label is matched by it.
      version: number of the version that answered.
      predictions: the class or target of each row.
      classes: the classes of the columns of `probabilities`; None for a regression.
      probabilities: (n, classes); None where the learner has none.
    """

    request_id: str
    version: int
    predictions: list[Label]
    classes: list[Label] | None
    probabilities: np.ndarray | None


@dataclass(frozen=True)
class Question:
    """Checked rows to predict.

    Attributes:
      x: (n, ...) float64.
      request_id: of the answer.
      keep: whether to keep rows and predictions until their labels come.
    """

    x: np.ndarray
    request_id: str
    keep: bool


def answer(version: Version, questions: Sequence[Question]) -> list[Answer]:
    """Return the answers of a version, computed together; no row's depends on the others."""
    model = version.model
    x = questions[0].x if len(questions) == 1 else np.concatenate([each.x for each in questions])
    classes = probabilities = None
    if isinstance(model, LaMAMLClassifier):
        classes = model.classes_.tolist()
    if version.has_probabilities:
        probabilities = model.predict_proba(x)
        predictions = model.classes_[probabilities.argmax(axis=1)].tolist()
    else:
        predictions = model.predict(x).tolist()
    answers, start = [], 0
    for each in questions:
        part = slice(start, start := start + len(each.x))
        shares = None if probabilities is None else probabilities[part]
        found = Answer(each.request_id, version.number, predictions[part], classes, shares)
        answers.append(found)
    return answers
