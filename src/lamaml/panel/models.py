"""The models of the panel: our estimators beside what one would use instead.

A model learns rows and predicts; for classes it returns probabilities over all classes of the
stream, 0 for those that it has not seen. `RIVALS` names them in the order of the tables.
"""

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.preprocessing import StandardScaler

from lamaml.errors import unknown_name
from lamaml.estimators import LaMAMLClassifier, LaMAMLRegressor
from lamaml.panel.refitted import Refitted
from lamaml.panel.river_models import RiverModel

STEP = 10
"""Rows that are predicted, then learned."""


@dataclass(frozen=True)
class Setting:
    """What a model may know of its stream before the first row."""

    num_classes: int  # 0 for a regression
    memory_size: int
    seed: int

    @property
    def is_regression(self) -> bool:
        """Whether targets are numbers."""
        return not self.num_classes


class PanelModel(Protocol):
    """A model as the panel uses it."""

    def learn(self, x: np.ndarray, y: np.ndarray) -> None:
        """Learn the next rows."""

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Return (n, classes) probabilities, or (n,) targets."""

    def end_stream(self) -> None:
        """Learn whatever waits to be learned."""

    def next_step(self) -> int:
        """Return the number of rows to predict before the next ones are learned."""

    def num_bytes(self) -> int:
        """Return the bytes of everything the model keeps."""


class Estimator:
    """An estimator of scikit-learn's kind that learns by `partial_fit`.

    Args:
      estimator: of ours, or of scikit-learn.
      setting: its stream.
      is_scaled: whether to scale inputs, and the targets of a regression, by running statistics;
        ours does so itself.
    """

    def __init__(self, estimator: Any, setting: Setting, is_scaled: bool) -> None:
        self._estimator, self._setting = estimator, setting
        self._scaler = StandardScaler() if is_scaled else None
        self._targets = StandardScaler() if is_scaled and setting.is_regression else None
        declares = is_scaled and not setting.is_regression
        self._declared = {"classes": np.arange(setting.num_classes)} if declares else {}

    def learn(self, x: np.ndarray, y: np.ndarray) -> None:
        """Learn the next rows."""
        if self._scaler is not None:
            x = self._scaler.partial_fit(x).transform(x)
        if self._targets is not None:
            y = self._targets.partial_fit(y[:, None]).transform(y[:, None])[:, 0]
        self._estimator.partial_fit(x, y, **self._declared)

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Return (n, classes) probabilities, or (n,) targets."""
        if self._scaler is not None:
            x = self._scaler.transform(x)
        if self._setting.is_regression:
            found = self._estimator.predict(x)
            return (
                found
                if self._targets is None
                else self._targets.inverse_transform(found[:, None])[:, 0]
            )
        shares = np.zeros((len(x), self._setting.num_classes))
        shares[:, self._estimator.classes_] = self._estimator.predict_proba(x)
        return shares

    def end_stream(self) -> None:
        """Do nothing: all rows are learned."""

    def next_step(self) -> int:
        """Return the number of rows to predict before the next ones are learned."""
        return STEP

    def num_bytes(self) -> int:
        """Return the bytes of everything the model keeps."""
        report = getattr(self._estimator, "report_", None)
        return report.bytes if report is not None else len(pickle.dumps(self._estimator))


class Majority:
    """The commonest class so far with its share, or the mean of the targets so far."""

    def __init__(self, setting: Setting) -> None:
        self._counts = np.zeros(max(setting.num_classes, 2))  # a regression: sum and number
        self._is_regression = setting.is_regression

    def learn(self, x: np.ndarray, y: np.ndarray) -> None:
        """Count the next rows."""
        if self._is_regression:
            self._counts += y.sum(), len(y)
        else:
            self._counts += np.bincount(y, minlength=len(self._counts))

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Return the same for each row."""
        if self._is_regression:
            return np.full(len(x), self._counts[0] / self._counts[1])
        return np.tile(self._counts / self._counts.sum(), (len(x), 1))

    def end_stream(self) -> None:
        """Do nothing: all rows are learned."""

    def next_step(self) -> int:
        """Return the number of rows to predict before the next ones are learned."""
        return STEP

    def num_bytes(self) -> int:
        """Return the bytes of the counts."""
        return self._counts.nbytes


def _ours(learner: str | None) -> Callable[[Setting], PanelModel]:
    def build(setting: Setting) -> PanelModel:
        kind = LaMAMLRegressor if setting.is_regression else LaMAMLClassifier
        options: dict[str, Any] = {"memory_size": setting.memory_size} | (
            {} if learner is None else {"learner": learner}
        )
        return Estimator(kind(random_state=setting.seed, **options), setting, is_scaled=False)

    return build


def _sgd(setting: Setting) -> PanelModel:
    if setting.is_regression:
        return Estimator(SGDRegressor(random_state=setting.seed), setting, is_scaled=True)
    model = SGDClassifier(loss="log_loss", random_state=setting.seed)
    return Estimator(model, setting, is_scaled=True)


def _mlp(setting: Setting) -> PanelModel:
    kind = MLPRegressor if setting.is_regression else MLPClassifier
    return Estimator(
        kind(hidden_layer_sizes=(100, 100), random_state=setting.seed), setting, is_scaled=True
    )


def _refitted(
    classifier: Callable[..., Any],
    regressor: Callable[..., Any],
    *,
    window: int = 0,
    **settings: Any,
) -> Callable[[Setting], PanelModel]:
    def build(setting: Setting) -> PanelModel:
        kind = regressor if setting.is_regression else classifier
        seeded = settings | (
            {"random_state": setting.seed} if "n_neighbors" not in settings else {}
        )
        return Refitted(
            lambda: kind(**seeded),
            setting.num_classes,
            (window or 1) * setting.memory_size,
            every=1_000 if window else max(100, setting.memory_size // 4),
            is_window=bool(window),
            seed=setting.seed,
        )

    return build


def _river(name: str) -> Callable[[Setting], PanelModel]:
    return lambda setting: RiverModel(name, setting.num_classes, setting.seed)


MODELS: dict[str, Callable[[Setting], PanelModel]] = {
    "auto": _ours(None),
    "la_maml": _ours("la_maml"),
    "er": _ours("er"),
    "sgd": _sgd,
    "mlp": _mlp,
    "river_linear": _river("linear"),
    "river_tree": _river("tree"),
    "river_forest": _river("forest"),
    "forest": _refitted(RandomForestClassifier, RandomForestRegressor),
    "extra_trees": _refitted(ExtraTreesClassifier, ExtraTreesRegressor),
    "boosting": _refitted(HistGradientBoostingClassifier, HistGradientBoostingRegressor),
    "boosting_window": _refitted(
        HistGradientBoostingClassifier, HistGradientBoostingRegressor, window=5
    ),
    "nearest": _refitted(KNeighborsClassifier, KNeighborsRegressor, n_neighbors=1),
    "majority": Majority,
}
"""(setting) -> model, by name."""
OURS = ("auto", "la_maml", "er")
ABOUT = {
    "auto": "LaMAMLClassifier or LaMAMLRegressor with its defaults",
    "la_maml": 'the same with learner="la_maml", the paper\'s',
    "er": 'the same with learner="er"',
    "sgd": "scikit-learn's SGDClassifier (log loss) or SGDRegressor behind running scalers",
    "mlp": "scikit-learn's MLPClassifier or MLPRegressor, 100 and 100 units, behind such scalers",
    "river_linear": "river's logistic or linear regression behind running scalers",
    "river_tree": "river's Hoeffding adaptive tree",
    "river_forest": "river's adaptive random forest, 10 trees",
    "forest": "random forest refitted on a reservoir of the same size as ours",
    "extra_trees": "extra trees refitted on such a reservoir",
    "boosting": "histogram gradient boosting refitted on such a reservoir",
    "boosting_window": "the same refitted on the last rows, five times as many as the others keep",
    "nearest": "one nearest neighbour on such a reservoir, behind a scaler",
    "majority": "the commonest class so far, or the mean so far",
}
"""What each model is, for the documents."""


def model_named(name: str) -> Callable[[Setting], PanelModel]:
    """Return the builder of a model."""
    if name not in MODELS:
        raise unknown_name("model", name, MODELS)
    return MODELS[name]
