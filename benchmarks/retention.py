"""A simulated year of daily seals, publication and dp_retain: how large the private tables are, and what a day costs, month by month.

With entries that change every fourth day, or twice in all, and records that are deleted one by one, or in segments that are dropped whole.
"""

from __future__ import annotations

import functools
import statistics

import psycopg

from benchmarks.bench import arguments, cost, private_database, show
from benchmarks.read_path import SPAN, mutate, prepare, publish

KEPT = 30
KINDS = ("log", "change", "admission")


def sizes(connection: psycopg.Connection, number: int) -> dict[str, float]:
    """Return the size of each private table with its indexes and segments, in MB."""
    query = (
        "SELECT sum(pg_total_relation_size(c.oid)) / 1048576.0 FROM pg_class AS c WHERE c.oid = %s::regclass"
        " OR c.oid IN (SELECT i.inhrelid FROM pg_inherits AS i WHERE i.inhparent = %s::regclass)"
    )
    return {kind: float(connection.execute(query, (f"dbext_private.{kind}_{number}",) * 2).fetchone()[0]) for kind in KINDS}


def written(connection: psycopg.Connection) -> float:
    """Return how much write-ahead log there has been, in MB."""
    return float(connection.execute("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') / 1048576").fetchone()[0])


def keep(connection: psycopg.Connection, number: int, *, segments: bool) -> tuple[float, float]:
    """Let dp_retain forget, and vacuum come round as autovacuum would; return processor time of both in ms and write-ahead log in MB."""
    before = written(connection)
    steps = [f"SELECT dp_retain('ticket', '{KEPT} days', segments => {segments})"]
    steps += [f"VACUUM dbext_private.{kind}_{number}" for kind in KINDS]
    spent = sum(cost(connection, functools.partial(connection.execute, step)).processor for step in steps)
    return 1000 * spent, written(connection) - before


def live(connection: psycopg.Connection, days: int, rows: int, span: int, *, segments: bool) -> dict[str, float]:
    """Let days pass, each entry changing every `span` days; return sizes and the costs of a day by month."""
    number = prepare(connection, span * rows)
    connection.execute("CALL dp_publish()")
    figures: dict[str, float] = {}
    published: list[float] = []
    kept: list[tuple[float, float]] = []
    for day in range(1, days + 1):
        mutate(connection, rows, day, span=span)
        published.append(1000 * publish(connection).processor)
        kept.append(keep(connection, number, segments=segments))
        if day % 30 == 0:
            processor, log = zip(*kept[-30:], strict=True)
            figures |= {f"day {day}: {kind}, MB": size for kind, size in sizes(connection, number).items()}
            figures |= {
                f"day {day}: seal + publish, ms of processor": statistics.median(published[-20:]),
                f"day {day}: dp_retain + vacuum, ms of processor": statistics.fmean(processor),
                f"day {day}: dp_retain + vacuum, MB of write-ahead log": statistics.fmean(log),
            }
    last, middle = days // 30 * 30, days // 60 * 30
    grown = {kind: figures[f"day {last}: {kind}, MB"] / figures[f"day {middle}: {kind}, MB"] for kind in KINDS}
    return figures | {f"{kind}, day {last} / day {middle}": ratio for kind, ratio in grown.items()}


def main() -> None:
    """Print the figures."""
    options = arguments(__doc__)
    days, most = (120, 500) if options.quick else (365, 5000)
    for span, rows, segments in ((span, rows, cut) for span, rows in ((SPAN, most), (days // 2, most // 10)) for cut in (False, True)):
        with private_database("retention") as connection:
            title = f"retention: {rows} mutations a day, {KEPT} days kept, {days // span} an entry, {'segments' if segments else 'rows'}"
            show(title, live(connection, days, rows, span, segments=segments), options.json)


if __name__ == "__main__":
    main()
