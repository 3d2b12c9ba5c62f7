"""Local losses against all pairs of changelogs, and randomised response against its own probabilities."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbext.errors import BadArgument, UnboundedLoss
from dbext.mechanisms.randomised_response import NetChangeResponse, RandomisedResponse, uniform_below
from dbext.privacy.constraint import Constraint, EntryType
from dbext.privacy.local_model import Report, bounded_touches, local_loss, local_touches
from dbext.privacy.pico import PICOS
from tests.chance import away

HORIZON = 7


def logs(constraint: Constraint):
    """Return every set of ticks 1 ... HORIZON that an entry may mutate at."""
    k, w = constraint.max_mutations, constraint.active_within
    for chosen in itertools.chain.from_iterable(itertools.combinations(range(1, HORIZON + 1), n) for n in range(HORIZON + 1)):
        if (k is None or len(chosen) <= k) and (w is None or not chosen or chosen[-1] - chosen[0] <= w):
            yield chosen


def brute(reports, types) -> Fraction:
    touched = [
        frozenset(n for n, r in enumerate(reports) if any((r.start is None or r.start < tick) and tick <= r.end for tick in log))
        for one in types
        for log in logs(one.constraint)
    ]
    unions = {one | other for one in set(touched) for other in set(touched)}
    return max(sum((reports[n].epsilon for n in union), Fraction(0)) for union in unions)


@st.composite
def report_lists(draw):
    found = []
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, HORIZON - 1))
        whole = draw(st.booleans()) and draw(st.booleans())
        found.append(Report(None if whole else start, draw(st.integers(start + 1, HORIZON)), Fraction(draw(st.integers(1, 8)), 8)))
    return found


@given(report_lists(), st.sampled_from([Constraint(1), Constraint(2), Constraint(None, 0), Constraint(None, 2), Constraint()]))
def test_one_type_is_exact(reports, constraint):
    types = [EntryType(1, "any", constraint)]
    assert local_loss(reports, types) == brute(reports, types) * PICOS


@given(report_lists(), st.sampled_from([Constraint(2, 3), Constraint(1, 0)]), st.sampled_from([Constraint(1), Constraint(None, 1)]))
def test_joint_constraints_and_two_types_are_never_below(reports, one, other):
    types = [EntryType(1, "a", one), EntryType(2, "b", other)]
    assert brute(reports, types[:1]) * PICOS <= local_loss(reports, types[:1])
    assert brute(reports, types) * PICOS <= local_loss(reports, types)


@pytest.mark.parametrize(
    ("constraint", "step", "width", "one"),
    [
        (Constraint(2), 7, None, 2),
        (Constraint(None, 7), 7, None, 2),
        (Constraint(None, 8), 7, None, 3),
        (Constraint(2), 2, 5, 6),
        (Constraint(None, 3), 2, 5, 4),
        (Constraint(1, 3), 2, 5, 3),
        (Constraint(), 1, None, None),
    ],
)
def test_touches_of_regular_releases(constraint, step, width, one):
    assert bounded_touches(constraint, step, width) == one
    if one is None:
        assert local_touches(one, 5) == 5
        with pytest.raises(UnboundedLoss):
            local_touches(one, None)
    else:
        assert local_touches(one, None) == 2 * one
        assert local_touches(one, 1) == 1


@given(st.integers(2, 9), st.fractions(Fraction(1, 50), Fraction(6)))
def test_chances_are_exact_and_within_epsilon(categories, epsilon):
    response = RandomisedResponse(categories, epsilon)
    assert response.keep + (categories - 1) * response.other == 1
    assert response.keep / response.other == Fraction(response.odds, 2**32)
    assert float(epsilon) - 1e-9 <= response.spent <= float(epsilon) + 1e-12


@pytest.mark.parametrize("categories", [2, 3, 5])
def test_every_draw_is_one_report(categories):
    """A tiny response by the same rule: each of the numbers below the total gives one report, in the right proportions."""
    response = RandomisedResponse(categories, Fraction(1, 2))
    total = response.odds + (categories - 1) * 2**32
    for true in range(categories):
        edges = [0, response.odds - 1, *(response.odds + n * 2**32 for n in range(categories - 1)), total - 1]
        reports = [response.report(true, lambda _, drawn=drawn: drawn) for drawn in edges]
        assert reports[:2] == [true, true]
        assert sorted(reports[2:-1]) == [other for other in range(categories) if other != true]
        assert reports[-1] == reports[-2]


def test_estimates_are_unbiased_with_the_stated_variance():
    response = RandomisedResponse(3, Fraction(1))
    p, q = float(response.keep), float(response.other)
    true = [5, 2, 1]
    mean = [count * p + (8 - count) * q for count in true]
    assert response.estimate(mean) == pytest.approx(true)
    indicator = [count * p * (1 - p) + (8 - count) * q * (1 - q) for count in true]
    assert response.estimate_variance(true) == pytest.approx([value / (p - q) ** 2 for value in indicator])


def test_net_changes_are_unbiased_with_the_stated_variance():
    response = NetChangeResponse(Fraction(1))
    p, q = float(response.response.keep), float(response.response.other)
    for change in (-1, 0, 1):
        law = {report: p if report == change else q for report in (-1, 0, 1)}
        mean = sum(report * chance for report, chance in law.items()) / (p - q)
        variance = sum(report**2 * chance for report, chance in law.items()) / (p - q) ** 2 - mean**2
        assert mean == pytest.approx(change, abs=1e-12)
        assert variance == pytest.approx(response.variance(still=change == 0, changed=change != 0))
    assert response.estimate([1, 1, -1, 0]) == pytest.approx(1 / (p - q))
    assert {response.report(1) for _ in range(200)} <= {-1, 0, 1}


def test_reports_follow_their_chances():
    response, runs = RandomisedResponse(4, Fraction(3, 2)), 20_000
    kept = sum(response.report(2) == 2 for _ in range(runs))
    chance = float(response.keep)
    assert abs(kept / runs - chance) < away(runs, chance)


def test_uniform_numbers_stay_below_their_limit():
    assert {uniform_below(3) for _ in range(300)} == {0, 1, 2}
    assert uniform_below(1) == 0
    assert uniform_below(2**70) < 2**70


def test_nonsense_is_refused():
    for categories, epsilon in ((1, 1), (3, 0), (3, 1000)):
        with pytest.raises(BadArgument):
            RandomisedResponse(categories, Fraction(epsilon))
    with pytest.raises(BadArgument):
        RandomisedResponse(3, Fraction(1)).report(3)
