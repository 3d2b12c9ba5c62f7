"""dp_range: any range from what a release has published, free, and only for whoever may read the release."""

import psycopg
import pytest

from tests.integration.test_publish import KEYS, LOUD, history

BY_COUNTY = "SELECT county, count(*) FROM cases WHERE status = 'open'{range} GROUP BY county"
#: Exact effects by day of `history`: county -> change on days 0, 1, 2.
NET = {"A": (2, -1, -1), "B": (0, 2, 0), "C": (0, 1, -1)}


@pytest.fixture
def loud(cases):
    cases.constrain(max_mutations=5)
    cases.budget(1000)
    return cases


def stats(cases, release, start, end, session=None):
    sql = "SELECT group_key, value, std_error, lower_95, upper_95, nodes, status FROM dp_range_stats(%s, %s, %s)"
    return (session or cases.session).execute(sql, (release, start, end)).fetchall()


def values(cases, release, first, last):
    """Return the values of days first ... last by county."""
    return {key[0]: value for key, value, *_ in stats(cases, release, f"2020-01-0{first + 1}", f"2020-01-0{last + 2}")}


@pytest.mark.parametrize("delta", [0, "1e-6"])
@pytest.mark.parametrize(
    ("range_", "options"),
    [
        (" AND dp_time > now() - INTERVAL '1 day'", {}),
        (" AND dp_time > now() - INTERVAL '3 days'", {}),
        ("", {"measure": "state", "horizon": 20}),
        ("", {"measure": "net", "horizon": 300}),
    ],
)
def test_every_range_of_a_release_holds_what_happened_in_it(cases, range_, options, delta):
    cases.constrain(max_mutations=5)
    cases.budget(1000, delta)
    cases.declare("one", BY_COUNTY.format(range=range_), every="1 day", epsilon=1000, groups=KEYS, **options)
    history(cases)
    cases.publish()
    single_windows = "INTERVAL '3 days'" in range_ and "independent" in cases.database.value(
        "SELECT mechanism FROM dp_explain_release('one') WHERE chosen"
    )
    assert not single_windows, "a release of overlapping windows that are noised one by one would not do for this test"
    first = 1 if options.get("measure") == "state" and delta else 0
    for start in range(first, 3):
        for end in range(start, 3):
            assert values(cases, "one", start, end) == pytest.approx({key: sum(day[start : end + 1]) for key, day in NET.items()}, abs=0.4)


def test_ranges_cost_nothing_and_repeat_themselves(loud):
    loud.declare("one", BY_COUNTY.format(range=" AND dp_time > now() - INTERVAL '1 day'"), every="1 day", epsilon=1, groups=KEYS)
    history(loud)
    loud.publish()
    before = loud.database.fetch("SELECT (SELECT count(*) FROM dbext_private.ledger), (SELECT count(*) FROM dbext_private.node)")
    asked = [stats(loud, "one", "2020-01-01", "2020-01-04") for _ in range(3)]
    assert asked[0] == asked[1] == asked[2]
    published = loud.database.fetch("SELECT county, sum(net) FROM dp_release.one GROUP BY county ORDER BY county")
    assert [(key[0], value) for key, value, *_ in asked[0]] == [(county, float(total)) for county, total in published]
    assert loud.database.fetch("SELECT (SELECT count(*) FROM dbext_private.ledger), (SELECT count(*) FROM dbext_private.node)") == before


def test_the_error_is_that_of_the_nodes_put_together(loud):
    loud.declare("one", "SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day'", every="1 day", epsilon=1)
    loud.day(9)
    loud.publish()
    ((single,),) = loud.database.fetch("SELECT DISTINCT std_error FROM dp_release.one")
    ((key, value, error, low, high, nodes, status),) = stats(loud, "one", "2020-01-02", "2020-01-06")
    assert (key, nodes, status) == ([], 4, "ok")
    assert error == pytest.approx(2 * single)
    assert low < value < high
    assert high - value == value - low > error


def test_one_number_by_text_moment_or_group(loud):
    loud.declare("plain", "SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day'", every="1 day", epsilon=LOUD)
    loud.declare("one", BY_COUNTY.format(range=" AND dp_time > now() - INTERVAL '1 day'"), every="1 day", epsilon=LOUD, groups=KEYS)
    history(loud)
    loud.publish()
    database = loud.database
    assert database.value("SELECT dp_range('plain', '2020-01-01', '2020-01-03')") == 5
    assert database.value("SELECT dp_range('plain', min(window_start), max(window_end)) FROM dp_release.plain") == 4
    assert database.value("SELECT dp_range('one', '2020-01-01', '2020-01-03', 'B')") == 2
    assert database.value("SELECT dp_range('one', timestamptz '2020-01-01 00:00+08', timestamptz '2020-01-03 00:00+08', 'A')") == 1
    for arguments in ("'one', '2020-01-01', '2020-01-03'", "'plain', '2020-01-01', '2020-01-03', 'A'"):
        with pytest.raises(psycopg.Error, match="group"):
            database.value(f"SELECT dp_range({arguments})")
    with pytest.raises(psycopg.Error, match="no such group key"):
        database.value("SELECT dp_range('one', '2020-01-01', '2020-01-03', 'nowhere')")


def test_a_state_reaches_back_to_the_beginning_and_nothing_else_does(loud):
    loud.declare("now", "SELECT count(*) FROM cases", every="1 day", measure="state", epsilon=LOUD, horizon=5)
    loud.declare("new", "SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day'", every="1 day", epsilon=LOUD)
    history(loud)
    loud.publish()
    assert loud.database.value("SELECT dp_range('now', NULL, '2020-01-04'::text)") == 4
    assert loud.database.value("SELECT dp_range('now', '-infinity', '2020-01-03')") == 5
    with pytest.raises(psycopg.Error, match="needs a range_start"):
        loud.database.value("SELECT dp_range('new', '-infinity', '2020-01-03')")


@pytest.mark.parametrize(
    ("arguments", "sqlstate", "said"),
    [
        ("'none', '2020-01-01', '2020-01-03'", "DP002", "there is no release"),
        ("'one', '2020-01-01', '2020-01-08'", "DP030", "published up to 2020-01-07 00:00:00 Asia/Taipei"),
        ("'one', '2020-01-02', '2020-01-05'", "DP001", "Nearest: 2020-01-01 00:00:00 Asia/Taipei and 2020-01-03 00:00:00"),
        ("'one', '2020-01-01 06:00', '2020-01-03'", "DP001", "The nearest ones are 2020-01-01 00:00:00"),
        ("'one', '2020-01-05', '2020-01-03'", "DP001", "range_end must be after range_start"),
        ("'one', '2019-01-01', '2020-01-03'", "DP001", "Nearest: "),
        ("'one', '2020-01-01', NULL::text", "DP001", "range_end is missing"),
        ("'waiting', '2020-01-01', '2020-01-03'", "DP030", "published nothing yet"),
        ("'apart', '2020-01-01', '2020-01-05'", "DP003", "no sum or difference"),
    ],
)
def test_what_cannot_be_answered_is_refused_with_the_reason(loud, arguments, sqlstate, said):
    loud.declare(
        "one", "SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '2 days'", every="2 days", start="2020-01-01", epsilon=1
    )
    loud.declare(
        "apart", "SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day'", every="2 days", start="2019-12-31", epsilon=1
    )
    loud.day(7)
    loud.publish()
    loud.declare("waiting", "SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day'", every="1 day", epsilon=1)
    with pytest.raises(psycopg.Error) as refusal:
        loud.database.value(f"SELECT dp_range({arguments})")
    assert refusal.value.sqlstate == sqlstate
    assert said in f"{refusal.value.diag.message_primary} {refusal.value.diag.message_hint}"


def test_whoever_may_read_the_release_may_ask_and_nobody_else(loud):
    database = loud.database
    loud.declare("one", "SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day'", every="1 day", epsilon=1)
    history(loud)
    loud.publish()
    reader, outsider = database.create_role("dbext_reader"), database.create_role()
    ask = "SELECT dp_range('one', '2020-01-01', '2020-01-03')"
    expected = database.value(ask)
    with database.connect(reader) as session:
        assert session.execute(ask).fetchone()[0] == expected
    with database.connect(outsider) as session, pytest.raises(psycopg.errors.InsufficientPrivilege):
        session.execute(ask)
    database.execute("REVOKE SELECT (net) ON dp_release.one FROM dbext_reader")
    with database.connect(reader) as session, pytest.raises(psycopg.Error, match="may not read column net"):
        session.execute(ask)


def test_nodes_that_are_drawn_but_not_published_are_not_answered_from(loud):
    loud.declare("one", "SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day'", every="1 day", epsilon=1)
    loud.day(1)
    loud.publish()
    loud.day(2)
    number = loud.database.value("SELECT table_id FROM dbext_private.tracked_table")
    loud.session.execute("SELECT dbext_private.seal_table(%s)", (number,))
    release = loud.database.value("SELECT release_id FROM dbext_private.release")
    loud.session.execute("SELECT dbext_private.draw_release(%s)", (release,))
    with pytest.raises(psycopg.Error, match="not published yet"):
        loud.database.value("SELECT dp_range('one', '2020-01-01', '2020-01-03')")


def test_a_gap_of_capture_is_said(loud):
    loud.declare("one", "SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day'", every="1 day", epsilon=1)
    loud.day(1)
    loud.publish()
    number = loud.database.value("SELECT table_id FROM dbext_private.tracked_table")
    loud.session.execute("SELECT dbext_private.note_schema_event(%s, 'test', 'a test')", (number,))
    loud.day(3)
    loud.publish()
    assert stats(loud, "one", "2020-01-01", "2020-01-02")[0][-1] == "ok"
    assert stats(loud, "one", "2020-01-01", "2020-01-03")[0][-1] == "capture_gap"


@pytest.mark.parametrize("options", [{"every": "1 day"}, {"levels": "{1 day, 2 days}"}])
def test_ranges_of_a_sum_are_in_the_units_of_its_column(loud, options):
    loud.session.execute("SELECT dp_bounds('cases', 'id', 0, 8, 2), dp_alter_constraint('cases', 'any', max_mutations => 2)")
    text = "SELECT county, sum(id) FROM cases WHERE status = 'open' AND dp_time > now() - INTERVAL '1 day' GROUP BY county"
    loud.declare("one", text, epsilon=900, groups=KEYS, **options)  # so much that every draw is 0
    history(loud)
    loud.publish()
    published = {
        (number, county): value for number, county, value in loud.database.fetch("SELECT release_no, county, sum FROM dp_release.one")
    }
    for start, end in [(0, 1), (0, 3), (1, 3)]:
        found = {key[0]: value for key, value, *_ in stats(loud, "one", f"2020-01-0{start + 1}", f"2020-01-0{end + 1}")}
        expected = {county: sum(published[number, county] for number in range(start + 1, end + 1)) for county in "ABC"}
        assert found == pytest.approx(expected, abs=1e-6)
    restated = loud.database.fetch("SELECT release_no, group_key[1], value FROM dp_restated('one')")
    assert {(number, county): value for number, county, value in restated} == pytest.approx(published)
