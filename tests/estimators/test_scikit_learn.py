"""Scikit-learn's own suite of checks, on both estimators and several learners."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from lamaml import LaMAMLClassifier, LaMAMLRegressor

LIGHT = {"hidden_sizes": (20,), "memory_size": 50}  # quicker to compile, the same code
LOOKING_AHEAD = LIGHT | {"learner": "la_maml", "learner_options": {"inner_steps": 2}}
EXPECTED = {
    # In the words of scikit-learn, which expects it of its own SGDClassifier and SGDRegressor.
    "check_sample_weight_equivalence_on_dense_data": (
        "sample_weight is not equivalent to removing/repeating samples."
    ),
    "check_sample_weight_equivalence_on_sparse_data": (
        "sample_weight is not equivalent to removing/repeating samples."
    ),
}
ICARL = {"check_class_weight_classifiers": "icarl answers with the nearest mean: it is refused."}


@parametrize_with_checks(
    [
        LaMAMLClassifier(**LIGHT),
        LaMAMLClassifier(**LOOKING_AHEAD),
        LaMAMLClassifier("er", **LIGHT),
        LaMAMLClassifier("icarl", **LIGHT),  # it answers with the nearest mean, not with outputs
        LaMAMLRegressor(**LIGHT),
        LaMAMLRegressor(**LOOKING_AHEAD),
    ],
    expected_failed_checks=lambda estimator: ICARL if estimator.learner == "icarl" else EXPECTED,
)
def test_scikit_learn(estimator, check):
    check(estimator)
