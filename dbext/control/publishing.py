"""One publication from outside the server: call `dp_publish` and say what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import psycopg
from psycopg import sql

from dbext.control.database import api_schema, query
from dbext.control.delivery import Deliveries
from dbext.control.target import Delivery

_STATUS = """
SELECT s.release, s.published, s.next_due, CASE WHEN s.status LIKE 'failed%' THEN s.status END AS error
FROM dbext.release_status s ORDER BY s.release
"""


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


@dataclass(frozen=True)
class Outcome:
    """What one call of `dp_publish` did."""

    publications: tuple[Publication, ...]
    #: What the procedure warned of, such as a table that could not be sealed. Never holds data.
    warnings: tuple[str, ...]
    #: What became of each release that goes to a release target.
    deliveries: tuple[Delivery, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether anything could not be sealed or published."""
        return bool(self.warnings) or any(one.error for one in (*self.publications, *self.deliveries))

    @property
    def periods(self) -> int:
        """Number of periods published or delivered, over all releases."""
        return sum(one.periods for one in (*self.publications, *self.deliveries))


def publish(connection: psycopg.Connection, deliveries: Deliveries) -> Outcome:
    """Seal, publish and deliver all that is due. The connection is in autocommit: the procedure commits release by release."""
    schema = api_schema(connection)
    before = {row["release"]: row["published"] for row in _status(connection)}
    warnings = _call(connection, sql.SQL("CALL {}.dp_publish()").format(schema))
    after = _status(connection)
    return Outcome(
        tuple(
            Publication(row["release"], row["published"] - before.get(row["release"], 0), row["next_due"], row["error"]) for row in after
        ),
        warnings,
        deliveries.deliver(),
    )


def _call(connection: psycopg.Connection, statement: sql.Composed) -> tuple[str, ...]:
    """Run a statement and return the warnings it raised."""
    warnings: list[str] = []

    def keep(notice: psycopg.errors.Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":
            warnings.append(notice.message_primary or "")

    connection.add_notice_handler(keep)
    try:
        connection.execute(statement)
    finally:
        connection.remove_notice_handler(keep)
    return tuple(warnings)


def _status(connection: psycopg.Connection) -> list[dict]:
    rows, _ = query(connection, _STATUS)
    return rows
