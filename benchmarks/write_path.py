"""What capture costs a writer: bulk statements on a tracked table against an untracked one and against the limit.

The limit is what anybody would write by hand: a second INSERT, into a typed log, in the same statement.
"""

from __future__ import annotations

import statistics

import psycopg
from bench import arguments, private_database, seconds, show

COLUMNS = "(id bigint PRIMARY KEY, line integer NOT NULL, status text NOT NULL, updated timestamptz)"
ROWS = "SELECT i, i %% 1000, 'active', NULL::timestamptz FROM generate_series(1, {rows}) AS i"


def prepare(connection: psycopg.Connection) -> None:
    """Make three tables of one shape; one is tracked, one has a hand-written log."""
    for name in ("plain", "tracked", "by_hand"):
        connection.execute(f"CREATE TABLE {name} {COLUMNS}")
    connection.execute(
        'CREATE TABLE by_hand_log (op "char", id bigint, old_line integer, new_line integer, old_status text, new_status text,'
        " mutated_at timestamptz, xid xid8)"
    )
    connection.execute("CREATE INDEX ON by_hand_log (xid)")
    connection.execute("CREATE INDEX ON by_hand_log USING brin (mutated_at)")
    connection.execute("SELECT dp_track('tracked', columns => '{id, line, status}')")


def by_hand(statement: str, values: str) -> str:
    """Return `statement` with a second INSERT into the log in the same statement."""
    return (
        f"WITH changed AS ({statement} RETURNING *) INSERT INTO by_hand_log"
        f" SELECT {values}, clock_timestamp(), pg_current_xact_id() FROM changed"
    )


def figures(connection: psycopg.Connection, rows: int, rounds: int) -> dict[str, float]:
    """Return ratios of INSERT, UPDATE and DELETE of `rows` rows to the untracked table."""
    source = ROWS.format(rows=rows).replace("%%", "%")
    update = "UPDATE {} SET status = 'used'"
    steps = {
        "INSERT": ("INSERT INTO {} " + source, "'I', id, NULL, line, NULL, status"),
        "UPDATE": (update, "'U', id, line, line, 'active', status"),
        "DELETE": ("DELETE FROM {}", "'D', id, line, NULL, status, NULL"),
    }
    taken: dict[tuple[str, str], list[float]] = {}
    for _ in range(rounds):
        for step, (statement, values) in steps.items():
            statements = {name: statement.format(name) for name in ("plain", "tracked")}
            statements["by_hand"] = by_hand(statement.format("by_hand"), values)
            for name, text in statements.items():
                taken.setdefault((step, name), []).append(seconds(lambda text=text: connection.execute(text)))
        for name in ("plain", "tracked", "by_hand", "by_hand_log"):
            connection.execute(f"VACUUM {name}")
    median = {which: statistics.median(times) for which, times in taken.items()}
    return {
        f"{step} of {rows} rows, {label}": median[step, "tracked"] / median[step, base]
        for step in steps
        for label, base in (("tracked / untracked", "plain"), ("tracked / second INSERT by hand", "by_hand"))
    }


def main() -> None:
    """Print the ratios."""
    options = arguments(__doc__)
    rows, rounds = (50_000, 3) if options.quick else (200_000, 7)
    with private_database("write_path") as connection:
        prepare(connection)
        show("write path: ratios", figures(connection, rows, rounds), options.json)


if __name__ == "__main__":
    main()
