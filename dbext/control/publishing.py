"""One publication from outside the server: call `dp_publish` and say what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import psycopg
from psycopg import sql

from dbext.control.database import api_schema, query


@dataclass(frozen=True)
class Publication:
    """What one call of `dp_publish` did to one release."""

    release: str
    #: Periods that appeared in its release table.
    periods: int
    #: When its next period ends, None if nothing is to come.
    next_due: datetime | None
    #: Why it did not go on, None if it did. Never holds data.
    error: str | None


def publish(connection: psycopg.Connection) -> list[Publication]:
    """Seal and publish all that is due. The connection is in autocommit: the procedure commits release by release."""
    schema = api_schema(connection)
    before = {row["release"]: row["published"] for row in _status(connection)}
    connection.execute(sql.SQL("CALL {}.dp_publish()").format(schema))
    return [
        Publication(row["release"], row["published"] - before.get(row["release"], 0), row["next_due"], row["last_error"])
        for row in _status(connection)
    ]


def _status(connection: psycopg.Connection) -> list[dict]:
    rows, _ = query(connection, "SELECT release, published, next_due, last_error FROM dbext.release_status ORDER BY release")
    return rows
