import math
from fractions import Fraction

import pytest

from dbext.mechanisms.error import half_width
from dbext.privacy.constraint import Constraint, EntryType
from dbext.privacy.key_checks import KeyChecks, delta_of, factor, key_checks, key_checks_from_json
from dbext.privacy.measure import Measure
from dbext.privacy.noise import DiscreteLaplace, RoundedGaussian
from tests.unit.vectors.key_selection import ContinualThreshold, laplace_threshold


def types(*constraints: Constraint) -> list[EntryType]:
    return [EntryType(number, f"type {number}", one) for number, one in enumerate(constraints, 1)]


def above(noise, least: int) -> float:
    """Chance that one draw is at least `least`, summed from the law itself."""
    if isinstance(noise, DiscreteLaplace):
        q = math.exp(-1 / noise.scale)
        return q**least / (1 + q)
    weights = {n: math.exp(-(n**2) / (2 * float(noise.sigma_squared))) for n in range(-400, 401)}
    return sum(w for n, w in weights.items() if n >= least) / sum(weights.values())


@pytest.mark.parametrize("noise", [DiscreteLaplace(Fraction(3)), RoundedGaussian(Fraction(40))])
@pytest.mark.parametrize("delta", [Fraction(1, 100), Fraction(1, 10**6)])
def test_a_lone_entry_is_shown_with_no_more_than_its_chance(noise, delta):
    made = key_checks(Measure.STATE, None, 30, types(Constraint(4)), delta, Fraction(1))
    least = math.floor(made.change + half_width([(noise, 1)], float(made.tail))) + 1
    alone = 1 - (1 - above(noise, least - 1)) ** 30
    assert alone <= made.chance(types(Constraint(4)))
    assert delta_of(made.chance(types(Constraint(4))), Fraction(1)) <= delta
    if delta > made.tail > 10**-6:  # where the law itself is summed, the threshold is not far above what it must be
        assert above(noise, least - 1) > float(made.tail) / 8


def test_a_threshold_that_forgets_the_entry_itself_is_passed_too_often():
    noise, delta = DiscreteLaplace(Fraction(1, 3)), Fraction(1, 10)
    made = key_checks(Measure.STATE, None, 1, types(Constraint(2)), delta, Fraction(1))
    least = math.floor(half_width([(noise, 1)], float(made.tail))) + 1
    assert above(noise, least - 1) > made.chance(types(Constraint(2)))


@pytest.mark.parametrize("tail", [1e-3, 1e-7, 1e-12])
def test_thresholds_are_at_least_those_of_the_literature_and_hardly_more(tail):
    """Ours bound both sides of the noise, which stands for half the chance on the side that matters."""
    gaussian = 1 + half_width([(RoundedGaussian(Fraction(16)), 1)], tail)
    assert ContinualThreshold(4.0, tail, 1, 1).gaussian <= gaussian <= ContinualThreshold(4.0, tail / 2, 1, 1).subgaussian + 1
    laplace = 1 + half_width([(DiscreteLaplace(Fraction(4)), 1)], tail)
    assert laplace_threshold(0.25, tail) - 1 <= laplace <= laplace_threshold(0.25, tail / 2) + 1


def test_the_chance_counts_in_both_databases():
    assert factor(Fraction(2)) >= 1 + Fraction(math.e**2) * (1 - Fraction(1, 10**12))
    assert float(delta_of(Fraction(1, 10**6), Fraction(2))) == pytest.approx((1 + math.e**2) / 10**6)


@pytest.mark.parametrize(
    ("measure", "ticks", "constraint", "change", "answers"),
    [
        (Measure.STATE, None, Constraint(5), 1, 1),  # one cell of a total
        (Measure.NET, 7, Constraint(5), 1, 2),  # a move: one cell up, one down
        (Measure.NET, 7, Constraint(1), 1, 1),
        (Measure.ENTERED, 7, Constraint(6), 3, 3),  # in, out, in, out, in, out
        (Measure.ENTERED, 3, Constraint(60), 2, 2),
        (Measure.LEFT, 1, Constraint(60), 1, 1),
    ],
)
def test_how_much_and_how_many_cells_one_entry_changes(measure, ticks, constraint, change, answers):
    made = key_checks(measure, ticks, 10, types(constraint), Fraction(1, 100), Fraction(1))
    assert made.change == change
    assert made.chance(types(constraint)) == 10 * answers * made.tail


def test_the_worst_type_counts_and_looser_limits_cost_more_or_everything():
    strict, loose = types(Constraint(2)), types(Constraint(2), Constraint(6))
    made = key_checks(Measure.ENTERED, 30, 10, strict, Fraction(1, 100), Fraction(1))
    assert made.change == 1
    assert made.chance(loose) == 1
    moving = key_checks(Measure.NET, 30, 10, types(Constraint(1)), Fraction(1, 100), Fraction(1))
    assert moving.chance(strict) == 2 * moving.chance(types(Constraint(1)))


def test_unbounded_events_have_no_threshold_and_no_types_are_unbounded():
    assert key_checks(Measure.ENTERED, None, 10, types(Constraint()), Fraction(1, 100), Fraction(1)) is None
    assert key_checks(Measure.STATE, None, 10, (), Fraction(1, 100), Fraction(1)).change == 1


def test_json():
    made = KeyChecks(Measure.ENTERED, 7, 12, 3, Fraction(1, 10**30))
    assert key_checks_from_json(made.to_json()) == made
