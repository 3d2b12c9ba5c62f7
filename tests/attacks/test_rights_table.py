"""Every function, procedure, schema, table, view, sequence and column against every kind of role, as one table that is reviewed by people.

`rights.csv` beside this file says what each may do; an object that is not in it fails, and so does one that is gone. After a change run
this file with WRITE_RIGHTS=1 in the environment, and read what changed.
"""

import csv
import os
from pathlib import Path

import pytest

EXPECTED = Path(__file__).with_name("rights.csv")
ROLES = ("public", "other", "owner", "reader", "analyst", "admin")

#: Who stands for each role: `public` is what everybody may, `other` a login of nobody's, `owner` owns the tracked table.
ROUTINES = """
SELECT CASE p.prokind WHEN 'p' THEN 'procedure' ELSE 'function' END,
    format('%%I.%%I(%%s)', n.nspname, p.proname, pg_get_function_identity_arguments(p.oid)), '',
    CASE WHEN has_function_privilege(%(role)s, p.oid, 'EXECUTE') THEN 'x' ELSE '' END
FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
WHERE n.nspname IN ('dbext', 'dbext_private', 'dp_release')
    OR p.oid IN (SELECT d.objid FROM pg_depend AS d JOIN pg_extension AS e ON e.oid = d.refobjid AND e.extname = 'dbext' WHERE d.classid = 'pg_proc'::regclass)
"""
SCHEMAS = """
SELECT 'schema', n.nspname, '', CASE WHEN has_schema_privilege(%(role)s, n.oid, 'USAGE') THEN 'u' ELSE '' END
    || CASE WHEN has_schema_privilege(%(role)s, n.oid, 'CREATE') THEN 'c' ELSE '' END
FROM pg_namespace AS n WHERE n.nspname IN ('dbext', 'dbext_private', 'dp_release')
"""
SEQUENCES = """
SELECT 'sequence', format('%%I.%%I', n.nspname, c.relname), '', CASE WHEN has_sequence_privilege(%(role)s, c.oid, 'SELECT, USAGE, UPDATE') THEN 'x' ELSE '' END
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname IN ('dbext', 'dbext_private', 'dp_release') AND c.relkind = 'S'
"""
#: One row for a relation of which a role may do something with no column at all; else one for each column, the system's included.
COLUMNS = """
SELECT CASE c.relkind WHEN 'v' THEN 'view' ELSE 'table' END, format('%%I.%%I', n.nspname, c.relname), a.attname,
    CASE WHEN has_column_privilege(%(role)s, c.oid, a.attnum, 'SELECT') THEN 'r' ELSE '' END
    || CASE WHEN has_column_privilege(%(role)s, c.oid, a.attnum, 'INSERT, UPDATE, REFERENCES') THEN 'w' ELSE '' END
    || CASE WHEN has_table_privilege(%(role)s, c.oid, 'DELETE, TRUNCATE, TRIGGER') THEN 'd' ELSE '' END
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace JOIN pg_attribute AS a ON a.attrelid = c.oid AND NOT a.attisdropped
WHERE n.nspname IN ('dbext', 'dbext_private', 'dp_release') AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
"""
SILENT = ("",) * len(ROLES)


@pytest.fixture
def people(ready):
    """A database in which there is one of everything, and one role of every kind."""
    ready.declare(
        "shown", "SELECT county, count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day' GROUP BY county",
        every="1 day", epsilon=1, groups="VALUES ('A')",
    )  # fmt: skip
    ready.insert((1, "A", "open"))
    ready.day(2)
    ready.publish()
    database = ready.database
    roles = {
        "other": database.create_role(name="other"),
        "owner": database.create_role(name="owner"),
        **{name: database.create_role(f"dbext_{name}", name=name) for name in ("reader", "analyst", "admin")},
    }
    database.execute(f"ALTER TABLE cases OWNER TO {roles['owner']}")
    return roles | {"public": "public"}


def rights(database, people):
    """Return {(kind, object, column): rights by role}; relations whose columns are nobody's are one row."""
    found = {}
    for place, role in enumerate(ROLES):
        for query in (ROUTINES, SCHEMAS, SEQUENCES, COLUMNS):
            for kind, name, column, may in database.fetch(query, {"role": people[role]}):
                found.setdefault((kind, name, column), list(SILENT))[place] = may
    relations = {key[:2] for key in found if key[2]}
    closed = {one for one in relations if all(tuple(may) == SILENT for key, may in found.items() if key[:2] == one)}
    kept = {key: tuple(may) for key, may in found.items() if key[:2] not in closed}
    return kept | {(*one, "*"): SILENT for one in closed}


def expected():
    with EXPECTED.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert tuple(rows[0]) == ("kind", "object", "column", *ROLES)
    return {tuple(row[:3]): tuple(row[3:]) for row in rows[1:]}


def write(table):
    with EXPECTED.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("kind", "object", "column", *ROLES))
        writer.writerows((*key, *may) for key, may in sorted(table.items()))


def test_everybody_may_do_exactly_what_the_table_says(ready, people):
    found = rights(ready.database, people)
    if os.environ.get("WRITE_RIGHTS"):
        write(found)
    assert {key: may for key, may in found.items() if expected().get(key) != may} == {}
    assert set(expected()) - set(found) == set()


def test_the_table_itself_opens_nothing_to_people_without_a_role():
    """Whatever else changes: PUBLIC, other logins and owners of tracked tables hold nothing, and nobody writes into a table."""
    for key, (public, other, owner, reader, analyst, admin) in expected().items():
        assert (public, other, owner) == ("", "", ""), key
        if key[0] in ("table", "view"):
            assert {reader, analyst, admin} <= {"", "r"}, key
        if key[0] == "table":
            assert key[1].startswith("dp_release.") or key[2] == "*", key
        if key[1].startswith("dp_release.shown") and key[2] in ("xmin", "xmax", "ctid", "cmin", "cmax", "tableoid"):
            assert (reader, analyst, admin) == ("", "", ""), key


WEAKNESSES = (
    "GRANT SELECT ON dp_release.shown TO dbext_reader",
    "GRANT SELECT ON dbext_private.question TO {other}",
    "GRANT EXECUTE ON FUNCTION dbext_private.run(text, text) TO PUBLIC",
    "CREATE FUNCTION dbext_private.new() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
    "CREATE TABLE dbext.new (secret text)",
    "ALTER EXTENSION dbext DROP VIEW dbext.budget_use; DROP VIEW dbext.budget_use",
)


def test_a_weakened_build_is_seen(ready, people):
    for weakness in WEAKNESSES:
        ready.session.execute("BEGIN")
        ready.session.execute(weakness.format(**people))
        found = rights(ready.database, people)
        ready.session.execute("ROLLBACK")
        assert {key for key, may in found.items() if expected().get(key) != may} | (set(expected()) - set(found)), weakness
