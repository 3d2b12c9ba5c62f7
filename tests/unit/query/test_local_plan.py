"""Plans of the local model: losses against all pairs of lives, formulas of regular releases, and estimates against their own law."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbext.mechanisms.randomised_response import RandomisedResponse
from dbext.privacy.accountant import worst_case_loss
from dbext.privacy.charge import Charge, charge_from_json
from dbext.privacy.constraint import Constraint, EntryType
from dbext.privacy.conversion import budget_picos
from dbext.privacy.gaussian import pure_as_rho
from dbext.privacy.grid import MonthGrid, RegularGrid
from dbext.privacy.local_model import Report, bounded_touches, local_loss, local_touches
from dbext.privacy.measure import Measure
from dbext.privacy.noise import DiscreteLaplace, Response, response_cost, scaled
from dbext.privacy.pattern import Single, pattern_from_json
from dbext.privacy.pico import PICOS
from dbext.privacy.prefixes import Prefixes
from dbext.query.calendar import Span
from dbext.query.compiler import compile_declaration, resolve
from dbext.query.local_plan import local_plan_from_json, local_plans
from dbext.query.planner import Request
from tests.chance import SIGMAS, away
from tests.unit.privacy.entries import effect, paths
from tests.unit.query.tables import COLUMNS, DAY, DELTA, PURE, TYPES

DAILY = "dp_time > now() - INTERVAL '1 day'"
HORIZON = 6


def plans(condition, constraint, *, cells=1, members=100, grouped=False, delta=PURE, epsilon=6, **options):
    where = f" WHERE {condition}" if condition else ""
    text = f"SELECT county, count(*) FROM cases{where} GROUP BY county" if grouped else f"SELECT count(*) FROM cases{where}"
    request = Request(start_tick=7303, epsilon=Fraction(epsilon), **options)
    types = constraint if isinstance(constraint, tuple) else (EntryType(1, "any", constraint),)
    declaration = resolve(compile_declaration(text), COLUMNS)
    return [one for one, _ in local_plans(declaration, request, DAY, types, delta, members=members, cells=cells)]


def lives(constraint):
    """Return every set of ticks 1 ... HORIZON that an entry may mutate at."""
    for count in range(HORIZON + 1):
        for chosen in combinations(range(1, HORIZON + 1), count):
            within = not chosen or constraint.active_within is None or chosen[-1] - chosen[0] <= constraint.active_within
            if within and (constraint.max_mutations is None or count <= constraint.max_mutations):
                yield chosen


LIMITS = st.builds(Constraint, st.integers(1, 3), st.none()) | st.builds(Constraint, st.none() | st.integers(1, 3), st.integers(0, 4))


RANGES = st.lists(st.tuples(st.none() | st.integers(0, HORIZON - 1), st.integers(1, HORIZON), st.integers(1, 4)), min_size=1, max_size=4)


@settings(max_examples=100)
@given(RANGES, RANGES, LIMITS)
def test_a_budget_covers_every_entry_that_comes_or_goes_local_and_central_together(local, central, constraint):
    """An entry pays for what changes: a touched report its epsilon, a count as much per step of its net change in the range."""
    ranges = [
        (start, max(end, 1 if start is None else start + 1), Fraction(weight, 2), noise)
        for given, noise in ((local, "report"), (central, "count"))
        for start, end, weight in given
    ]
    charges = [
        Charge(Single(start, end), Response(3, weight) if noise == "report" else DiscreteLaplace(1 / weight), Measure.NET)
        for start, end, weight, noise in ranges
    ]
    stated = max(worst_case_loss(charges, [EntryType(1, "any", constraint)], pure=True).values())
    for path in paths(0, HORIZON, constraint, 1):
        spent = sum(weight for start, end, weight, _ in ranges if any(effect(path, Measure.NET, start, end).values()))
        assert stated >= spent * PICOS


@settings(max_examples=150)
@given(
    st.lists(st.tuples(st.none() | st.integers(0, HORIZON - 1), st.integers(1, HORIZON), st.integers(1, 4)), min_size=1, max_size=6),
    st.lists(LIMITS, min_size=1, max_size=2),
)
def test_what_is_charged_covers_every_pair_of_lives(filters, constraints):
    """Any ranges with any losses, and two lives of any types in each other's place: reports about whatever either touches differ."""
    ranges = [(start, max(end, 1 if start is None else start + 1), Fraction(weight, 2)) for start, end, weight in filters]
    types = [EntryType(number, "any", constraint) for number, constraint in enumerate(constraints, 1)]
    charges = [Charge(Single(start, end), Response(3, epsilon), Measure.NET) for start, end, epsilon in ranges]
    touched = {
        frozenset(n for n, (a, b, _) in enumerate(ranges) if any((a is None or a < tick) and tick <= b for tick in life))
        for one in types
        for life in lives(one.constraint)
    }
    worst = max(sum(ranges[n][2] for n in one | other) for one in touched for other in touched)
    charged = max(worst_case_loss(charges, types, pure=True).values())
    assert charged >= worst * PICOS
    assert charged >= max(sum(ranges[n][2] for n in one) for one in touched) * PICOS
    exact = local_loss([Report(start, end, epsilon) for start, end, epsilon in ranges], types)
    assert charged <= 2 * exact


@pytest.mark.parametrize(
    "constraint", [Constraint(1), Constraint(2), Constraint(3), Constraint(None, 1), Constraint(None, 6), Constraint(None, 7)]
)
@pytest.mark.parametrize(("every", "width", "horizon"), [(1, 1, None), (7, 7, None), (1, 1, 5), (1, 3, None), (2, 4, None), (1, 7, None)])
def test_regular_releases_cost_what_the_formulas_say(constraint, every, width, horizon):
    """2k, 2 (ceil(w / step) + 1), 2k ceil(W / P) and 2 ceil((W + w) / P), never more than there are."""
    found = plans(f"dp_time > now() - INTERVAL '{width} days'", constraint, every=Span(days=every), horizon=horizon)
    direct = next(one for one in found if one.mechanism.name == "independent_windows")
    touches = local_touches(bounded_touches(constraint, every, None if width == every else width), horizon)
    assert float(direct.response.epsilon) == pytest.approx(6 / touches, rel=1e-5)
    for blocks in (one for one in found if one.mechanism.name == "disjoint_sums"):
        assert float(blocks.response.epsilon) == pytest.approx(6 / local_touches(bounded_touches(constraint, every), None), rel=1e-5)


@pytest.mark.parametrize("constraint", [Constraint(1), Constraint(4), Constraint(None, 6), Constraint(None, 20)])
@pytest.mark.parametrize("horizon", [None, 64])
def test_hierarchies_cost_the_sum_over_their_levels(constraint, horizon):
    lengths = (1, 4, 16)
    options = {"levels": tuple(Span(days=length) for length in lengths), "horizon": horizon, "aligned": False}
    (plan,) = plans(DAILY, constraint, **options)
    each = [local_touches(bounded_touches(constraint, length), None if horizon is None else horizon // length) for length in lengths]
    assert float(plan.response.epsilon) == pytest.approx(6 / sum(each), rel=1e-5)


@pytest.mark.parametrize("constraint", [Constraint(1), Constraint(3), Constraint(None, 3), Constraint()])
def test_states_cost_every_period(constraint):
    (plan,) = plans(None, constraint, every=Span(days=1), horizon=12, cells=3, grouped=True)
    assert plan.response.categories == 4
    assert float(plan.response.epsilon) == pytest.approx(6 / 12, rel=1e-5)


@pytest.mark.parametrize("delta", [PURE, DELTA])
@pytest.mark.parametrize(
    "options",
    [
        {"condition": DAILY, "every": Span(days=1)},
        {"condition": "dp_time > now() - INTERVAL '30 days'", "every": Span(days=1)},
        {"condition": None, "every": Span(days=1), "measure": "net", "horizon": 200},
        {"condition": None, "every": Span(days=1), "horizon": 9},
        {"condition": DAILY, "levels": (Span(days=1), Span(days=7)), "ranges": (Span(days=28),)},
    ],
)
def test_plans_cost_what_was_asked_and_survive_storage(options, delta):
    rest = {name: value for name, value in options.items() if name != "condition"}
    for plan in plans(options["condition"], TYPES, delta=delta, **rest):
        losses = worst_case_loss(plan.charges, TYPES, plan.pure)
        target = budget_picos(Fraction(6), delta)
        assert dict(plan.lifetime) == losses
        assert 0.999 * target <= max(losses.values()) <= target
        assert local_plan_from_json(json.loads(json.dumps(plan.to_json()))) == plan


def test_charges_and_patterns_survive_storage():
    for pattern in (Prefixes(RegularGrid(3, 2), 7), Prefixes(MonthGrid(2, 1), 3)):
        assert pattern_from_json(pattern.to_json()) == pattern
        charge = Charge(pattern, Response(5, Fraction(1, 3)), Measure.STATE)
        assert charge_from_json(json.loads(json.dumps(charge.to_json()))) == charge
    assert list(Prefixes(RegularGrid(3, 2), 7).through(2).filters()) == [(None, 5), (None, 7)]
    assert list(Prefixes(RegularGrid(3, 2), 3).filters(5)) == [(None, 7), (None, 9)]
    assert scaled(Response(3, Fraction(1)), Fraction(2)) == Response(3, Fraction(1, 2))


def test_a_report_costs_its_epsilon_or_what_that_is_in_rho():
    response = Response(3, Fraction(2))
    assert response_cost(response, pure=True) == 2 * PICOS
    assert response_cost(response, pure=False) == pure_as_rho(Fraction(2))


def exact(plan, true):
    """Return the mean and the variance of the estimate of one cell, from the chances of every report; and the variance stated for the mean counts."""
    response = plan.response_of(1)
    chances = [[float(response.keep if report == one else response.other) for report in range(response.categories)] for one in true]
    nothing = plan.estimate(1, [0] * (response.categories - 1))[0][0]
    units = np.eye(response.categories - 1, dtype=int).tolist()
    worth = [0.0, *(plan.estimate(1, unit)[0][0] - nothing for unit in units)]
    means = [sum(chance * value for chance, value in zip(one, worth, strict=True)) for one in chances]
    squares = [sum(chance * value**2 for chance, value in zip(one, worth, strict=True)) for one in chances]
    ((stated,),) = (plan.estimate(1, np.sum(chances, axis=0)[1:].tolist())[1][:1],)
    return nothing + sum(means), sum(square - mean**2 for square, mean in zip(squares, means, strict=True)), stated


def holds(plan, true, count):
    """Exactly in the mean; and what is drawn, 4,000 times: the deviation of the ratio is sqrt(2 / 4000) = 0.022.

    A drawn estimate below 0 or above all is cut off before it states its variance: 3% too much near 0, as much too little near all.
    """
    mean, variance, stated = exact(plan, true)
    assert mean == pytest.approx(count, abs=1e-9)
    assert variance == pytest.approx(stated, rel=1e-9)
    values, variances = estimated(plan, true, 4000)
    stated = float(np.mean(variances))
    assert 0.79 < float(np.var(values)) / stated < 1.21
    assert abs(float(np.mean(values)) - count) < SIGMAS * math.sqrt(stated / 4000)


def estimated(plan, true, runs):
    """Return estimates and stated variances of one cell, over independent reports of the same truths."""
    response = plan.response_of(1)
    drawn = np.array(response.report_all(list(true) * runs)).reshape(runs, len(true))
    counts = [[int((row == category).sum()) for category in range(1, response.categories)] for row in drawn]
    return zip(*(tuple(part[0] for part in plan.estimate(1, one)) for one in counts), strict=True)


@pytest.mark.parametrize(("still", "up", "down"), [(150, 0, 0), (60, 70, 20), (0, 0, 150)])
def test_net_changes_are_estimated_without_bias_with_the_stated_variance(still, up, down):
    (plan,) = plans(DAILY, Constraint(2), every=Span(days=1), members=150)
    holds(plan, [0] * still + [1] * up + [2] * down, up - down)


@pytest.mark.parametrize("inside", [0, 40, 150])
def test_categories_are_estimated_without_bias_with_the_stated_variance(inside):
    (plan,) = plans(None, Constraint(2), every=Span(days=1), horizon=4, cells=3, grouped=True, members=150)
    holds(plan, [1] * inside + [2] * (150 - inside), inside)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(3), Fraction(19)])
@pytest.mark.parametrize("categories", [2, 3, 40])
def test_reports_in_arrays_are_those_of_the_plain_form(categories, epsilon):
    """The same bytes give the same uniform numbers, and these the same reports."""
    response = RandomisedResponse(categories, epsilon)
    limit = response.odds + (categories - 1) * 2**32
    generator = np.random.default_rng(4)
    uniform = [*generator.integers(0, min(limit, 2**62), 3000).tolist(), 0, response.odds - 1, response.odds, limit - 1]
    true = generator.integers(0, categories, len(uniform)).tolist()
    width = 8 * next(length for length in (1, 2, 4, 8) if (limit - 1).bit_length() <= 8 * length)
    raw = np.array([one << (width - (limit - 1).bit_length()) for one in uniform], dtype=f"<u{width // 8}").tobytes()
    plain = [response.report(category, lambda _, one=one: one) for category, one in zip(true, uniform, strict=True)]
    assert response._report_wide(true, lambda size: raw[:size]) == plain


def test_reports_in_arrays_follow_their_chances():
    response, runs = RandomisedResponse(3, Fraction(1)), 60_000
    drawn = np.array(response.report_all([1] * runs))
    for category in range(3):
        chance = float(response.keep if category == 1 else response.other)
        assert abs((drawn == category).mean() - chance) < away(runs, chance)
