"""The database from outside: connections, the psycopg adapter of the `Session` protocol, and where the extension is."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from dbext import __version__
from dbext.control.failures import CannotConnect
from dbext.database.session import as_text
from dbext.errors import BadArgument, UnknownObject, VersionMismatch

#: What `pg_stat_activity` and the server's log call us.
APPLICATION_NAME = "dbext"
#: Seconds until a connection attempt is given up.
CONNECT_TIMEOUT = 10
HOW_TO_CONNECT = {
    "--dsn": "Name the database with --dsn, DBEXT_DSN or libpq's own variables (PGHOST, PGDATABASE, ...).",
    "--release-dsn": "Name the release target with --release-dsn or DBEXT_RELEASE_DSN.",
}
_EXTENSION = """
SELECT n.nspname, e.extversion FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = %s
"""


def connect(dsn: str = "", application: str = APPLICATION_NAME, option: str = "--dsn") -> psycopg.Connection:
    """Open a connection in autocommit; what `dsn` leaves open, libpq takes from PG* variables, service file and .pgpass.

    `option` is what the command line calls that connection string.
    """
    try:
        given = psycopg.conninfo.conninfo_to_dict(dsn)
    except psycopg.ProgrammingError as error:
        reason = str(error).strip()
        raise BadArgument(f"{option} is no connection string: {reason}", hint="For example: host=/run/postgresql dbname=shop") from None
    options = {"application_name": application, "connect_timeout": CONNECT_TIMEOUT, **given}
    try:
        return psycopg.connect(**options, autocommit=True)
    except psycopg.OperationalError as error:
        raise CannotConnect(f"cannot connect: {str(error).strip()}", hint=HOW_TO_CONNECT[option]) from error


class PsycopgSession:
    """The `Session` protocol over a psycopg connection. Transactions are the caller's: nothing is committed here."""

    def __init__(self, connection: psycopg.Connection):
        self.connection = connection

    def fetch(self, statement: str, *params: object) -> list[dict[str, Any]]:
        """Run a statement with native placeholders (`$1::bigint`) and return its rows."""
        with psycopg.RawCursor(self.connection, row_factory=dict_row) as cursor:
            return cursor.execute(statement, [as_text(value) for value in params]).fetchall()

    def execute(self, statement: str, *params: object) -> int:
        """Run a statement and return the number of rows it touched (0 where that has no meaning)."""
        with psycopg.RawCursor(self.connection) as cursor:
            return max(cursor.execute(statement, [as_text(value) for value in params]).rowcount, 0)


def api_schema(connection: psycopg.Connection) -> sql.Identifier:
    """Return the schema of the `dp_*` functions; refuse a database without the extension, or with one of another version."""
    row = connection.execute(_EXTENSION, ["dbext"]).fetchone()
    if row is None:
        raise UnknownObject(
            f'database "{connection.info.dbname}" does not have the extension dbext',
            hint='Run "dbext install", or CREATE EXTENSION dbext CASCADE if this server has its files.',
        )
    schema, version = row
    if version != __version__:
        raise VersionMismatch(
            f"the extension is of version {version}, this command line of version {__version__}",
            hint='Use the same version of both; see "dbext install".',
        )
    return sql.Identifier(schema)


def query(connection: psycopg.Connection, statement: str | sql.Composed, params: Any = None) -> tuple[list[dict[str, Any]], list[str]]:
    """Run a query and return its rows and the names of its columns."""
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(statement, params).fetchall()
        return rows, [column.name for column in cursor.description]
