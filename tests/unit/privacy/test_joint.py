"""Charges of mechanisms that noise overlapping sums together: bounds kept as data, against every life of an entry."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest

from dbext.errors import BadArgument, NotSupported, UnboundedLoss
from dbext.mechanisms.joint_bounds import joint_bounds
from dbext.mechanisms.sliding_root import SlidingRoot
from dbext.mechanisms.square_root import SquareRoot
from dbext.mechanisms.weighted_square_root import WeightedSquareRoot
from dbext.privacy.accountant import worst_case_loss
from dbext.privacy.calibrate import noise_for
from dbext.privacy.charge import Charge, charge_from_json
from dbext.privacy.constraint import Constraint, EntryType
from dbext.privacy.grid import RegularGrid
from dbext.privacy.joint import JointBound
from dbext.privacy.measure import Measure
from dbext.privacy.noise import DiscreteLaplace, RoundedGaussian
from dbext.privacy.pattern import Single, Windows
from dbext.privacy.pico import PICOS
from tests.unit.privacy.entries import effect, paths

DAILY = RegularGrid(0, 1)
UNIT = RoundedGaussian(Fraction(1, 2))
WEEK = Windows(DAILY, width_steps=1, count=7)
BOUNDS = (
    JointBound(Constraint(), Fraction(3), Fraction(100)),
    JointBound(Constraint(max_mutations=4), Fraction(2), Fraction(5)),
    JointBound(Constraint(max_mutations=2), Fraction(7, 4), Fraction(3)),
    JointBound(Constraint(active_within=1), Fraction(5, 2), None),
)


def loss(constraint, pattern=WEEK, bounds=BOUNDS, noise=UNIT):
    charge = Charge(pattern, noise, Measure.NET, joint=bounds)
    return worst_case_loss([charge], [EntryType(1, "any", constraint)], pure=False)[1] / PICOS


@pytest.mark.parametrize(
    ("constraint", "rho"),
    [
        (Constraint(max_mutations=1), 1.75),
        (Constraint(max_mutations=2), 3),
        (Constraint(max_mutations=3), 5),
        (Constraint(max_mutations=4), 5),
        (Constraint(max_mutations=5), 15),
        (Constraint(active_within=1), 5),
        (Constraint(active_within=0), 2.5),
        (Constraint(2, 0), 1.75),
        (Constraint(), 21),
    ],
)
def test_the_best_bound_that_covers_a_constraint_is_used(constraint, rho):
    """Per touch or for life, whichever is less; a looser constraint than those foreseen falls back to what holds without any."""
    assert loss(constraint) == rho


def test_an_endless_joint_release_needs_a_limit():
    endless = Windows(DAILY, width_steps=1)
    assert loss(Constraint(max_mutations=9), endless) == 27
    with pytest.raises(UnboundedLoss):
        loss(Constraint(), endless)


def test_joint_and_plain_charges_share_an_entrys_mutations():
    types = [EntryType(1, "any", Constraint(max_mutations=4))]
    joint = Charge(WEEK, UNIT, Measure.NET, joint=BOUNDS)
    later = Charge(Single(100, 101), UNIT, Measure.NET)
    assert worst_case_loss([joint, later], types, pure=False)[1] / PICOS == 6
    two = Charge(WEEK, UNIT, Measure.NET, joint=BOUNDS[:1])
    assert worst_case_loss([two, later], types, pure=False)[1] / PICOS == 12


def test_only_gaussian_noise_and_concentrated_budgets():
    charge = Charge(WEEK, UNIT, Measure.NET, joint=BOUNDS)
    with pytest.raises(NotSupported):
        worst_case_loss([charge], [EntryType(1, "any", Constraint(2))], pure=True)
    with pytest.raises(NotSupported):
        loss(Constraint(2), noise=DiscreteLaplace(Fraction(1)))


def test_entries_without_any_limit_must_have_a_bound():
    with pytest.raises(BadArgument):
        Charge(WEEK, UNIT, Measure.NET, joint=BOUNDS[1:])


def test_json_round_trip():
    charge = Charge(WEEK, UNIT, Measure.NET, True, (1, 2), BOUNDS)
    assert charge_from_json(charge.to_json()) == charge


def test_charges_written_before_joint_mechanisms_are_still_read():
    plain = Charge(WEEK, UNIT, Measure.NET)
    old = {key: value for key, value in plain.to_json().items() if key != "joint"}
    assert charge_from_json(old) == plain


MECHANISMS = [
    SquareRoot(DAILY, 5),
    SquareRoot(DAILY, 5, baseline=True),
    WeightedSquareRoot(DAILY, 5),
    SlidingRoot(DAILY, 2, count=5),
    SlidingRoot(DAILY, 3),
]


def row_norm_squared(mechanism, path, measure):
    """Return the true squared norm of an entry's effect on all noised rows, cell by cell."""
    leaves = {leaf.number: leaf for period in range(1, 6) for leaf in mechanism.leaves(period)}
    total = 0
    for period in range(1, 6):
        for row in mechanism.rows(period):
            cells: Counter[str] = Counter()
            for number, weight in row.weights:
                if number in leaves:
                    for cell, value in effect(path, measure, leaves[number].start, leaves[number].end).items():
                        cells[cell] += weight * value
            total += sum(value * value for value in cells.values())
    return total


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
@pytest.mark.parametrize("measure", [Measure.NET, Measure.ENTERED])
@pytest.mark.parametrize("grouped", [False, True])
def test_no_life_moves_the_noised_rows_further_than_charged(mechanism, measure, grouped):
    if measure is Measure.ENTERED and getattr(mechanism, "baseline", False):
        return  # events have no baseline
    (pattern,) = mechanism.patterns()
    leaves = list(pattern.filters(until=5))
    for constraint in (Constraint(1), Constraint(2), Constraint(3), Constraint(4), Constraint(None, 1), Constraint(2, 2), Constraint(3, 4)):
        bounds = joint_bounds(mechanism, measure, grouped, [constraint])
        charge = Charge(pattern, RoundedGaussian(Fraction(10**9)), measure, grouped, joint=bounds)
        charged = 2 * 10**9 * Fraction(worst_case_loss([charge], [EntryType(1, "any", constraint)], pure=False)[1], PICOS)
        for path in paths(0 if constraint.max_mutations == 4 else -1, 5, constraint, 2 if grouped else 1):
            moved = row_norm_squared(mechanism, path, measure)
            touched = sum(any((start is None or start < tick) and tick <= end for tick in path) for start, end in leaves)
            assert moved <= charged
            assert moved <= touched * bounds[0].per_touch
            assert moved <= touched * bounds[1].per_touch


def test_calibrated_joint_noise_costs_the_target():
    mechanism, types = SquareRoot(DAILY, 30), [EntryType(1, "any", Constraint(max_mutations=2))]
    bounds = joint_bounds(mechanism, Measure.NET, False, [types[0].constraint])
    noise = noise_for(mechanism.patterns(), Measure.NET, False, types, PICOS // 50, False, RoundedGaussian, None, bounds)
    spent = worst_case_loss([Charge(p, noise, Measure.NET, joint=bounds) for p in mechanism.patterns()], types, pure=False)[1]
    assert 0.9999 * PICOS / 50 <= spent <= PICOS / 50
