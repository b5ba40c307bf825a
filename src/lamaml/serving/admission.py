"""Admission: what a request must have before its rows are journaled."""

import math
from typing import Any

import numpy as np

from lamaml.errors import require
from lamaml.serving.config import Settings
from lamaml.serving.errors import NotReady
from lamaml.serving.rows import Label, Schema, label_kind, read_labels, read_rows


class Admission:
    """Checks of rows and labels against everything accepted before. The caller holds a lock.

    Args:
      schema: of the rows before; None if there are none.
      classes: all labels before.
      is_regression: whether labels are targets.
      settings: limits.
    """

    def __init__(
        self, schema: Schema | None, classes: set[Label], is_regression: bool, settings: Settings
    ) -> None:
        self.schema, self.is_regression = schema, is_regression
        self._classes, self._settings = classes, settings

    def rows(self, rows: Any, labels: Any) -> tuple[np.ndarray, list[Label], Schema]:
        """Return checked rows, their labels, and the schema, which the first rows determine.

        Raises:
          BadRows, InvalidArgument: nothing of the request is accepted.
        """
        x, columns = read_rows(rows, self.schema)
        kind = self.schema.label_kind if self.schema else None
        found = read_labels(labels, len(x), self.is_regression, kind)
        size, most = math.prod(x.shape[1:]), self._settings.max_columns
        require(size <= most, "number of values in a row", size, f"at most {most} (max_columns)")
        self._add_classes(found)
        if self.schema is None:
            kind = label_kind(found[0], self.is_regression)
            self.schema = Schema(x.shape[1:], columns, kind)
        return x, found, self.schema

    def labels(self, labels: Any) -> tuple[list[Label], Schema]:
        """Return checked labels of an earlier prediction, and the schema."""
        if self.schema is None:
            raise NotReady("nothing has been predicted yet")
        count = len(labels) if isinstance(labels, list | tuple | np.ndarray) else 1
        found = read_labels(labels, count, self.is_regression, self.schema.label_kind)
        require(count > 0, "number of labels", count, "at least 1")
        self._add_classes(found)
        return found, self.schema

    def _add_classes(self, labels: list[Label]) -> None:
        if self.is_regression or self._classes.issuperset(labels):
            return
        known, most = self._classes | set(labels), self._settings.max_classes
        found = len(known)
        require(found <= most, "number of classes", found, f"at most {most} (max_classes)")
        self._classes = known
