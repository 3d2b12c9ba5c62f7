"""A release at a release target, a reader who may log in there alone, and the clients that he uses.

Not part of `make test`: `make test-bi` makes the clients' environments first. Needs java, psql and Chromium with its driver.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import json
import os
import shutil
import socket
import socketserver
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dbext.control import distribution, environment
from dbext.control.cluster import Cluster
from dbext.control.database import connect
from dbext.control.outside import Places, outside
from dbext.control.publishing import publish
from dbext.control.state import locked, state_folder
from tests.conftest import Database, create_database, maintenance

HERE = Path(__file__).parent
PYTHON = Path("/usr/bin/python3")
#: Seconds after which a client is taken to hang: far more than any takes on a slow machine.
HANGS = 1800
READER = "bi_reader"
COUNTIES = ("Kaohsiung", "Tainan", "Taipei")
DAYS = 45
#: The first day that is captured as a whole is the one after the declaration.
PERIODS = DAYS - 1


class _Forward(socketserver.BaseRequestHandler):
    """One connection over TCP, for clients that know no Unix sockets, passed on to the private server's socket."""

    def handle(self) -> None:
        with socket.socket(socket.AF_UNIX) as server:
            server.connect(self.server.path)
            back = threading.Thread(target=_pump, args=(server, self.request), daemon=True)
            back.start()
            _pump(self.request, server)
            back.join()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


class _Forwarder(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


@dataclass(frozen=True)
class Served:
    """The release target as the reader reaches it, and what the administrator sees there."""

    database: Database
    port: int

    @property
    def url(self) -> str:
        return f"postgresql+psycopg2://{READER}@127.0.0.1:{self.port}/{self.database.name}"

    @property
    def environment(self) -> dict[str, str]:
        return {"PGHOST": "127.0.0.1", "PGPORT": str(self.port), "PGUSER": READER, "PGDATABASE": self.database.name}


@pytest.fixture(scope="session")
def served(cluster: Cluster) -> Iterator[Served]:
    """Two releases of a made-up epidemic, delivered to a database that holds nothing else."""
    source, target = create_database(cluster, "dbext_template"), create_database(cluster, "template0")
    _publish(source, target)
    target.execute(f"CREATE ROLE {READER} LOGIN; GRANT USAGE ON SCHEMA dp_release TO {READER}")
    target.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA dp_release TO {READER}; CREATE SCHEMA mart AUTHORIZATION {READER}")
    forwarder = _Forwarder(("127.0.0.1", 0), _Forward)
    forwarder.path = str(cluster.socket_folder / ".s.PGSQL.5432")
    thread = threading.Thread(target=forwarder.serve_forever, daemon=True)
    thread.start()
    yield Served(target, forwarder.server_address[1])
    forwarder.shutdown()
    forwarder.server_close()
    for one in (source, target):
        one.close()
    with maintenance(cluster) as connection:
        connection.execute(f"DROP ROLE {READER}")


def _publish(source: Database, target: Database) -> None:
    """Replay a wave of cases that ends today, publish every day of it, and deliver: all by the day on which this begins, in UTC."""
    today = dt.datetime.combine(dt.datetime.now(dt.timezone.utc).date(), dt.time(), dt.timezone.utc)
    keys = ", ".join(f"('{name}')" for name in COUNTIES)
    source.execute("CREATE TABLE cases (id bigint PRIMARY KEY, county text NOT NULL, status text NOT NULL)")
    _at(source, today - dt.timedelta(days=DAYS))
    source.execute("SELECT dp_track('cases'); SELECT dp_add_constraint('cases', 'any', max_mutations => 3)")
    source.execute("SELECT dp_set_budget('cases', epsilon => 8, delta => 1e-6); SELECT dp_publish_to('warehouse')")
    source.execute(
        """SELECT dp_create_release('confirmed_14d', $$SELECT county, count(*) FROM cases WHERE status = 'confirmed'
            AND dp_time > now() - INTERVAL '14 days' GROUP BY county$$, every => '1 day', measure => 'entered', epsilon => 1, groups => %s)""",
        [f"VALUES {keys}"],
    )
    source.execute(
        "SELECT dp_create_release('active', $$SELECT count(*) FROM cases$$, every => '1 day', measure => 'state', epsilon => 2, horizon => 100)"
    )
    names = "ARRAY['Kaohsiung', 'Tainan', 'Taipei']"
    for day in range(DAYS):
        _at(source, today - dt.timedelta(days=DAYS - day))
        size = int(2 + 24 * max(0.0, 1 - abs(day - 22) / 18))
        source.execute(
            f"INSERT INTO cases SELECT %s * 10000 + i, ({names})[1 + i %% 3], 'confirmed' FROM generate_series(1, %s) AS i", [day, size]
        )
        source.execute("DELETE FROM cases WHERE id / 10000 = %s", [day - 15])
    with connect(source.dsn()) as connection, outside(connection, Places(target.dsn()), thorough=True) as found:
        connection.execute(_NOW, [today])
        done = publish(connection, found)
    assert not done.failed, done


_NOW = "SELECT set_config('dbext.now', %s::timestamptz::text, false)"


def _at(source: Database, day: dt.datetime) -> None:
    """Let it be nine in the morning of a day."""
    source.execute(_NOW, [day + dt.timedelta(hours=9)])


def environment_of(name: str) -> Path:
    """Return the Python of a virtual environment with the requirements of that name, made if absent.

    Where a run under the same version of Python was recorded beside this file, packages are those of that run.
    """
    version = environment.version_of(PYTHON)
    frozen = HERE / f"frozen-{name}-{version[0]}.{version[1]}.txt"
    wanted = ["-r", HERE / f"requirements-{name}.txt", *(["-c", frozen] if frozen.exists() else [])]
    said = b"".join(one.read_bytes() for one in wanted if isinstance(one, Path))
    folder = state_folder() / f"bi-{hashlib.sha256(said + sys.version.encode()).hexdigest()[:12]}"
    with locked("bi"):
        if not environment.is_complete(folder):
            environment.make(PYTHON, folder)
            environment.install_into(folder, [str(one) for one in wanted])
            (folder / environment.COMPLETE).touch()
    return folder / "bin" / "python"


@pytest.fixture(scope="session")
def clients() -> Path:
    """The Python of the clients that are not Superset."""
    return environment_of("clients")


@pytest.fixture(scope="session")
def run(served: Served) -> Callable[..., Any]:
    """Run a client as the reader and return what it printed."""

    def carry_out(*command: object, **variables: str) -> str:
        inherited = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        done = subprocess.run(
            [str(one) for one in command], capture_output=True, text=True, check=False, timeout=HANGS,
            env={**inherited, **served.environment, "RELEASE_URL": served.url, **variables}, cwd=HERE,
        )  # fmt: skip
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout

    return carry_out


@pytest.fixture(scope="session")
def run_json(run: Callable[..., str]) -> Callable[..., Any]:
    """Run a client whose last line is JSON."""
    return lambda *command, **variables: json.loads(run(*command, **variables).splitlines()[-1])


def program(name: str, package: str) -> str:
    """Return the path of a program, installed from the distribution's package if it is missing and we may."""
    if shutil.which(name) is None:
        distribution.install_packages([package], f"{name} is missing")
    return shutil.which(name) or name
