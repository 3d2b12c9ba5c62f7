"""Exit codes, and errors said as message, detail and hint."""

from __future__ import annotations

from enum import IntEnum

import psycopg

from dbext.control.steps import print_error
from dbext.errors import BadArgument, BudgetExceeded, DbextError, HistoryLost, UnboundedLoss

#: Refusals that protect privacy, as opposed to mistakes.
PRIVACY_REFUSALS = {BudgetExceeded.sqlstate, UnboundedLoss.sqlstate, HistoryLost.sqlstate}
#: SQLSTATE classes of a connection that cannot be had: 08 connection, 28 authorisation, 3D no such database, 57P server shutting down.
CONNECTION_CLASSES = ("08", "28", "3D", "57P")

#: Said when the database refuses a role without saying what it lacks.
WHO_MAY = (
    "Members of dbext_reader may look, of dbext_analyst ask and declare, of dbext_admin publish, if they are admitted to this database: "
    "GRANT one of them to your role, and USAGE ON SCHEMA dbext, dp_release."
)


class ExitCode(IntEnum):
    """What the command line tells its caller; scripts rely on the numbers."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    REFUSED = 3
    NOTHING_TO_DO = 4
    CANNOT_CONNECT = 5


class CannotConnect(DbextError):
    """No connection to the database could be opened."""

    sqlstate = "08001"


def is_connection_loss(error: psycopg.Error) -> bool:
    """Whether a connection was lost or never had (trying again may help)."""
    if error.sqlstate is None:
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return error.sqlstate.startswith(CONNECTION_CLASSES)


def exit_code(error: BaseException) -> ExitCode:
    """Return the exit code that an error means."""
    if getattr(error, "sqlstate", None) in PRIVACY_REFUSALS:
        return ExitCode.REFUSED
    if isinstance(error, BadArgument):
        return ExitCode.USAGE
    if isinstance(error, CannotConnect) or (isinstance(error, psycopg.Error) and is_connection_loss(error)):
        return ExitCode.CANNOT_CONNECT
    return ExitCode.FAILED


def as_dbext_error(error: BaseException) -> DbextError:
    """Return any error as message, detail and hint."""
    if isinstance(error, DbextError):
        return error
    if isinstance(error, psycopg.Error) and error.diag.message_primary:
        diagnosis = error.diag
        hint = diagnosis.message_hint or (WHO_MAY if error.sqlstate == "42501" else None)
        return DbextError(diagnosis.message_primary, detail=diagnosis.message_detail, hint=hint)
    if isinstance(error, OSError) and error.filename:
        return DbextError(f"{error.filename}: {error.strerror}")
    return DbextError(str(error).strip() or type(error).__name__)


def report(error: BaseException) -> ExitCode:
    """Print an error on standard error and return its exit code."""
    print_error(as_dbext_error(error))
    return exit_code(error)
