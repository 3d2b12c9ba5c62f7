from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbext.errors import BadArgument, NotSupported, UnboundedLoss
from dbext.privacy.accountant import worst_case_loss
from dbext.privacy.calibrate import noise_for, short_rational
from dbext.privacy.charge import Charge
from dbext.privacy.constraint import Constraint, EntryType
from dbext.privacy.grid import RegularGrid
from dbext.privacy.measure import Measure
from dbext.privacy.noise import DiscreteLaplace, Response, RoundedGaussian
from dbext.privacy.pattern import Single, Tree, Windows
from dbext.privacy.pico import PICOS


def report(parameter):
    return Response(2, 1 / parameter)


KINDS = [(True, DiscreteLaplace), (False, report), (False, RoundedGaussian)]
PATTERNS = [Windows(RegularGrid(0, 1), width_ticks=14), Tree(RegularGrid(0, 1), 100), Single(0, 9)]
CONSTRAINTS = [Constraint(max_mutations=3), Constraint(active_within=28), Constraint(5, 28), Constraint(max_mutations=1)]


def types(constraint):
    return [EntryType(1, "any", constraint)]


def parameter(noise):
    if isinstance(noise, Response):
        return 1 / noise.epsilon
    return noise.scale if isinstance(noise, DiscreteLaplace) else noise.sigma_squared


@settings(max_examples=60)
@given(
    st.sampled_from(KINDS),
    st.sampled_from(PATTERNS),
    st.sampled_from(CONSTRAINTS),
    st.sampled_from(list(Measure)),
    st.booleans(),
    st.integers(10**7, 20 * PICOS),
)
def test_the_noise_costs_the_target_or_a_hair_less(kind, pattern, constraint, measure, grouped, target):
    pure, noise_kind = kind

    def loss(noise):
        return worst_case_loss([Charge(pattern, noise, measure, grouped)], types(constraint), pure)[1]

    noise = noise_for([pattern], measure, grouped, types(constraint), target, pure, noise_kind)
    assert loss(noise) <= target
    assert loss(noise_kind(parameter(noise) * Fraction(9999, 10000))) > target, "a smaller noise would not do"


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**12))
def test_short_rationals_round_up_a_little(value):
    short = short_rational(value)
    assert value <= short <= value * (1 + Fraction(1, 2**20))
    assert short.numerator < 2**24 or short.denominator == 1
    assert short.denominator & (short.denominator - 1) == 0


def test_exact_parameters_stay_exact():
    arguments = ([Single(0, 9)], Measure.NET, False, types(Constraint(max_mutations=2)))
    assert noise_for(*arguments, PICOS // 10, True, DiscreteLaplace) == DiscreteLaplace(Fraction(10))
    assert noise_for(*arguments, PICOS // 200, False, RoundedGaussian) == RoundedGaussian(Fraction(100))


def test_the_worst_type_decides():
    both = [EntryType(1, "few", Constraint(max_mutations=2)), EntryType(2, "many", Constraint(max_mutations=10))]
    pattern = Windows(RegularGrid(0, 1), width_steps=1)
    assert noise_for([pattern], Measure.NET, False, both, PICOS, True, DiscreteLaplace).scale == 10
    assert noise_for([pattern], Measure.NET, False, both, PICOS, True, DiscreteLaplace, (1,)).scale == 2


@pytest.mark.parametrize(
    ("constraint", "target", "pure", "kind", "error"),
    [
        (Constraint(), PICOS, True, DiscreteLaplace, UnboundedLoss),
        (Constraint(max_mutations=2), PICOS, True, RoundedGaussian, NotSupported),
        (Constraint(max_mutations=2), 0, True, DiscreteLaplace, BadArgument),
        (Constraint(max_mutations=2), 1, True, DiscreteLaplace, BadArgument),
        (Constraint(max_mutations=2), 1, False, report, BadArgument),
    ],
)
def test_what_no_noise_can_buy_is_refused(constraint, target, pure, kind, error):
    with pytest.raises(error):
        noise_for([Windows(RegularGrid(0, 1), width_ticks=3)], Measure.NET, False, types(constraint), target, pure, kind)
    if error is BadArgument:
        with pytest.raises(BadArgument, match="no entry type"):
            noise_for([Single(0, 3)], Measure.NET, False, types(constraint), PICOS, pure, kind, restricted_to=(9,))
