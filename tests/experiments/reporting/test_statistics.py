"""Welch's test and paired intervals."""

import numpy as np
import pytest
from scipy import stats

from lamaml.experiments.reporting.statistics import (
    Sample,
    higher,
    paired_difference,
    sample,
    verdict,
)


def test_welch_from_the_values_themselves() -> None:
    ours, theirs = [75.1, 76.2, 75.5, 75.9, 74.8], [77.0, 77.9, 76.8, 78.1, 77.2]
    expected = stats.ttest_ind(ours, theirs, equal_var=False).pvalue
    found = verdict(sample(ours), sample(theirs))
    assert found.p == pytest.approx(expected)
    assert found.word == "below"
    assert verdict(sample(theirs), sample(ours)).word == "above"
    assert verdict(sample(ours), sample(ours)).word == "within"


def test_one_seed_is_no_verdict() -> None:
    assert sample([70.0]) is sample([70.0, None]) is None
    assert verdict(sample([70.0]), Sample(77.0, 1.0, 5)).word == "–"
    assert verdict(Sample(77.0, 1.0, 5), None).p is None


def test_seeds_that_agree_to_the_digit() -> None:
    assert verdict(Sample(70.0, 0.0, 5), Sample(70.0, 0.0, 5)).word == "within"
    assert verdict(Sample(71.0, 0.0, 5), Sample(70.0, 0.0, 5)).word == "above"
    assert higher(Sample(71.0, 0.0, 2), Sample(70.0, 0.0, 2)) is True
    assert higher(Sample(70.0, 0.0, 2), Sample(71.0, 0.0, 2)) is False
    assert higher(Sample(70.0, 0.0, 2), Sample(70.0, 0.0, 2)) is None


def test_a_paired_interval_covers_the_truth_19_times_in_20() -> None:
    generator = np.random.default_rng(0)
    covered = 0
    for _ in range(400):
        shared = generator.normal(0, 5, 6)
        _, low, high = paired_difference(shared + 1 + generator.normal(0, 1, 6), shared)
        covered += low < 1 < high
    assert 0.92 < covered / 400 < 0.98
