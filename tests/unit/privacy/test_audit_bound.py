"""Empirical bounds, key selection, bands and exact curves."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binom, norm

from dbext.errors import BadArgument
from dbext.mechanisms.simultaneous import sidak_constant, union_tail
from dbext.privacy.audit_bound import beta_share, binomial_tail, epsilon_lower_bound, lower_limit, mu_lower_bound, upper_limit
from dbext.privacy.repeated_laplace import repeated_laplace_delta, repeated_laplace_epsilon
from tests.unit.vectors.key_selection import ContinualThreshold, laplace_threshold, optimal_probabilities


@given(st.floats(0.5, 400), st.floats(0.5, 400), st.floats(0.001, 0.999))
def test_beta_shares_agree_with_scipy(a, b, x):
    assert beta_share(a, b, x) == pytest.approx(beta.cdf(x, a, b), abs=1e-11)


@given(st.integers(1, 100_000), st.floats(0, 1), st.sampled_from([0.025, 0.001]))
def test_limits_agree_with_scipy(runs, share, error):
    hits = round(share * runs)
    low = 0.0 if hits == 0 else beta.ppf(error, hits, runs - hits + 1)
    high = 1.0 if hits == runs else beta.ppf(1 - error, hits + 1, runs - hits)
    assert (lower_limit(hits, runs, error), upper_limit(hits, runs, error)) == pytest.approx((low, high), rel=1e-8, abs=1e-12)


@pytest.mark.parametrize(("hits", "trials", "chance"), [(0, 5, 0.3), (3, 5, 0.3), (6, 5, 0.3), (600, 1000, 0.5)])
def test_binomial_tails_agree_with_scipy(hits, trials, chance):
    assert binomial_tail(hits, trials, chance) == pytest.approx(binom.sf(hits - 1, trials, chance), rel=1e-9)


def test_an_honest_mechanism_is_never_accused_and_a_broken_one_is():
    """Expected counts of a Laplace event at epsilon 1: just below the claim; at half the noise: above it."""
    runs = 10_000
    assert 0.9 < epsilon_lower_bound(runs // 2, runs, round(runs * math.exp(-1) / 2), runs) < 1
    assert epsilon_lower_bound(runs // 2, runs, round(runs * math.exp(-2) / 2), runs) > 1
    assert epsilon_lower_bound(100, runs, 100, runs) == 0
    assert epsilon_lower_bound(10, runs, 0, runs, delta=0.1) == 0


def test_gaussian_audits_come_close_to_mu():
    runs, mu = 10_000, 0.8
    found = mu_lower_bound(round(runs * norm.cdf(mu / 2)), runs, round(runs * norm.cdf(-mu / 2)), runs)
    assert mu - 0.08 < found < mu
    assert mu_lower_bound(0, 10, 0, 10) == 0


def test_counts_that_cannot_be_are_refused():
    for hits, runs in ((-1, 5), (6, 5), (0, 0)):
        with pytest.raises(BadArgument):
            lower_limit(hits, runs, 0.025)


def test_thresholds_hide_single_entries():
    scale, delta, keys = 1 / 0.5 * 2, 1e-6, 2
    assert math.exp(-(laplace_threshold(0.5, delta, keys) - 1) / scale) / 2 == pytest.approx(delta / keys)
    threshold = ContinualThreshold(4.0, delta, 2, 365)
    assert norm.sf((threshold.gaussian - 1) / 4) * 2 * 365 == pytest.approx(delta)
    assert threshold.subgaussian > threshold.gaussian
    assert sum(threshold.summable(n).delta for n in range(1, 10_000)) < delta
    for bad in (lambda: laplace_threshold(0, delta), lambda: ContinualThreshold(1.0, 2.0, 1, 1), lambda: threshold.summable(0)):
        with pytest.raises(BadArgument):
            bad()


@given(st.floats(0.05, 3), st.floats(1e-9, 0.2))
def test_optimal_selection_is_private_between_neighbours(epsilon, delta):
    chances = [0.0, *optimal_probabilities(epsilon, delta, 40)]
    for fewer, more in pairwise(chances):
        assert fewer <= more <= 1
        assert more <= math.exp(epsilon) * fewer + delta + 1e-12
        assert 1 - fewer <= math.exp(epsilon) * (1 - more) + delta + 1e-12


@pytest.mark.parametrize(("parameter", "sensitivity", "times"), [(0.25, 1, 8), (0.3, 2, 3), (0.7, 3, 1)])
def test_repeated_laplace_against_summed_laws(parameter, sensitivity, times):
    q, reach = math.exp(-parameter), 80
    pmf = {x: (1 - q) / (1 + q) * q ** abs(x) for x in range(-reach, reach + 1)}
    losses: dict[float, float] = {0.0: 1.0}
    for _ in range(times):
        grown: dict[float, float] = {}
        for loss, share in losses.items():
            for x, chance in pmf.items():
                key = round(loss + parameter * (abs(x - sensitivity) - abs(x)), 9)
                grown[key] = grown.get(key, 0.0) + share * chance
        losses = grown
    for epsilon in (0.0, 0.5, 1.0):
        direct = sum(share * (1 - math.exp(epsilon - loss)) for loss, share in losses.items() if loss > epsilon)
        assert repeated_laplace_delta(epsilon, parameter, sensitivity, times) == pytest.approx(direct, abs=1e-7)
    delta = repeated_laplace_delta(0.4, parameter, sensitivity, times)
    assert repeated_laplace_epsilon(delta, parameter, sensitivity, times) == pytest.approx(0.4)
    assert repeated_laplace_epsilon(1.0, parameter, sensitivity, times) == 0


def test_discrete_laplace_at_sensitivity_one_is_randomised_response():
    true = 1 / (1 + math.exp(-0.25))  # sensitivity 1 is binary randomised response: the losses are binomial
    epsilon = repeated_laplace_epsilon(1e-6, 0.25, 1, 8)
    losses = ((0.25 * (2 * j - 8), math.comb(8, j) * true**j * (1 - true) ** (8 - j)) for j in range(9))
    assert math.fsum(max(0.0, 1 - math.exp(epsilon - loss)) * share for loss, share in losses) == pytest.approx(1e-6)


def test_bands_hold_together():
    assert sidak_constant(1) == pytest.approx(norm.ppf(0.975))
    assert (2 * norm.cdf(sidak_constant(365)) - 1) ** 365 == pytest.approx(0.95)
    assert sidak_constant(10) < norm.isf(union_tail(10) / 2) < 1.005 * sidak_constant(10)
    with pytest.raises(BadArgument):
        sidak_constant(0)
