"""What sealing and publishing cost: one tick behind growing history, missed ticks in one pass, a window against recomputing it, memory."""

from __future__ import annotations

import datetime as dt
import functools
import statistics
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from benchmarks.bench import Cost, arguments, cost, private_database, private_memory, show

#: Days until the same entries are mutated again.
SPAN = 4
START = dt.datetime(2025, 1, 1, 12, tzinfo=dt.timezone.utc)
GROUPS = 1000
#: Days of the sliding window.
WINDOW = 14


def prepare(connection: psycopg.Connection, entries: int, name: str = "ticket") -> int:
    """Track a table of `entries` rows and declare one release by group, on day 0; returns the table's number."""
    connection.execute("CREATE TABLE IF NOT EXISTS line AS SELECT i AS line FROM generate_series(0, %s) AS i", (GROUPS - 1,))
    connection.execute("SELECT dp_mark_public('line', 'line')")
    connection.execute(f"CREATE TABLE {name} (id bigint PRIMARY KEY, line integer NOT NULL, status text NOT NULL)")
    at(connection, 0)
    connection.execute(f"SELECT dp_track('{name}')")
    connection.execute(f"SELECT dp_add_constraint('{name}', 'any', max_mutations => 1000000)")
    connection.execute(f"SELECT dp_set_budget('{name}', epsilon => 1000, delta => 1e-6)")
    connection.execute(
        f"SELECT dp_create_release('used_{name}', $$ SELECT line, count(*) FROM {name} WHERE status = 'used'"
        " AND dp_time > now() - INTERVAL '1 day' GROUP BY line $$, every => '1 day', measure => 'net',"
        " epsilon => 900, groups => 'SELECT line FROM line', horizon => 400)"
    )
    connection.execute(f"INSERT INTO {name} SELECT i, i %% {GROUPS}, 'sold' FROM generate_series(1, %s) AS i", (entries,))
    ((number,),) = connection.execute("SELECT max(table_id) FROM dbext_private.tracked_table").fetchall()
    return number


def at(connection: psycopg.Connection, day: int) -> None:
    """Set the session's clock to noon of a day."""
    connection.execute("SELECT set_config('dbext.now', %s, false)", ((START + dt.timedelta(days=day)).isoformat(),))


def mutate(connection: psycopg.Connection, rows: int, day: int, name: str = "ticket", span: int = SPAN) -> None:
    """Flip the status of `rows` entries, other ones every day; after `span` days it is the first ones' turn again."""
    at(connection, day)
    start = (day * rows) % (span * rows)
    connection.execute(
        f"UPDATE {name} SET status = CASE status WHEN 'sold' THEN 'used' ELSE 'sold' END WHERE id > %s AND id <= %s", (start, start + rows)
    )
    at(connection, day + 1)


def publish(connection: psycopg.Connection) -> Cost:
    """Seal and publish all that is due, and return what it took."""
    return cost(connection, functools.partial(connection.execute, "CALL dp_publish()"))


def recompute(connection: psycopg.Connection, number: int, first: int, last: int) -> Cost:
    """Count the changes of some days by group straight from the log, and return what the best of three took."""
    since, until = (START + dt.timedelta(days=day) for day in (first - 0.5, last + 0.5))
    query = (
        "SELECT new_2, count(*) FILTER (WHERE new_3 = 'used') - count(*) FILTER (WHERE old_3 = 'used')"
        f" FROM dbext_private.log_{number} WHERE mutated_at > '{since}' AND mutated_at <= '{until}' GROUP BY new_2"
    )
    return min((cost(connection, functools.partial(connection.execute, query)) for _ in range(3)), key=lambda one: one.clock)


def age(connection: psycopg.Connection, number: int, rows: int) -> None:
    """Add mutations that were sealed long ago, written as seals and capture would have left them."""
    connection.execute(
        f"INSERT INTO dbext_private.log_{number} (op, key_1, old_2, old_3, new_2, new_3, mutated_at, xid)"
        f" SELECT 'U', i, i %% {GROUPS}, 'sold', i %% {GROUPS}, 'used', timestamptz '2000-01-01' + i * interval '1 second', '3'"
        " FROM generate_series(1, %s) AS i",
        (rows,),
    )
    connection.execute(
        f"INSERT INTO dbext_private.change_{number} (tick, baseline, old_present, new_present, key_1, old_2, old_3, new_2, new_3)"
        f" SELECT i / 500000, false, true, true, i, i %% {GROUPS}, 'sold', i %% {GROUPS}, 'used' FROM generate_series(1, %s) AS i",
        (rows,),
    )
    for kind in ("log", "change"):
        connection.execute(f"VACUUM ANALYZE dbext_private.{kind}_{number}")


@contextmanager
def watched_memory(connection: psycopg.Connection) -> Iterator[list[float]]:
    """Yield a list whose only number becomes the most private memory, in MB, that was seen in the session's backend."""
    peak, ended = [0.0], threading.Event()

    def watch() -> None:
        while not ended.wait(0.01):
            peak[0] = max(peak[0], private_memory(connection))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        ended.set()
        watcher.join()


def history(connection: psycopg.Connection, rows: int, sizes: tuple[int, ...]) -> dict[str, float]:
    """Return what a tick of `rows` mutations costs behind each size of history, then what a window costs."""
    number = prepare(connection, SPAN * rows)
    at(connection, 1)
    connection.execute("CALL dp_publish()")
    day, aged, most, figures = 0, 0, 0.0, {}
    for size in sizes:
        age(connection, number, size - aged)
        aged = size
        taken = []
        for _ in range(5):
            day += 1
            mutate(connection, rows, day)
            with watched_memory(connection) as peak:
                taken.append(publish(connection))
            most = max(most, peak[0])
        ours, plain = statistics.median(one.processor for one in taken[1:]), recompute(connection, number, day, day).processor
        label = f"{size} rows of history"
        figures |= {
            f"seal + publish of {rows} mutations, {GROUPS} groups, {label}, seconds of processor": ours,
            f"seal + publish / plain GROUP BY, {label}": ours / plain,
        }
    figures["private memory of the backend that seals and publishes, MB"] = most
    figures |= window(connection, number, rows, day)
    figures["seal + publish, longest history / shortest"] = (
        figures[f"seal + publish of {rows} mutations, {GROUPS} groups, {sizes[-1]} rows of history, seconds of processor"]
        / figures[f"seal + publish of {rows} mutations, {GROUPS} groups, {sizes[0]} rows of history, seconds of processor"]
    )
    return figures


def window(connection: psycopg.Connection, number: int, rows: int, day: int) -> dict[str, float]:
    """Return recomputing a window of 14 days from its mutations, over adding up the exact sums of its ticks."""
    query = (
        "SELECT c.cell, sum(c.total) FROM (SELECT s.sums FROM dbext_private.tick_sum AS s"
        f" ORDER BY s.tick DESC LIMIT {WINDOW}) AS s, unnest(s.sums) WITH ORDINALITY AS c (total, cell) GROUP BY c.cell"
    )
    ours = min(cost(connection, functools.partial(connection.execute, query)).clock for _ in range(5))
    theirs = recompute(connection, number, day - WINDOW + 1, day).clock
    return {f"window of {WINDOW} days, {WINDOW * rows} mutations: recomputed / from the sums of its ticks": theirs / ours}


def catch_up(connection: psycopg.Connection, ticks: int, rows: int) -> dict[str, float]:
    """Return what missed ticks cost in one pass, and one by one."""
    prepare(connection, SPAN * rows, "daily")
    daily = 0.0
    for day in range(1, ticks + 1):
        mutate(connection, rows, day, "daily")
        daily += publish(connection).processor
    prepare(connection, SPAN * rows, "missed")
    for day in range(1, ticks + 1):
        mutate(connection, rows, day, "missed")
    missed = publish(connection).processor
    return {
        f"{ticks} ticks of {rows} mutations in one pass, seconds of processor": missed,
        f"{ticks} ticks of {rows} mutations: one by one / in one pass": daily / missed,
    }


def catch_up_units(connection: psycopg.Connection, ticks: int, rows: int) -> dict[str, float]:
    """Return what sealing missed ticks costs of a table with units of five rows: with records in one tick of thirty, and in all of them."""
    figures = {}
    for name, every in (("visit_monthly", 30), ("visit_daily", 1)):
        connection.execute(f"CREATE TABLE {name} (id bigint PRIMARY KEY, patient integer NOT NULL, cost integer NOT NULL)")
        at(connection, 0)
        connection.execute(f"SELECT dp_track('{name}', unit => '{{patient}}', rows_per_unit => 10)")
        connection.execute(f"SELECT dp_add_constraint('{name}', 'any', max_mutations => 1000000)")
        connection.execute(f"INSERT INTO {name} SELECT i, i / 5, 5 FROM generate_series(1, %s) AS i", (SPAN * rows,))
        publish(connection)
        for day in range(1, ticks + 1, every):
            at(connection, day)
            connection.execute(f"UPDATE {name} SET cost = cost + 1 WHERE id / %s = %s", (rows, day % SPAN))
        at(connection, ticks + 1)
        label = f"{ticks} ticks, units of five rows, {rows} mutations in one of {every}, seconds of processor"
        figures[label] = publish(connection).processor
    return figures


def main() -> None:
    """Print the figures."""
    options = arguments(__doc__)
    rows, sizes, missed = (20_000, (100_000, 500_000, 1_000_000), (60, 200))
    if not options.quick:
        rows, sizes, missed = (500_000, (1_000_000, 10_000_000, 50_000_000), (365, 1000))
    with private_database("read_path") as connection:
        show("read path: one tick", history(connection, rows, sizes), options.json)
    with private_database("catch_up") as connection:
        show("read path: missed ticks", catch_up(connection, *missed) | catch_up_units(connection, *missed), options.json)


if __name__ == "__main__":
    main()
