"""A simulated year of daily seals, publication and dp_retain: how large the private tables are, and what a day costs, month by month."""

from __future__ import annotations

import functools
import statistics

import psycopg
from read_path import SPAN, mutate, prepare, publish

from benchmarks.bench import arguments, cost, private_database, show

KEPT = 30
KINDS = ("log", "change", "admission")


def sizes(connection: psycopg.Connection, number: int) -> dict[str, float]:
    """Return the size of each private table with its indexes, in MB."""
    query = "SELECT pg_total_relation_size(%s::regclass) / 1048576.0"
    return {kind: float(connection.execute(query, (f"dbext_private.{kind}_{number}",)).fetchone()[0]) for kind in KINDS}


def live(connection: psycopg.Connection, days: int, rows: int) -> dict[str, float]:
    """Let days pass, vacuum coming round every evening as autovacuum would; return sizes and costs by month."""
    number = prepare(connection, SPAN * rows)
    connection.execute("CALL dp_publish()")
    figures: dict[str, float] = {}
    published: list[float] = []
    retained: list[float] = []
    for day in range(1, days + 1):
        mutate(connection, rows, day)
        published.append(publish(connection).processor)
        retained.append(cost(connection, functools.partial(connection.execute, f"SELECT dp_retain('ticket', '{KEPT} days')")).processor)
        for kind in KINDS:
            connection.execute(f"VACUUM dbext_private.{kind}_{number}")
        if day % 30 == 0:
            figures |= {f"day {day}: {kind}, MB": size for kind, size in sizes(connection, number).items()}
            figures |= {f"day {day}: {name}, ms of processor": 1000 * statistics.median(last[-20:]) for name, last in
                        (("seal + publish", published), ("dp_retain", retained))}  # fmt: skip
    last, middle = days // 30 * 30, days // 60 * 30
    grown = {kind: figures[f"day {last}: {kind}, MB"] / figures[f"day {middle}: {kind}, MB"] for kind in KINDS}
    return figures | {f"{kind}, day {last} / day {middle}": ratio for kind, ratio in grown.items()}


def main() -> None:
    """Print the figures."""
    options = arguments(__doc__)
    days, rows = (120, 500) if options.quick else (365, 5000)
    with private_database("retention") as connection:
        show(f"retention: {rows} mutations a day, {KEPT} days kept", live(connection, days, rows), options.json)


if __name__ == "__main__":
    main()
