"""Plans: what they promise, that they survive storage, and that candidates are compared fairly."""

from __future__ import annotations

import json
import math
import sys
import time
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbext.errors import BadArgument, HorizonReached, InternalError, UnboundedLoss
from dbext.mechanisms.error import half_width, half_width_95
from dbext.privacy.accountant import worst_case_loss
from dbext.privacy.constraint import Constraint, EntryType
from dbext.privacy.conversion import budget_picos, epsilon_of
from dbext.privacy.measure import Measure
from dbext.privacy.noise import DiscreteLaplace, RoundedGaussian, scaled
from dbext.query.calendar import Span
from dbext.query.compiler import compile_declaration, resolve
from dbext.query.declaration import declaration_from_json
from dbext.query.exact_error import DENOMINATOR, largest_noise_within
from dbext.query.plan import plan_from_json
from dbext.query.planner import Request, candidates, exact_epsilon, plan, plan_question
from tests.unit.query.tables import COLUMNS, DAY, DELTA, IMPORTED, LOCAL, PURE, TYPES, UNBOUNDED

DAILY = Request(start_tick=5700, every=Span(days=1), epsilon=Fraction(1, 2))
WINDOW = "SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '{} days'"
TOTAL = "SELECT count(*) FROM cases"


def declared(sql, **boundaries):
    return resolve(compile_declaration(sql), COLUMNS).with_boundaries(boundaries)


DECLARATIONS = st.sampled_from(
    [
        declared(WINDOW.format(1)),
        declared(WINDOW.format(10)),
        declared(WINDOW.format(14) + " AND dp_time <= now() - INTERVAL '2 days'"),
        declared("SELECT county, count(*) FROM cases WHERE dp_time > now() - INTERVAL '7 days' GROUP BY county"),
        declared(TOTAL),
        declared("SELECT county, count(*) FROM cases GROUP BY county"),
        declared(TOTAL + " WHERE dp_time <= now() - INTERVAL '3 days'"),
    ]
)
CONSTRAINTS = st.builds(Constraint, st.integers(1, 5), st.none()) | st.builds(Constraint, st.none() | st.integers(1, 3), st.integers(0, 40))


@settings(max_examples=60)
@given(
    DECLARATIONS,
    st.sampled_from([Span(days=1), Span(days=7)]),
    st.lists(CONSTRAINTS, min_size=1, max_size=2),
    st.sampled_from([None, "net", "entered", "left"]),
    st.tuples(st.sampled_from([PURE, DELTA]), st.sampled_from([None, 1, 5, 40])),
)
def test_every_plan_keeps_its_promise_and_survives_storage(declaration, every, constraints, measure, delta_horizon):
    delta, horizon = delta_horizon
    types = [EntryType(number, str(number), constraint) for number, constraint in enumerate(constraints, 1)]
    request = replace(DAILY, every=every, measure=measure, horizon=horizon)
    found = candidates(declaration, request, DAY, types, delta)
    assert [one.chosen for one in found].count(True) == 1
    for one in found:
        lifetime = worst_case_loss(one.plan.charges, types, delta == 0)
        assert lifetime == one.lifetime
        assert max(lifetime.values()) <= budget_picos(request.epsilon, delta)
        assert epsilon_of(max(lifetime.values()), delta) <= request.epsilon
        assert plan_from_json(json.loads(json.dumps(one.plan.to_json()))) == one.plan
    best = next(one for one in found if one.chosen)
    assert best.mean_std_error == min(one.mean_std_error for one in found)
    assert best.plan == plan(declaration, request, DAY, types, delta)
    assert best.mean_std_error <= best.worst_std_error * (1 + 1e-9)


def test_either_form_of_a_sliding_window_can_win():
    by_type = {}
    for name, types in {"few mutations": (LOCAL,), "a long life": (IMPORTED,)}.items():
        by_type[name] = plan(declared(WINDOW.format(14)), DAILY, DAY, types, PURE).mechanism.name
    assert by_type == {"few mutations": "disjoint_sums", "a long life": "independent_windows"}


def test_gaussian_noise_needs_delta_and_is_all_there_is_with_it():
    assert {type(one.noise) for one in candidates(declared(TOTAL), DAILY, DAY, TYPES, PURE)} == {DiscreteLaplace}
    with_delta = candidates(declared(TOTAL), replace(DAILY, horizon=100), DAY, TYPES, DELTA)
    assert {type(one.noise) for one in with_delta} == {RoundedGaussian}


def test_one_answer_of_sensitivity_one_may_still_prefer_laplace():
    question = plan_question(5700, 5701, measure=Measure.NET, epsilon=Fraction(10), types=TYPES, delta=DELTA)
    assert question.kind == "once"
    assert question.window(1) == (5700, 5701)
    assert len(question.charges) == 1


def test_questions():
    state = plan_question(None, 5700, measure=Measure.STATE, epsilon=Fraction(1, 10), types=TYPES, delta=PURE)
    assert state.window(1) == (None, 5700)
    assert state.noise == DiscreteLaplace(Fraction(10))
    assert state.lifetime == {1: 10**11, 2: 10**11}
    for start, end, measure in [(5700, 5700, Measure.NET), (5701, 5700, Measure.NET), (5600, 5700, Measure.STATE)]:
        with pytest.raises(BadArgument):
            plan_question(start, end, measure=measure, epsilon=Fraction(1), types=TYPES, delta=PURE)


def test_state_starts_with_what_was_there_and_net_does_not():
    state = plan(declared(TOTAL), DAILY, DAY, TYPES, PURE)
    assert state.window(3) == (None, 5703)
    assert [(node.start, node.end) for node in state.mechanism.nodes(1)] == [(None, 5700), (5700, 5701)]
    net = plan(declared(TOTAL), replace(DAILY, measure="net"), DAY, TYPES, PURE)
    assert net.window(3) == (5700, 5703)
    assert any("counts from the start" in note for note in net.notes)


def test_an_aged_total_is_published_later_than_its_window_ends():
    aged = plan(declared(TOTAL + " WHERE dp_time <= now() - INTERVAL '3 days'"), replace(DAILY, horizon=9), DAY, TYPES, PURE)
    assert aged.window(2) == (None, 5699)
    assert aged.due_tick(2) == 5702
    with pytest.raises(HorizonReached):
        aged.window(10)


def test_without_any_constraint_only_a_horizon_bounds_the_loss():
    with pytest.raises(UnboundedLoss, match='"unconstrained"') as caught:
        plan(declared(WINDOW.format(14)), DAILY, DAY, UNBOUNDED, PURE)
    assert "dp_add_constraint" in caught.value.hint
    finite = plan(declared(WINDOW.format(14)), replace(DAILY, horizon=10), DAY, UNBOUNDED, PURE)
    assert finite.mechanism.name == "independent_windows"
    assert finite.noise == DiscreteLaplace(Fraction(20))


@pytest.mark.parametrize("delta", [PURE, DELTA])
@pytest.mark.parametrize("sql", [WINDOW.format(14), WINDOW.format(1), TOTAL])
def test_max_error_finds_the_smallest_epsilon(sql, delta):
    request = replace(DAILY, epsilon=None, max_error=Fraction(25), horizon=100)
    found = plan(declared(sql), request, DAY, (LOCAL,), delta)
    widest = max(found.half_width_95(period) for period in range(1, 101))
    assert widest <= 25
    cheaper = replace(request, max_error=None, epsilon=found.epsilon * Fraction(9, 10))
    assert all(one.worst_half_width_95 > 25 for one in candidates(declared(sql), cheaper, DAY, (LOCAL,), delta))
    with pytest.raises(BadArgument, match="needs an epsilon of"):
        plan(declared(sql), replace(request, epsilon=found.epsilon / 2), DAY, (LOCAL,), delta)
    assert plan(declared(sql), replace(request, epsilon=found.epsilon), DAY, (LOCAL,), delta) == found


def test_the_largest_gaussian_noise_of_draws_of_several_widths_and_weights_of_any_size():
    draws = [(Fraction(1), 0.3), (Fraction(5, 2), -0.7), (Fraction(5, 2), 0.7), (Fraction(1), 0.3)]

    def width(parameter):
        return half_width([(scaled(RoundedGaussian(parameter), factor), weight) for factor, weight in draws])

    parameter = largest_noise_within(Fraction(10), RoundedGaussian, draws).sigma_squared
    assert width(parameter) <= 10 < width(parameter + Fraction(1, DENOMINATOR))


def test_the_largest_noise_within_an_error():
    for kind in (DiscreteLaplace, RoundedGaussian):
        noise = largest_noise_within(Fraction(10), kind, [(Fraction(1), 1)] * 3)
        parameter = noise.scale if kind is DiscreteLaplace else noise.sigma_squared
        assert half_width_95(noise, (1, 1, 1)) <= 10 < half_width_95(kind(parameter + Fraction(1, DENOMINATOR)), (1, 1, 1))


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", 0.5, "0", "-1", "1000.1", "half", None, Decimal("NaN"), "1/0"])
def test_epsilon_is_positive_finite_exact_and_not_huge(value):
    with pytest.raises(BadArgument, match="epsilon"):
        exact_epsilon(value)


def test_epsilon_is_read_exactly():
    assert exact_epsilon("0.1") == exact_epsilon(Decimal("0.1")) == Fraction(1, 10)
    assert exact_epsilon(1000) == 1000


def test_a_stored_declaration_reads_back():
    hop = "SELECT county, count(*) FROM cases GROUP BY county, HOP(dp_time, INTERVAL '1 day', INTERVAL '7 days')"
    for sql in [WINDOW.format(14) + " AND status = 'a'", hop]:
        declaration = declared(sql)
        again = declaration_from_json(json.loads(json.dumps(declaration.to_json())), COLUMNS, declaration.text)
        assert replace(again, notes=declaration.notes) == declaration
    fixed = declared(TOTAL + " WHERE dp_time > '2015-09-01' AND dp_time <= '2015-10-01'", **{"2015-09-01": 5719, "2015-10-01": 5749})
    again = declaration_from_json(json.loads(json.dumps(fixed.to_json())), COLUMNS, fixed.text)
    assert replace(again, notes=fixed.notes) == fixed
    assert fixed.fixed_texts == ("2015-09-01", "2015-10-01")


def test_a_fixed_time_must_be_placed_before_planning():
    unplaced = resolve(compile_declaration(TOTAL + " WHERE dp_time > '2015-09-01'"), COLUMNS)
    with pytest.raises(InternalError):
        plan(unplaced, DAILY, DAY, TYPES, PURE)


def forget():
    """Forget what was worked out for plans before: whichever tests ran first, none may leave this one half of its work."""
    for module in [one for name, one in sys.modules.items() if name.startswith("dbext.")]:
        for kept in [one for one in vars(module).values() if hasattr(one, "cache_clear")]:
            kept.cache_clear()


@pytest.mark.parametrize("delta", [PURE, DELTA])
@pytest.mark.parametrize("measure", [None, "entered"])
def test_planning_ten_times_the_days_takes_far_less_than_the_square(measure, delta):
    request, taken = replace(DAILY, measure=measure), []
    for horizon in (365, None):
        forget()
        start = time.process_time()
        found = plan(declared(TOTAL), replace(request, horizon=horizon), DAY, TYPES, delta)
        taken.append(time.process_time() - start)
    assert found.horizon == 3653
    assert taken[1] < 60 * taken[0], "3 to 20 times on an idle machine; a plan that looks at all pairs of periods takes 100 times"
    assert math.isfinite(found.half_width_95(3653))
