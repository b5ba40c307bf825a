"""The classifier: a learner of this package as a scikit-learn estimator."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from lamaml.errors import InvalidArgument
from lamaml.estimators._base import StreamEstimator
from lamaml.estimators._calibration import temperature_of
from lamaml.estimators._choice import chosen_learner
from lamaml.estimators._class_weight import with_class_weight
from lamaml.estimators._compiled import has_predict
from lamaml.estimators._config import Builder, Network, has_own_predict, learner_name
from lamaml.estimators._labels import (
    Labels,
    TaskId,
    add_classes,
    check_task,
    empty_labels,
    encode,
    match_dtype,
)
from lamaml.estimators._prediction import allowed_outputs, network_outputs, predict_outputs


def _has_probabilities(classifier: "LaMAMLClassifier") -> bool:
    if classifier._fitted is not None:
        return not has_predict(classifier._fitted.config)
    options = classifier.learner_options or {}
    return not has_own_predict(chosen_learner(classifier.learner), options, 1)


class LaMAMLClassifier(ClassifierMixin, StreamEstimator):  # type: ignore[misc]
    """Classifier for streams that keeps what it has learned.

    Call `partial_fit` with the next rows of the stream, any number of them. New classes may appear
    at any time, and neither task labels nor task boundaries are needed. A call that raises leaves
    the classifier unchanged.

    Args:
      learner: the algorithm. "auto" for slow weights that replay and fast weights that follow
        (`lamaml.learners.fast_and_slow`); `report_.choice` says what it does. "la_maml" for the
        paper's; any other name listed by `lamaml list`, such as "er" or "c_maml";
        "package.module:function"; or a function (loss, *, settings) -> Learner. The learner
        "icarl" stores exemplars when a task ends: pass `task` to `partial_fit`, or set its
        `task_size` so high that these rows contain every class.
      learner_options: settings of the learner, such as {"hyper_rate": 0.1}. A learner that is not
        part of this package gets all its settings from here, except `memory_size`.
      model: the network: a `Model`, whose number of outputs limits the number of classes, or a
        function (input_shape, num_outputs) -> Model, such as `lamaml.models.cnn`, which can grow.
        None for a multilayer perceptron with `hidden_sizes`.
      hidden_sizes: number of units in each hidden layer of the default network.
      memory_size: number of rows stored for replay. None for 1,000 with "auto", or as many as fit
        into 16 MB, and for 200, the paper's number, with other learners.
      memory_bytes: limit for the bytes of all stored rows; it replaces `memory_size` by the
        largest size that fits. None for no limit.
      batch_size: number of rows per update. None for 10 and, in calls of more than 50,000 rows, for
        50, learned in at most 5 look-ahead steps, or by "auto" in one step instead of three.
      glances: number of updates per batch.
      epochs: number of passes over the rows in `fit`; `partial_fit` makes one pass.
      scale: whether to standardise inputs by their running mean and standard deviation.
      held_out: fraction of the stream, in [0, 0.5], that is not learned from but used to measure
        forgetting. At most `memory_size / 10` of these rows are stored, and at most 200.
      on_bad_rows: what to do with rows that contain NaN or infinity or have no label: "raise" an
        error, or "skip" and count them.
      columns: how frames of pandas and polars are read. "auto": if the first one has strings,
        categories or dates, or lacks numbers and `on_bad_rows` is not "skip", all columns are
        encoded as numbers; a missing value is a value then, and categories may be new at any time.
        A mapping names the kind of some columns, {"zip": "category"}, and always encodes. With
        "numbers", only numbers and booleans are taken.
      random_state: seed, or NumPy `RandomState`, of all random draws. The same seed gives
        bit-identical results.
      class_weight: what a row of each class counts, new or replayed: a mapping from classes to
        positive numbers, 1 for those it does not name, divided by their mean over the rows seen;
        "balanced" for n / (C · n_c), after n rows of C classes, n_c of them of class c; None for 1.
        It may be set at any time. The learner "er_ace" applies it to replayed rows only.
      calibrate: whether probabilities are those of the temperature, from 1/4 to 4, with the lowest
        log loss on the held-out rows, once there are 50 of them. It is found when probabilities are
        asked for. Predictions do not change. It may be set at any time.

    Attributes:
      classes_: all classes so far, sorted.
      n_features_in_: number of values in a row.
      feature_names_in_: names of the columns, if `X` is a frame that has them.
      report_: counts, memory, learning rates, losses and forgetting, see `Report`.

    Examples:
      >>> import numpy as np
      >>> x, y = np.eye(3)[np.arange(60) % 3], np.array(["ant", "bee", "cat"] * 20)
      >>> clf = LaMAMLClassifier("er", hidden_sizes=(32,), glances=10)
      >>> clf.partial_fit(x[y != "cat"], y[y != "cat"]).classes_.tolist()
      ['ant', 'bee']
      >>> clf.partial_fit(x, y).predict(np.eye(3)).tolist()
      ['ant', 'bee', 'cat']
    """

    _is_regression = False

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
        class_weight: Mapping[Any, float] | str | None = None,
        calibrate: bool = True,
    ) -> None:
        super().__init__(
            learner,
            learner_options=learner_options,
            model=model,
            hidden_sizes=hidden_sizes,
            memory_size=memory_size,
            memory_bytes=memory_bytes,
            batch_size=batch_size,
            glances=glances,
            epochs=epochs,
            scale=scale,
            held_out=held_out,
            on_bad_rows=on_bad_rows,
            columns=columns,
            random_state=random_state,
        )
        self.class_weight = class_weight
        self.calibrate = calibrate

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the classifier from scratch, in `epochs` passes over shuffled rows.

        Args:
          X: rows, (n, columns) or (n, height, width, channels), as an array or a frame; sparse
            rows are made dense, in blocks where they are many.
          y: labels, numbers or strings.
          sample_weight: weight of each row, at least 0: what it counts beside a row of weight 1,
            which is what rows without a weight and replayed rows have. Rows of weight 0 are
            ignored.

        Returns:
          The classifier itself.

        Raises:
          InvalidArgument: a parameter, row, label or weight is not valid; it is a ValueError.
          Diverged: a loss or weight is no longer finite; the previous state was restored.
        """
        return self._fit(X, y, sample_weight)

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, *, task: TaskId = None
    ) -> Self:
        """Learn from the next rows of a stream, in their order.

        Args:
          X: rows, as in `fit`; all rows of a stream have the same shape.
          y: labels.
          classes: labels to list in `classes_` from now on. Never needed; a class is not predicted
            before a row of it was seen.
          sample_weight: weight of each row, as in `fit`.
          task: name of the task of these rows, if known. The classes of a task then compete only
            with each other, the paper's multi-head setting.

        Returns:
          The classifier itself.

        Raises:
          InvalidArgument: a parameter, row, label or weight is not valid; it is a ValueError.
          Diverged: a loss or weight is no longer finite; the previous state was restored.
        """
        return self._partial_fit(X, y, classes, sample_weight, task)

    def predict(self, X: Any, *, task: TaskId = None) -> np.ndarray:
        """Return the predicted class of each row.

        Args:
          X: rows, as in `fit`. Bad rows raise, whatever `on_bad_rows` is; `bad_rows` finds them.
          task: predict only classes of this task; None for all classes seen.
        """
        fitted = self._require_fitted()
        outputs = self._by_parts(X, lambda x: predict_outputs(fitted, x, check_task(task)))
        return fitted.labels.classes[np.argsort(fitted.labels.outputs)[outputs]]

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, *, task: TaskId = None) -> np.ndarray:
        """Return the probability of each of `classes_` for each row, (n, classes).

        Learners that predict by other means than the outputs of the network do not have it.

        Args:
          X: rows, as in `predict`.
          task: give probability only to classes of this task; None for all classes seen.
        """
        return np.exp(self.predict_log_proba(X, task=task))

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any, *, task: TaskId = None) -> np.ndarray:
        """Return the logarithm of `predict_proba`, exact where that rounds to 0 or 1.

        Args:
          X: rows, as in `predict`.
          task: as in `predict_proba`; the classes of other tasks have -inf.
        """
        fitted = self._require_fitted()
        outputs = self._by_parts(X, lambda x: network_outputs(fitted, x))
        logits = outputs.astype(np.float64)
        if self.calibrate:
            logits /= temperature_of(self, fitted)
        logits[:, ~allowed_outputs(fitted, check_task(task))] = -np.inf
        logits = logits[:, fitted.labels.outputs]
        logits -= logits.max(axis=1, keepdims=True)
        return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))

    @property
    def classes_(self) -> np.ndarray:
        """All classes so far, sorted."""
        if self._fitted is None:
            raise AttributeError("classes_ is available after the first fit or partial_fit")
        return self._fitted.labels.classes

    def _check_targets(self, y: np.ndarray) -> np.ndarray:
        return _as_labels(y)

    def _encode(self, y: np.ndarray, classes: Any) -> tuple[np.ndarray, Labels]:
        if y.dtype.kind == "f" and len(y):
            check_classification_targets(y)
        labels = empty_labels(y.dtype) if self._fitted is None else self._fitted.labels
        if classes is not None:
            declared = match_dtype(_as_labels(np.asarray(list(classes))), labels)
            labels = add_classes(labels, declared)
        y = match_dtype(y, labels)
        labels = add_classes(labels, y)
        outputs = encode(labels, y)
        if self.class_weight is not None and not _has_probabilities(self):
            name = learner_name(self.learner)
            reason = f"because {name} predicts by other means than the outputs that it weighs"
            raise InvalidArgument(f"class_weight = {self.class_weight!r}: must be None, {reason}")
        return outputs, with_class_weight(labels, self.class_weight, outputs)


def _as_labels(y: np.ndarray) -> np.ndarray:
    """Return labels as an array of numbers or of strings."""
    if y.dtype == object and 0 < sum(isinstance(label, str) for label in y) < len(y):
        raise InvalidArgument("y mixes strings with other labels: give all as numbers or strings")
    is_text = y.dtype.kind == "T"  # NumPy's strings of variable length
    labels = np.array(y.tolist()) if y.dtype == object or is_text else y
    if labels.dtype.kind not in "iubfU" or labels.ndim != 1:
        raise InvalidArgument(f"y has labels like {y[:3].tolist()}: must be numbers or strings")
    return labels
