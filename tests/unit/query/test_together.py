"""Figures taken apart into streams: which are shared, how the budget is split, and what all of it costs together."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from dbext.errors import BadArgument, DeclarationRefused
from dbext.mechanisms.error import half_width
from dbext.privacy.accountant import worst_case_loss
from dbext.privacy.constraint import Constraint, EntryType
from dbext.privacy.conversion import budget_picos, epsilon_of
from dbext.privacy.measure import Values
from dbext.query.bounds import Bounds, default_grid, rounded
from dbext.query.calendar import Span
from dbext.query.choose import plan_publication
from dbext.query.compiler import compile_declaration, resolve
from dbext.query.planner import candidates
from dbext.query.publication import publication_from_json
from dbext.query.shape import Request
from dbext.query.statistic import scale_of
from tests.unit.query.tables import COLUMNS, DAY, DELTA, PURE

TYPES = (EntryType(1, "any", Constraint(max_mutations=3)),)
BOUNDS = {4: Bounds(Fraction(18), Fraction(90)), 8: Bounds(Fraction(-5), Fraction(15), Fraction(1, 2))}
WINDOW = " WHERE dp_time > now() - INTERVAL '7 days'"
SEVERAL = "SELECT count(*) AS n, sum(amount) AS s, avg(age) AS a, variance(age) AS v FROM cases"


def windows(*days):
    return ", ".join(f"count(*) FILTER (WHERE dp_time > now() - INTERVAL '{day} days') AS d{day}" for day in days)


def planned(sql, delta=PURE, bounds=BOUNDS, columns=COLUMNS, **wishes):
    request = Request(5700, Span(days=1), **({"epsilon": Fraction(1), "horizon": 30} | wishes))
    return plan_publication(resolve(compile_declaration(sql), columns), request, DAY, TYPES, delta, bounds)


@pytest.mark.parametrize("delta", [PURE, DELTA])
@pytest.mark.parametrize(
    "sql", [SEVERAL, "SELECT " + windows(7, 14, 28) + ", avg(age) FILTER (WHERE dp_time > now() - INTERVAL '7 days') AS a FROM cases"]
)
def test_all_streams_together_cost_the_epsilon_asked_for_and_no_more(sql, delta):
    made = planned(sql, delta, measure="entered" if "FILTER" in sql else None).publication
    spent, target = worst_case_loss(made.charges, TYPES, pure=delta == 0), budget_picos(Fraction(1), delta)
    assert spent == dict(made.lifetime)
    assert 0.999 * target < spent[1] <= target
    assert sum(stream.share for stream in made.streams) == pytest.approx(1)
    for stream in made.streams:
        assert all(charge.values == stream.plan.values for charge in stream.plan.charges)


@pytest.mark.parametrize("delta", [PURE, DELTA])
def test_a_publication_survives_json(delta):
    made = planned(SEVERAL, delta).publication
    plan, rest = json.loads(json.dumps(made.main.to_json())), json.loads(json.dumps(made.to_json()))
    assert publication_from_json(plan, rest, COLUMNS) == made


def test_equal_statistics_are_noised_once():
    made = planned("SELECT sum(age) AS s, avg(age) AS a, stddev(age) AS d, count(age) AS n, avg(age) AS again FROM cases").publication
    assert [(stream.term.power if stream.term else 0) for stream in made.streams] == [1, 0, 2]
    assert [formula.sources for formula in made.formulas] == [(0,), (0, 1), (2, 0, 1), (1,), (0, 1)]


def test_a_mean_alone_is_taken_from_the_middle_and_a_published_sum_serves_instead():
    alone, beside = planned("SELECT avg(age) FROM cases").publication, planned("SELECT avg(age) AS a, sum(age) AS s FROM cases").publication
    assert alone.streams[0].plan.values == Values(-36, 36)
    assert beside.streams[0].plan.values == Values(18, 90)


def test_a_column_that_is_not_null_shares_its_count():
    """count(*) serves as count(age) where every age is known; NaN is unknown whatever the table says."""
    firm = tuple(type(one)(**{**one.__dict__, "not_null": True}) for one in COLUMNS)
    assert len(planned("SELECT count(*) AS n, avg(age) AS a FROM cases", columns=firm).publication.streams) == 2
    assert len(planned("SELECT count(*) AS n, avg(age) AS a FROM cases").publication.streams) == 3
    assert len(planned("SELECT count(*) AS n, avg(amount) AS a FROM cases", columns=firm).publication.streams) == 3


@pytest.mark.parametrize("delta", [PURE, DELTA])
def test_shared_windows_beat_separate_ones_and_are_chosen(delta):
    """Against a budget split over three releases of the same windows, each window by itself errs less."""
    together = planned(f"SELECT {windows(7, 14, 28)} FROM cases", delta).publication
    (stream,) = together.streams
    assert stream.windows == (7, 14, 28)
    for place, days in enumerate((7, 14, 28)):
        declaration = resolve(compile_declaration(f"SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '{days} days'"), COLUMNS)
        request = Request(5700, Span(days=1), epsilon=Fraction(1, 3), horizon=30)
        separate = min(one.mean_std_error for one in candidates(declaration, request, DAY, TYPES, delta))
        mechanism = together.mechanism(place)
        shared = (stream.plan.noise.variance * sum(weight**2 for _, weight in mechanism.answer(30))) ** 0.5
        assert shared < separate
        assert mechanism.window(30) == (5730 - days, 5730)


def test_windows_that_are_no_whole_periods_get_streams_of_their_own():
    request = {"every": Span(days=7)}
    declaration = resolve(compile_declaration(f"SELECT {windows(7, 10)} FROM cases"), COLUMNS)
    made = plan_publication(declaration, Request(5700, epsilon=Fraction(1), horizon=30, **request), DAY, TYPES, PURE, BOUNDS).publication
    assert len(made.streams) == 2


def test_the_split_is_the_best_one():
    """Moving budget from one stream to the other makes the sum of squared errors, in units of the largest value, larger."""
    made = planned("SELECT count(*) AS n, sum(amount) AS s FROM cases WHERE dp_time > now() - INTERVAL '7 days'").publication

    def total(moved):
        parts = []
        for stream, sign in zip(made.streams, (1, -1), strict=True):
            share = stream.share + sign * moved
            parts.append(stream.plan.std_error(1) ** 2 / stream.plan.values.magnitude**2 * (stream.share / share) ** 2)
        return sum(parts)

    assert total(0) < min(total(0.03), total(-0.03))


def test_errors_are_shown_in_units_of_the_column():
    made = planned("SELECT sum(amount) FROM cases" + WINDOW)
    (stream,) = made.publication.streams
    shown = next(option.candidate.mean_std_error for option in made.options if option.candidate.chosen)
    assert shown == pytest.approx(stream.plan.std_error(1) / 2)
    bounded = planned("SELECT sum(amount) FROM cases" + WINDOW, epsilon=None, max_error=Fraction(40)).publication
    assert 78 <= bounded.main.half_width_95(1) <= 80


def test_renewed_totals_reserve_every_stream_of_the_next_epoch():
    made = planned("SELECT count(*) AS n, sum(age) AS s FROM cases", DELTA, at_horizon="renew").publication
    later = made.charges_of_epoch(2, TYPES)
    assert {charge.values for charge in later} == {Values(0, 1), Values(18, 90)}
    assert made.of_stream([*made.charges, *later], 1) == [*made.streams[1].plan.charges, *made.streams[1].plan.charges_of_epoch(2, TYPES)]
    assert any("two epochs" in note for note in made.notes)


def test_what_cannot_be_priced_is_refused():
    with pytest.raises(DeclarationRefused, match="no bounds"):
        planned("SELECT sum(score) FROM cases")


def widest(made, place, periods=range(1, 31)):
    """The widest half width of a statistic in units of its column, recomputed from the weights of every period's answer."""
    stream, scale = made.streams[made.readings[place].stream], scale_of(made.statistic(place))
    answers = (made.mechanism(place).answer(period) for period in periods)
    return max(half_width(stream.plan.draws(answer), made.main.tail(1)) for answer in answers) * scale


@pytest.mark.parametrize("delta", [PURE, DELTA])
@pytest.mark.parametrize(
    ("sql", "limits"),
    [
        ("SELECT count(*) AS n, sum(age) AS s FROM cases", {"n": 40, "s": 4000}),
        ("SELECT count(age) AS n, sum(age) AS s, avg(age) AS a FROM cases", {"n": 25, "s": 1500}),
        ("SELECT sum(amount) AS s, count(*) FILTER (WHERE amount > 3) AS n FROM cases", {"s": 300, "n": 30}),
        (f"SELECT {windows(7, 14, 28)} FROM cases", {"d7": 30, "d14": 40, "d28": 60}),
        (f"SELECT {windows(7, 28)} FROM cases", {"d7": 8, "d28": 4000}),
    ],
)
def test_errors_of_several_figures_find_the_least_epsilon(sql, limits, delta):
    """Every interval keeps its limit at every period, as nearly as whole numbers allow, and all streams cost what is said together."""
    errors = tuple((name, Fraction(limit)) for name, limit in limits.items())
    found = planned(sql, delta, epsilon=None, max_errors=errors)
    made = found.publication
    used = [widest(made, one.sources[0]) / limits[one.label] for one in made.formulas if one.is_linear]
    assert max(used) <= 1
    assert (max if any(stream.windows for stream in made.streams) else min)(used) > 0.94
    lost = max(worst_case_loss(made.charges, TYPES, pure=delta == 0).values())
    assert lost == max(made.lifetime.values())
    assert made.epsilon == Fraction(epsilon_of(lost, delta))
    assert sum(stream.share for stream in made.streams) == pytest.approx(1)
    for option in (one for one in found.options if one.candidate.chosen):
        others = [one for one in found.options if one.share == option.share and one.candidate.plan.pure == made.main.pure]
        assert option.candidate.plan.epsilon == min(one.candidate.plan.epsilon for one in others)
    with pytest.raises(BadArgument, match="max_errors need an epsilon of"):
        planned(sql, delta, epsilon=made.epsilon * Fraction(99, 100), max_errors=errors)
    assert planned(sql, delta, epsilon=made.epsilon, max_errors=errors).publication == made


@pytest.mark.parametrize("delta", [PURE, DELTA])
def test_windows_share_a_stream_where_their_errors_cost_less_so(delta):
    """Alike limits are met by one stream for all windows; where one window alone must be exact, the others cost next to nothing apart."""
    alike = planned(f"SELECT {windows(7, 14, 28)} FROM cases", delta, epsilon=None, max_error=Fraction(40)).publication
    assert [stream.windows for stream in alike.streams] == [(7, 14, 28)]
    apart = 0
    for place, days in enumerate((7, 14, 28)):
        alone = planned(f"SELECT {windows(days)} FROM cases", delta, epsilon=None, max_error=Fraction(40)).publication
        apart += max(alone.lifetime.values())
        assert widest(alike, place) <= 40
    assert max(alike.lifetime.values()) < apart
    if delta:
        uneven = planned(f"SELECT {windows(7, 28)} FROM cases", delta, epsilon=None, max_errors=(("d7", Fraction(8)), ("d28", Fraction(4000))))
        assert [stream.windows for stream in uneven.publication.streams] == [(), ()]


def test_one_error_holds_for_every_count_and_sum_that_none_is_named_for():
    sql = "SELECT count(*) AS n, sum(age) AS s FROM cases"
    both = planned(sql, epsilon=None, max_error=Fraction(90)).publication
    assert [widest(both, place) for place in (0, 1)] == [90, pytest.approx(90, rel=0.05)]
    one = planned(sql, epsilon=None, max_error=Fraction(90), max_errors=(("s", Fraction(900)),)).publication
    assert [widest(one, place) for place in (0, 1)] == [90, pytest.approx(900, rel=0.05)]
    assert one.epsilon < both.epsilon / 5


@pytest.mark.parametrize("sql", ["SELECT count(*) FROM cases", "SELECT count(*) AS n, sum(age) AS s FROM cases", f"SELECT {windows(7, 28)} FROM cases"])
@pytest.mark.parametrize("limit", [10**9, 10**17])
def test_errors_so_large_that_delta_alone_allows_them_are_planned_and_charged(sql, limit):
    """Their epsilon is 0 in twelve digits; what is charged never is."""
    found = planned(sql, DELTA, epsilon=None, max_error=Fraction(limit)).publication
    assert found.epsilon < Fraction(1, 10**6)
    assert min(found.lifetime.values()) > 0


@pytest.mark.parametrize(
    ("sql", "wishes", "said"),
    [
        ("SELECT count(*) AS n, avg(age) AS a FROM cases", {"max_error": 5}, "no budget promises an error of a"),
        ("SELECT avg(age) AS a FROM cases", {"max_errors": {"a": 5}}, "no budget promises an error of a"),
        ("SELECT count(*) AS n, sum(age) AS s FROM cases", {"max_errors": {"n": 5}}, "does not say how exact s must be"),
        ("SELECT count(*) AS n, sum(age) AS s FROM cases", {"max_errors": {"n": 5, "t": 5}}, "not declared"),
        ("SELECT count(*) AS n, sum(age) AS s FROM cases", {"max_error": "0.001"}, "no noise is that small"),
        ("SELECT count(*) AS n, sum(age) AS s FROM cases", {"max_error": 2}, "no noise is that small"),
    ],
)
def test_errors_that_nothing_promises_are_refused(sql, wishes, said):
    given = {
        "max_error": Fraction(wishes["max_error"]) if "max_error" in wishes else None,
        "max_errors": tuple((name, Fraction(value)) for name, value in wishes.get("max_errors", {}).items()),
    }
    with pytest.raises(BadArgument, match=said):
        planned(sql, epsilon=None, horizon=3000, **given)


@pytest.mark.parametrize("limit", [2, 10])
@pytest.mark.parametrize("largest", [90, 10**4, 10**9])
def test_errors_that_only_a_vast_epsilon_would_keep_are_refused(largest, limit):
    bounds = {4: Bounds(Fraction(0), Fraction(largest))}
    with pytest.raises(BadArgument, match="no noise is that small"):
        planned("SELECT sum(age) AS s FROM cases", DELTA, bounds, epsilon=None, max_error=Fraction(limit), horizon=3000)


@pytest.mark.parametrize(("value", "whole"), [("0.5", 1), ("-0.5", -1), ("2.49", 2), ("-2.5", -3), ("7", 7)])
def test_halves_are_rounded_away_from_zero_as_postgresql_does(value, whole):
    assert rounded(Fraction(value)) == whole


@pytest.mark.parametrize(
    ("base", "low", "high", "grid"),
    [
        ("integer", 0, 10**6, "1"),
        ("numeric", 0, 100, "0.01"),
        ("numeric", 0, 99, "0.001"),
        ("float", -1, 1, "0.0001"),
        ("float", 0, 10**7, "1000"),
    ],
)
def test_default_grids_leave_ten_thousand_steps(base, low, high, grid):
    assert default_grid(base, Fraction(low), Fraction(high)) == Fraction(grid)


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        (SEVERAL, {"count", "sum of amount", "count where age IS NOT NULL", "sum of age", "sum of squares of age"}),
        ("SELECT count(*) AS n, count(*) FILTER (WHERE status = 'open') AS o FROM cases", {"count", "count where status = 'open'"}),
        ("SELECT sum(age) AS s, sum(age) FILTER (WHERE age > 20) AS t, count(*) AS n FROM cases",
            {"sum of age where age IS NOT NULL", "sum of age where age > 20 AND age IS NOT NULL", "count"}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("delta", [PURE, DELTA])
def test_streams_have_names_of_their_own(sql, names, delta):
    made = planned(sql, delta)
    assert {one.stream for one in made.options} == names
    assert [one.stream for one in made.options if one.candidate.chosen] == list(dict.fromkeys(one.stream for one in made.options))


def test_streams_that_differ_in_windows_alone_are_numbered():
    """A week and a year err less apart than made from the same numbers."""
    made = planned("SELECT " + windows(7, 365) + " FROM cases", measure="entered", horizon=None)
    assert {one.stream for one in made.options} == {"count, stream 1", "count, stream 2"}


def test_prices_in_epsilon_are_compared_stream_by_stream():
    """The error of each stream that adds in epsilon is set beside that of the same stream, not of another one called alike."""
    made = planned("SELECT count(*) AS n, count(*) FILTER (WHERE status = 'open') AS o, avg(age) AS a FROM cases", DELTA)
    chosen = {one.stream: one.candidate.mean_std_error for one in made.options if one.candidate.chosen}
    for one in made.options:
        if one.candidate.reason and "times the error" in one.candidate.reason and one.candidate.reason.startswith("adds in"):
            assert f": {one.candidate.mean_std_error / chosen[one.stream]:.2f} times" in one.candidate.reason
    assert len(chosen) == len([one for one in made.options if one.candidate.chosen]) > 3
