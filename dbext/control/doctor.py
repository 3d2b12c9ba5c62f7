"""`dbext doctor`: look a live installation over, as its administrator and through the eyes of readers and analysts.

A check is a query that returns one row for each thing that is wrong: what it is about, what is wrong, and the statement that puts it right.
Most run as the administrator; those of channels run as a reader and as an analyst, because only they show what PostgreSQL shows them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict

import psycopg

from dbext.control import output
from dbext.control.database import api_schema, connect
from dbext.control.doctor_checks import SEVERITIES, Check, Eyes, Finding, checks
from dbext.control.doctor_outside import outside
from dbext.control.failures import ExitCode
from dbext.control.output import Format
from dbext.control.probe import connect_as_administrator
from dbext.control.steps import step
from dbext.errors import NotPermitted

COLUMNS = ("severity", "check", "role", "subject", "what", "why", "fix", "safe")
#: Kinds of people whose eyes channels are seen through.
VIEWERS = ("reader", "analyst")

_SUPERUSER = "SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = current_user"
#: A login of that kind: the first member that is admitted and no superuser, else the group role itself.
_STAND_IN = """
SELECT r.rolname::text FROM pg_roles r
WHERE pg_has_role(r.oid, %(group)s, 'MEMBER') AND NOT r.rolsuper
ORDER BY has_schema_privilege(r.oid, 'dbext', 'USAGE') DESC, r.rolcanlogin DESC, r.rolname LIMIT 1
"""
#: What closes functions to everybody but monitoring and ourselves: is_home asks for the position in the log as dbext_owner.
_REVOKE = """
SELECT format('REVOKE EXECUTE ON FUNCTION %%s FROM PUBLIC; GRANT EXECUTE ON FUNCTION %%1$s TO pg_monitor, dbext_owner;',
    string_agg('pg_catalog.' || p.oid::regprocedure::text, ', ' ORDER BY p.oid::regprocedure::text))
FROM pg_proc p WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.proname ~ %(functions)s
    AND has_function_privilege('public', p.oid, 'EXECUTE')
"""


def doctor(
    dsn: str, form: Format, *, reader_dsn: str = "", analyst_dsn: str = "", fix: bool = False, dry_run: bool = False
) -> ExitCode:
    """Check, write the findings, apply safe fixes if asked to, and say how it is now."""
    with contextlib.ExitStack() as stack:
        connection = stack.enter_context(connect_as_administrator(dsn))
        api = api_schema(connection).as_string(connection).replace("'", "''").replace("%", "%%")
        if connection.execute(_SUPERUSER).fetchone() != (True,):
            raise NotPermitted("the doctor must see everything: connect as a superuser", hint="Such as --dsn 'user=postgres dbname=...'")
        eyes = [Eyes(connection, api=api), *_viewers(connection, {"reader": reader_dsn, "analyst": analyst_dsn}, stack)]
        found = examine(eyes, dsn)
        if form is Format.TABLE:
            output.write(_table(found), _SHOWN, form)
            _explain(found, shows_safe=not (fix or dry_run))
        else:
            output.write([asdict(one) for one in found], COLUMNS, form)
        if fix or dry_run:
            _apply(connection, found, dry_run=dry_run)
        if fix and not dry_run:
            found = examine(eyes, dsn)
    counts = {severity: sum(row["severity"] == severity for row in _table(found)) for severity in SEVERITIES}
    step(f"{counts['error']} errors, {counts['warning']} warnings, {counts['note']} notes")
    return ExitCode.FAILED if counts["error"] or counts["warning"] else ExitCode.DONE


_SHOWN = ("severity", "check", "role", "subject", "what")


def _table(found: Sequence[Finding]) -> list[dict[str, object]]:
    """Return a row for each thing that is wrong, with all roles that see it."""
    roles: dict[tuple[str, ...], list[str]] = {}
    for one in found:
        roles.setdefault((one.severity, one.check, one.subject, one.what), []).extend([one.role] if one.role else [])
    return [dict(zip(_SHOWN, (severity, check, ", ".join(seen), *rest), strict=True)) for (severity, check, *rest), seen in roles.items()]


def _explain(found: Sequence[Finding], *, shows_safe: bool) -> None:
    """Say of each kind of finding why it matters, and what puts each right; not again what is about to be run."""
    for name in dict.fromkeys(one.check for one in found):
        same = [one for one in found if one.check == name]
        step(f"{name}: {same[0].why}")
        for fix in dict.fromkeys(one.fix for one in same if one.fix and (shows_safe or not one.safe)):
            step(f"    {'fix (safe)' if same[0].safe else 'fix'}: {fix}")


def _viewers(connection: psycopg.Connection, dsns: dict[str, str], stack: contextlib.ExitStack) -> Iterator[Eyes]:
    """Yield a reader and an analyst: by their own credentials where they were given, else by taking on their roles."""
    for kind in VIEWERS:
        if dsns[kind]:
            opened = stack.enter_context(connect(dsns[kind]))
            if opened.execute(_SUPERUSER).fetchone() == (True,):
                raise NotPermitted(f"--{kind}-dsn leads to a superuser, who sees everything")
            yield Eyes(opened, kind)
        else:
            (role,) = connection.execute(_STAND_IN, {"group": f"dbext_{kind}"}).fetchone()
            yield Eyes(connection, kind, role)


def examine(eyes: Sequence[Eyes], dsn: str) -> list[Finding]:
    """Run every check and return what was found, the worst first."""
    administrator, *viewers = eyes
    own = [check for area in ("database", "rights", "server") for check in checks(area)]
    found = [one for check in own for one in _run(check, administrator, administrator)]
    found += outside(administrator, dsn)
    found += [one for check in checks("channels") for viewer in viewers for one in _run(check, viewer, administrator)]
    return sorted(found, key=lambda one: SEVERITIES.index(one.severity))


def _run(check: Check, eyes: Eyes, administrator: Eyes) -> list[Finding]:
    """Run one check. What may not be looked at is closed; any other failure is itself a finding, told by its SQLSTATE alone."""
    try:
        with eyes.open() as connection:
            rows = connection.execute(check.query.replace("{api}", administrator.api)).fetchall()
            role = None if eyes.kind is None else connection.execute("SELECT current_user::text").fetchone()[0]
    except psycopg.errors.InsufficientPrivilege:
        return []
    except psycopg.Error as error:
        if administrator.connection.closed or eyes.connection.closed:
            raise
        said = f"this could not be checked (SQLSTATE {error.sqlstate})"
        return [Finding("error", check.name, None, eyes.connection.info.dbname, said, check.why, None, safe=False)]
    fix = _closing(check, administrator) if check.closes and rows else None
    return [Finding(check.severity, check.name, role, row[0], row[1], check.why, fix or row[2], check.safe) for row in rows]


def _closing(check: Check, administrator: Eyes) -> str | None:
    with administrator.open() as connection:
        return connection.execute(_REVOKE, {"functions": check.closes}).fetchone()[0]


def _apply(connection: psycopg.Connection, found: Sequence[Finding], *, dry_run: bool) -> None:
    """Show each safe fix and, unless it is a rehearsal, run it. A fix that fails is said and stops nothing."""
    for statement in dict.fromkeys(one.fix for one in found if one.safe and one.fix):
        step(f"{'would run' if dry_run else 'running'}: {statement}")
        if dry_run:
            continue
        try:
            connection.execute(statement)
        except psycopg.Error as error:
            step(f"that failed with SQLSTATE {error.sqlstate}")
