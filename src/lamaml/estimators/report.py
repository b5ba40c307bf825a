"""What an estimator is doing, without a debugger."""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lamaml.estimators._budget import Kept, kept_rows, memory_bytes, num_bytes
from lamaml.estimators._compiled import learned_fields
from lamaml.estimators._config import Design, View, loss_of
from lamaml.estimators._prediction import scores_of
from lamaml.estimators._rows import numbered, padded, places_of
from lamaml.estimators._state import Learned
from lamaml.types import Batch, Params

_REPLAYED = 64  # remembered rows that the report takes a loss and a gradient on


class Spread(NamedTuple):
    """How the learning rates of a layer are distributed."""

    lowest: float
    quarter: float
    median: float
    three_quarters: float
    highest: float
    at_zero: float  # the share of weights that are held still

    def __str__(self) -> str:
        """From the lowest to the highest, in a line."""
        rates = " ".join(f"{rate:.3g}" for rate in self[:-1])
        return f"{rates} (lowest, quartiles, highest), {self.at_zero:.1%} at zero"


@dataclass(frozen=True)
class Report:
    """One look at an estimator. A value is None where its learner has nothing of the kind.

    Attributes:
      samples_seen: good rows of positive weight, those held out included.
      bad_rows_skipped: rows with NaN or infinity, under on_bad_rows="skip".
      updates: steps of the learner.
      classes: all of them so far; None for a regression.
      memory_rows: rows remembered now.
      memory_by_class: how many of each class; None for a regression.
      memory_ages: of the youngest, the median and the oldest remembered row, in rows ago.
      rates: distribution of the learning rates, by layer.
      rates_at_zero: the share of all weights that are held still.
      loss_new: of the rows of the last batch, now.
      loss_replayed: of remembered rows, now.
      alignment: cosine of the gradients of the two; below 0 new rows undo what old ones need.
      held_out_rows: rows kept aside and never learned from.
      score_then: their accuracy (a regression: mean absolute error) as each arrived.
      score_now: the same, now.
      forgetting: what was lost since, in those units; below 0 something was gained.
      seconds: spent learning.
      memory_bytes: of all rows kept, held out and of the last batch.
      bytes: of everything learned and kept.
    """

    samples_seen: int
    bad_rows_skipped: int
    updates: int
    classes: list[Any] | None
    memory_rows: int
    memory_by_class: dict[Any, int] | None
    memory_ages: tuple[int, int, int] | None
    rates: dict[str, Spread] | None
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
        """One line a fact, and a line for the rates of each layer."""
        lines = []
        for name, value in vars(self).items():
            if isinstance(value, dict) and name == "rates":
                lines += [f"{'rates of ' + layer:<24}{spread}" for layer, spread in value.items()]
            elif value is not None:
                shown = f"{value:.4g}" if isinstance(value, float) else value
                lines.append(f"{name.replace('_', ' '):<24}{shown}")
        return "\n".join(lines)


def report_of(learned: Learned, num_bad_rows: int, seconds: float) -> Report:
    """Look at what was learned; nothing is changed."""
    kept = kept_rows(learned.state)
    spreads = rate_spreads(learned)
    new, replayed, alignment = _losses(learned, kept)
    then, now = held_out_scores(learned)
    lost = then.mean() - now.mean() if len(then) else None
    is_regression = learned.design.is_regression
    rows = bytes_of_rows(learned)
    return Report(
        samples_seen=learned.num_rows,
        bad_rows_skipped=num_bad_rows,
        updates=learned.num_updates,
        classes=None if is_regression else learned.labels.classes.tolist(),
        memory_rows=len(kept.y),
        memory_by_class=None if is_regression else _by_class(learned, kept.y),
        memory_ages=_ages(learned, kept) if len(kept.y) else None,
        rates=spreads,
        rates_at_zero=_share_at_zero(rates_of(learned)) if spreads else None,
        loss_new=new,
        loss_replayed=replayed,
        alignment=alignment,
        held_out_rows=len(then),
        score_then=float(then.mean()) if len(then) else None,
        score_now=float(now.mean()) if len(now) else None,
        forgetting=None if lost is None else float(-lost if is_regression else lost),
        seconds=seconds,
        memory_bytes=rows,
        bytes=num_bytes(learned_fields(learned.state)) + rows,
    )


def bytes_of_rows(learned: Learned) -> int:
    """Of every row that is kept, whatever for."""
    return memory_bytes(learned.state) + num_bytes((learned.held_out[:-1], tuple(learned.last)))


def rates_of(learned: Learned) -> dict[str, np.ndarray]:
    """Every learning rate by layer, as the learner holds it; empty where it learns none."""
    rates = learned_fields(learned.state).get("rates")
    layers: dict[str, list[np.ndarray]] = {}
    for path, leaf in jax.tree.flatten_with_path(rates)[0]:
        name = jax.tree_util.keystr(path[:-1] or path, simple=True, separator=".")
        layers.setdefault(name, []).append(np.asarray(leaf).ravel())
    return {name: np.concatenate(leaves) for name, leaves in layers.items()}


def rate_spreads(learned: Learned) -> dict[str, Spread] | None:
    """The distribution of the rates of each layer."""
    return {name: _spread(rates) for name, rates in rates_of(learned).items()} or None


def _spread(rates: np.ndarray) -> Spread:
    lowest, quarter, median, three_quarters, highest = np.quantile(rates, (0, 0.25, 0.5, 0.75, 1))
    still = np.mean(rates <= 0)
    numbers = (lowest, quarter, median, three_quarters, highest, still)
    return Spread._make(float(number) for number in numbers)


def held_out_scores(learned: Learned) -> tuple[np.ndarray, np.ndarray]:
    """The score of each held-out row as it arrived, and now."""
    held = learned.held_out
    now = np.zeros(held.size, np.float32)
    for number in np.unique(held.task[: held.size]):
        rows = np.flatnonzero(held.task[: held.size] == number)
        x = held.x[rows].astype(np.float32)
        now[rows] = scores_of(learned, x, held.y[rows], learned.labels.tasks[number])
    return held.score[: held.size], now


def _share_at_zero(rates: dict[str, np.ndarray]) -> float:
    return float(np.mean(np.concatenate(list(rates.values())) <= 0))


def _by_class(learned: Learned, outputs: np.ndarray) -> dict[Any, int]:
    counts = np.bincount(outputs, minlength=learned.design.num_outputs)
    pairs = zip(learned.labels.classes.tolist(), learned.labels.outputs, strict=True)
    return {name: int(counts[output]) for name, output in pairs}


def _ages(learned: Learned, kept: Kept) -> tuple[int, int, int]:
    ages = np.sort(learned.num_rows - 1 - places_of(kept.x))
    return int(ages[0]), int(ages[len(ages) // 2]), int(ages[-1])


def _losses(learned: Learned, kept: Kept) -> tuple[float, float | None, float | None]:
    """Of new and of remembered rows, and the cosine of their gradients."""
    design, last = learned.design, learned.last
    x = numbered(last.x, np.zeros(last.size), np.dtype(design.dtype))
    task = np.full(last.size, learned.last_task, np.int32)
    new = _batch(design.batch_size, x, last.y, task, last.weight)
    if not len(kept.y):
        return float(_compare(design, learned.state.params, learned.view, new, new)[0]), None, None
    drawn = np.random.default_rng(learned.num_updates).permutation(len(kept.y))[:_REPLAYED]
    ones = np.ones(len(drawn), np.float32)
    old = _batch(_REPLAYED, kept.x[drawn], kept.y[drawn], kept.task[drawn].astype(np.int32), ones)
    compared = _compare(design, learned.state.params, learned.view, new, old)
    new_loss, old_loss, alignment = (float(value) for value in compared)
    return new_loss, old_loss, alignment


def _batch(size: int, *fields: np.ndarray) -> Batch:
    return Batch(*(padded(field, size) for field in fields))  # type: ignore[arg-type]


@partial(jax.jit, static_argnums=0)
def _compare(
    design: Design, params: Params, view: View, new: Batch, old: Batch
) -> tuple[jax.Array, jax.Array, jax.Array]:
    loss = jax.value_and_grad(loss_of(design, view))
    (new_loss, new_gradient), (old_loss, old_gradient) = loss(params, new), loss(params, old)
    flat, other = (
        jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(gradient)])
        for gradient in (new_gradient, old_gradient)
    )
    norms = jnp.linalg.norm(flat) * jnp.linalg.norm(other)
    return new_loss, old_loss, jnp.vdot(flat, other) / jnp.where(norms > 0, norms, 1.0)
