"""Which releases are read here and which at the release target; and the rights that follow from it."""

from __future__ import annotations

from dbext.database.identifiers import qualified
from dbext.database.release_table import ADMINISTRATORS, READERS, SCHEMA
from dbext.database.session import Session
from dbext.database.statements import statements

SQL = statements("targets")


def default_target(session: Session) -> str | None:
    """Return the target of releases that are declared from now on; None: they are read here."""
    rows = session.fetch(SQL["default_target"])
    return rows[0]["name"] if rows else None


def set_default(session: Session, target: str | None) -> None:
    """Decide for releases that are declared from now on."""
    if target is None:
        session.execute(SQL["unset_default"])
    else:
        session.execute(SQL["set_default"], target)


def others(session: Session, target: str, but: int | None) -> list[str]:
    """Return the other targets that are in use; `but`: a release left out of the count, None to leave the default out."""
    return [row["target"] for row in session.fetch(SQL["others"], target, but)]


def living(session: Session) -> list[tuple[int, str]]:
    """Return (number, name) of every release that was not dropped."""
    return [(row["release_id"], row["name"]) for row in session.fetch(SQL["living"])]


def send(session: Session, release_id: int, target: str | None) -> None:
    """Let a release be read at `target`, or here again (None)."""
    session.execute(SQL["set_target"], release_id, target)
    for row in session.fetch(SQL["relations"], release_id):
        relation, columns = qualified(SCHEMA, row["name"]), f" ({row['columns']})" if row["columns"] else ""
        session.execute(f"REVOKE SELECT ON {relation} FROM {READERS}")
        session.execute(f"GRANT SELECT{columns} ON {relation} TO {READERS if target is None else ADMINISTRATORS}")
