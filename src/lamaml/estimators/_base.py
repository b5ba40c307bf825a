"""What the classifier and the regressor share: parameters, checks, and calls that happen whole.

A call succeeds, or it leaves the estimator as it was: what it learns is put together on the side,
in a new `Learned`, and what scikit-learn's checks set on the way is taken back on an error.
"""

import abc
import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import jax
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, column_or_1d

from lamaml.errors import DataCorrupt, InvalidArgument, unknown_name
from lamaml.estimators import _saving
from lamaml.estimators._config import Design, Network, answers_itself, num_outputs_of, settings_of
from lamaml.estimators._fitting import gone_through, study
from lamaml.estimators._labels import Labels, TaskId, as_task, with_task
from lamaml.estimators._parameters import check_count, check_share, network_given
from lamaml.estimators._processes import check_process
from lamaml.estimators._rows import (
    DTYPES,
    Origins,
    Rows,
    as_float32,
    bad_rows,
    missing_labels,
    narrowest,
    origin_of,
    refusal,
)
from lamaml.estimators._state import Learned, started
from lamaml.estimators._validation import read_inputs, read_weights, relative
from lamaml.estimators.report import Report, report_of

BAD_ROWS = ("raise", "skip")


class StreamEstimator(BaseEstimator, abc.ABC):  # type: ignore[misc]
    """A learner of this package behind scikit-learn's interface."""

    _is_regression: bool
    _learned: Learned | None = None
    _num_bad_rows = 0
    _seconds = 0.0

    def __init__(
        self,
        learner: str = "la_maml",
        *,
        learner_options: Mapping[str, Any] | None = None,
        model: Network | None = None,
        hidden_sizes: Sequence[int] = (100, 100),
        memory_size: int = 200,
        memory_bytes: int | None = None,
        batch_size: int = 10,
        glances: int = 1,
        epochs: int = 20,
        scale: bool = True,
        held_out: float = 0.02,
        on_bad_rows: str = "raise",
        random_state: Any = 0,
    ) -> None:
        self.learner = learner
        self.learner_options = learner_options
        self.model = model
        self.hidden_sizes = hidden_sizes
        self.memory_size = memory_size
        self.memory_bytes = memory_bytes
        self.batch_size = batch_size
        self.glances = glances
        self.epochs = epochs
        self.scale = scale
        self.held_out = held_out
        self.on_bad_rows = on_bad_rows
        self.random_state = random_state

    def __sklearn_is_fitted__(self) -> bool:
        """Whether a call has succeeded."""
        return self._learned is not None

    @property
    def report_(self) -> Report:
        """What it is doing: what it has seen and keeps, its rates, its losses, what it forgets."""
        return report_of(self._known(), self._num_bad_rows, self._seconds)

    def save(self, path: str | Path) -> None:
        """Write everything learned to one safetensors file, whole or not at all."""
        parameters = self.get_params(deep=False)
        names = self.__dict__.get("feature_names_in_")
        settings = {
            "class": type(self).__name__,
            "parameters": {name: parameters[name] for name in parameters if name != "model"},
            "feature_names": None if names is None else names.tolist(),
            "num_bad_rows": self._num_bad_rows,
            "seconds": self._seconds,
        }
        _saving.write(path, settings, self._known())

    @classmethod
    def load(cls, path: str | Path, *, model: Network | None = None) -> Self:
        """Read what `save` wrote; the estimator goes on from there to the same bits.

        Args:
          path: of the file. Reading it runs no code.
          model: the network it was made with, if it was given one of its own.
        """
        settings, learned = _saving.read(path, model)
        if settings["class"] != cls.__name__:
            raise DataCorrupt(f"{path}: holds a {settings['class']}, not a {cls.__name__}")
        parameters = settings["parameters"]
        estimator = cls(**parameters | {"hidden_sizes": tuple(parameters["hidden_sizes"])})
        estimator.model = model
        estimator._learned = learned
        estimator._num_bad_rows, estimator._seconds = settings["num_bad_rows"], settings["seconds"]
        estimator.n_features_in_ = learned.design.num_columns
        if settings["feature_names"] is not None:
            estimator.feature_names_in_ = np.array(settings["feature_names"], object)
        return estimator

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and joblib: NumPy arrays, whatever device the numbers are on."""
        kept = dict(super().__getstate__())
        if self._learned is not None:
            state = jax.tree.map(np.asarray, self._learned.state)
            kept["_learned"] = self._learned._replace(state=state)
        return kept

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        with self._whole_or_not_at_all():
            check_count("epochs", self.epochs)
            self._learned, self._num_bad_rows, self._seconds = None, 0, 0.0
            check_process()
            x, shape = read_inputs(self, X)
            rows, labels, origins = self._rows(x, y, sample_weight, classes=None)
            learned = self._start(rows, shape, labels, origins)
            order = np.random.default_rng(learned.seed)
            shuffled = order.permutation(rows.size)
            labels = self._with_task(labels, rows, None)
            learned = study(learned, rows.part(shuffled), labels, None, share=0.0)
            for _ in range(self.epochs - 1):
                shuffled = order.permutation(rows.size)
                learned = gone_through(learned, rows.part(shuffled), shuffled, is_first=False)
            self._learned = learned
        return self

    def _partial_fit(self, X: Any, y: Any, classes: Any, task: TaskId, sample_weight: Any) -> Self:
        with self._whole_or_not_at_all():
            check_process()
            x, shape = read_inputs(self, X, self._learned and self._learned.design)
            rows, labels, origins = self._rows(x, y, sample_weight, classes)
            if rows.size:
                task = as_task(task)
                learned = self._learned or self._start(rows, shape, labels, origins)
                labels = self._with_task(labels, rows, task)
                self._learned = study(learned, rows, labels, task, self.held_out)
        return self

    @contextlib.contextmanager
    def _whole_or_not_at_all(self) -> Iterator[None]:
        before, clock = self.__dict__.copy(), time.perf_counter()
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise
        self._seconds += time.perf_counter() - clock

    def _start(
        self, rows: Rows, shape: tuple[int, ...], labels: Labels, origins: Origins
    ) -> Learned:
        for name in ("batch_size", "glances", "memory_size"):
            check_count(name, getattr(self, name))
        if self.memory_bytes is not None:
            check_count("memory_bytes", self.memory_bytes)
        if not rows.size:
            raise InvalidArgument("nothing to begin with: every row is bad or has weight zero")
        memory_size = int(self.memory_size)
        settings = settings_of(
            self.learner, self.learner_options or {}, memory_size, self._is_regression
        )
        network = network_given(self.model, self.hidden_sizes)
        design = Design(
            learner=self.learner,
            settings=tuple(sorted(settings.items())),
            network=network,
            input_shape=shape,
            num_outputs=num_outputs_of(network, shape, self._num_outputs(labels)),
            is_regression=self._is_regression,
            dtype=narrowest(rows.x, DTYPES[0]).name,
            batch_size=int(self.batch_size),
            glances=int(self.glances),
        )
        if self._is_regression and answers_itself(design.learner):
            raise InvalidArgument(f"learner = {self.learner!r} answers with classes: no regression")
        return started(
            design,
            labels,
            origins=origins,
            seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
            is_scaled=self.scale,
            memory_size=memory_size,
            memory_budget=None if self.memory_bytes is None else int(self.memory_bytes),
            holds_out=self.held_out > 0,
        )

    def _rows(
        self, x: np.ndarray, y: Any, sample_weight: Any, classes: Any
    ) -> tuple[Rows, Labels, Origins]:
        """The good rows of a call, the labels with theirs, and what numbers are counted from."""
        if self.on_bad_rows not in BAD_ROWS:
            raise unknown_name("on_bad_rows", str(self.on_bad_rows), BAD_ROWS)
        check_share("held_out", self.held_out)
        if y is None:
            name = type(self).__name__
            raise InvalidArgument(f"{name} requires y to be passed, but the target y is None")
        is_column = type(y) is np.ndarray and y.ndim == 1
        y = y if is_column else column_or_1d(y, warn=True)
        missing = missing_labels(y)
        y = self._targets(_filled(y, missing))
        if len(x) != len(y):
            check_consistent_length(x, y)
        weight = read_weights(sample_weight, len(x))
        origins = self._learned.origins if self._learned else self._origins(x, y)
        x = as_float32(x, origins.inputs)
        if self._is_regression:
            y = as_float32(y, origins.target)
        kept = weight > 0
        bad = bad_rows(x, y)
        if len(missing):
            bad = np.union1d(bad, missing)
        if len(bad):
            if self.on_bad_rows == "raise":
                raise refusal(bad, "Input X" if len(bad_rows(x)) else "Input y")
            self._num_bad_rows += len(bad)
            kept[bad] = False
        if not kept.all():
            x, y, weight = x[kept], y[kept], weight[kept]
        encoded, labels = self._encoded(y, classes)
        return Rows(x, encoded, relative(weight)), labels, origins

    def _origins(self, x: np.ndarray, y: np.ndarray) -> Origins:
        """What the numbers of a first call are counted from."""
        inputs = origin_of(x) if self.scale and len(x) else None
        return Origins(inputs, origin_of(y[:, None]) if self._is_regression and len(y) else None)

    @abc.abstractmethod
    def _targets(self, y: np.ndarray) -> np.ndarray:
        """Targets as numbers, or labels, still with bad ones among them."""

    @abc.abstractmethod
    def _encoded(self, y: np.ndarray, classes: Any) -> tuple[np.ndarray, Labels]:
        """Targets as the network learns them, and the labels known by now."""

    @abc.abstractmethod
    def _num_outputs(self, labels: Labels) -> int:
        """Outputs needed."""

    def _with_task(self, labels: Labels, rows: Rows, task: TaskId) -> Labels:
        """The labels with the classes of these rows opened for their task."""
        return with_task(labels, task, rows.y if not self._is_regression else np.zeros(0, int))

    def _known(self) -> Learned:
        """What was learned, or scikit-learn's error where nothing was."""
        if self._learned is None:
            raise NotFittedError(f"this {type(self).__name__} has not learned from any row yet")
        return self._learned

    def _checked_inputs(self, X: Any) -> np.ndarray:
        """Rows to be answered: bad ones are always refused, an answer is owed for each."""
        learned = self._known()
        check_process()
        x = as_float32(read_inputs(self, X, learned.design)[0], learned.origins.inputs)
        bad = bad_rows(x)
        if len(bad):
            raise refusal(bad, "Input X")
        return x


def _filled(y: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """With some label of the call in place of those that are missing."""
    if not len(missing):
        return y
    there = np.delete(y, missing)
    y = y.copy()
    y[missing] = there[0] if len(there) else 0
    return y
