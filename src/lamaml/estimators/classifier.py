"""La-MAML as a scikit-learn classifier."""

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from lamaml.errors import InvalidArgument
from lamaml.estimators._base import StreamEstimator
from lamaml.estimators._config import answers_itself
from lamaml.estimators._labels import (
    Labels,
    TaskId,
    alike,
    as_task,
    no_labels,
    outputs_of,
    with_classes,
)
from lamaml.estimators._prediction import chosen_outputs, open_outputs, outputs_for


def _gives_probabilities(classifier: "LaMAMLClassifier") -> bool:
    learned = classifier._learned
    return not answers_itself(classifier.learner if learned is None else learned.design.learner)


class LaMAMLClassifier(ClassifierMixin, StreamEstimator):  # type: ignore[misc]
    """A classifier that learns from a stream and does not forget.

    Rows arrive in `partial_fit`, any number at a time; new classes may appear at any time, and no
    task labels or boundaries are needed. A call that raises has changed nothing.

    Args:
      learner: the algorithm, any of `lamaml list`: "la_maml", "er", "c_maml", ... "icarl" keeps
        exemplars when a task ends: it needs `task`, or `task_size` rows that show every class.
      learner_options: settings of the algorithm's own, such as {"hyper_rate": 0.1}.
      model: a network of your own: a `Model`, whose outputs bound the number of classes, or a
        function (input_shape, num_outputs) -> Model, such as `lamaml.models.cnn`, which can grow.
      hidden_sizes: of the paper's MLP, where no model is given.
      memory_size: rows remembered for replay.
      memory_bytes: instead, a hard budget for all rows kept; as many as fit are.
      batch_size: rows an update learns from together.
      glances: updates a batch is shown in.
      epochs: passes that `fit` takes; `partial_fit` takes one.
      scale: whether inputs are scaled by their running mean and deviation.
      held_out: share of a stream that is kept aside to see what is forgotten; 0 for none. A tenth
        of memory_size such rows are kept, at most 200, beside the memory or within memory_bytes.
      on_bad_rows: rows with NaN or infinity are refused ("raise") or left out and counted ("skip").
      random_state: decides every random draw: the same state, the same bits.

    Attributes:
      classes_: all classes so far, sorted.
      n_features_in_: numbers in a row.
      feature_names_in_: names of columns, where frames have them.
      report_: what it is doing, see `Report`.

    Example:
      >>> import numpy as np
      >>> x, y = np.eye(3)[np.arange(60) % 3], np.array(["ant", "bee", "cat"] * 20)
      >>> clf = LaMAMLClassifier("er", hidden_sizes=(32,), glances=10)
      >>> clf.partial_fit(x[y != "cat"], y[y != "cat"]).classes_.tolist()
      ['ant', 'bee']
      >>> clf.partial_fit(x, y).predict(np.eye(3)).tolist()
      ['ant', 'bee', 'cat']
    """

    _is_regression = False

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Forget everything, then learn these rows in `epochs` passes, each in an order of its own.

        Args:
          X: rows, (n, columns) or (n, height, width, channels); arrays or frames of real numbers.
          y: their labels, numbers or strings.
          sample_weight: of each row, at least 0, beside the others of the call; a row of weight 0
            is as good as absent.
        """
        return self._fit(X, y, sample_weight)

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        task: TaskId = None,
        sample_weight: Any = None,
    ) -> Self:
        """Learn from the next rows of a stream, in their order.

        Args:
          X: rows, as in `fit`; all of a stream have one shape.
          y: their labels.
          classes: labels to list in `classes_` from now on; never needed, and none is answered with
            before a row of it was seen.
          task: what the rows belong to, where that is known: each task's rows compete among the
            classes of that task only, the paper's multi-head setting.
          sample_weight: of each row, at least 0, beside the others of the call: in the memory all
            rows weigh the same.

        Raises:
          InvalidArgument: bad rows, labels or weights; it is a ValueError.
          Diverged: the update would have left the finite numbers.
        """
        return self._partial_fit(X, y, classes, task, sample_weight)

    def predict(self, X: Any, task: TaskId = None) -> np.ndarray:
        """The class of each row: one of those seen, or with a task one of that task's."""
        learned = self._known()
        outputs = chosen_outputs(learned, self._checked_inputs(X), as_task(task))
        places = np.argsort(learned.labels.outputs)[outputs]
        return learned.labels.classes[places]

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, task: TaskId = None) -> np.ndarray:
        """The probability of each of `classes_`; 0 for one that was never seen."""
        learned = self._known()
        logits = outputs_for(learned, self._checked_inputs(X)).astype(np.float64)
        logits[:, ~open_outputs(learned, as_task(task))] = -np.inf
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))[:, learned.labels.outputs]
        return shares / shares.sum(axis=1, keepdims=True)

    @property
    def classes_(self) -> np.ndarray:
        """All classes so far, sorted."""
        if self._learned is None:
            raise AttributeError("classes_ is known after the first call of fit or partial_fit")
        return self._learned.labels.classes

    def _targets(self, y: np.ndarray) -> np.ndarray:
        return _as_labels(y)

    def _encoded(self, y: np.ndarray, classes: Any) -> tuple[np.ndarray, Labels]:
        if y.dtype.kind == "f" and len(y):
            check_classification_targets(y)
        labels = no_labels(y.dtype) if self._learned is None else self._learned.labels
        if classes is not None:
            labels = with_classes(labels, alike(_as_labels(np.asarray(list(classes))), labels))
        y = alike(y, labels)
        labels = with_classes(labels, y)
        return outputs_of(labels, y), labels

    def _num_outputs(self, labels: Labels) -> int:
        return max(len(labels.classes), 2)


def _as_labels(y: np.ndarray) -> np.ndarray:
    """Labels as an array of numbers or of strings."""
    if y.dtype == object and 0 < sum(isinstance(label, str) for label in y) < len(y):
        raise InvalidArgument("y mixes strings with other labels")
    is_text = y.dtype.kind == "T"  # NumPy's strings of any length
    labels = np.array(y.tolist()) if y.dtype == object or is_text else y
    if labels.dtype.kind not in "iubfU" or labels.ndim != 1:
        raise InvalidArgument(f"y has labels like {y[:3].tolist()}: must be numbers or strings")
    return labels
