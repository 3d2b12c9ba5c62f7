"""The product as its users meet it: commands in processes of their own, against the private cluster."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path

import pytest

from tests.conftest import Database

ROOT = Path(__file__).resolve().parents[2]
#: Seconds that anything here may take before it counts as hanging.
PATIENCE = 90


def clean_environment(**variables: str) -> dict[str, str]:
    """Our environment without anything that names a database."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "DBEXT_DSN"))}
    return {**inherited, "PYTHONPATH": str(ROOT), **variables}


@pytest.fixture
def dbext() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command line to its end and return what it said."""

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "dbext.control", *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=120, env=clean_environment(**variables), cwd="/"
        )
        assert "Traceback" not in done.stderr
        return done

    return run


class Process:
    """A command that runs on, and what it has said on standard error so far."""

    def __init__(self, *arguments: str):
        command = [sys.executable, "-m", "dbext.control", *arguments]
        self.process = subprocess.Popen(
            command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=clean_environment(), cwd="/"
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stderr:
            self.lines.append(line.rstrip())

    def count(self, text: str) -> int:
        return sum(text in line for line in self.lines)

    def wait_for(self, text: str, times: int = 1) -> None:
        """Wait until `text` has been said so many times."""
        wait_until(lambda: self.count(text) >= times, lambda: f"{text!r} not said {times} time(s) in {self.lines}")

    def end(self, signal_number: int) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(signal_number)
        code = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return code

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        self.process.stderr.close()
        self.process.stdout.close()


def wait_until(condition: Callable[[], bool], complaint: Callable[[], str]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, complaint()
        time.sleep(0.05)


@pytest.fixture
def start() -> Iterator[Callable[..., Process]]:
    """Start commands that run on; those still running at the end are ended."""
    started: list[Process] = []

    def begin(*arguments: str) -> Process:
        started.append(Process(*arguments))
        return started[-1]

    yield begin
    for one in started:
        one.close()


def declare_tickets(database: Database, *, days_ago: int = 5, tick: str = "1 day") -> None:
    """Track a table of tickets since some days ago and declare one release of it, so that several periods are due.

    It is noon there and in every later session, so that no day ends while a test runs.
    """
    database.execute(f"ALTER DATABASE {database.name} SET timezone = '{where_it_is_noon()}'; SET timezone = '{where_it_is_noon()}'")
    database.execute("CREATE TABLE ticket (id bigint PRIMARY KEY, line text NOT NULL, valid boolean NOT NULL)")
    database.execute(f"SET dbext.now = '{moment(database, days_ago)}'")
    database.execute(f"SELECT dp_track('ticket', tick => '{tick}')")
    database.execute("SELECT dp_add_constraint('ticket', 'rides', max_mutations => 3)")
    database.execute("SELECT dp_set_budget('ticket', epsilon => 4)")
    database.execute(
        f"""
        SELECT dp_create_release('valid_now',
            $$SELECT count(*) FROM ticket WHERE valid AND dp_time > now() - INTERVAL '{tick}'$$,
            every => '{tick}', measure => 'net', epsilon => 1)
        """
    )
    database.execute("INSERT INTO ticket SELECT n, 'secret line', true FROM generate_series(1, 50) AS n")
    database.execute("RESET dbext.now")


def where_it_is_noon() -> str:
    """Return a time zone in which the clock is between noon and one. East of Greenwich has a minus in these names."""
    east = 12 - datetime.now(timezone.utc).hour
    return f"Etc/GMT{-east:+d}"


def moment(database: Database, days_ago: int) -> str:
    return database.value("SELECT (clock_timestamp() - make_interval(days => %s))::text", [days_ago])


@pytest.fixture
def tickets(database: Database) -> Database:
    """A database with a tracked table and a release that has four or five periods due."""
    declare_tickets(database)
    return database
