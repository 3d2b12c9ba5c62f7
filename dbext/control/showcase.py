"""`dbext demo`: a private server that lives as long as the demo does."""

from __future__ import annotations

import signal
from pathlib import Path

import psycopg

from dbext.control.cluster import Cluster
from dbext.control.state import state_folder
from dbext.control.steps import step

DATABASE = "dbext_demo"


def show(*, keep: bool, synthetic: bool, report: Path | None) -> int:
    """Start a private server, run the demo on it and stop it again; `keep` waits for Ctrl-C in between."""
    from dbext.demo.run import DemoOptions, run_demo

    step("starting a private PostgreSQL server (Unix socket only)")
    with Cluster.create("demo") as cluster:
        _create_database(cluster)
        code = run_demo(cluster.dsn(DATABASE), state_folder(), DemoOptions(keep=keep, synthetic=synthetic, report=report))
        if keep:
            step("the server runs until Ctrl-C")
            _wait_for_interrupt()
    step("the private server is stopped and its files are removed")
    return code


def _create_database(cluster: Cluster) -> None:
    with psycopg.connect(cluster.dsn(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {DATABASE}")
    with psycopg.connect(cluster.dsn(DATABASE), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION dbext CASCADE")


def _wait_for_interrupt() -> None:
    stop_signals = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, stop_signals)
    signal.sigwait(stop_signals)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, stop_signals)
