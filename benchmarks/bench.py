"""What the benchmarks share: a private cluster, timings and a table of ratios."""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from dbext.control.cluster import Cluster


def arguments(description: str, add: Callable[[argparse.ArgumentParser], None] | None = None) -> argparse.Namespace:
    """Read the options every benchmark has, and those that `add` adds."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="small sizes, under 50 seconds")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    if add is not None:
        add(parser)
    return parser.parse_args()


@contextmanager
def private_database(name: str) -> Iterator[psycopg.Connection]:
    """Start a durable private cluster and yield a superuser connection to a database with the extension."""
    settings = {"max_wal_size": "8GB", "checkpoint_timeout": "1h", "shared_buffers": "1GB", "work_mem": "64MB"}
    with Cluster.create("benchmark", durable=True, settings=settings) as cluster:
        with psycopg.connect(cluster.dsn(), autocommit=True) as maintenance:
            maintenance.execute(f"CREATE DATABASE {name}")
        with psycopg.connect(cluster.dsn(name), autocommit=True) as connection:
            connection.execute("CREATE EXTENSION dbext CASCADE")
            yield connection


@dataclass(frozen=True)
class Cost:
    """What one action took: seconds by the clock, and seconds of processor that the session's backend used."""

    clock: float
    processor: float


def processor_seconds(connection: psycopg.Connection) -> float:
    """Return the processor time that a session's backend has used (Linux)."""
    return int(Path(f"/proc/{connection.info.backend_pid}/schedstat").read_text().split()[0]) / 1e9


def cost(connection: psycopg.Connection, action: Callable[[], object]) -> Cost:
    """Run an action that uses the connection and return what it took."""
    start, used = time.perf_counter(), processor_seconds(connection)
    action()
    return Cost(time.perf_counter() - start, processor_seconds(connection) - used)


def private_memory(connection: psycopg.Connection) -> float:
    """Return the memory of its own, in MB, that a session's backend holds now (Linux)."""
    lines = Path(f"/proc/{connection.info.backend_pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon:")) / 1024


def ratio(costs: Mapping[str, list[Cost]], one: str, base: str, part: str = "clock") -> float:
    """Return the median cost of `one` over the median cost of `base`."""
    first, second = (statistics.median(getattr(each, part) for each in costs[name]) for name in (one, base))
    return first / second


def seconds(action: Callable[[], object]) -> float:
    """Return how long one call takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def show(title: str, figures: dict[str, float], target: Path | None = None) -> None:
    """Print one figure a line, and write them as JSON when asked."""
    print(title)
    for name, figure in figures.items():
        print(f"  {name:<72} {figure:10.3f}")
    if target is not None:
        known = json.loads(target.read_text()) if target.exists() else {}
        target.write_text(json.dumps({**known, title: figures}, indent=2) + "\n")
