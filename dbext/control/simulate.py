"""`dbext simulate`: what a declaration in a file would publish, and how far from the truth, before anything is declared.

No database is needed. A private table is read only with --query, by an administrator, in a read-only transaction; nothing is stored.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dbext.control.database import connect
from dbext.control.failures import ExitCode
from dbext.control.output import Format, write
from dbext.control.steps import step
from dbext.errors import BadArgument, NotPermitted
from dbext.query.declaration_file import DeclarationFile, read_declaration

if TYPE_CHECKING:
    import psycopg

    from dbext.service.simulate import Simulated

COLUMNS = ("method", "chosen", "noise", "epsilon", "error", "worst", "uniform", "covered", "draws")
SYNTHETIC, PUBLIC = "synthetic", ("dengue", "tickets")
MOST_CELLS = 10
_IS_ADMIN = "SELECT pg_has_role(session_user, 'dbext_admin', 'MEMBER')"


@dataclass(frozen=True)
class Data:
    """What is simulated on: a public or made-up source, or what a query of an administrator reads."""

    source: str
    query: str
    dsn: str


def simulate(path: Path, data: Data, repetitions: int, form: Format, *, by_period: bool, report: Path | None) -> ExitCode:
    """Simulate the declaration of a file on data, show a table, and draw a page."""
    from dbext.service import simulate as service

    file = read_declaration(path.read_text(encoding="utf-8"))
    rows = _query(data.dsn, data.query) if data.query else _rows(file, data.source)
    changes = service.np.array(rows, dtype=service.np.int64) if rows is not None else _made_up(file)
    cells = min(changes.shape[1], file.groups, MOST_CELLS)
    exact, found = service.simulate(file, changes, repetitions, max(1, cells))
    _write(found, form, by_period=by_period)
    if report is not None:
        from dbext.control.simulation_page import page

        report.write_text(page(path.name, exact, found, repetitions), encoding="utf-8")
        step(f"report: {report}")
    return ExitCode.DONE


def _write(found: Sequence[Simulated], form: Format, *, by_period: bool) -> None:
    if by_period:
        rows = [{"period": n, "method": one.method, "error": error} for one in found for n, error in enumerate(one.by_period, 1)]
        write(rows, ("period", "method", "error"), form)
    else:
        write([{name: getattr(one, name) for name in COLUMNS} for one in found], COLUMNS, form)


def _made_up(file: DeclarationFile):  # noqa: ANN202 an array of changes
    from dbext.service import simulate as service

    changes = service.wave(file.request.horizon or service.PERIODS, file.groups)
    return service.arrivals_only(changes) if file.request.measure in ("entered", "left") else changes


def _rows(file: DeclarationFile, source: str) -> list[list[int]] | None:
    """Return the changes of a public source or of a CSV file; None is the made-up season."""
    if source == SYNTHETIC:
        return None
    if source in PUBLIC:
        from dbext.demo.public_changes import changes

        return changes(source, "entered" if file.request.measure == "entered" else "state")
    with Path(source).open(encoding="utf-8", newline="") as lines:
        return _whole_numbers(list(csv.reader(lines))[1:], source)


def _query(dsn: str, text: str) -> list[list[int]]:
    """Run the caller's own query with the caller's own rights, read-only."""
    with connect(dsn) as connection:
        if not _is_admin(connection):
            raise NotPermitted("only a member of dbext_admin simulates on private data", hint="Use public data: --source FILE.csv")
        with connection.transaction():
            connection.execute("SET TRANSACTION READ ONLY")
            return _whole_numbers(connection.execute(text).fetchall(), "the query")


def _is_admin(connection: psycopg.Connection) -> bool:
    return bool(connection.execute(_IS_ADMIN).fetchone()[0])


def _whole_numbers(rows: Iterable[Sequence[object]], source: str) -> list[list[int]]:
    """Return rows of (tick, change of each cell) as whole numbers; rows are in order of time."""
    try:
        numbers = [[int(value) for value in row[1:]] for row in rows]
    except (TypeError, ValueError) as fault:
        raise BadArgument(f"{source} holds something else than a time and whole numbers") from fault
    if not numbers or not numbers[0] or len({len(row) for row in numbers}) != 1:
        raise BadArgument(f"{source} must have rows of a time and as many whole numbers each as there are groups")
    return numbers
