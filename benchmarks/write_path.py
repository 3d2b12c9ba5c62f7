"""What capture costs a writer, as ratios to an untracked table, to the limit, and to the usual jsonb audit trigger.

The limit is what anybody would write by hand: a second INSERT in the same statement, into a typed log whose index finds what is new, or
a row trigger that makes it.
By hand an UPDATE learns the old values from a join with the table itself; to `given` they are constants, which is no use in life.
A table is tracked by triggers of statements or (`dp_track(..., capture => 'row')`) of rows. `--one-row` measures transactions of one row,
runs taking turns, and prints medians and quartiles.
"""

from __future__ import annotations

import argparse
import functools
import re
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from benchmarks.bench import Cost, arguments, cost, private_database, ratio, show
from dbext.control.postgres import usable_installation

COLUMNS = "(id bigint PRIMARY KEY, line integer NOT NULL, status text NOT NULL, updated timestamptz)"
ROWS = "SELECT i, i %% 1000, 'active', NULL::timestamptz FROM generate_series(1, {rows}) AS i"
TABLES = ("plain", "tracked", "by_row", "by_hand", "given", "by_trigger", "audited")
#: Tables that are tracked, and how.
TRACKED = {"tracked": "tracked", "by_row": "tracked by row"}
#: How the costs of a tracked table are compared.
BASES = {
    "untracked": "plain",
    "second INSERT by hand": "by_hand",
    "the same, old values given": "given",
    "row trigger by hand": "by_trigger",
    "jsonb audit trigger": "audited",
}
LOG = """
CREATE TABLE {0}_log (
    op "char", id bigint, old_line integer, new_line integer, old_status text, new_status text, mutated_at timestamptz, xid xid8);
CREATE INDEX ON {0}_log (xid);
CREATE INDEX ON {0}_log USING brin (mutated_at);
"""
ROW_TRIGGER = """
CREATE FUNCTION by_trigger() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO public.by_trigger_log VALUES (pg_catalog.left(TG_OP, 1), coalesce(NEW.id, OLD.id), OLD.line, NEW.line,
        OLD.status, NEW.status, pg_catalog.clock_timestamp(), pg_catalog.pg_current_xact_id());
    RETURN NULL;
END $$;
CREATE TRIGGER by_trigger AFTER INSERT OR UPDATE OR DELETE ON by_trigger FOR EACH ROW EXECUTE FUNCTION by_trigger();
"""
AUDIT = """
CREATE TABLE audit_log (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, table_name name, op text, old jsonb, new jsonb, at timestamptz);
CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO public.audit_log (table_name, op, old, new, at)
    VALUES (TG_TABLE_NAME, TG_OP, CASE WHEN TG_OP <> 'INSERT' THEN to_jsonb(OLD) END, CASE WHEN TG_OP <> 'DELETE' THEN to_jsonb(NEW) END,
        clock_timestamp());
    RETURN NULL;
END $$;
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON audited FOR EACH ROW EXECUTE FUNCTION audit();
"""


def prepare(connection: psycopg.Connection) -> None:
    """Make tables of one shape: untracked, tracked, with a log by hand, with a row trigger by hand, with the audit trigger."""
    for name in TABLES:
        connection.execute(f"CREATE TABLE {name} {COLUMNS}")
    for name in ("by_hand", "by_trigger"):
        connection.execute(LOG.format(name))
    connection.execute(ROW_TRIGGER)
    connection.execute(AUDIT)
    connection.execute("SELECT dp_track('tracked', columns => '{id, line, status}')")
    connection.execute("SELECT dp_track('by_row', columns => '{id, line, status}', capture => 'row')")


def by_hand(statement: str, values: str, returned: str = "*") -> str:
    """Return `statement` with a second INSERT into the log in the same statement."""
    return (
        f"WITH changed AS ({statement} RETURNING {returned}) INSERT INTO by_hand_log"
        f" SELECT {values}, clock_timestamp(), pg_current_xact_id() FROM changed"
    )


def steps(connection: psycopg.Connection, rows: int) -> dict[str, dict[str, Callable[[], object]]]:
    """Return what is done to each table, in this order."""
    source = ROWS.format(rows=rows).replace("%%", "%")
    statements = {
        "INSERT": ("INSERT INTO {} " + source, "'I', id, NULL, line, NULL, status"),
        "UPDATE": ("UPDATE {} SET status = 'used'", "'U', id, line, line, 'active', status"),
        "DELETE": ("DELETE FROM {}", "'D', id, line, NULL, status, NULL"),
    }
    joined = "UPDATE by_hand SET status = 'used' FROM by_hand AS was WHERE was.id = by_hand.id"
    made: dict[str, dict[str, Callable[[], object]]] = {}
    for step, (statement, values) in statements.items():
        texts = {name: statement.format(name) for name in TABLES}
        texts |= {name: by_hand(texts[name], values) for name in ("by_hand", "given")}
        if step == "UPDATE":
            known = "by_hand.*, was.line AS was_line, was.status AS was_status"
            texts["by_hand"] = by_hand(joined, "'U', id, was_line, line, was_status, status", known)
        made[step] = {name: functools.partial(connection.execute, text) for name, text in texts.items()}
    data = "".join(f"{i}\t{i % 1000}\tactive\n" for i in range(1, rows + 1))
    made["COPY"] = {name: functools.partial(copy, connection, name, data) for name in TABLES if name not in ("by_hand", "given")}
    return made


def copy(connection: psycopg.Connection, name: str, data: str) -> None:
    """Copy text rows into a table."""
    with connection.cursor().copy(f"COPY {name} (id, line, status) FROM STDIN") as target:
        target.write(data)


def bulk(connection: psycopg.Connection, rows: int, rounds: int) -> dict[str, float]:
    """Return ratios of statements over `rows` rows, tables taking turns."""
    costs: dict[str, dict[str, list[Cost]]] = {}
    for turn in range(rounds):
        for step, actions in steps(connection, rows).items():
            for name in (*actions, *actions)[turn % len(actions) :][: len(actions)]:
                costs.setdefault(step, {}).setdefault(name, []).append(cost(connection, actions[name]))
        for name in TABLES:
            connection.execute(f"DELETE FROM {name}")
            connection.execute(f"VACUUM {name}")
    return {
        f"{step} of {rows} rows, {how} / {label}, {part}": ratio(taken, name, base, part)
        for step, taken in costs.items()
        for name, how in TRACKED.items()
        for label, base in BASES.items()
        if base in taken and name in taken
        for part in ("clock", "processor")
    }


def bytes_written(connection: psycopg.Connection, rows: int) -> dict[str, float]:
    """Return bytes of WAL and of disk that an update of many rows costs beyond those of the untracked table."""
    logs = {
        "tracked": tracked_log(connection, "tracked"),
        "by_row": tracked_log(connection, "by_row"),
        "by_hand": "by_hand_log",
        "by_trigger": "by_trigger_log",
        "audited": "audit_log",
    }
    written: dict[str, float] = {}
    disk: dict[str, float] = {}
    actions = steps(connection, rows)
    for name in TABLES:
        actions["INSERT"][name]()
        sizes = [size(connection, logs[name])] if name in logs else []
        connection.execute("CHECKPOINT")
        (before,) = connection.execute("SELECT pg_current_wal_insert_lsn()").fetchone()
        actions["UPDATE"][name]()
        ((written[name],),) = connection.execute("SELECT (pg_current_wal_insert_lsn() - %s::pg_lsn)::float8", (before,)).fetchall()
        if sizes:
            disk[name] = size(connection, logs[name]) - sizes[0]
        actions["DELETE"][name]()
    labels = TRACKED | {name: label for label, name in BASES.items() if name in logs}
    return {f"WAL bytes of an updated row's record, {labels[name]}": (written[name] - written["plain"]) / rows for name in labels} | {
        f"disk bytes of an updated row's record, {labels[name]}": disk[name] / rows for name in labels
    }


def tracked_log(connection: psycopg.Connection, name: str) -> str:
    """Return the name of a tracked table's log."""
    ((number,),) = connection.execute("SELECT table_id FROM dbext_private.tracked_table WHERE table_name = %s", (name,)).fetchall()
    return f"dbext_private.log_{number}"


def size(connection: psycopg.Connection, name: str) -> int:
    """Return the bytes of a table and its indexes."""
    return connection.execute("SELECT pg_total_relation_size(%s::regclass)", (name,)).fetchone()[0]


def plan_cache(connection: psycopg.Connection, rows: int, rounds: int) -> dict[str, float]:
    """Return a large update after a thousand small ones, over the same update in a fresh session."""
    connection.execute("INSERT INTO tracked " + ROWS.format(rows=rows).replace("%%", "%"))
    costs: dict[str, list[Cost]] = {"worn": [], "fresh": []}
    for turn in range(rounds):
        for name, small in (("worn", 1000), ("fresh", 0)):
            with psycopg.connect(connection.info.dsn, autocommit=True) as session:
                for i in range(1, small + 1):
                    session.execute("UPDATE tracked SET line = line + 1 WHERE id BETWEEN %s AND %s", (i, i + i % 2))
                update = f"UPDATE tracked SET status = '{name}{turn}'"
                costs[name].append(cost(session, functools.partial(session.execute, update)))
        connection.execute("VACUUM tracked")
    connection.execute("DELETE FROM tracked")
    return {f"UPDATE of {rows} rows after 1000 small ones / in a fresh session": ratio(costs, "worn", "fresh", "processor")}


def scripts(rows: int) -> dict[str, dict[str, str]]:
    """Return what pgbench runs, one row a transaction."""
    update = "UPDATE {} SET line = line + 1 WHERE id = :id"
    insert = "INSERT INTO {} VALUES (nextval('fresh'), :id, 'active', NULL)"
    hand = {"UPDATE": "'U', id, line - 1, line, status, status", "INSERT": "'I', id, NULL, line, NULL, status"}
    return {
        step: {
            name: f"\\set id random(1, {rows})\n{by_hand(text.format(name), hand[step]) if name == 'by_hand' else text.format(name)};\n"
            for name in TABLES
            if name != "given"
        }
        for step, text in (("UPDATE", update), ("INSERT", insert))
    }


def fill(connection: psycopg.Connection, rows: int) -> None:
    """Put `rows` rows into every table, and into no cache but the server's own."""
    connection.execute("CREATE SEQUENCE fresh START 1000000000 CACHE 1000")
    for name in TABLES:
        connection.execute(f"INSERT INTO {name} " + ROWS.format(rows=rows).replace("%%", "%"))
        connection.execute(f"VACUUM ANALYZE {name}")


def rates(
    connection: psycopg.Connection, texts: dict[str, str], clients: int, commit: str, length: float, rounds: int
) -> dict[str, list[float]]:
    """Return transactions per second on each table, runs taking turns: each round in the other order."""
    found: dict[str, list[float]] = {name: [] for name in texts}
    for turn in range(rounds):
        for name in list(texts)[:: 1 if turn % 2 == 0 else -1]:
            found[name].append(rate(connection, texts[name], clients, length, commit))
    return found


def one_row(
    connection: psycopg.Connection, rows: int, which: tuple[str, ...], commits: tuple[str, ...], length: float, rounds: int
) -> dict[str, float]:
    """Return rates of one-row statements on tracked tables over those on the others; print medians and quartiles."""
    fill(connection, rows)
    figures: dict[str, float] = {}
    for step, commit, clients in ((s, k, n) for s in which for k in commits for n in (1, 2)):
        found = rates(connection, scripts(rows)[step], clients, commit, length, rounds)
        title = f"one-row {step}, {clients} client{'s'[: clients - 1]}, synchronous commit {commit}"
        middle = {name: statistics.median(values) for name, values in found.items()}
        print(f"{title}: transactions per second, and parts of the untracked rate (first quartile, median, third quartile)")
        for name, values in found.items():
            quartiles = statistics.quantiles(values, n=4, method="inclusive") if rounds > 1 else values * 3
            parts = "".join(f"{value / middle['plain']:8.3f}" for value in quartiles)
            print(f"  {TRACKED.get(name) or next(k for k, v in BASES.items() if v == name):<24}{middle[name]:9.0f}{parts}")
        figures |= {
            f"{title}: rate {how} / {label}": middle[name] / middle[base]
            for name, how in TRACKED.items()
            for label, base in BASES.items()
            if base in middle
        }
    return figures


def rate(connection: psycopg.Connection, script: str, clients: int, length: float, commit: str) -> float:
    """Run pgbench once and return transactions per second."""
    pgbench = usable_installation().bindir / "pgbench"
    with script_file(script) as path:
        command = [pgbench, "-n", "-M", "prepared", "-f", path, "-c", str(clients), "-j", str(clients), "-T", str(length)]
        command += ["-h", connection.info.host, "-p", str(connection.info.port), "-U", connection.info.user, connection.info.dbname]
        environment = {"PGOPTIONS": f"-c synchronous_commit={commit}", "PATH": "/usr/bin:/bin"}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return float(re.search(r"^tps = ([0-9.]+)", done.stdout, re.MULTILINE)[1])


@contextmanager
def script_file(script: str) -> Iterator[Path]:
    """Write a script to a file that goes again."""
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
        file.write(script)
        file.flush()
        yield Path(file.name)


def options_of_one_row(parser: argparse.ArgumentParser) -> None:
    """Add the options of --one-row."""
    parser.add_argument("--one-row", action="store_true", help="only UPDATEs of one row a transaction, with synchronous commit")
    parser.add_argument("--rounds", type=int, default=5, help="runs for each table")
    parser.add_argument("--length", type=int, default=2, help="seconds a run")


def everything(connection: psycopg.Connection, options: argparse.Namespace) -> None:
    """Print all ratios."""
    sizes = ((20_000, 2),) if options.quick else ((200_000, 7), (1_000_000, 3))
    for rows, rounds in sizes:
        show(f"write path: bulk, {rows} rows", bulk(connection, rows, rounds), options.json)
    rows = sizes[0][0]
    show("write path: bytes", bytes_written(connection, rows), options.json)
    show("write path: plan cache", plan_cache(connection, rows, 1 if options.quick else 3), options.json)
    which, length, rounds = (("UPDATE",), 1, 1) if options.quick else (("UPDATE", "INSERT"), options.length, options.rounds)
    if (usable_installation().bindir / "pgbench").exists():
        show("write path: one row a transaction", one_row(connection, rows, which, ("on", "off"), length, rounds), options.json)


def main() -> None:
    """Print the ratios."""
    options = arguments(__doc__, options_of_one_row)
    with private_database("write_path") as connection:
        prepare(connection)
        if options.one_row:
            figures = one_row(connection, 200_000, ("UPDATE",), ("on",), options.length, options.rounds)
            show("write path: one row a transaction", figures, options.json)
        else:
            everything(connection, options)


if __name__ == "__main__":
    main()
