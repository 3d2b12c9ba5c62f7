"""Accept a database that was put back to an earlier state: find what it has lost, and have it charged again."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from dbext.control.database import api_schema, connect
from dbext.control.delivery import APPLICATION_NAME
from dbext.control.target import Target
from dbext.control.target_tables import known_name
from dbext.control.witness import Guard, Row, file_witness
from dbext.errors import BadArgument


def accept(connection: psycopg.Connection, release_dsn: str, witness: Path | None, *, dry_run: bool) -> tuple[list[dict[str, Any]], str]:
    """Return the rows that the witnesses hold and the ledger has lost, and what was said when they were accepted."""
    schema = api_schema(connection)
    if not release_dsn and witness is None:
        raise BadArgument("nothing says what was lost", hint="Give --witness or --release-dsn, or both: whatever the worker has.")
    with contextlib.ExitStack() as opened:
        guards = []
        if witness is not None:
            file = opened.enter_context(file_witness(connection, witness, may_begin=False))
            guards.append(Guard(connection, file))
        if release_dsn:
            outside = opened.enter_context(connect(release_dsn, APPLICATION_NAME, "--release-dsn"))
            if (name := known_name(outside)) is not None:
                guards.append(Target(connection, outside, name, thorough=False).guard)
        lost = {row["mark"]: row for guard in guards for row in guard.lost()}
        if not lost:
            return [], "the ledger has everything that its witnesses hold"
        if dry_run:
            return _shown(lost), "dry run: nothing was changed"
        statement = sql.SQL("SELECT {}.dp_confirm_restore(%s)").format(schema)
        ((said,),) = connection.execute(statement, [json.dumps(list(lost.values()))]).fetchall()
        for guard in guards:
            guard.lost()
    return _shown(lost), said


def _shown(lost: dict[str, Row]) -> list[dict[str, Any]]:
    rows = sorted(lost.values(), key=lambda row: row["number"])
    return [{**row, "table": ".".join(part for part in row["table"] if part)} for row in rows]
