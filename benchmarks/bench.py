"""What the benchmarks share: a private cluster, timings and a table of ratios."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from dbext.control.cluster import Cluster


def arguments(description: str) -> argparse.Namespace:
    """Read the options every benchmark has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="small sizes, under 50 seconds")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
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


def seconds(action: Callable[[], object]) -> float:
    """Return how long one call takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def show(title: str, figures: dict[str, float], target: Path | None = None) -> None:
    """Print one figure a line, and write them as JSON when asked."""
    print(title)
    for name, figure in figures.items():
        print(f"  {name:<58} {figure:10.3f}")
    if target is not None:
        known = json.loads(target.read_text()) if target.exists() else {}
        target.write_text(json.dumps({**known, title: figures}, indent=2) + "\n")
