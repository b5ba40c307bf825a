"""The protocol: every model predicts ten rows, then learns them; a tenth of all rows is held out.

The first ten rows are learned without being predicted. The held-out rows come from the whole length
of the stream: at its end they say how much is retained.
"""

import time
from dataclasses import dataclass

import numpy as np

from lamaml.panel.models import STEP, PanelModel, Setting, model_named
from lamaml.panel.rows import Split
from lamaml.panel.streams import load, stream_named

CURVE_ROWS = 100
"""Rows per point of the stored curve of scores."""
_WARM_ROWS = 100  # rows after which the clock starts: programs are compiled by then
_LEAST_SHARE = 1e-3  # of a class, in the log loss: models may say 0


@dataclass(frozen=True)
class Result:
    """What one model achieved on one stream with one seed.

    Attributes:
      stream: name of the stream.
      model: name of the model.
      seed: of the stream, the held-out rows and the model.
      num_rows: number of rows of the stream, those held out included.
      prequential: accuracy on rows before they were learned (a regression: mean absolute error).
      retained: accuracy on held-out rows at the end (a regression: mean absolute error).
      balanced: mean accuracy per class on rows before they were learned; NaN for a regression.
      log_loss: of rows before they were learned, in nats; NaN for a regression.
      retained_log_loss: of held-out rows at the end, in nats; NaN for a regression.
      drifts: index of the first row of each new concept, among the rows learned.
      curve: scores of every 100 rows before they were learned.
      seconds: processor time per 1,000 rows, predictions included, compilation not.
      num_bytes: bytes of everything the model keeps at the end.
    """

    stream: str
    model: str
    seed: int
    num_rows: int
    prequential: float
    retained: float
    balanced: float
    log_loss: float
    retained_log_loss: float
    drifts: list[int]
    curve: list[float]
    seconds: float
    num_bytes: int

    @property
    def after_drifts(self) -> float:
        """The mean score of the 1,000 rows after each drift; NaN for a stream without any."""
        return float(np.mean([self.scores(d, d + 1_000) for d in self.drifts] or [np.nan]))

    def scores(self, start: int, stop: int) -> float:
        """Return the mean score of the rows from `start` to `stop`, to the next hundred."""
        points = self.curve[-(-start // CURVE_ROWS) : max(stop // CURVE_ROWS, 1)]
        return float(np.mean(points)) if points else float("nan")


def judge(stream: str, model: str, seed: int, num_rows: int) -> Result:
    """Return what a model achieves on a stream."""
    entry, rows = stream_named(stream), load(stream, seed, num_rows)
    num_classes = 0 if entry.is_regression else int(max(rows.y.max(), rows.held_y.max())) + 1
    built = model_named(model)(Setting(num_classes, entry.memory_size, seed))
    answers, seconds = predict_then_learn(built, rows)
    built.end_stream()
    held = built.predict(rows.held_x)
    asked = rows.y[STEP:]
    scores = _scores(answers, asked)
    curve = np.concatenate([np.full(STEP, np.nan), scores])
    points = np.split(curve, range(CURVE_ROWS, len(curve), CURVE_ROWS))
    return Result(
        stream=stream,
        model=model,
        seed=seed,
        num_rows=len(rows.y) + len(rows.held_y),
        prequential=float(scores.mean()),
        retained=float(_scores(held, rows.held_y).mean()),
        balanced=_balanced(scores, asked) if num_classes else float("nan"),
        log_loss=_log_loss(answers, asked) if num_classes else float("nan"),
        retained_log_loss=_log_loss(held, rows.held_y) if num_classes else float("nan"),
        drifts=list(rows.drifts),
        curve=[round(float(np.nanmean(part)), 4) for part in points],
        seconds=seconds,
        num_bytes=built.num_bytes(),
    )


def predict_then_learn(model: PanelModel, rows: Split) -> tuple[np.ndarray, float]:
    """Return all predictions made before learning, and the seconds per 1,000 rows."""
    model.learn(rows.x[:STEP], rows.y[:STEP])
    answers, start, clock, first = [], STEP, time.process_time(), STEP
    while start < len(rows.y):
        if first == STEP and start >= _WARM_ROWS:
            clock, first = time.process_time(), start
        stop = start + model.next_step()
        answers.append(model.predict(rows.x[start:stop]))
        model.learn(rows.x[start:stop], rows.y[start:stop])
        start = stop
    seconds = time.process_time() - clock
    return np.concatenate(answers), seconds * 1_000 / max(len(rows.y) - first, 1)


def _scores(answers: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return 1 or 0 per row of a classification, the absolute error of a regression."""
    if answers.ndim == 1:
        return np.abs(answers - y)
    return (answers.argmax(axis=1) == y).astype(float)


def _balanced(scores: np.ndarray, y: np.ndarray) -> float:
    return float(np.mean([scores[y == label].mean() for label in np.unique(y)]))


def _log_loss(shares: np.ndarray, y: np.ndarray) -> float:
    shares = np.maximum(shares, _LEAST_SHARE)
    shares = shares / shares.sum(axis=1, keepdims=True)
    return float(-np.log(shares[np.arange(len(y)), y]).mean())
