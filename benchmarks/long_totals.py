"""What one publication of a running total costs after many others: draws that are all kept, and noise from a few buffers.

History is written straight into the private tables: noise, exact sums of every tick, and the state of the buffers, as publications would
have left them. What is measured is the next publication alone, by processor time of the session's backend, blocks read, and bytes kept.
"""

from __future__ import annotations

import datetime as dt
import functools
import statistics

import psycopg

from benchmarks.bench import arguments, cost, private_database, private_memory, show

#: Fifty thousand hours before the true present, which nothing is sealed beyond.
START = dt.datetime(2015, 1, 1, tzinfo=dt.timezone.utc)
HORIZON, REPEATS = 87_600, 4
#: Of a buffered total of that horizon.
BUFFERS = 5
#: Lets a session plan the mechanism that is asked for, at a horizon that it would not be taken for.
FORCED = """DO LANGUAGE plpython3u $$
from dbext.query import admissible, planner
admissible.MAX_HORIZON = 100_000
if "options" not in GD:
    GD["options"] = planner.options
planner.options = lambda *a, **k: (one for one in GD["options"](*a, **k) if one.name == "{mechanism}")
planner.MOST_STORED = 10**12
$$"""


def at(connection: psycopg.Connection, hour: float) -> None:
    """Set the session's clock."""
    connection.execute("SELECT set_config('dbext.now', %s, false)", ((START + dt.timedelta(hours=hour)).isoformat(),))


def prepare(connection: psycopg.Connection) -> None:
    """Track a table by hours."""
    connection.execute("CREATE TABLE entry (id bigint PRIMARY KEY, place integer NOT NULL)")
    at(connection, 0.5)
    connection.execute("SELECT dp_track('entry', tick => '1 hour')")
    connection.execute("SELECT dp_add_constraint('entry', 'any', max_mutations => 1)")
    connection.execute("SELECT dp_set_budget('entry', epsilon => 1000, delta => 1e-6)")


def declare(connection: psycopg.Connection, mechanism: str, groups: int) -> dict[str, int]:
    """Declare a total of ten years of hours by one mechanism; returns its number, groups, and the tick before its first period."""
    connection.execute(FORCED.format(mechanism=mechanism))
    connection.execute(f"CREATE TABLE place AS SELECT i AS place FROM generate_series(1, {groups}) AS i")
    connection.execute("SELECT dp_mark_public('place', 'place')")
    connection.execute(
        "SELECT dp_create_release('total', 'SELECT place, count(*) FROM entry GROUP BY place', every => '1 hour',"
        f" measure => 'state', epsilon => 1, horizon => {HORIZON}, groups => 'SELECT place FROM place')"
    )
    ((number, last, first),) = connection.execute(
        "SELECT release_id, next_end - 1, t.first_tick FROM dbext_private.release JOIN dbext_private.tracked_table AS t USING (table_id)"
    ).fetchall()
    connection.execute("UPDATE dbext_private.release SET state = 'finished'")
    return {"number": number, "groups": groups, "start": last, "hours": 1 + last - first}


def live(connection: psycopg.Connection, mechanism: str, release: dict[str, int], before: int, periods: int) -> None:
    """Let a release have published so many periods, of which those up to `before` are there already."""
    place = release | {"before": before, "periods": periods, "width": release["groups"] * BUFFERS}
    numbers = "(SELECT array_agg((random() * 1e12)::bigint::numeric) AS many FROM generate_series(1, %(groups)s)) AS a"
    kept = f"generate_series(%(before)s + {int(before > 0)}, %(periods)s) AS n(node)"
    if mechanism == "buffered":
        connection.execute("TRUNCATE dbext_private.noise_state, dbext_private.node")
        connection.execute(
            "INSERT INTO dbext_private.noise_state SELECT %(number)s, 1, %(periods)s, array_agg((random() * 1e18)::bigint::numeric),"
            " %(periods)s, array_fill(1000::numeric, ARRAY[%(groups)s]) FROM generate_series(1, %(width)s)",
            place,
        )
        kept = "(VALUES (%(periods)s)) AS n(node)"
    connection.execute(f"INSERT INTO dbext_private.node SELECT %(number)s, 1, n.node, a.many FROM {kept}, {numbers}", place)
    connection.execute(
        "INSERT INTO dbext_private.tick_sum SELECT %(number)s, 1, %(start)s + t, a.many"
        " FROM generate_series(%(before)s + 1, %(periods)s) AS t,"
        " (SELECT array_agg((random() < 0.1)::integer::bigint) AS many FROM generate_series(1, %(groups)s)) AS a",
        place,
    )
    connection.execute(
        "UPDATE dbext_private.release SET state = 'active', next_period = %(periods)s + 1, next_answer = %(periods)s + 1,"
        " next_end = %(start)s + %(periods)s + 1, summed_through = %(start)s + %(periods)s",
        place,
    )
    connection.execute("ANALYZE dbext_private.node, dbext_private.tick_sum")


def figures(connection: psycopg.Connection, mechanism: str, groups: int, sizes: tuple[int, ...]) -> dict[str, float]:
    """Return what a publication costs after each number of others."""
    release, before, found = declare(connection, mechanism, groups), 0, {}
    for size in sizes:
        at(connection, release["hours"] + size + 0.5)
        seal(connection)
        live(connection, mechanism, release, before, size)
        before = size + REPEATS
        taken = [publication(connection, release["hours"] + period) for period in range(size + 1, before + 1)]
        found[f"publication after {size}, seconds of processor"] = statistics.median(taken[1:])
        found[f"stored after {size}, MB"] = stored(connection)
    found["memory of the backend, MB"] = private_memory(connection)
    return found


def stored(connection: psycopg.Connection) -> float:
    """Return the MB of stored noise, with the buffers of later noise."""
    noise = "SELECT coalesce(sum(pg_column_size(noisy)), 0) FROM dbext_private.node"
    buffers = "SELECT coalesce(sum(pg_column_size(buffers) + pg_column_size(totals)), 0) FROM dbext_private.noise_state"
    ((size,),) = connection.execute(f"SELECT ({noise}) + ({buffers})").fetchall()
    return float(size) / 1e6


def seal(connection: psycopg.Connection) -> None:
    """Close all ticks that have ended."""
    while connection.execute("SELECT dbext_private.seal_table(1) ->> 'more'").fetchone() == ("true",):
        pass


def publication(connection: psycopg.Connection, hour: float) -> float:
    """Publish the period that ends at an hour; returns seconds of processor."""
    at(connection, hour + 0.5)
    seal(connection)
    published = connection.execute("SELECT next_answer FROM dbext_private.release").fetchone()
    taken = cost(connection, functools.partial(connection.execute, "CALL dp_publish()"))
    if connection.execute("SELECT next_answer - 1 FROM dbext_private.release").fetchone() != published:
        raise RuntimeError("not one period was published")
    return taken.processor


def main() -> None:
    """Print the figures."""
    options = arguments(__doc__)
    sizes = (1_000, 10_000) if options.quick else (1_000, 10_000, 50_000)
    for mechanism in ("square_root", "buffered"):
        for groups in (1, 1_000):
            with private_database("long_totals") as connection:
                prepare(connection)
                title = f"{mechanism}, {groups:,} group{'s' if groups > 1 else ''}"
                show(title, figures(connection, mechanism, groups, sizes), options.json)


if __name__ == "__main__":
    main()
