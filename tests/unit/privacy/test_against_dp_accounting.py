"""Composed losses and conversions against Google's numerical privacy loss distributions: never below them, and not far above."""

from __future__ import annotations

import functools
import math
from fractions import Fraction

import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from dbext.mechanisms.binary_tree import BinaryTree
from dbext.privacy.accountant import worst_case_loss
from dbext.privacy.charge import Charge
from dbext.privacy.constraint import Constraint, EntryType
from dbext.privacy.gaussian import gaussian_epsilon
from dbext.privacy.grid import RegularGrid
from dbext.privacy.loss import loss_of
from dbext.privacy.measure import Measure
from dbext.privacy.noise import DiscreteLaplace, RoundedGaussian
from dbext.privacy.pattern import Single, Windows
from dbext.privacy.pico import PICOS, picos_up
from dbext.privacy.repeated_laplace import repeated_laplace_epsilon
from tests.literature import rho_to_epsilon

DELTA = Fraction(1, 10**6)
DISCRETISATION = 1e-3


def figure(charges, constraint):
    return worst_case_loss(charges, [EntryType(1, "any", constraint)], pure=True)[1] / PICOS


def laplace(scale, sensitivity=1):
    return pld.from_discrete_laplace_mechanism(float(1 / scale), sensitivity, value_discretization_interval=DISCRETISATION)


def gaussian(sigma_squared):
    return pld.from_gaussian_mechanism(math.sqrt(sigma_squared), value_discretization_interval=DISCRETISATION)


@pytest.mark.parametrize("horizon", [7, 63])
def test_a_pure_tree(horizon):
    """An entry touches one node of each level; distributions at a tiny delta come close to the sum of epsilons."""
    tree, scale = BinaryTree(RegularGrid(0, 1), horizon), Fraction(12)
    touched = horizon.bit_length()
    claimed = figure([Charge(p, DiscreteLaplace(scale), Measure.NET) for p in tree.patterns()], Constraint(max_mutations=1))
    numerical = laplace(scale).self_compose(touched).get_epsilon_for_delta(1e-12)
    assert 0.97 * claimed <= numerical <= claimed + touched * DISCRETISATION


@pytest.mark.parametrize(("laplaces", "gaussians"), [(0, 1), (0, 9), (8, 0), (5, 4), (30, 30)])
def test_mixed_releases_in_one_budget(laplaces, gaussians):
    scale, sigma_squared = Fraction(9), Fraction(70)
    charges = [Charge(Single(0, 1), DiscreteLaplace(scale), Measure.NET, pure=True)] * laplaces
    charges += [Charge(Single(0, 1), RoundedGaussian(sigma_squared), Measure.NET)] * gaussians
    claimed = float(loss_of(charges, [EntryType(1, "any", Constraint(max_mutations=1))], pure=False).epsilon(DELTA))
    parts = [law.self_compose(count) for law, count in ((laplace(scale), laplaces), (gaussian(sigma_squared), gaussians)) if count]
    numerical = functools.reduce(lambda one, other: one.compose(other), parts)
    epsilon = numerical.get_epsilon_for_delta(float(DELTA))
    assert (0.45 if laplaces else 0.95) * claimed <= epsilon <= claimed + (laplaces + gaussians) * DISCRETISATION


@pytest.mark.parametrize("sensitivity", [2, 3])
def test_events_that_fall_into_one_filter(sensitivity):
    """k = 2 s mutations enter s times, all in one block: the discrete Laplace mechanism with sensitivity s."""
    charge = Charge(Windows(RegularGrid(0, 14), width_steps=1), DiscreteLaplace(Fraction(8)), Measure.ENTERED)
    constraint = Constraint(max_mutations=2 * sensitivity)
    numerical = laplace(Fraction(8), sensitivity)
    assert numerical.get_epsilon_for_delta(0.0) <= figure([charge], constraint) + DISCRETISATION


@pytest.mark.parametrize("rho", ["0.02", "0.1", "0.5"])
@pytest.mark.parametrize("delta", ["1e-6", "1e-9"])
def test_the_conversion_covers_gaussian_noise(rho, delta):
    """Gaussian noise, exactly; what any loss of that rho may come to lies above, as it must."""
    converted = float(gaussian_epsilon(picos_up(Fraction(rho)), Fraction(delta)))
    numerical = gaussian(1 / (2 * Fraction(rho))).get_epsilon_for_delta(float(delta))
    assert abs(numerical - converted) <= DISCRETISATION
    assert 0.9 * float(rho_to_epsilon(picos_up(Fraction(rho)), Fraction(delta))) <= converted


@pytest.mark.parametrize(("scale", "sensitivity", "count"), [(4, 1, 8), (10, 1, 30), (6, 2, 9)])
def test_repeated_answers_agree_with_distributions(scale, sensitivity, count):
    numerical = laplace(Fraction(scale), sensitivity).self_compose(count).get_epsilon_for_delta(1e-6)
    assert math.isclose(repeated_laplace_epsilon(1e-6, 1 / scale, sensitivity, count), numerical, abs_tol=count * DISCRETISATION)


def test_a_figure_that_is_too_small_would_be_seen():
    """Nine Gaussian touches charged as eight lie below the numerical loss of a ninefold composition of larger steps."""
    numerical = gaussian(Fraction(1, 2)).self_compose(9).get_epsilon_for_delta(float(DELTA))
    assert float(rho_to_epsilon(6 * PICOS, DELTA)) < numerical <= float(rho_to_epsilon(9 * PICOS, DELTA)) + 9 * DISCRETISATION
