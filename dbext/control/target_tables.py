"""What a release target is made of: three small tables of ours, and release tables with their views. Plain SQL, no extension."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import psycopg
from psycopg import sql

from dbext.errors import TargetRefused

SCHEMA = "dp_release"
#: Roles that are granted the release tables, where the target has them.
READERS = ("dbext_reader", "dbext_analyst", "dbext_admin")

_METADATA = """
CREATE SCHEMA IF NOT EXISTS dp_release;
COMMENT ON SCHEMA dp_release IS 'Differentially private releases, delivered by a worker of dbext';
CREATE SCHEMA dbext_target;
COMMENT ON SCHEMA dbext_target IS 'What a worker of dbext has delivered here. Nobody else reads or writes it';
CREATE TABLE dbext_target.about (only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row), name text NOT NULL);
COMMENT ON TABLE dbext_target.about IS 'What dp_publish_to calls this database';
CREATE TABLE dbext_target.release (
    source       uuid NOT NULL,
    identity     text NOT NULL,
    name         text NOT NULL,
    last_no      bigint NOT NULL DEFAULT 0,
    accepted_no  bigint NOT NULL DEFAULT 0,
    ended        boolean NOT NULL DEFAULT false,
    relations    text[] NOT NULL DEFAULT '{}',
    delivered_at timestamptz,
    PRIMARY KEY (source, identity)
);
COMMENT ON TABLE dbext_target.release IS
    'Releases by source: what is here up to period last_no was committed together with that number, periods without rows included';
COMMENT ON COLUMN dbext_target.release.accepted_no IS
    'Up to here the source may have published other values since: it was put back, and that was accepted';
CREATE TABLE dbext_target.ledger (
    source    uuid NOT NULL,
    mark      text NOT NULL,
    ledger_no bigint NOT NULL,
    content   jsonb NOT NULL,
    PRIMARY KEY (source, mark)
);
COMMENT ON TABLE dbext_target.ledger IS
    'What the sources have charged: a source that does not know a row of its own was put back to an earlier state';
"""


def require_plain(connection: psycopg.Connection, name: str) -> None:
    """Make our tables if they are not there; refuse a database with the extension in it, and one of another name."""
    ((taken,),) = connection.execute("SELECT EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'dbext')").fetchall()
    if taken:
        raise TargetRefused(
            f'database "{connection.info.dbname}" has the extension dbext and cannot be a release target',
            hint="Readers must not share a database with what is protected: name a database that holds releases alone.",
        )
    with connection.transaction():
        # One worker at a time makes them: the lock is freed with the transaction.
        connection.execute("SELECT pg_catalog.pg_advisory_xact_lock(1684170104, 2)")
        if connection.execute("SELECT pg_catalog.to_regclass('dbext_target.about')").fetchone()[0] is None:
            connection.execute(_METADATA)
            connection.execute("INSERT INTO dbext_target.about (name) VALUES (%s)", [name])
        ((known,),) = connection.execute("SELECT a.name FROM dbext_target.about AS a").fetchall()
    if known != name:
        raise TargetRefused(f'this is release target "{known}", and releases are to go to "{name}"', hint="Check --release-dsn.")


def known_name(connection: psycopg.Connection) -> str | None:
    """Return what a release target is called; None if nothing was ever delivered there."""
    if connection.execute("SELECT pg_catalog.to_regclass('dbext_target.about')").fetchone()[0] is None:
        return None
    return connection.execute("SELECT a.name FROM dbext_target.about AS a").fetchone()[0]


def _relation(connection: psycopg.Connection, name: str) -> int | None:
    found = "SELECT c.oid FROM pg_catalog.pg_class AS c WHERE c.relnamespace = pg_catalog.to_regnamespace(%s) AND c.relname = %s"
    row = connection.execute(found, [SCHEMA, name]).fetchone()
    return row[0] if row else None


def present(connection: psycopg.Connection, parts: Iterable[dict[str, Any]]) -> list[str]:
    """Return the names, of those of a release's parts, that relations in the schema of releases have."""
    return [part["name"] for part in parts if _relation(connection, part["name"]) is not None]


def create(connection: psycopg.Connection, part: dict[str, Any]) -> None:
    """Create one part of a release, a table or a view of it, with comments, readable by the roles that the target has of ours.

    Those roles are a cluster's, perhaps the source's too: who may use the schema here is for the target's administrator to say.
    """
    for statement in _creation(part):
        connection.execute(statement)
    roles = connection.execute("SELECT rolname FROM pg_catalog.pg_roles WHERE rolname = ANY (%s)", [list(READERS)]).fetchall()
    for (role,) in roles:
        connection.execute(sql.SQL("GRANT SELECT ON {} TO {}").format(named(part["name"]), sql.Identifier(role)))


def _creation(part: dict[str, Any]) -> Iterator[sql.Composed]:
    name = named(part["name"])
    if part["definition"]:
        kind = sql.SQL("VIEW")
        yield sql.SQL("CREATE VIEW {} AS {}").format(name, sql.SQL(part["definition"]))
    else:
        kind = sql.SQL("TABLE")
        columns = [sql.SQL("{} {} NOT NULL").format(sql.Identifier(one["name"]), sql.SQL(one["type"])) for one in part["columns"]]
        key = sql.SQL("PRIMARY KEY ({})").format(sql.SQL(", ").join(map(sql.Identifier, part["key"])))
        yield sql.SQL("CREATE TABLE {} ({})").format(name, sql.SQL(", ").join([*columns, key]))
    yield sql.SQL("COMMENT ON {} {} IS {}").format(kind, name, sql.Literal(part["comment"]))
    for one in part["columns"]:
        place = sql.SQL("{}.{}").format(name, sql.Identifier(one["name"]))
        yield sql.SQL("COMMENT ON COLUMN {} IS {}").format(place, sql.Literal(one["comment"]))


def named(name: str) -> sql.Composed:
    """Return the name of a release table or view with its schema."""
    return sql.SQL("{}.{}").format(sql.Identifier(SCHEMA), sql.Identifier(name))


def require_structure(connection: psycopg.Connection, table: dict[str, Any]) -> None:
    """Refuse a release table whose columns are not those it was made with."""
    found = connection.execute(
        "SELECT a.attname::text, pg_catalog.format_type(a.atttypid, a.atttypmod) FROM pg_catalog.pg_attribute AS a "
        "WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
        [_relation(connection, table["name"])],
    ).fetchall()
    if found != [(one["name"], one["type"]) for one in table["columns"]]:
        raise TargetRefused(
            f"{SCHEMA}.{table['name']} of the release target has other columns than the release",
            hint="Undo what was changed there, or rename that table: it will be made and filled anew.",
        )


def drop(connection: psycopg.Connection, names: Iterable[str]) -> bool:
    """Drop the tables and views of a release; False, with all left, if other objects depend on them."""
    found = connection.execute(
        "SELECT c.relname, c.relkind = 'v' FROM pg_catalog.pg_class AS c "
        "WHERE c.relnamespace = pg_catalog.to_regnamespace(%s) AND c.relname = ANY (%s) ORDER BY 2 DESC",
        [SCHEMA, list(names)],
    ).fetchall()
    try:
        with connection.transaction():
            for name, is_view in found:
                connection.execute(sql.SQL("DROP {} {}").format(sql.SQL("VIEW" if is_view else "TABLE"), named(name)))
    except psycopg.errors.DependentObjectsStillExist:
        return False
    return True
