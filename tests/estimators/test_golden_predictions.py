"""The estimators predict what they predicted when `golden_predictions.json` was written."""

import json

import golden_predictions as golden
import jax
import numpy as np
import pytest

STORED = json.loads(golden.PATH.read_text())


def test_every_stored_case_is_computed():
    assert STORED.keys() == golden.CASES.keys()


@pytest.mark.parametrize("name", golden.CASES)
def test_predictions_are_the_stored_ones(name):
    case, learner = golden.CASES[name]
    found, stored = case(learner), STORED[name]
    assert jax.tree.structure(found) == jax.tree.structure(stored)
    for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(stored), strict=True):
        assert np.isclose(ours, theirs, rtol=1e-4, atol=1e-6)
