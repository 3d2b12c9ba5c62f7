"""The database from outside: connections and the psycopg adapter of the `Session` protocol."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.rows import dict_row

from dbext.database.session import as_text

#: What `pg_stat_activity` and the server's log call us.
APPLICATION_NAME = "dbext"


def connect(dsn: str = "") -> psycopg.Connection:
    """Open a connection in autocommit; an empty `dsn` leaves everything to libpq (PG* variables, service file, .pgpass)."""
    return psycopg.connect(dsn, autocommit=True, application_name=APPLICATION_NAME, connect_timeout=10)


class PsycopgSession:
    """The `Session` protocol over a psycopg connection. Transactions are the caller's: nothing is committed here."""

    def __init__(self, connection: psycopg.Connection):
        self.connection = connection

    def fetch(self, sql: str, *params: object) -> list[dict[str, Any]]:
        """Run a statement with native placeholders (`$1::bigint`) and return its rows."""
        with psycopg.RawCursor(self.connection, row_factory=dict_row) as cursor:
            return cursor.execute(sql, [as_text(value) for value in params]).fetchall()

    def execute(self, sql: str, *params: object) -> int:
        """Run a statement and return the number of rows it touched (0 where that has no meaning)."""
        with psycopg.RawCursor(self.connection) as cursor:
            return max(cursor.execute(sql, [as_text(value) for value in params]).rowcount, 0)
