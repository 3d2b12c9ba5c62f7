"""Levels as they are declared: which are understood, what they become, and how the budget is divided among them."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction

import pytest

from dbext.errors import BadArgument
from dbext.mechanisms.levelled import ranges_that_matter, squared_widths
from dbext.privacy.accountant import worst_case_loss
from dbext.privacy.constraint import Constraint, EntryType
from dbext.privacy.conversion import budget_picos
from dbext.privacy.grid import MonthGrid, RegularGrid
from dbext.query.calendar import Span, Tick
from dbext.query.compiler import compile_declaration, resolve
from dbext.query.plan import plan_from_json
from dbext.query.plan_text import plan_text
from dbext.query.planner import Request, candidates
from tests.unit.query.tables import COLUMNS, DAY, DELTA, LOCAL, PURE, TYPES

DAILY, WEEKLY, MONTHLY = "dp_time > now() - INTERVAL '1 day'", "dp_time > now() - INTERVAL '7 days'", "dp_time > now() - INTERVAL '1 month'"
DAYS = (Span(days=1), Span(days=7), Span(days=28))
#: 2020-01-01, a Wednesday.
START = 7303


def planned(condition, levels, types=(LOCAL,), delta=PURE, tick=DAY, **options):
    text = "SELECT count(*) FROM cases" + (f" WHERE {condition}" if condition else "")
    request = Request(start_tick=options.pop("start", START), epsilon=Fraction(1), levels=levels, **options)
    return candidates(resolve(compile_declaration(text), COLUMNS), request, tick, types, delta)


def chosen(*arguments, **options):
    return next(one.plan for one in planned(*arguments, **options) if one.chosen)


def test_levels_say_the_period_and_are_aligned_like_periods():
    plan = chosen(DAILY, DAYS)
    mechanism = plan.mechanism
    assert plan.kind == "disjoint"
    assert mechanism.levels == (RegularGrid(START, 1), RegularGrid(7308, 7), RegularGrid(7308, 28))
    assert all(grid.end(0) % step == 0 for grid, step in zip(mechanism.levels, (1, 7, 28), strict=True))


def test_a_chosen_start_counts_days_from_there():
    plan = chosen(DAILY, DAYS, aligned=False)
    assert [grid.end(0) for grid in plan.mechanism.levels] == [START, START, START]


def test_weeks_since_a_fixed_time_are_counted_from_there():
    declaration = resolve(compile_declaration("SELECT count(*) FROM cases WHERE dp_time > '2020-01-01'"), COLUMNS)
    request = Request(start_tick=0, epsilon=Fraction(1), horizon=50, levels=(Span(days=7), Span(days=28)))
    made = candidates(declaration.with_boundaries({"2020-01-01": START}), request, DAY, (LOCAL,), PURE)
    assert all([grid.end(0) for grid in one.plan.mechanism.levels] == [START, START] for one in made)


def test_calendar_levels_begin_with_months_and_years():
    levels = (Span(days=1), Span(days=7), Span(months=1), Span(months=12))
    mechanism = chosen(DAILY, levels).mechanism
    assert mechanism.levels[2:] == (MonthGrid(241 - 1, 1), MonthGrid(252, 12)) or mechanism.levels[2].end(0) >= START
    for grid in mechanism.levels[2:]:
        assert START <= grid.end(0) < START + 366
    monthly = chosen(MONTHLY, (Span(months=1), Span(months=3), Span(months=12)), start=7303 - 2).mechanism
    assert [grid.months for grid in monthly.levels] == [1, 3, 12]
    assert all(grid.first_month % grid.months == 0 for grid in monthly.levels)


def test_ticks_of_hours_and_months_have_levels_too():
    hours = (Span(microseconds=3_600_000_000), Span(microseconds=24 * 3_600_000_000))
    plan = chosen("dp_time > now() - INTERVAL '1 hour'", hours, tick=Tick("fixed", 3_600_000_000))
    assert [grid.step for grid in plan.mechanism.levels] == [1, 24]
    plan = chosen("dp_time > now() - INTERVAL '1 month'", (Span(months=1), Span(months=12)), tick=Tick("month", 1), start=240)
    assert [grid.step for grid in plan.mechanism.levels] == [1, 12]


@pytest.mark.parametrize("delta", [PURE, DELTA])
@pytest.mark.parametrize(
    ("condition", "options"),
    [
        (DAILY, {}),
        (DAILY, {"ranges": (Span(days=7), Span(days=90))}),
        ("dp_time > now() - INTERVAL '60 days'", {}),
        ("dp_time > now() - INTERVAL '30 days' AND dp_time <= now() - INTERVAL '2 days'", {}),
        (None, {"horizon": 365}),
        (None, {"horizon": 365, "measure": "net"}),
        (None, {"horizon": 365, "measure": "entered"}),
    ],
)
def test_every_candidate_costs_what_was_asked_and_survives_storage(condition, options, delta):
    for one in planned(condition, DAYS, types=TYPES, delta=delta, **options):
        plan = one.plan
        losses = worst_case_loss(plan.charges, TYPES, plan.pure)
        target = budget_picos(Fraction(1), delta)
        assert dict(plan.lifetime) == losses
        assert 0.999 * target <= max(losses.values()) <= target
        assert plan_from_json(json.loads(json.dumps(plan.to_json()))) == plan
        assert "levelled_sums of 3 levels" in plan_text(plan, DAY, TYPES)


def variance(plan, length):
    """Return the mean variance of ranges of a length, from the fewest-noise covers."""
    mechanism = replace(plan.mechanism, ranges=(length,))
    ranges = ranges_that_matter(mechanism)
    return plan.noise.variance * sum(squared_widths(mechanism, mechanism.cover(*one)) for one in ranges) / len(ranges)


@pytest.mark.parametrize("delta", [PURE, DELTA])
@pytest.mark.parametrize("length", [3, 28, 364])
def test_tuning_serves_the_ranges_that_matter(delta, length):
    equal, tuned, *_ = planned(DAILY, DAYS, delta=delta, ranges=(Span(days=length),))
    assert variance(tuned.plan, length) < 0.97 * variance(equal.plan, length)
    assert tuned.chosen
    assert math.isclose(tuned.mean_std_error, math.sqrt(variance(tuned.plan, length)), rel_tol=1e-6)


def test_the_best_division_is_found_on_a_grid_of_divisions():
    """No division of the budget in steps of a twentieth serves ranges of 28 days better by more than 2%."""
    tuned = planned(DAILY, DAYS, ranges=(Span(days=28),))[1].plan
    best = math.inf
    for first in range(1, 19):
        for second in range(1, 20 - first):
            shares = [Fraction(first, 20), Fraction(second, 20), Fraction(20 - first - second, 20)]
            if max(shares) > 16 * min(shares):
                continue  # no level is given up
            mechanism = replace(tuned.mechanism, factors=tuple(1 / share for share in shares))
            # Three mutations, priced as two of each level: scale 2 / share.
            blocks = [squared_widths(mechanism, mechanism.cover(*one)) for one in ranges_that_matter(mechanism)]
            best = min(best, 8 * sum(blocks) / len(blocks))
    assert variance(tuned, 28) < 1.02 * best


def test_the_baseline_costs_no_more_than_a_block_of_every_level():
    alone = chosen(None, DAYS, horizon=60, types=(EntryType(1, "any", Constraint(4)),), measure="state")
    assert alone.mechanism.baseline
    assert alone.mechanism.factors[-1] < min(alone.mechanism.factors[:-1])
    without = chosen(None, DAYS, horizon=60, types=(EntryType(1, "any", Constraint(4)),), measure="net")
    assert float(alone.noise.scale) == pytest.approx(float(without.noise.scale), rel=0.1)


@pytest.mark.parametrize(
    ("condition", "levels", "options", "said"),
    [
        (DAILY, (Span(days=7), Span(days=28)), {"every": Span(days=1)}, "first level must be the period"),
        (DAILY, (Span(days=1), Span(days=28), Span(days=7)), {}, "levels must grow, but 7 days comes after 28 days"),
        (DAILY, (Span(days=1), Span(days=1)), {}, "levels must grow"),
        (WEEKLY, (Span(days=7), Span(days=10)), {}, "not a whole number of periods of 7 days"),
        (WEEKLY, (Span(days=7), Span(months=1)), {}, "1 month is not a whole number of periods"),
        (MONTHLY, (Span(months=1), Span(days=90)), {"start": 7301}, "90 days is not a whole number of periods"),
        (DAILY, (Span(days=1), Span(days=28)), {"horizon": 20}, "no block of 28 days is over before the horizon"),
        (DAILY, DAYS, {"horizon": 100, "ranges": (Span(days=101),)}, "longer than the horizon"),
        (WEEKLY, (Span(days=7), Span(days=28)), {"ranges": (Span(days=10),)}, "range of 10 days is not a whole number"),
        ("dp_time > now() - INTERVAL '3 days'", (Span(days=2), Span(days=4)), {}, "whole number of periods"),
        (DAILY, tuple(Span(days=n) for n in range(1, 10)), {}, "at most 8 levels"),
        (DAILY, (), {"every": Span(days=1), "ranges": (Span(days=7),)}, "ranges are for a release with levels"),
        (DAILY, DAYS, {"max_error": Fraction(100)}, "max_error is not for releases with levels"),
        ("dp_time > '2020-01-01' AND dp_time <= '2020-01-05'", DAYS, {}, "fixed range has one answer"),
    ],
)
def test_what_makes_no_hierarchy_is_refused(condition, levels, options, said):
    options = {"start": START, **options}
    text = f"SELECT count(*) FROM cases WHERE {condition}"
    declaration = resolve(compile_declaration(text), COLUMNS).with_boundaries({"2020-01-01": 7303, "2020-01-05": 7307})
    request = Request(start_tick=options.pop("start"), epsilon=Fraction(1), levels=levels, **options)
    with pytest.raises(BadArgument, match=said):
        candidates(declaration, request, DAY, (LOCAL,), PURE)
