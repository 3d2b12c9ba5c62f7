"""Who calls, and what he may do. Roles are cluster-wide, so that every call is also checked against what was granted in this database."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dbext.database.catalog import TrackedTable
from dbext.database.identifiers import shown
from dbext.database.session import Session
from dbext.database.statements import statements
from dbext.errors import HistoryLost, NotPermitted, NotSupported, SealRefused, UnknownObject

SQL = statements("rights")

BEHIND = "It was put back to an earlier state or is a copy. Accept that as a superuser: dbext accept-restore (see docs/deployment.md)."


@dataclass(frozen=True)
class Caller:
    """The role that a call acts for: SET ROLE if set, else the session's own."""

    name: str
    admin: bool
    analyst: bool
    admitted: bool


def caller(session: Session) -> Caller:
    """Return who calls."""
    (row,) = session.fetch(SQL["caller"])
    return Caller(row["name"], row["admin"], row["analyst"], row["admitted"])


def require_admin(session: Session) -> Caller:
    """Return the caller, who must be a member of dbext_admin."""
    found = caller(session)
    if not found.admin:
        raise _not_admitted(found, "dbext_admin")
    return found


def require_analyst(session: Session) -> Caller:
    """Return the caller, who must be a member of dbext_analyst or dbext_admin."""
    found = caller(session)
    if not found.analyst:
        raise _not_admitted(found, "dbext_analyst or dbext_admin")
    return found


def _not_admitted(who: Caller, role: str) -> NotPermitted:
    if who.admitted:
        return NotPermitted(f"only a member of {role} may do this")
    said = f"role {shown(who.name)} is not admitted to this database"
    return NotPermitted(said, hint=f"A superuser admits it: GRANT USAGE ON SCHEMA dbext, dp_release TO {shown(who.name)};")


def require_select(session: Session, table_id: int, name: str) -> None:
    """Refuse a caller who may SELECT nothing of a tracked table."""
    if session.fetch(SQL["unreadable"], table_id, [], False):  # noqa: FBT003 - a parameter of SQL
        raise NotPermitted(f"you may not SELECT from table {name}", hint=f"Its owner may GRANT SELECT ON {name} to you.")


def require_asking(session: Session, table_id: int, name: str, positions: Iterable[int] = ()) -> None:
    """Refuse a caller who may neither SELECT the columns at `positions` of a tracked table nor ask about them by dp_grant."""
    columns = [row["column_name"] for row in session.fetch(SQL["unreadable"], table_id, sorted(positions), True)]  # noqa: FBT003 - likewise
    who = shown(caller(session).name) if columns else ""
    if None in columns:
        raise NotPermitted(f"you may not ask about table {name}", hint=f"Its owner may let you: SELECT dp_grant('{name}', '{who}');")
    if columns:
        said = f"you may not ask about column {shown(columns[0])} of table {name}"
        hint = f"Its owner may let you: SELECT dp_grant('{name}', '{who}', '{{{shown(columns[0])}}}');"
        raise NotPermitted(said, hint=hint)


def require_declarer(who: Caller, release: str, created_by: str) -> None:
    """Refuse a caller who neither declared a release nor is a member of dbext_admin."""
    if not (who.admin or who.name == created_by):
        raise NotPermitted(
            f"release {release} was declared by someone else", hint="Whoever declared it may do this, or a member of dbext_admin."
        )


def require_captured(table: TrackedTable) -> None:
    """Refuse a table whose mutations are not recorded any more: a budget or a release for it would promise something about nothing."""
    if not table.tracked:
        raise UnknownObject(f"table {table.shown_name} is not tracked any more", hint="Its owner takes it up again with dp_track.")


def require_home(session: Session) -> None:
    """Refuse a restored, promoted or cloned database: charges and noise that left elsewhere may be missing here."""
    require_same_cluster(session)
    (row,) = session.fetch(SQL["home"])
    if row["behind"]:
        said = "this database remembers less than what has left it: a witness holds charges that its ledger has not"
        raise HistoryLost(said, hint=BEHIND)
    if not row["vouched"]:
        raise HistoryLost(
            "no witness has vouched for this ledger lately, as dp_require_witness demands",
            hint="Start dbext worker with --witness or --release-dsn; after a restart of the server it takes a few seconds.",
        )


def require_same_cluster(session: Session) -> None:
    """Refuse a database whose cluster, OID or timeline is another one than before, and one in which nothing was ever tracked."""
    (row,) = session.fetch(SQL["home"])
    if not row["began"]:
        raise UnknownObject("no table of this database is tracked", hint="The owner of a table tracks it with dp_track.")
    if not row["home"]:
        raise SealRefused(
            "this database was restored, upgraded or promoted since it was last sealed",
            hint="A superuser accepts that with SELECT dp_confirm_upgrade().",
        )


def require_read_committed(session: Session) -> None:
    """Refuse a transaction whose snapshot could be older than the last charge."""
    (row,) = session.fetch(SQL["isolation"])
    if row["isolation"] != "read committed":
        raise NotSupported(
            f"a charge cannot be checked in a transaction of isolation level {row['isolation'].upper()}",
            hint="Use READ COMMITTED here; dp_window_count works at every level.",
        )
