"""All experiments of `dbext audit --statistical`, one after the other, on a private server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql

from dbext.control.cluster import Cluster
from dbext.control.experiments import KINDS, Finding, audit, connect
from dbext.control.single_draws import hierarchy, question, reports


@contextmanager
def fresh_pair(cluster: Cluster, number: int) -> Iterator[tuple[psycopg.Connection, psycopg.Connection]]:
    """Yield connections to two new databases with the extension."""
    names = f"with_{number}", f"without_{number}"
    with connect("postgres", cluster) as maintenance:
        for name in names:
            maintenance.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    with connect(names[0], cluster) as one, connect(names[1], cluster) as two:
        for connection in (one, two):
            connection.execute("CREATE EXTENSION dbext CASCADE")
        yield one, two


def experiments(runs: int) -> Iterator[Finding]:
    """Audit every kind of release and constraint on a private server, under pure and Gaussian budgets."""
    kinds = [(kind, delta) for delta in (0.0, 1e-6) for kind in KINDS if delta or not kind.gaussian]
    with Cluster.create("audit") as cluster:
        for number, (kind, delta) in enumerate(kinds):
            with fresh_pair(cluster, number) as (one, two):
                yield audit(one, two, kind, runs=runs, epsilon=2.0 if delta == 0 else 8.0, delta=delta)
        for number, single in enumerate((question, hierarchy, reports), len(kinds)):
            with fresh_pair(cluster, number) as (one, two):
                yield single(one, two, runs=runs, epsilon=2.0)
