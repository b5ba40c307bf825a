"""Estimators with the interface of scikit-learn: classifier, regressor, report and plots."""

from lamaml.estimators.classifier import LaMAMLClassifier
from lamaml.estimators.plots import plot_forgetting, plot_rates
from lamaml.estimators.regressor import LaMAMLRegressor
from lamaml.estimators.report import Report
from lamaml.evaluation.prequential import Prequential, evaluate_prequential

__all__ = [
    "LaMAMLClassifier",
    "LaMAMLRegressor",
    "Prequential",
    "Report",
    "evaluate_prequential",
    "plot_forgetting",
    "plot_rates",
]
