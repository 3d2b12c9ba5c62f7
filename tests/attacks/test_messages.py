"""What a reader, an analyst or the server's log is told beside the noise: errors, notices and debug output at every level, plans, catalogs."""

import re

import psycopg
import pytest

from tests.integration.conftest import Cases

#: A text and a count that stand out wherever they turn up.
SECRET, EXACT = "zanzibar", 1723
DAILY = "SELECT county, count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day' GROUP BY county"
ASK = "SELECT dp_window_count('cases', '2020-01-01', '2020-01-02', predicate => $${}$$, epsilon => {})"
#: Everything is logged but the text of statements, which holds what their authors wrote.
TALKATIVE = {
    "log_min_messages": "debug2",
    "log_error_verbosity": "verbose",
    "log_min_error_statement": "panic",
    "log_statement": "none",
    "log_executor_stats": "off",
    "shared_preload_libraries": "pg_stat_statements",
}


class Watched:
    """A server whose log is read, and a town whose analyst listens to every message."""

    def __init__(self, cluster, database):
        self.cluster, self.cases = cluster, Cases(database)
        self.cases.constrain()
        self.cases.budget(50)
        self.database = database
        self.analyst = database.create_role("dbext_analyst", name="ann")
        self.admin = database.create_role("dbext_admin", name="admin")
        database.execute(f"GRANT SELECT ON cases TO {self.analyst}")
        self.heard = []

    def connect(self, role):
        connection = self.database.connect(role)
        connection.execute("SET client_min_messages = debug5")
        connection.add_notice_handler(lambda said: self.heard.append(" ".join(filter(None, (said.message_primary, said.message_detail, said.context)))))
        return connection

    def attempt(self, connection, sql):
        try:
            connection.execute(sql)
        except psycopg.Error as error:
            diagnosis = error.diag
            self.heard.append(" ".join(filter(None, (diagnosis.message_primary, diagnosis.message_detail, diagnosis.message_hint, diagnosis.context))))

    def live(self):
        """Track, write, seal, publish and ask, with failures of every kind on the way."""
        self.cases.session.execute("SELECT dp_create_release('daily', %s, '1 day', epsilon => 1, groups => %s)", (DAILY, f"VALUES ('{SECRET[:1]}')"))
        self.cases.session.execute(f"INSERT INTO cases SELECT n, '{SECRET}', 'open' FROM generate_series(1, {EXACT}) AS n")
        self.cases.day(3)
        with self.connect(self.admin) as publisher:
            publisher.execute("SET dbext.now = '2020-01-04 12:00+08'")
            self.attempt(publisher, "CALL dp_publish()")
            self.attempt(publisher, "SELECT dbext_private.publish_release(1)")
            self.attempt(publisher, "SELECT dbext_private.seal_table(99)")
        with self.connect(self.analyst) as asking:
            for predicate, epsilon in (("status = 'open'", 1), ("id < 0", 1), ("status = 'open'", 60), ("1 / id = 1", 1), ("id = 'x'", 1), ("id = 99999999999", 1)):
                self.attempt(asking, ASK.format(predicate, epsilon))
            self.attempt(asking, "SELECT * FROM dp_explain_release('daily')")
            self.attempt(asking, "TABLE dbext.seal")
            self.attempt(asking, "SELECT * FROM dbext_private.change_1")

    def told(self):
        """Return what was heard and logged that holds the secret text or the exact count."""
        lines = self.heard + self.cluster.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return [line for line in lines if SECRET in line or re.search(rf"(?<![\d.]){EXACT}(?![\d.])", line)]


@pytest.fixture
def watched(make_cluster, open_database):
    cluster = make_cluster(settings=TALKATIVE)
    return Watched(cluster, open_database(cluster))


def test_no_message_and_no_line_of_the_log_holds_data(watched):
    watched.live()
    assert len(watched.heard) > 10
    assert watched.told() == []
    watched.cases.session.execute("""
        CREATE FUNCTION gossip() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            RAISE DEBUG 'taken: %', (SELECT max(key_1) FROM dbext_private.log_1); RETURN NULL; END $$;
        CREATE TRIGGER gossip AFTER INSERT ON dbext_private.seal FOR EACH STATEMENT EXECUTE FUNCTION gossip()""")
    with watched.connect(watched.admin) as publisher:
        publisher.execute("SET dbext.now = '2020-01-05 12:00+08'")
        publisher.execute("CALL dp_publish()")
    assert watched.told() != [], "a build that talks would be heard"
    statement_statistics(watched)


def statement_statistics(watched):
    """pg_stat_statements counts rows for everybody until the doctor's fix is run."""
    from dbext.control.doctor import _run
    from dbext.control.doctor_checks import Eyes, checks

    watched.database.execute("CREATE EXTENSION pg_stat_statements; SET pg_stat_statements.track = 'all'")
    watched.cases.day(5)
    watched.cases.session.execute(f"UPDATE cases SET status = 'closed' WHERE id <= {EXACT}")
    look = "SELECT count(*) FROM pg_stat_statements WHERE rows = %s"
    with watched.database.connect(watched.analyst) as asking:
        assert asking.execute(look, (EXACT,)).fetchone()[0] > 0
        (check,) = (one for one in checks("rights") if one.name == "statement_statistics")
        eyes = Eyes(watched.database.superuser, api="public")
        for found in _run(check, eyes, eyes):
            watched.database.execute(found.fix)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            asking.execute(look, (EXACT,))


@pytest.fixture
def town(ready):
    ready.declare("daily", DAILY, every="1 day", epsilon=1, groups="VALUES ('A')")
    ready.insert(*((number, "A", "open") for number in range(1, 138)))
    ready.day(3)
    ready.publish()
    ready.people = {kind: ready.database.create_role(f"dbext_{kind}", name=kind) for kind in ("reader", "analyst")}
    ready.session.execute("SELECT dp_grant('cases', %s)", (ready.people["analyst"],))
    return ready


EXPLAINED = (
    "SELECT * FROM dp_release.daily",
    "SELECT * FROM dp_release.daily_rounded",
    "SELECT * FROM dbext.release_status",
    "SELECT * FROM dbext.tracked_table",
    "SELECT * FROM dbext.schema_event",
    "SELECT * FROM dbext.budget_status",
    "SELECT * FROM dp_explain_release('daily')",
    "SELECT dp_window_count('cases', '2020-01-01', '2020-01-02', epsilon => 0.1)",
    "SELECT * FROM dp_window_stats('cases', '2020-01-01', '2020-01-02', epsilon => 0.1)",
)


def nodes(plan):
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


@pytest.mark.parametrize("kind", ["reader", "analyst"])
def test_plans_name_no_table_of_entries_and_no_count_of_them(town, kind):
    with town.database.connect(town.people[kind]) as connection:
        for statement in EXPLAINED:
            try:
                plan = connection.execute(f"EXPLAIN (ANALYZE, VERBOSE, BUFFERS, FORMAT JSON) {statement}").fetchone()[0][0]["Plan"]
            except psycopg.errors.InsufficientPrivilege:
                assert kind == "reader"
                continue
            for node in nodes(plan):
                assert not re.match(r"(log|change|admission|deferred|row|tick_sum|node|cases|seal$)", node.get("Relation Name", "")), statement
                assert node["Actual Rows"] != 137, statement


def test_against_a_view_over_entries_the_plan_tells(town):
    town.session.execute("CREATE VIEW dbext.weak AS SELECT count(*) > 0 AS some FROM dbext_private.change_1; GRANT SELECT ON dbext.weak TO PUBLIC")
    with town.database.connect(town.people["reader"]) as connection:
        plan = connection.execute("EXPLAIN (ANALYZE, FORMAT JSON) SELECT * FROM dbext.weak").fetchone()[0][0]["Plan"]
        assert 137 in {node["Actual Rows"] for node in nodes(plan)}


@pytest.mark.parametrize("kind", ["reader", "analyst"])
def test_what_catalogs_say_of_ours_is_not_about_data(town, kind):
    """Comments, sequences, statistics of columns, defaults and constraints; doctor finds the channels that PostgreSQL leaves open."""
    town.session.execute("ANALYZE; ANALYZE dbext_private.change_1")
    with town.database.connect(town.people[kind]) as connection:
        assert connection.execute("SELECT count(*) FROM pg_stats WHERE schemaname = 'dbext_private'").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM pg_stats WHERE tablename = 'cases'").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM pg_sequences WHERE schemaname = 'dbext_private' AND last_value IS NOT NULL").fetchone() == (0,)
        said = connection.execute(
            "SELECT string_agg(description, ' ') FROM pg_description WHERE objoid IN (SELECT oid FROM pg_class WHERE relnamespace IN "
            "('dbext'::regnamespace, 'dp_release'::regnamespace) OR relnamespace IN (SELECT oid FROM pg_namespace WHERE nspname = 'dbext_private'))"
        ).fetchone()[0]
        assert "137" not in said
        for hidden in ("xmin", "xmax", "ctid", "cmin", "cmax", "tableoid"):
            for relation in ("dp_release.daily", "dp_release.daily_rounded"):
                with pytest.raises(psycopg.Error) as caught:
                    connection.execute(f"SELECT {hidden} FROM {relation}")
                assert caught.value.sqlstate in ("42501", "42703")
        with pytest.raises(psycopg.Error):
            connection.execute("SELECT nextval('dbext_private.question_question_id_seq')")


def test_against_a_grant_on_the_whole_table_transactions_are_told(town):
    town.session.execute(f"GRANT SELECT ON dp_release.daily TO {town.people['reader']}")
    with town.database.connect(town.people["reader"]) as connection:
        assert connection.execute("SELECT count(DISTINCT xmin::text) FROM dp_release.daily").fetchone()[0] >= 1


def test_exact_counts_that_postgresql_keeps_are_read_until_the_doctor_closes_them(town):
    """The attack works on a fresh installation, which is why the doctor looks."""
    from dbext.control.doctor import _run
    from dbext.control.doctor_checks import Eyes, checks

    seen = "SELECT n_tup_ins FROM pg_stat_all_tables WHERE schemaname = 'dbext_private' AND relname = 'log_1'"
    administrator = Eyes(town.session, api="public")
    if town.database.value("SELECT current_setting('server_version_num')::int >= 150000"):
        town.session.execute("SELECT pg_stat_force_next_flush()")
    with town.database.connect(town.people["reader"]) as connection:
        for _ in range(200):
            (count,) = connection.execute(seen).fetchone()
            if count == 137:
                break
            connection.execute("SELECT pg_sleep(0.05)")
        assert count == 137
        viewer = Eyes(town.session, "reader", town.people["reader"])
        for check in checks("channels"):
            for found in _run(check, viewer, administrator):
                town.session.execute(found.fix or "SELECT")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(seen)
