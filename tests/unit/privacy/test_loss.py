"""Charges in epsilon and in rho in one budget: never below an independent accountant, whatever a life touches, and however adaptively asked."""

from __future__ import annotations

import functools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dbext.errors import NotSupported
from dbext.privacy.charge import Charge, charge_from_json
from dbext.privacy.constraint import Constraint, EntryType
from dbext.privacy.conversion import ALONE, DIVISIONS, budget_picos, epsilon_of, epsilon_of_both, rho_beside
from dbext.privacy.gaussian import gaussian_epsilon, gaussian_rho
from dbext.privacy.grid import RegularGrid
from dbext.privacy.loss import Loss, largest, loss_of
from dbext.privacy.measure import Measure
from dbext.privacy.noise import DiscreteLaplace, RoundedGaussian
from dbext.privacy.pattern import Several, SignedBlocks, Single, Windows
from dbext.privacy.pico import PICOS, picos_down
from tests.literature import rho_to_epsilon
from tests.unit.privacy.entries import norms, paths
from tests.unit.privacy.test_against_dp_accounting import DISCRETISATION, gaussian, laplace

DELTA = Fraction(1, 10**6)
DAY = Single(0, 1)
ONE = (EntryType(1, "any", Constraint(max_mutations=1)),)
CASES = [
    # (number, scale) of Laplace answers in epsilon, (number, sigma squared) of Gaussian ones, delta
    ((1, 2), (1, 200), DELTA),
    ((4, 8), (3, 150), DELTA),
    ((1, 1), (1, 20), Fraction(1, 10**9)),
    ((10, 5), (1, 40), DELTA),
    ((1, 20), (10, 100), DELTA),
    ((2, 1), (5, 500), Fraction(1, 10**4)),
]


def pure_charge(scale, pattern=DAY):
    return Charge(pattern, DiscreteLaplace(Fraction(scale)), Measure.NET, pure=True)


def rho_charge(sigma_squared, pattern=DAY):
    return Charge(pattern, RoundedGaussian(Fraction(sigma_squared)), Measure.NET)


def composed(*parts):
    """The epsilon at a delta that privacy loss distributions find for (law, count) parts."""
    laws = [law.self_compose(count) for law, count in parts]
    return functools.reduce(lambda one, other: one.compose(other), laws)


@pytest.mark.parametrize(("laplaces", "gaussians", "delta"), CASES)
def test_never_below_privacy_loss_distributions(laplaces, gaussians, delta):
    (many, scale), (several, sigma_squared) = laplaces, gaussians
    charges = [pure_charge(scale)] * many + [rho_charge(sigma_squared)] * several
    claimed = float(loss_of(charges, ONE, pure=False).epsilon(delta))
    numerical = composed((laplace(Fraction(scale)), many), (gaussian(Fraction(sigma_squared)), several)).get_epsilon_for_delta(float(delta))
    assert numerical <= claimed + (many + several) * DISCRETISATION
    assert claimed <= many / scale + 1.6 * float(rho_to_epsilon(several * PICOS // (2 * sigma_squared), delta)), "nor far above"


def test_a_figure_without_the_pure_part_would_be_seen():
    """One answer at epsilon 2 beside Gaussian ones: their conversion alone is far below what the distributions find."""
    charges = [pure_charge(Fraction(1, 2)), rho_charge(200)]
    _, rho = loss_of(charges, ONE, pure=False).most
    numerical = composed((laplace(Fraction(1, 2)), 1), (gaussian(Fraction(200)), 1)).get_epsilon_for_delta(float(DELTA))
    assert float(epsilon_of(rho, DELTA)) < 0.6 * numerical <= float(loss_of(charges, ONE, pure=False).epsilon(DELTA))


@st.composite
def mixed_charges(draw):
    made = []
    for _ in range(draw(st.integers(1, 4))):
        width, start = draw(st.integers(1, 3)), draw(st.integers(0, 3))
        pattern = draw(st.sampled_from([Single(start, start + width), Windows(RegularGrid(0, 1), width_ticks=width, count=3)]))
        made.append(pure_charge(draw(st.integers(1, 9)), pattern) if draw(st.booleans()) else rho_charge(draw(st.integers(1, 90)), pattern))
    return made


@settings(max_examples=60, deadline=None)
@given(mixed_charges(), st.sampled_from([Constraint(1), Constraint(2), Constraint(3), Constraint(None, 1), Constraint(2, 1)]))
def test_no_life_loses_more_in_either_unit(charges, constraint):
    """By brute force over every life on a short time axis, and over every number of entries' types."""
    loss = loss_of(charges, [EntryType(1, "any", constraint)], pure=False)
    (corner,) = loss.corners
    for path in paths(0, 5, constraint, 1):
        lost = [0.0, 0.0]
        for charge in charges:
            l1, l2 = norms(path, Measure.NET, list(charge.pattern.filters()))
            lost[not charge.pure] += l1 / float(charge.noise.scale) if charge.pure else l2 / (2 * float(charge.noise.sigma_squared))
        assert all(found <= figure / PICOS + 1e-9 for found, figure in zip(lost, corner, strict=True))


def test_types_are_alternatives_and_tables_add_up():
    one, other = largest([(5, 0), (1, 7), (1, 3)]), largest([(2, 2)])
    assert one.corners == ((5, 0), (1, 7))
    assert (one + other).corners == ((7, 2), (3, 9))
    assert sum([one, other], Loss()) == one + other
    assert (one + other).most == (7, 9)
    rich = EntryType(2, "often", Constraint(max_mutations=3))
    charges = [pure_charge(1, Windows(RegularGrid(0, 1), width_ticks=1, count=3)), rho_charge(50)]
    assert loss_of(charges, [*ONE, rich], pure=False) == Loss(((2 * PICOS, PICOS // 100),)), "of three changes the last is void"


def test_many_kinds_of_entries_are_bounded_by_their_largest_figures():
    found = largest((n, 1000 - n) for n in range(100))
    assert found.corners == ((99, 1000),)


def test_with_delta_zero_everything_is_in_epsilon():
    charges = [pure_charge(2), Charge(Single(0, 1), DiscreteLaplace(Fraction(4)), Measure.NET)]
    assert loss_of(charges, ONE, pure=True).corners == ((PICOS * 3 // 4, 0),)
    assert Loss(((PICOS, 0),)).fits(Fraction(1), Fraction(0))
    assert not Loss(((PICOS + 1, 0),)).fits(Fraction(1), Fraction(0))
    assert not Loss(((0, 1),)).fits(Fraction(1), Fraction(0))
    with pytest.raises(NotSupported):
        loss_of([rho_charge(1)], ONE, pure=True)


def test_blocks_that_are_noised_before_they_are_over_count_in_the_orders_alone():
    """Their epsilon bounds each path, but need not be settled when noise is drawn: the exact filter does not take it for a sum of steps."""
    blocks = SignedBlocks(RegularGrid(0, 1), 8, 3, 2)
    for pattern in (blocks, Several((blocks, Single(None, 0)))):
        charge = pure_charge(40, pattern)
        assert not charge.stepwise
        assert not loss_of([charge, rho_charge(30)], ONE, pure=False).stepwise
    steps, late = loss_of([pure_charge(40)], ONE, pure=False), Loss(((PICOS // 40, 0),), stepwise=False)
    gaussian_only = loss_of([rho_charge(30)], ONE, pure=False)
    assert steps.stepwise
    assert not (steps + late).stepwise
    assert (gaussian_only + late).epsilon(DELTA) > (gaussian_only + steps).epsilon(DELTA) + Decimal("0.05")
    whole = budget_picos(Fraction(1), DELTA)
    assert rho_beside(PICOS // 40, Fraction(1), DELTA, stepwise=False) < 0.7 * whole < rho_beside(PICOS // 40, Fraction(1), DELTA)
    assert rho_beside(0, Fraction(1), DELTA, stepwise=False) == whole, "nothing in epsilon: nothing to settle"


def test_the_unit_survives_json():
    for charge in (pure_charge(2), rho_charge(3)):
        assert charge_from_json(charge.to_json()) == charge
    old = {name: value for name, value in pure_charge(2).to_json().items() if name != "pure"}
    assert not charge_from_json(old).pure


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(8)])
@pytest.mark.parametrize("delta", [DELTA, Fraction(1, 10**9)])
def test_what_fits_beside_pure_charges(epsilon, delta):
    whole = picos_down(epsilon)
    beside = [rho_beside(whole * n // 40, epsilon, delta) for n in range(41)]
    assert beside[0] == budget_picos(epsilon, delta) == gaussian_rho(epsilon, delta * ALONE)
    assert beside == sorted(beside, reverse=True)
    assert beside[40] == 0
    assert rho_beside(whole + 1, epsilon, delta) < 0, "more epsilon than there is leaves less than nothing"
    for n in range(40):
        ideal = gaussian_rho(epsilon * (40 - n) / 40, delta)
        assert n > 38 or beside[n] >= 0.45 * ideal, "and little more than half is lost to orders that were fixed beforehand"


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 3 * PICOS), st.integers(0, PICOS // 2))
@example(1, 2)
def test_the_epsilon_of_both_is_the_least_that_holds_them(pure, rho):
    found = epsilon_of_both(pure, rho, DELTA)
    if pure and rho:
        assert rho_beside(pure, Fraction(found), DELTA) >= rho
        less = max(Fraction(found) / 10**7, Fraction(2, PICOS))
        assert rho_beside(pure, Fraction(found) - less, DELTA) < rho
    assert found >= max(epsilon_of(rho, DELTA), Fraction(pure, PICOS))
    assert found <= Fraction(epsilon_of_both(pure, rho + PICOS // 1000, DELTA))


@pytest.mark.parametrize("delta", [Fraction(594, 10**9), Fraction(6, 10**7), Fraction(69, 10**8)])
def test_the_epsilon_of_a_few_picos_of_both_is_found(delta):
    """Where delta holds nearly all of one pico of rho by itself, the search begins below what a quarter of it would move."""
    assert gaussian_rho(Fraction(2, PICOS), delta * ALONE) <= 1
    found = epsilon_of_both(1, 1, delta)
    assert rho_beside(1, Fraction(found), delta) >= 1


def test_the_parts_of_delta_are_no_more_than_the_whole():
    assert ALONE + sum(part for _, part in DIVISIONS) <= 1


def harm(divided, steps=40):
    """The largest delta at epsilon 1 of an analyst who asks Gaussian answers, rho growing evenly on a logarithmic scale, and turns to a pure
    one, for all epsilon that `divided` leaves beside that rho, when it hurts most. By dynamic programming over the loss so far. The worst
    pure answer is a randomised response: true with probability e^left / (1 + e^left), with a loss of `left` then, and the opposite else."""
    rhos = np.geomspace(0.002, 1, steps) * budget_picos(Fraction(1), DELTA) / PICOS
    left = [divided(math.floor(rho * PICOS)) for rho in rhos]
    normal = np.linspace(-9, 9, 1801)
    nodes, weights = np.polynomial.hermite_e.hermegauss(31)
    value = None
    for n in reversed(range(steps)):
        loss = rhos[n] + math.sqrt(2 * rhos[n]) * normal
        honest = 1 / (1 + math.exp(-left[n]))
        stopped = honest * np.maximum(0, 1 - np.exp(1 - left[n] - loss)) + (1 - honest) * np.maximum(0, 1 - np.exp(1 + left[n] - loss))
        if value is None:
            value = stopped
            continue
        step = rhos[n + 1] - rhos[n]
        later = loss[:, None] + step + math.sqrt(2 * step) * nodes
        went_on = np.interp((later - rhos[n + 1]) / math.sqrt(2 * rhos[n + 1]), normal, value) @ weights / weights.sum()
        value = np.maximum(stopped, went_on)
    density = np.exp(-normal * normal / 2)
    return float((value * density).sum() / density.sum())


def most_pure(rho):
    """The largest epsilon of pure charges beside so many picos of rho in a budget of (1, 1e-6)."""
    low, high = 0, PICOS
    while high - low > PICOS // 10**6:
        middle = (low + high) // 2
        low, high = (middle, high) if rho_beside(middle, Fraction(1), DELTA) >= rho else (low, middle)
    return low / PICOS


def test_who_chooses_the_unit_by_what_was_seen_gains_nothing():
    """Filters fixed beforehand keep delta; "E + epsilon(R) at most epsilon", converted exactly or by the best order of that R, does not."""
    assert 0.95 * float(DELTA) < harm(most_pure) <= float(DELTA)
    assert harm(lambda rho: 1 - float(rho_to_epsilon(rho, DELTA))) > 3 * float(DELTA)
    assert harm(lambda rho: max(0, 1 - float(gaussian_epsilon(rho, DELTA)))) > 9 * float(DELTA)
