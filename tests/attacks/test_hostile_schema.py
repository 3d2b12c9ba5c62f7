"""Whoever may create objects in a schema of the path plants operators and functions there; none of ours may ever take one of them.

An operator or function of pg_catalog is found first only if its argument types fit exactly: `numeric > integer` is an exact match for
nothing there, so that one planted in schema public would be taken, and run with our rights.
"""

import re

import pytest

from dbext.control import extension

TYPES = ("int4", "int8", "numeric", "text", "name", "oid", "regclass", "jsonb", "timestamptz", "bool", "int2", "xid8", "_text", "regnamespace", "regproc", "regtype", '"char"')  # fmt: skip
OPERATORS = ("=", "<>", "<", ">", "<=", ">=", "+", "-", "*", "/", "||", "->", "->>", "#>>", "~", "!~", "&", "&&")

#: One operator of every name for every pair of types for which pg_catalog has none, and functions likewise; each says when it is run.
PLANT = """
CREATE TABLE public.caught (what text); GRANT ALL ON public.caught TO PUBLIC;
CREATE PROCEDURE public.plant(types text[], operators text[], functions text[]) LANGUAGE plpgsql AS $plant$
DECLARE
    body constant text := 'BEGIN INSERT INTO public.caught VALUES (%L); RETURN NULL; END';
    symbol text;
    one record;
BEGIN
    FOR one IN SELECT l.type AS l, r.type AS r FROM unnest(types) AS l(type), unnest(types) AS r(type) LOOP
        EXECUTE format('CREATE FUNCTION public.trap(a %s, b %s) RETURNS bool LANGUAGE plpgsql AS %L', one.l, one.r, format(body, one));
    END LOOP;
    FOREACH symbol IN ARRAY operators LOOP
        FOR one IN SELECT l.type AS l, r.type AS r FROM unnest(types) AS l(type), unnest(types) AS r(type)
            WHERE NOT EXISTS (SELECT FROM pg_operator AS p WHERE p.oprname OPERATOR(pg_catalog.=) symbol::name
                AND p.oprleft OPERATOR(pg_catalog.=) l.type::regtype::oid AND p.oprright OPERATOR(pg_catalog.=) r.type::regtype::oid)
        LOOP
            EXECUTE format('CREATE OPERATOR public.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = public.trap)', symbol, one.l, one.r);
        END LOOP;
        COMMIT;
    END LOOP;
    FOR one IN SELECT f.name, a.list FROM unnest(functions) AS f(name), (
            SELECT format('a %s', t) AS list FROM unnest(types) AS t
            UNION SELECT format('a %s, b %s', t, u) FROM unnest(types[1:6]) AS t, unnest(types[1:6]) AS u
            UNION SELECT format('a text, b %s, c %s', t, u) FROM unnest(ARRAY['text', 'name', 'bool']) AS t, unnest(ARRAY['text', 'name', 'bool']) AS u) AS a
    LOOP
        EXECUTE format('CREATE FUNCTION public.%I(%s) RETURNS text LANGUAGE plpgsql AS %L', one.name, one.list, format(body, one));
    END LOOP;
END $plant$;
"""

#: What the objects of the extension depend on, and what is neither PostgreSQL's nor the extension's own.
FOREIGN = """
WITH RECURSIVE member AS (
    SELECT d.classid, d.objid FROM pg_depend AS d JOIN pg_extension AS e ON e.oid = d.refobjid AND e.extname = 'dbext'
    WHERE d.deptype = 'e' AND d.refclassid = 'pg_extension'::regclass
), part AS (
    SELECT classid, objid FROM member
    UNION SELECT d.classid, d.objid FROM part AS p JOIN pg_depend AS d ON (d.refclassid, d.refobjid) = (p.classid, p.objid) AND d.deptype IN ('a', 'i')
)
SELECT DISTINCT pg_describe_object(d.refclassid, d.refobjid, 0) FROM part AS p JOIN pg_depend AS d USING (classid, objid)
LEFT JOIN pg_operator AS o ON d.refclassid = 'pg_operator'::regclass AND o.oid = d.refobjid
LEFT JOIN pg_proc AS f ON d.refclassid = 'pg_proc'::regclass AND f.oid = d.refobjid
WHERE 'public'::regnamespace IN (o.oprnamespace, f.pronamespace)
    AND NOT EXISTS (SELECT FROM member AS m WHERE (m.classid, m.objid) = (d.refclassid, d.refobjid))
"""


def called_names():
    """Every name that the install script calls as a function, whatever it resolves to."""
    script = re.sub(r"--[^\n]*", "", extension.assemble("/nowhere", "host=/nowhere"))
    return sorted({name for name in re.findall(r"(?<![.\w])([a-z_]{3,})\(", script) if not name.startswith(("dp_", "dbext"))})


def foreign(database):
    """Ask without walking into the traps."""
    with database.connect() as connection:
        connection.execute("SET search_path = pg_catalog")
        return connection.execute(FOREIGN).fetchall()


@pytest.fixture
def hostile(empty_database):
    """A database whose schema public is full of traps."""
    empty_database.execute(PLANT)
    known = {name for (name,) in empty_database.fetch("SELECT DISTINCT proname::text FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace")}
    names = [name for name in called_names() if name in known]
    assert len(names) > 20
    empty_database.execute("CALL public.plant(%s, %s, %s)", (list(TYPES), list(OPERATORS), names))
    return empty_database


def test_nothing_of_ours_takes_a_planted_operator_or_function(hostile):
    hostile.execute("CREATE EXTENSION plpython3u; CREATE EXTENSION dblink; CREATE EXTENSION dbext")
    assert foreign(hostile) == []
    hostile.execute("SET dbext.now = '2020-01-01 12:00+00'")
    hostile.execute("CREATE TABLE cases (id int8 PRIMARY KEY, county text, size numeric)")
    hostile.execute("SELECT dp_track('cases')")
    hostile.execute("SELECT dp_add_constraint('cases', 'any', max_mutations => 3)")
    hostile.execute("SELECT dp_set_budget('cases', epsilon => 8, delta => 1e-6)")
    hostile.execute("""SELECT dp_create_release('one', $$SELECT county, count(*) FROM cases WHERE size > 1 AND dp_time > now() - INTERVAL '1 day'
        GROUP BY county$$, every => '1 day', epsilon => 1, groups => 'VALUES (''A''), (''B'')')""")
    hostile.execute("SET dbext.now = '2020-01-02 12:00+00'; INSERT INTO cases VALUES (1, 'A', 2), (2, 'B', 0.5); DELETE FROM cases WHERE id = 2")
    hostile.execute("SET dbext.now = '2020-01-04 12:00+00'")
    hostile.execute("CALL dp_publish()")
    hostile.execute("SELECT dp_window_count('cases', '2020-01-02', '2020-01-03', predicate => 'size > 1', epsilon => 1)")
    for view in ("tracked_table", "entry_type", "schema_event", "release_status", "budget_status", "budget_use", "ledger", "seal", "allowance", "table_grant"):
        hostile.execute(f"TABLE dbext.{view}")
    hostile.execute("SELECT * FROM dp_release.one; SELECT * FROM dp_release.one_rounded")
    assert hostile.value("SELECT count(*) FROM dp_release.one") > 0
    assert hostile.fetch("SELECT * FROM public.caught") == []


def test_a_weakened_script_is_caught(hostile):
    """The traps work, and are seen: a constraint of ours as one would write it without a thought."""
    hostile.execute("SELECT format('x', 'y'::name)")
    assert hostile.fetch("SELECT count(*) FROM public.caught") == [(1,)]
    hostile.execute("CREATE EXTENSION plpython3u; CREATE EXTENSION dblink; CREATE EXTENSION dbext")
    hostile.execute("CREATE TABLE dbext_private.weak (epsilon numeric CHECK (epsilon > 0)); ALTER EXTENSION dbext ADD TABLE dbext_private.weak")
    assert foreign(hostile) != []
    hostile.execute("INSERT INTO dbext_private.weak VALUES (1)")
    assert hostile.value("SELECT count(*) FROM public.caught") == 2
