"""Two pictures of an estimator: how fast each layer may still learn, and what it has forgotten."""

from typing import TYPE_CHECKING

import numpy as np

from lamaml.errors import InvalidArgument
from lamaml.estimators._base import StreamEstimator
from lamaml.estimators.report import held_out_scores, rates_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STRETCHES = 10  # of the stream, in the picture of forgetting


def plot_rates(estimator: StreamEstimator, ax: "Axes | None" = None) -> "Axes":
    """The learning rates of each layer as a histogram; those at zero or below hold weights still.

    Args:
      estimator: with a learner that learns its rates: la_maml, sync_la_maml or la_er.
      ax: what to draw on; None for a new figure.
    """
    learned = estimator._known()
    layers = rates_of(learned)
    if not layers:
        raise InvalidArgument(f"{learned.design.learner} learns no rates: there is none to plot")
    ax = _axes(ax)
    everything = np.concatenate(list(layers.values()))
    low, high = float(everything.min()), float(everything.max())
    bins = np.linspace(low, max(high, low + 1e-3 * abs(low) + 1e-9), 50).tolist()
    for name, rates in layers.items():
        still = np.mean(rates <= 0)
        ax.hist(rates, bins, histtype="step", density=True, label=f"{name} ({still:.0%} at zero)")
    ax.axvline(0, color="0.6", linewidth=0.8)
    ax.set(xlabel="learning rate", ylabel="density of weights", title="Learning rates by layer")
    ax.legend()
    return ax


def plot_forgetting(estimator: StreamEstimator, ax: "Axes | None" = None) -> "Axes":
    """What held-out rows scored when they arrived, and what they score now, along the stream.

    Args:
      estimator: that has learned from a stream, with held_out above 0.
      ax: what to draw on; None for a new figure.
    """
    learned = estimator._known()
    then, now = held_out_scores(learned)
    if not len(then):
        raise InvalidArgument("no row is held out yet: stream more of them, with held_out above 0")
    ax = _axes(ax)
    order = np.argsort(learned.held_out.place[: len(then)])
    stretches = np.array_split(order, min(_STRETCHES, len(order)))
    places = [learned.held_out.place[rows].mean() for rows in stretches]
    for scores, label, style in ((then, "when it arrived", "o--"), (now, "now", "o-")):
        ax.plot(places, [scores[rows].mean() for rows in stretches], style, label=label)
    score = "mean absolute error" if learned.design.is_regression else "accuracy"
    ax.set(
        xlabel="row of the stream", ylabel=f"{score} of held-out rows", title="What is forgotten"
    )
    ax.legend()
    return ax


def _axes(ax: "Axes | None") -> "Axes":
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt  # here, because it takes a second to import

    return plt.subplots(layout="constrained")[1]
