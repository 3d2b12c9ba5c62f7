"""An autonomous transaction: one call in a second session over the server's own socket, committed whatever the first one does.

The second session acts as dbext_owner, so it must never be left open: any user of the first session could speak through it. It is
closed on every way out, and a backend that cannot close it ends itself.
"""

from __future__ import annotations

import json
import os
import signal
from typing import Any

from dbext.database.identifiers import quote_literal
from dbext.database.session import DatabaseError, Session
from dbext.database.statements import statements
from dbext.errors import SecondSessionUnavailable

SQL = statements("second_session")

#: How long the second session waits for a budget. The first one may itself be what it waits for.
LOCK_TIMEOUT = "10s"
CONNECT_SECONDS = 10
#: A cancel request may hit the very statement that closes; it is used up by that.
CLOSING_ATTEMPTS = 1000
NO_SUCH_CONNECTION = "08003"

ADVICE = (
    "A session must be able to reach its own database over the server's Unix socket: see second_session in dbext_private.runtime, "
    'pg_hba.conf and max_connections, or run "dbext install" again.'
)


#: What a second session may be asked for: functions of dbext_private that take one jsonb and return text.
ENTRIES = ("answer_question", "reserve_release")


def in_second_session(session: Session, *, entry: str, request: dict[str, Any]) -> str:
    """Have a question answered or a release reserved; runs as the superuser who owns dbext_private.in_second_session."""
    if entry not in ENTRIES:
        raise ValueError(entry)
    return call(session, f"SELECT dbext_private.{entry}({quote_literal(json.dumps(request))})")


def ask(session: Session, entry: str, request: dict[str, Any]) -> Any:
    """Return what an entry replied in a second session, which has committed it; raises what it was refused with. For dbext_owner."""
    (row,) = session.fetch(SQL["in_second_session"], entry, request)
    reply = json.loads(row["reply"])
    if "refusal" in reply:
        raise DatabaseError(**reply["refusal"])
    return json.loads(reply["value"])


def call(session: Session, sql: str) -> str:
    """Run a query that returns one text in a second session, committed before this returns.

    Raises SecondSessionUnavailable when the session cannot be had or waits too long, and DatabaseError for what the query itself raised.
    Nothing is committed then.
    """
    parts = session.fetch(SQL["parts"])[0]
    if not parts["schema"]:
        raise SecondSessionUnavailable("extension dblink is missing; nothing was spent", hint="CREATE EXTENSION dblink;")
    name = os.urandom(16).hex()
    try:
        _open(session, parts, name)
        return _query(session, parts["schema"], name, sql)
    finally:
        _close(session, parts["schema"], name)


def _open(session: Session, parts: dict[str, Any], name: str) -> None:
    try:
        session.execute(f"SELECT {parts['schema']}.dblink_connect_u($1::text, $2::text)", name, connection_string(parts))
    except DatabaseError as fault:
        if fault.sqlstate == "57014":
            raise
        said = f"the second session cannot be opened (SQLSTATE {fault.sqlstate}); nothing was spent"
        raise SecondSessionUnavailable(said, hint=ADVICE) from fault


def _query(session: Session, schema: str, name: str, sql: str) -> str:
    try:
        (row,) = session.fetch(f"SELECT r.reply FROM {schema}.dblink($1::text, $2::text) AS r(reply text)", name, sql)
    except DatabaseError as fault:
        if fault.sqlstate == "55P03":
            raise SecondSessionUnavailable(
                "the budget stayed locked by another transaction; nothing was spent",
                hint="If this session changed a budget or release, COMMIT first; else ask again.",
            ) from fault
        if fault.sqlstate.startswith("08"):
            said = "the second session was lost; ask again: an answer that was stored is free"
            raise SecondSessionUnavailable(said, hint=ADVICE) from fault
        raise
    return row["reply"]


def _close(session: Session, schema: str, name: str) -> None:
    for _ in range(CLOSING_ATTEMPTS):
        try:
            session.execute(f"SELECT {schema}.dblink_disconnect($1::text)", name)
        except DatabaseError as fault:
            if fault.sqlstate == NO_SUCH_CONNECTION:
                return
        else:
            return
    os.kill(os.getpid(), signal.SIGTERM)


def connection_string(parts: dict[str, Any]) -> str:
    """Return libpq's connection string of the second session: everything that the promise rests on is set, nothing inherited.

    Nothing ends it early, not even its client's going away: how long a count takes depends on the data, and a question that ends early
    must not be free. A database may have settings of its own for all of that, which its owner chooses.
    """
    settings = {
        "role": "dbext_owner",
        "search_path": "pg_catalog,pg_temp",
        "synchronous_commit": "on",
        "default_transaction_isolation": "read\\ committed",
        "default_transaction_read_only": "off",
        "lock_timeout": LOCK_TIMEOUT,
        "statement_timeout": "0",
        "client_connection_check_interval": "0",
        "idle_in_transaction_session_timeout": "0",
        **({"transaction_timeout": "0"} if parts["has_transaction_timeout"] else {}),
    }
    options = " ".join(f"-c {name}={value}" for name, value in settings.items())
    return " ".join(
        [
            parts["second_session"],
            f"dbname={_quoted(parts['database'])}",
            f"options={_quoted(options)}",
            f"connect_timeout={CONNECT_SECONDS}",
            "application_name=dbext",
            "client_encoding=UTF8",
        ]
    )


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
