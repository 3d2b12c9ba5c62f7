"""What the doctor's checks are made of.

Each is a block of `doctor_<area>.sql`:

    -- name: sizes
    -- warning, safe
    -- Why it matters.
    -- closes: pattern of the functions of pg_catalog that a fix takes from PUBLIC (where that is the fix)
    the query: what it is about, what is wrong, and the statement that puts it right (NULL: no statement can)
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import psycopg
from psycopg import sql

#: error: the promise does not hold, or may break unseen. warning: something leaks beside the noise, or will go wrong.
#: note: worth knowing; does not change the exit code.
SEVERITIES = ("error", "warning", "note")
AREAS = ("database", "rights", "server", "channels")

#: Pieces of SQL that several queries need.
_PLACES = {
    "people": """SELECT r.oid, r.rolname FROM pg_roles r WHERE NOT r.rolsuper AND r.rolname <> 'dbext_owner'
        AND (pg_has_role(r.oid, 'dbext_reader', 'MEMBER') OR pg_has_role(r.oid, 'dbext_analyst', 'MEMBER'))""",
    "members": """SELECT d.classid, d.objid FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'dbext'
        WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'""",
    "table": "format('%I.%I', t.schema_name, t.table_name)",
    "event_triggers": """(VALUES ('dbext_follow_command'), ('dbext_follow_drop'), ('dbext_follow_rewrite'), ('dbext_guard_1_note'),
        ('dbext_guard_2_hold')) AS w(name)""",
}
_BLOCK = re.compile(
    r"-- name: (?P<name>\w+)\n-- (?P<severity>\w+)(?P<safe>, safe)?\n-- (?P<why>.+)\n"
    r"(?:-- closes: (?P<closes>.+)\n)?(?P<query>(?:(?!-- name: ).*\n?)+)"
)


@dataclass(frozen=True)
class Check:
    """One thing to look at. `safe`: its fix changes nothing that an application could rely on, so that --fix may apply it."""

    name: str
    severity: str
    why: str
    query: str
    safe: bool
    closes: str | None


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong; `role` is whose eyes saw it, None for the administrator's."""

    severity: str
    check: str
    role: str | None
    subject: str
    what: str
    why: str
    fix: str | None
    safe: bool


@dataclass(frozen=True)
class Eyes:
    """A connection and, where it is the administrator's, the role that it takes on to look."""

    connection: psycopg.Connection
    kind: str | None = None
    role: str | None = None
    #: Schema of the dp_* functions, as it is written inside a text of SQL that format() reads.
    api: str = ""

    @contextlib.contextmanager
    def open(self) -> Iterator[psycopg.Connection]:
        """Look inside a transaction that leaves nothing behind, with the standard path."""
        with self.connection.transaction(force_rollback=True):
            self.connection.execute("SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL jit = off; SET LOCAL datestyle = 'ISO, YMD'")
            if self.role is not None:
                self.connection.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(self.role)))
            yield self.connection


@lru_cache
def checks(area: str) -> tuple[Check, ...]:
    """Return the checks of an area in the order of its file."""
    text = Path(__file__).with_name(f"doctor_{area}.sql").read_text(encoding="utf-8")
    for name, piece in _PLACES.items():
        text = text.replace(f"{{{name}}}", piece)
    return tuple(
        Check(one["name"], one["severity"], one["why"], one["query"].strip(), one["safe"] is not None, one["closes"])
        for one in _BLOCK.finditer(text)
    )
