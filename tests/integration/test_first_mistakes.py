"""What people do wrong in their first hour, and that they are told what is wrong, where, and what to do instead."""

import psycopg
import pytest

BEGINNINGS = """
    CREATE TABLE cases (id bigint PRIMARY KEY, county text NOT NULL, status text NOT NULL, age integer, seen timestamptz);
    CREATE TABLE county (name text PRIMARY KEY); INSERT INTO county VALUES ('Tainan'), ('Taipei');
    CREATE TABLE bare (number integer);
    CREATE TABLE other (id integer PRIMARY KEY)
"""
RELEASE = "SELECT dp_create_release('r', $${}$$, every => '1 day', epsilon => 0.1{})"
ASK = "SELECT dp_window_count('cases', '2020-01-02', '2020-01-03'{})"

#: By what there is already: statement, SQLSTATE, what must be in the message, what must be in the hint.
BEFORE_TRACKING = [
    (RELEASE.format("SELECT count(*) FROM cases", ""), "DP002", "no table of this database is tracked", "dp_track"),
    (ASK.format(", epsilon => 0.1"), "DP002", "table public.cases is not tracked", "dp_track"),
    ("SELECT dp_set_budget('cases', 1)", "DP002", "table public.cases is not tracked", "dp_track"),
    ("SELECT dp_add_constraint('cases', 'all', max_mutations => 3)", "DP002", "table public.cases is not tracked", "dp_track"),
    ("SELECT dp_track('bare')", "DP003", "table public.bare has no primary key", "unit => '{column}'"),
    ("SELECT dp_track('cases', time_zone => 'Taipei')", "DP001", 'unknown time zone "Taipei"', "'Asia/Taipei'"),
    ("SELECT dp_track('cases', tick => '0 days')", "DP001", "a tick is", "'1 day'"),
    ("SELECT dp_track('cases', unit => '{county}')", "DP003", "(county) is not a unique key of table public.cases", "rows_per_unit"),
    ("SELECT dp_track('cases', unit => '{patient}')", "DP002", 'table public.cases has no column "patient"', ""),
]
WITHOUT_BUDGET = [
    (RELEASE.format("SELECT count(*) FROM cases", ""), "DP002", "no budget is set for table public.cases", "dp_set_budget('public.cases'"),
    (RELEASE.format("SELECT count(*) FROM casess", ""), "DP002", 'no tracked table "casess"', "dp_track"),
    (RELEASE.format("SELECT count(*) FROM other", ""), "DP002", 'no tracked table "other"', "dp_track"),
]
WITHOUT_CONSTRAINT = [
    (
        RELEASE.format("SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '7 days'", ", measure => 'entered'"),
        "DP021",
        'entries of type "unconstrained"',
        "dp_add_constraint",
    ),
    ("SELECT dp_add_constraint('cases', 'all')", "DP001", "max_mutations, active_within, or both", "max_mutations => 3"),
    ("SELECT dp_add_constraint('cases', 'all', active_within => '36 hours')", "DP001", "in ticks of 1 day", "tick => '1 hour'"),
    ("SELECT dp_alter_constraint('cases', 'al', max_mutations => 3)", "DP002", 'has no constraint "al"', "dbext.entry_type"),
]
READY = [
    (RELEASE.format("SELECT count(*) FROM cases WHERE seen > now() - INTERVAL '7 days'", ""), "DP010", "can only limit dp_time", "dp_time"),
    (RELEASE.format("SELECT count(*) FROM cases WHERE status = confirmed", ""), "DP010", "no tracked column confirmed", "single quotes"),
    (RELEASE.format("SELECT count(*) * 2 FROM cases", ""), "DP010", "a figure stands alone", "when you read"),
    (RELEASE.format("SELECT sum(age) FROM cases", ""), "DP010", "column age has no bounds", "dp_bounds('cases', 'age'"),
    (
        RELEASE.format("SELECT county, count(*) FROM cases GROUP BY county", ", groups => 'SELECT name FROM county'"),
        "DP002",
        "column name of table county is not marked public",
        "dp_mark_public('county', 'name')",
    ),
    (
        RELEASE.format("SELECT county, count(*) FROM cases GROUP BY county", ", groups => 'SELECT name FROM public.county'"),
        "DP002",
        "column name of table public.county is not marked public",
        "dp_mark_public('public.county', 'name')",
    ),
    ("SELECT dp_mark_public('county', 'nam')", "DP002", 'table public.county has no column "nam"', ""),
    ("SELECT dp_bounds('cases', 'agee', 0, 120)", "DP002", 'table public.cases has no tracked column "agee"', ""),
    (
        "SELECT dp_window_sum('cases', 'agee', '2020-01-02', '2020-01-03', epsilon => 0.1)",
        "DP002",
        'has no tracked column "agee"',
        "",
    ),
    (ASK.format(""), "DP001", "epsilon is missing", "epsilon => 0.1"),
    (ASK.format(", epsilon => 5"), "DP020", "spent or reserved 0.1, asked 5, left 1.9 (epsilon)", "smaller epsilon"),
    (ASK.format(", epsilon => 0.1").replace("2020-01-02", "2019-01-02"), "DP001", "begins before the history", "then or later"),
    (ASK.format(", epsilon => 0.1").replace("-03", "-13"), "DP030", "is sealed up to 2020-01-04", "CALL dp_publish()"),
    ("SELECT dp_set_budget('cases', epsilon => 2, delta => 0)", "DP003", 'budget "public.cases" was charged for Gaussian noise', "above 0"),
    ("SELECT dp_set_budget('cases', epsilon => 0.01)", "DP001", "already spent or reserved", ""),
    (RELEASE.format("SELECT count(*) FROM cases", ", horizon => 100001"), "DP001", "between 1 and 100000 periods", ""),
    ("SELECT dp_drop_release('dayly')", "DP002", "there is no release dayly", "dbext.release_status"),
    (
        "SELECT dp_create_release('daily', 'SELECT count(*) FROM cases', every => '1 day', epsilon => 0.1)",
        "DP004",
        "the name daily is taken",
        "dbext.release_status",
    ),
]
READER, ANALYST, ADMITTED = "dbext_reader", "dbext_analyst", "GRANT USAGE ON SCHEMA dbext, dp_release"
#: By role and whether it is admitted to the database.
RIGHTS = [
    (READER, False, "SELECT dp_range('daily', '2020-01-02', '2020-01-03')", "you may not read column", ADMITTED),
    (ANALYST, False, "SELECT dp_drop_release('daily')", "is not admitted to this database", ADMITTED),
    (ANALYST, True, "SELECT dp_drop_release('daily')", "release daily was declared by someone else", "dbext_admin"),
    (ANALYST, True, "SELECT dp_set_tolerance('daily', 5)", "release daily was declared by someone else", "dbext_admin"),
    (ANALYST, True, ASK.format(", epsilon => 0.1"), "you may not ask about table public.cases", "dp_grant('public.cases', "),
]


def told(session, sql):
    """Run a statement that must be refused; return SQLSTATE, message and hint."""
    with pytest.raises(psycopg.Error) as caught:
        session.execute(sql)
    diagnosis = caught.value.diag
    return diagnosis.sqlstate, diagnosis.message_primary, diagnosis.message_hint or ""


def check(session, mistakes):
    for sql, sqlstate, message, hint in mistakes:
        state, said, advice = told(session, sql)
        assert (state, message in said, hint in advice) == (sqlstate, True, True), (sql, state, said, advice)


@pytest.fixture
def beginner(database):
    """A superuser's session, at nine o'clock of the first of January 2020."""
    session = database.superuser
    session.execute(BEGINNINGS)
    session.execute("SET dbext.now = '2020-01-01 09:00'")
    return session


def test_before_anything_is_tracked(beginner):
    check(beginner, BEFORE_TRACKING)


def test_on_the_way_to_the_first_release(beginner, database):
    beginner.execute("SELECT dp_track('cases')")
    check(beginner, WITHOUT_BUDGET)
    beginner.execute("SELECT dp_set_budget('cases', epsilon => 2, delta => 1e-6)")
    check(beginner, WITHOUT_CONSTRAINT)
    beginner.execute("SELECT dp_add_constraint('cases', 'all', max_mutations => 3)")
    beginner.execute(
        "SELECT dp_create_release('daily', $$SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day'$$,"
        " every => '1 day', measure => 'entered', epsilon => 0.1)"
    )
    beginner.execute("SET dbext.now = '2020-01-04 09:00'")
    beginner.execute("CALL dp_publish()")
    check(beginner, READY)
    for role, is_admitted, sql, message, hint in RIGHTS:
        with database.connect(database.create_role(role, admitted=is_admitted)) as session:
            check(session, [(sql, "DP005", message, hint)])
    assert beginner.execute("SELECT count(*) FROM dbext_private.question").fetchone() == (0,)


def test_a_dropped_table_leaves_releases_behind_and_that_is_said(beginner):
    told = []
    beginner.execute("SELECT dp_track('cases')")
    beginner.add_notice_handler(lambda said: told.append((said.severity, said.message_primary, said.message_hint)))
    beginner.execute("DROP TABLE other")
    assert told == []
    beginner.execute("DROP TABLE cases")
    ((severity, message, hint),) = told
    assert (severity, "table public.cases was tracked" in message, "dp_drop_release" in hint) == ("NOTICE", True, True)
