"""Small streams for the tests of the estimators, and estimators that compile quickly."""

import jax
import numpy as np

from lamaml import LaMAMLClassifier, LaMAMLRegressor

QUICK = {"learner": "er", "hidden_sizes": (8,), "memory_size": 20}


def classifier(**changes):
    return LaMAMLClassifier(**(QUICK | changes))


def regressor(**changes):
    return LaMAMLRegressor(**(QUICK | changes))


def blobs(num_rows, num_classes=3, num_columns=4, seed=0):
    """Rows around the corners of a simplex: easy to tell apart."""
    rng = np.random.default_rng(seed)
    y = np.arange(num_rows) % num_classes
    x = rng.normal(scale=0.3, size=(num_rows, num_columns))
    x[np.arange(num_rows), y % num_columns] += 3.0 * (1 + y // num_columns)
    return x, y


def bits(estimator):
    """All that an estimator holds, as bytes, but for the time it took."""
    fitted = {} if estimator._fitted is None else vars(estimator._fitted)
    counts = {"_num_bad_rows": estimator._num_bad_rows, "_seconds": 0, "_fitted": fitted}
    numbers = vars(estimator) | counts
    leaves, structure = jax.tree.flatten(numbers)
    return str(structure), [
        (leaf.shape, str(leaf.dtype), _bytes(np.asarray(leaf)))
        if isinstance(leaf, np.ndarray | jax.Array)
        else repr(leaf)
        for leaf in leaves
    ]


def _bytes(leaf):
    """The content of an array; objects, such as names of columns, by their text."""
    return repr(leaf.tolist()) if leaf.dtype == object else leaf.tobytes()
