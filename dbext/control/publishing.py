"""One publication from outside the server: call `dp_publish` and say what came of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from psycopg import sql

from dbext.control.database import api_schema, query
from dbext.control.outside import Outside
from dbext.control.target import Delivery, targeted

_STATUS = """
SELECT s.release, s.published, s.next_due, CASE WHEN s.status LIKE 'failed%' THEN s.status END AS error
FROM dbext.release_status s ORDER BY s.release
"""
_PLACE = re.compile(r"in [a-z_]+/[a-z_]+\.py, line [0-9]+")


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


def publish(connection: psycopg.Connection, outside: Outside) -> Outcome:
    """Seal, publish and deliver all that is due. The connection is in autocommit: every step commits.

    With a witness, `dp_publish` is taken step by step: what was charged is held outside before anything it was charged for is shown.
    """
    schema = api_schema(connection)
    before = {row["release"]: row["published"] for row in _status(connection)}
    if outside.has_witness:
        warnings = (*_seal(connection), *_publish_noted(connection, outside))
    else:
        warnings = _call(connection, sql.SQL("CALL {}.dp_publish()").format(schema))
    after = _status(connection)
    return Outcome(
        tuple(
            Publication(row["release"], row["published"] - before.get(row["release"], 0), row["next_due"], row["error"]) for row in after
        ),
        warnings,
        outside.deliver(),
    )


def _seal(connection: psycopg.Connection) -> Iterator[str]:
    """Seal every table, a pass at a time; yield what could not be done."""
    for table_id in _value(connection, "SELECT dbext_private.sealable_tables()"):
        try:
            while _value(connection, "SELECT (dbext_private.seal_table(%s) ->> 'more')::boolean", table_id):
                pass
        except psycopg.Error as error:
            _require_connected(connection)
            label = _value(connection, "SELECT dbext_private.table_label(%s)", table_id)
            yield f"table {label} could not be sealed (SQLSTATE {_failing(error)})"


def _publish_noted(connection: psycopg.Connection, outside: Outside) -> Iterator[str]:
    """Draw every due release, let the witnesses hold the charges, and publish; yield what could not be done.

    While a witness is out of reach, only releases that nobody reads here go on.
    """
    for release_id in _value(connection, "SELECT dbext_private.due_releases()"):
        failure = _try(connection, "SELECT dbext_private.draw_release(%s)", release_id)
        unseen = {one.release_id for one in targeted(connection) if one.target is not None}
        if outside.note() or release_id in unseen:
            failure = failure or _try(connection, "SELECT dbext_private.publish_release(%s)", release_id)
        else:
            yield "a witness cannot be reached: nothing is shown before it holds what was charged"
        if failure:
            name = _value(connection, "SELECT dbext_private.note_release_error(%s, %s)", release_id, failure[:5])
            yield f"release {name} could not be published (SQLSTATE {failure}): see dbext.release_status"


def _try(connection: psycopg.Connection, statement: str, release_id: int) -> str | None:
    """Run a step of one release; return what is to be said of its failure, None if there was none."""
    try:
        connection.execute(statement, [release_id])
    except psycopg.Error as error:
        _require_connected(connection)
        return _failing(error)
    return None


def _failing(error: psycopg.Error) -> str:
    """Return an SQLSTATE and, of a fault of our own, its place in our code: all the detail that can hold no data."""
    place = error.diag.message_detail or ""
    return f"{error.sqlstate} {place}" if error.sqlstate == "DP099" and _PLACE.fullmatch(place) else str(error.sqlstate)


def _require_connected(connection: psycopg.Connection) -> None:
    if connection.broken or connection.closed:
        raise psycopg.OperationalError("the connection was lost")


def _value(connection: psycopg.Connection, statement: str, *arguments: object) -> Any:
    ((value,),) = connection.execute(statement, arguments).fetchall()
    return value


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
