"""Two plots of an estimator: its learning rates per layer, and its forgetting."""

from typing import TYPE_CHECKING

import numpy as np

from lamaml.errors import InvalidArgument
from lamaml.estimators._base import StreamEstimator
from lamaml.estimators.report import held_out_scores, learning_rates

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NUM_POINTS = 10  # of the plot of forgetting


def plot_rates(estimator: StreamEstimator, ax: "Axes | None" = None) -> "Axes":
    """Plot a histogram of the learning rates of each layer.

    Weights with a rate of 0 or less no longer change.

    Args:
      estimator: fitted, with a learner that learns its rates: la_maml, sync_la_maml or la_er.
      ax: the axes to draw on; None for a new figure.

    Returns:
      The axes.

    Examples:
      >>> from matplotlib.figure import Figure
      >>> from sklearn.datasets import load_digits
      >>> from lamaml import LaMAMLClassifier
      >>> X, y = load_digits(return_X_y=True)
      >>> model = LaMAMLClassifier("la_maml").partial_fit(X[:300], y[:300])
      >>> plot_rates(model, Figure().subplots()).get_xlabel()
      'learning rate'
    """
    fitted = estimator._require_fitted()
    layers = learning_rates(fitted)
    if not layers:
        name = fitted.config.learner_name
        raise InvalidArgument(f"learner = {name!r} learns no rates: there is nothing to plot")
    ax = _axes(ax)
    everything = np.concatenate(list(layers.values()))
    low, high = float(everything.min()), float(everything.max())
    bins = np.linspace(low, max(high, low + 1e-3 * abs(low) + 1e-9), 50).tolist()
    for name, rates in layers.items():
        at_zero = np.mean(rates <= 0)
        ax.hist(rates, bins, histtype="step", density=True, label=f"{name} ({at_zero:.0%} at zero)")
    ax.axvline(0, color="0.6", linewidth=0.8)
    ax.set(xlabel="learning rate", ylabel="density of weights", title="Learning rates per layer")
    ax.legend()
    return ax


def plot_forgetting(estimator: StreamEstimator, ax: "Axes | None" = None) -> "Axes":
    """Plot the scores of held-out rows on arrival and now, along the stream.

    Args:
      estimator: fitted with `partial_fit`, with held_out above 0.
      ax: the axes to draw on; None for a new figure.

    Returns:
      The axes.

    Examples:
      >>> from matplotlib.figure import Figure
      >>> from sklearn.datasets import load_digits
      >>> from lamaml import LaMAMLClassifier
      >>> X, y = load_digits(return_X_y=True)
      >>> model = LaMAMLClassifier(held_out=0.1, random_state=0)
      >>> for start in range(0, 600, 100):
      ...     model = model.partial_fit(X[start : start + 100], y[start : start + 100])
      >>> plot_forgetting(model, Figure().subplots()).get_ylabel()
      'accuracy of held-out rows'
    """
    fitted = estimator._require_fitted()
    then, now = held_out_scores(fitted)
    if not len(then):
        raise InvalidArgument("no row is held out yet: stream more rows, with held_out above 0")
    ax = _axes(ax)
    positions = fitted.holdout.position[: len(then)]
    groups = np.array_split(np.argsort(positions), min(_NUM_POINTS, len(then)))
    means = [positions[rows].mean() for rows in groups]
    for scores, label, style in ((then, "on arrival", "o--"), (now, "now", "o-")):
        ax.plot(means, [scores[rows].mean() for rows in groups], style, label=label)
    score = "mean absolute error" if fitted.config.is_regression else "accuracy"
    ax.set(xlabel="row of the stream", ylabel=f"{score} of held-out rows", title="Forgetting")
    ax.legend()
    return ax


def _axes(ax: "Axes | None") -> "Axes":
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt  # slow to import, so not at the top

    return plt.subplots(layout="constrained")[1]
