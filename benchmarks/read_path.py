"""What sealing and publishing one tick costs, as a ratio to the plain GROUP BY over the same mutations, with and without long history."""

from __future__ import annotations

import datetime as dt

import psycopg
from bench import arguments, private_database, seconds, show

#: Days until the same entries are mutated again.
SPAN = 10
START = dt.datetime(2025, 1, 1, 12, tzinfo=dt.timezone.utc)


def prepare(connection: psycopg.Connection, entries: int) -> None:
    """Track a table of `entries` rows and declare one release by group."""
    connection.execute("CREATE TABLE ticket (id bigint PRIMARY KEY, line integer NOT NULL, status text NOT NULL)")
    connection.execute("CREATE TABLE line AS SELECT i AS line FROM generate_series(0, 999) AS i")
    at(connection, 0)
    connection.execute("SELECT dp_track('ticket')")
    connection.execute("SELECT dp_add_constraint('ticket', 'any', max_mutations => 1000000)")
    connection.execute("SELECT dp_set_budget('ticket', epsilon => 1000, delta => 1e-6)")
    connection.execute("SELECT dp_mark_public('line', 'line')")
    connection.execute(
        "SELECT dp_create_release('used', $$ SELECT line, count(*) FROM ticket WHERE status = 'used'"
        " AND dp_time > now() - INTERVAL '1 day' GROUP BY line $$, every => '1 day', measure => 'net',"
        " epsilon => 900, groups => 'SELECT line FROM line', horizon => 400)"
    )
    connection.execute(
        "INSERT INTO ticket SELECT i, i %% 1000, 'sold' FROM generate_series(1, %s) AS i", (entries,)
    )


def at(connection: psycopg.Connection, day: int) -> None:
    """Set the session's clock to noon of a day."""
    connection.execute("SELECT set_config('dbext.now', %s, false)", ((START + dt.timedelta(days=day)).isoformat(),))


def mutate(connection: psycopg.Connection, rows: int, day: int) -> None:
    """Flip the status of `rows` entries, other ones every day."""
    connection.execute(
        "UPDATE ticket SET status = CASE status WHEN 'sold' THEN 'used' ELSE 'sold' END"
        " WHERE id > %s AND id <= %s",
        ((day * rows) % (SPAN * rows), (day * rows) % (SPAN * rows) + rows),
    )


def publish_tick(connection: psycopg.Connection, rows: int, day: int) -> tuple[float, float]:
    """Mutate on `day`, then time seal + publish and the plain GROUP BY over the same changes."""
    at(connection, day)
    mutate(connection, rows, day)
    at(connection, day + 1)
    connection.execute("ANALYZE ticket")
    ours = seconds(lambda: connection.execute("CALL dp_publish()"))
    ((table_id,),) = connection.execute("SELECT table_id FROM dbext_private.tracked_table").fetchall()
    plain = (
        f"SELECT new_2, count(*) FILTER (WHERE new_3 = 'used') - count(*) FILTER (WHERE old_3 = 'used')"
        f" FROM dbext_private.log_{table_id} WHERE mutated_at > '{(START + dt.timedelta(days=day - 0.5)).isoformat()}'"
        " AND op = 'U' GROUP BY new_2"
    )
    return ours, min(seconds(lambda: connection.execute(plain)) for _ in range(3))


def main() -> None:
    """Print seal + publish of one tick at growing history."""
    options = arguments(__doc__)
    rows, histories = (50_000, (100_000, 500_000)) if options.quick else (500_000, (1_000_000, 10_000_000))
    figures: dict[str, float] = {}
    with private_database("read_path") as connection:
        prepare(connection, SPAN * rows)
        day, logged = 0, 0
        at(connection, 1)
        connection.execute("CALL dp_publish()")
        for history in histories:
            while logged < history:
                day, logged = day + 1, logged + rows
                publish_tick(connection, rows, day)
            best = [publish_tick(connection, rows, day + i) for i in (1, 2, 3)]
            day, logged = day + 3, logged + 3 * rows
            ours, plain = (sorted(column)[1] for column in zip(*best, strict=True))
            figures |= {
                f"seal + publish of {rows} mutations, {history} rows of history, seconds": ours,
                f"  ratio to the plain GROUP BY, {history} rows of history": ours / plain,
            }
    show("read path", figures, options.json)


if __name__ == "__main__":
    main()
