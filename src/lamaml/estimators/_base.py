"""What the classifier and the regressor share: parameters, reading of rows, atomic calls.

A call succeeds, or it leaves the estimator as it was: the new `FittedState` is computed on a copy
and swapped in on success, and attributes that scikit-learn's checks have set are restored. Calls
from several threads are made one after the other.
"""

import abc
import contextlib
import copy
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import jax
import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length

from lamaml._rows import as_float32
from lamaml.errors import InvalidArgument, unknown_name
from lamaml.estimators._choice import AUTO, CHOICE, chosen_learner, default_memory_size
from lamaml.estimators._compiled import has_predict
from lamaml.estimators._config import (
    Builder,
    Config,
    Network,
    choose_num_outputs,
    learner_settings,
)
from lamaml.estimators._fitting import fit_rows, run_updates
from lamaml.estimators._labels import Labels, TaskId, add_task, check_task
from lamaml.estimators._parameters import check_unchanged, fixed_parameters, writers_lock
from lamaml.estimators._prediction import predict_outputs
from lamaml.estimators._reading import Inputs, ReadingEstimator, dense_parts, read
from lamaml.estimators._rows import (
    Offsets,
    Rows,
    find_offsets,
)
from lamaml.estimators._state import FittedState, initial_state
from lamaml.estimators._validation import (
    check_count,
    check_fraction,
    check_network,
    check_process,
    find_bad_rows,
    normalise,
    read_targets,
    read_weights,
)
from lamaml.estimators.report import Report, make_report
from lamaml.types import Params

BAD_ROWS = ("raise", "skip")


class StreamEstimator(ReadingEstimator, abc.ABC):
    """A learner with scikit-learn's interface."""

    _is_regression: bool

    def __init__(
        self,
        learner: str | Builder = "auto",
        *,
        learner_options: Mapping[str, Any] | None = None,
        model: Network | None = None,
        hidden_sizes: Sequence[int] = (100, 100),
        memory_size: int | None = None,
        memory_bytes: int | None = None,
        batch_size: int | None = None,
        glances: int = 1,
        epochs: int = 20,
        scale: bool = True,
        held_out: float = 0.02,
        on_bad_rows: str = "raise",
        columns: str | Mapping[Any, str] = "auto",
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
        self.columns = columns
        self.random_state = random_state

    @property
    def report_(self) -> Report:
        """Rows seen and stored, learning rates, losses and forgetting, computed now."""
        choice = CHOICE if self.learner == AUTO else None
        return make_report(self._require_fitted(), self._num_bad_rows, self._seconds, choice)

    @property
    def params_(self) -> Params:
        """The network's learned weights, copied: a pytree like that of the model's `init`.

        They are weights for scaled inputs unless `scale` is False.
        """
        return jax.tree.map(np.array, self._require_fitted().learner_state.params)

    def warm_up(self, X: Any, y: Any) -> Self:
        """Compile all programs for calls like this one, and learn nothing.

        Afterwards no call of `partial_fit`, `predict` or `report_` with at most this number of
        rows waits for a compiler. A service calls it before the first request.

        Args:
          X: rows like those to come; their values do not matter, but they must be valid.
          y: their labels or targets.

        Returns:
          The estimator itself, unchanged to the bit; it is not fitted if it was not.
        """
        trial = copy.copy(self)
        trial.random_state, trial._fixed = 0, None  # a RandomState of the user must not advance
        trial._partial_fit(X, y, None, None, None)
        if trial._fitted is not None:
            predict_outputs(trial._fitted, trial._read_rows_to_predict(X))
            make_report(trial._fitted, 0, 0.0)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        with self._atomic_call():
            check_count("epochs", self.epochs)
            self._fitted, self._num_bad_rows, self._seconds = None, 0, 0.0
            inputs = read(self, X, None, is_learned=True)
            rows, labels, offsets = self._read_rows(inputs, y, sample_weight, classes=None)
            fitted = self._initial_state(rows, inputs, labels, offsets)
            rng = np.random.default_rng(fitted.seed)
            labels = self._add_task(labels, rows, None)
            shuffled = rows.take(rng.permutation(rows.size))
            fitted = fit_rows(fitted, shuffled, labels, None, held_out=0.0)
            for _ in range(self.epochs - 1):
                fitted = run_updates(fitted, rows.take(rng.permutation(rows.size)))
            self._fitted, self._fixed = fitted, fixed_parameters(self)
        return self

    def _partial_fit(self, X: Any, y: Any, classes: Any, sample_weight: Any, task: TaskId) -> Self:
        with self._atomic_call():
            self._apply_parameters()
            for part, which in dense_parts(X):
                weight = (
                    sample_weight
                    if which == slice(None) or sample_weight is None
                    else sample_weight[which]
                )
                self._learn(part, y if which == slice(None) else y[which], weight, classes, task)
        return self

    def _learn(self, X: Any, y: Any, sample_weight: Any, classes: Any, task: TaskId) -> None:
        inputs = read(self, X, self._fitted, is_learned=True)
        rows, labels, offsets = self._read_rows(inputs, y, sample_weight, classes)
        if rows.size:
            task = check_task(task)
            fitted = self._fitted or self._initial_state(rows, inputs, labels, offsets)
            fitted = replace(fitted, encoding=inputs.encoding or fitted.encoding)
            labels = self._add_task(labels, rows, task)
            self._fitted = fit_rows(fitted, rows, labels, task, self.held_out)

    @contextlib.contextmanager
    def _atomic_call(self) -> Iterator[None]:
        """Restore all attributes if the block raises; else add its time to the seconds spent."""
        check_process()
        with writers_lock(self):
            before, clock = self.__dict__.copy(), time.perf_counter()
            try:
                yield
            except BaseException:
                self.__dict__ = before
                raise
            self._seconds += time.perf_counter() - clock

    def _apply_parameters(self) -> None:
        """Use parameters that were set since the last call.

        Raises:
          InvalidArgument: the state learned so far was made with another value of one of them.
        """
        if self._fitted is None or self._fixed is None:
            self._fixed = fixed_parameters(self)
        check_unchanged(self, self._fixed)
        if self._fitted is not None:
            config = self._fitted.config
            if (self.glances, self.batch_size) != (config.glances, config.batch_size):
                self._check_counts()
                config = replace(config, glances=self.glances, batch_size=self.batch_size)
                self._fitted = replace(self._fitted, config=config)

    def _check_counts(self) -> None:
        check_count("glances", self.glances)
        for name in ("memory_size", "batch_size", "memory_bytes"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))

    def _initial_state(
        self,
        rows: Rows,
        inputs: Inputs,
        labels: Labels,
        offsets: Offsets,
    ) -> FittedState:
        self._check_counts()
        shape = inputs.shape
        num_targets = 1 if rows.y.ndim == 1 else rows.y.shape[1]
        if not rows.size:
            raise InvalidArgument("X has no row to start with: every row is bad or has zero weight")
        learner, options = chosen_learner(self.learner), self.learner_options or {}
        memory_size = self._memory_size(4 * math.prod(shape))
        settings = learner_settings(learner, options, memory_size, self._is_regression)
        network = check_network(self.model, self.hidden_sizes)
        config = Config(
            learner=learner,
            settings=tuple(sorted(settings.items())),
            network=network,
            input_shape=shape,
            num_outputs=choose_num_outputs(
                network,
                shape,
                num_targets if self._is_regression else max(len(labels.classes), 2),
                is_exact=self._is_regression,
            ),
            num_targets=num_targets,
            is_regression=self._is_regression,
            dtype="uint8" if inputs.x.dtype == np.uint8 else "float32",
            batch_size=None if self.batch_size is None else int(self.batch_size),
            glances=int(self.glances),
        )
        if self._is_regression and has_predict(config):
            raise InvalidArgument(f"learner = {self.learner!r} predicts classes: choose another")
        return initial_state(
            config,
            labels,
            offsets=offsets,
            seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
            is_scaled=self.scale,
            memory_size=memory_size,
            memory_budget=None if self.memory_bytes is None else int(self.memory_bytes),
            has_holdout=self.held_out > 0,
            encoding=inputs.encoding,
        )

    def _memory_size(self, row_bytes: int) -> int:
        if self.memory_size is None:
            return default_memory_size(self.learner, row_bytes)
        return int(self.memory_size)

    def _read_rows(
        self, inputs: Inputs, y: Any, sample_weight: Any, classes: Any
    ) -> tuple[Rows, Labels, Offsets]:
        """Return the rows to learn from, the labels with theirs, and the offsets."""
        if self.on_bad_rows not in BAD_ROWS:
            raise unknown_name("on_bad_rows", str(self.on_bad_rows), BAD_ROWS)
        check_fraction("held_out", self.held_out)
        x = inputs.x
        y, missing = read_targets(y, type(self).__name__, may_be_many=self._is_regression)
        y = self._check_targets(y)
        if len(x) != len(y):
            check_consistent_length(x, y)
        weight = read_weights(sample_weight, len(x))
        if self._fitted:
            offsets = self._fitted.offsets
        else:
            offsets = find_offsets(x if self.scale else None, y if self._is_regression else None)
        x = as_float32(x, offsets.inputs)
        if self._is_regression:
            y = as_float32(y, offsets.target)
        kept = weight > 0
        bad = find_bad_rows(x, y, missing, self.on_bad_rows, self._names(inputs.encoding))
        self._num_bad_rows += len(bad)
        kept[bad] = False
        if not kept.all():
            x, y, weight = x[kept], y[kept], weight[kept]
        encoded, labels = self._encode(y, classes)
        return Rows(x, encoded, *normalise(weight)), labels, offsets

    @abc.abstractmethod
    def _check_targets(self, y: np.ndarray) -> np.ndarray:
        """Return y as numbers or strings, bad values included; raise for another kind."""

    @abc.abstractmethod
    def _encode(self, y: np.ndarray, classes: Any) -> tuple[np.ndarray, Labels]:
        """Return the targets as the network learns them, and the labels known by now."""

    def _add_task(self, labels: Labels, rows: Rows, task: TaskId) -> Labels:
        return add_task(labels, task, np.zeros(0, int) if self._is_regression else rows.y)
