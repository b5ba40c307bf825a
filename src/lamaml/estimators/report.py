"""The report of an estimator: counts, memory, learning rates, losses and forgetting."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lamaml._compilation import QuickJit
from lamaml._trees import cosine, pad_rows
from lamaml.estimators._budget import all_stored_rows, memory_bytes, num_bytes
from lamaml.estimators._compiled import network_shaped
from lamaml.estimators._config import Config, LossInputs, build_loss, smallest_batch
from lamaml.estimators._prediction import score_rows
from lamaml.estimators._state import FittedState
from lamaml.memory import StoredRows
from lamaml.types import Batch, Params

_NUM_REPLAYED = 64  # stored rows whose loss and gradient the report computes


class RateSummary(NamedTuple):
    """Distribution of the learning rates of a layer."""

    lowest: float
    quarter: float
    median: float
    three_quarters: float
    highest: float
    at_zero: float  # fraction of the weights with a rate of 0 or less, which no longer change

    def __str__(self) -> str:
        """Return the distribution in one line."""
        rates = " ".join(f"{rate:.3g}" for rate in self[:-1])
        return f"{rates} (lowest, quartiles, highest), {self.at_zero:.1%} at zero"


@dataclass(frozen=True)
class Report:
    """State of an estimator at one time. A value is None where it does not apply.

    Attributes:
      learner: name of the learner.
      choice: what "auto" has chosen and why; None if the user has chosen the learner.
      diagnostics: the single numbers in the learner's state, such as the `share` of the fast
        weights in `fast_and_slow`; None if it has none.
      samples_seen: number of good rows with positive weight, those held out included.
      bad_rows_skipped: number of rows skipped under on_bad_rows="skip".
      updates: number of updates of the learner.
      classes: all classes so far; None for a regression.
      memory_rows: number of rows in the memory.
      memory_by_class: number of rows in the memory per class; None for a regression.
      memory_ages: age of the youngest, the median and the oldest row in the memory, in rows.
      rates: distribution of the learning rates, per layer.
      rates_at_zero: fraction of all weights with a learning rate of 0 or less.
      loss_new: current loss of the last batch.
      loss_replayed: current loss of a sample of the memory.
      alignment: cosine of the gradients of these two losses; below 0 they conflict.
      held_out_rows: number of rows held out.
      score_then: accuracy of held-out rows on arrival (a regression: mean absolute error).
      score_now: the same, now.
      forgetting: how much worse the score is now, in its unit; below 0 it has improved.
      seconds: time spent in `fit` and `partial_fit`.
      memory_bytes: bytes of all stored rows: memory, held-out rows and last batch; and of the
        encoding of a frame's columns.
      bytes: bytes of everything learned and stored.
    """

    learner: str
    choice: str | None
    diagnostics: dict[str, float] | None
    samples_seen: int
    bad_rows_skipped: int
    updates: int
    classes: list[Any] | None
    memory_rows: int
    memory_by_class: dict[Any, int] | None
    memory_ages: tuple[int, int, int] | None
    rates: dict[str, RateSummary] | None
    rates_at_zero: float | None
    loss_new: float
    loss_replayed: float | None
    alignment: float | None
    held_out_rows: int
    score_then: float | None
    score_now: float | None
    forgetting: float | None
    seconds: float
    memory_bytes: int
    bytes: int

    def __str__(self) -> str:
        """Return one line per value, and one line per layer for the learning rates."""
        lines = []
        for name, value in vars(self).items():
            if isinstance(value, dict) and name == "rates":
                lines += [f"{'rates of ' + layer:<24}{rates}" for layer, rates in value.items()]
            elif value is not None:
                shown = f"{value:.4g}" if isinstance(value, float) else value
                lines.append(f"{name.replace('_', ' '):<24}{shown}")
        return "\n".join(lines)


def make_report(
    fitted: FittedState, num_bad_rows: int, seconds: float, choice: str | None = None
) -> Report:
    """Return the report of a fitted state, which is not changed."""
    stored = all_stored_rows(fitted.learner_state)
    if stored is not None and not len(stored.y):
        stored = None
    rates = learning_rates(fitted)
    loss_new, loss_replayed, alignment = _losses(fitted, stored)
    then, now = held_out_scores(fitted)
    lost = then.mean() - now.mean() if len(then) else None
    is_regression = fitted.config.is_regression
    row_bytes = stored_bytes(fitted)
    return Report(
        learner=fitted.config.learner_name,
        choice=choice,
        diagnostics=_diagnostics(fitted) or None,
        samples_seen=fitted.num_rows,
        bad_rows_skipped=num_bad_rows,
        updates=fitted.num_updates,
        classes=None if is_regression else fitted.labels.classes.tolist(),
        memory_rows=0 if stored is None else len(stored.y),
        memory_by_class=None if is_regression else _count_by_class(fitted, stored),
        memory_ages=None if stored is None else _ages(fitted, stored),
        rates={name: _summarise(layer) for name, layer in rates.items()} or None,
        rates_at_zero=float(np.mean(np.concatenate([*rates.values()]) <= 0)) if rates else None,
        loss_new=loss_new,
        loss_replayed=loss_replayed,
        alignment=alignment,
        held_out_rows=len(then),
        score_then=float(then.mean()) if len(then) else None,
        score_now=float(now.mean()) if len(now) else None,
        forgetting=None if lost is None else float(-lost if is_regression else lost),
        seconds=seconds,
        memory_bytes=row_bytes,
        bytes=num_bytes(network_shaped(fitted.learner_state)) + row_bytes,
    )


def _diagnostics(fitted: FittedState) -> dict[str, float]:
    """Return the real numbers among the fields of the learner's state."""
    fields = fitted.learner_state._asdict().items()
    return {
        name: float(value)
        for name, value in fields
        if isinstance(value, np.ndarray | np.generic | jax.Array)
        and value.ndim == 0
        and np.issubdtype(value.dtype, np.floating)
    }


def stored_bytes(fitted: FittedState) -> int:
    """Return the bytes of all stored rows: memory, held-out rows and last batch.

    Those of the encoding of a frame's columns are added: they are part of the budget.
    """
    encoding = 0 if fitted.encoding is None else fitted.encoding.num_bytes
    rows = (fitted.holdout[:-1], fitted.last_batch[:-1])
    return memory_bytes(fitted.learner_state) + num_bytes(rows) + encoding


def learning_rates(fitted: FittedState) -> dict[str, np.ndarray]:
    """Return the learned rates per layer; empty for a learner that learns none."""
    rates = network_shaped(fitted.learner_state).get("rates")
    layers: dict[str, list[np.ndarray]] = {}
    for path, leaf in jax.tree.flatten_with_path(rates)[0]:
        name = jax.tree_util.keystr(path[:-1] or path, simple=True, separator=".")
        layers.setdefault(name, []).append(np.asarray(leaf).ravel())
    return {name: np.concatenate(leaves) for name, leaves in layers.items()}


def _summarise(rates: np.ndarray) -> RateSummary:
    quantiles = np.quantile(rates, (0, 0.25, 0.5, 0.75, 1))
    return RateSummary._make(float(number) for number in (*quantiles, np.mean(rates <= 0)))


def held_out_scores(fitted: FittedState) -> tuple[np.ndarray, np.ndarray]:
    """Return the score of each held-out row on arrival, and its score now."""
    held = fitted.holdout
    now = np.zeros(held.size, np.float32)
    for task in np.unique(held.task[: held.size]):
        rows = np.flatnonzero(held.task[: held.size] == task)
        x = held.x[rows].astype(np.float32)
        now[rows] = score_rows(fitted, x, held.y[rows], fitted.labels.tasks[task])
    return held.score[: held.size], now


def _count_by_class(fitted: FittedState, stored: StoredRows | None) -> dict[Any, int]:
    outputs = np.zeros(0, int) if stored is None else stored.y
    counts = np.bincount(outputs, minlength=fitted.config.num_outputs)
    pairs = zip(fitted.labels.classes.tolist(), fitted.labels.outputs, strict=True)
    return {name: int(counts[output]) for name, output in pairs}


def _ages(fitted: FittedState, stored: StoredRows) -> tuple[int, int, int]:
    """Return the lowest, the median and the highest age of stored rows, in rows."""
    ages = np.sort((fitted.num_rows - 1 - np.asarray(stored.position, np.int64)) % 2**31)
    return int(ages[0]), int(ages[len(ages) // 2]), int(ages[-1])


def _losses(
    fitted: FittedState, stored: StoredRows | None
) -> tuple[float, float | None, float | None]:
    """Return the losses of new and of stored rows, and the cosine of their gradients."""
    config, last = fitted.config, fitted.last_batch
    args = (config, fitted.learner_state.params, fitted.loss_inputs)
    task = np.full(len(last.y), last.task, np.int32)
    new = _pad_batch(smallest_batch(config), last.x, last.y, task, last.weight)
    if stored is None:
        return float(_compare(*args, new, new)[0]), None, None
    drawn = np.random.default_rng(fitted.num_updates).permutation(len(stored.y))[:_NUM_REPLAYED]
    x, y = stored.x[drawn].astype(np.float32), stored.y[drawn]
    weight = np.ones(len(drawn), np.float32)
    old = _pad_batch(_NUM_REPLAYED, x, y, stored.task[drawn].astype(np.int32), weight)
    new_loss, old_loss, alignment = (float(value) for value in _compare(*args, new, old))
    return new_loss, old_loss, alignment


def _pad_batch(size: int, *fields: np.ndarray) -> Batch:
    return Batch(*(pad_rows(field, size) for field in fields))  # type: ignore[arg-type]


def _compute_losses(
    config: Config, params: Params, inputs: LossInputs, new: Batch, old: Batch
) -> tuple[jax.Array, jax.Array, jax.Array]:
    loss = jax.value_and_grad(build_loss(config, inputs))
    (new_loss, new_gradient), (old_loss, old_gradient) = loss(params, new), loss(params, old)
    return new_loss, old_loss, jnp.nan_to_num(cosine(new_gradient, old_gradient))


_compare = QuickJit(_compute_losses)
