"""`dbext ageing`: the ageing plan, of a model given on the command line or of one that a table has."""

from __future__ import annotations

from dataclasses import dataclass

from psycopg import sql

from dbext.control.database import api_schema, connect, query
from dbext.control.output import Format, write
from dbext.errors import BadArgument

COLUMNS = ("strategy", "every", "age", "epsilon", "error", "peak")


@dataclass(frozen=True)
class Wish:
    """What is looked for: the largest age-dependent loss, how far the count drifts in a tick, and the grid that is searched."""

    target: float
    spread: float
    longest: int
    oldest: int


def plan(wish: Wish, dwell: str, table: str, column: str | None, dsn: str, form: Format) -> None:
    """Write the plan of a model: dwell times, or that of a table's column."""
    if bool(dwell) == bool(table):
        raise BadArgument("give either --dwell or --table", hint="For example: dbext ageing --dwell 10,10 --target 0.5")
    write(_of_table(wish, table, column, dsn) if table else _of_dwell(wish, dwell), COLUMNS, form)


def _of_dwell(wish: Wish, dwell: str) -> list[dict]:
    from dbext.privacy.markov import from_dwell_times
    from dbext.service.ageing import choices

    try:
        times = [float(one) for one in dwell.split(",")]
    except ValueError as fault:
        raise BadArgument("--dwell takes numbers with commas between them, such as 10,10") from fault
    return choices(from_dwell_times(times).delta, wish.target, wish.spread, wish.longest, wish.oldest)


def _of_table(wish: Wish, table: str, column: str | None, dsn: str) -> list[dict]:
    with connect(dsn) as connection:
        statement = sql.SQL("SELECT * FROM {}.dp_plan_ageing(%s, %s, %s, %s, %s, %s)").format(api_schema(connection))
        return query(connection, statement, [table, column, wish.target, wish.spread, wish.longest, wish.oldest])[0]
