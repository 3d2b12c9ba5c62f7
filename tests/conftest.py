"""One private cluster per run, one fresh database per test.

The server and the template database (with the extension in it) are made when the first test asks for them; unit tests never do.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from dbext.control.cluster import SUPERUSER, Cluster

# Linear algebra on all cores loses far more to waiting than it gains wherever the cores are shared; numpy is not loaded yet.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# A slow machine is no finding: nothing that hypothesis measures by the clock fails a test.
settings.register_profile("repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

TEMPLATE = "dbext_template"
#: Tests that need more than a server: they run when they are asked for by name (make test-bi).
ON_DEMAND = Path(__file__).parent / "bi"
_serial = itertools.count(1)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what is on demand, unless it was named on the command line."""
    if collection_path == ON_DEMAND and not any(ON_DEMAND.name in Path(one).parts for one in config.args):
        return True
    return None


class Database:
    """A database of the private cluster, with the connections and roles that one test made in it."""

    def __init__(self, cluster: Cluster, name: str):
        self.cluster, self.name = cluster, name
        self._connections: list[Any] = []
        self._superuser: Any = None
        self._roles: list[str] = []

    def dsn(self, role: str = SUPERUSER) -> str:
        """Return a connection string; every role may log in without a password."""
        return self.cluster.dsn(self.name, role)

    def connect(self, role: str = SUPERUSER, *, autocommit: bool = True, **options: Any):
        """Open a psycopg connection as `role`, closed when the test ends."""
        import psycopg

        connection = psycopg.connect(self.dsn(role), autocommit=autocommit, **options)
        self._connections.append(connection)
        return connection

    @property
    def superuser(self):
        """One superuser connection in autocommit, opened at first use and again after it was lost."""
        if self._superuser is None or self._superuser.closed:
            self._superuser = self.connect()
        return self._superuser

    def execute(self, sql: str, params: Any = None) -> None:
        """Run statements as superuser, committed."""
        self.superuser.execute(sql, params)

    def fetch(self, sql: str, params: Any = None) -> list[tuple]:
        """Return the rows of a query run as superuser."""
        return self.superuser.execute(sql, params).fetchall()

    def value(self, sql: str, params: Any = None) -> Any:
        """Return the only value of a query run as superuser."""
        ((value,),) = self.fetch(sql, params)
        return value

    def create_role(self, *member_of: str, name: str = "person", options: str = "LOGIN", admitted: bool = True) -> str:
        """Create a role that this test alone has, a member of the roles named (and then admitted to this database), and return its name."""
        role = f"{name}_{os.getpid()}_{next(_serial)}"
        members = f" IN ROLE {', '.join(member_of)}" if member_of else ""
        self.execute(f"CREATE ROLE {role} {options}{members}")
        if member_of and admitted:
            self.execute(f"GRANT USAGE ON SCHEMA dbext, dp_release TO {role}")
        self._roles.append(role)
        return role

    def close(self) -> None:
        """Close connections, drop the database, then the roles that owned things in it."""
        for connection in self._connections:
            connection.close()
        with maintenance(self.cluster) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {self.name} WITH (FORCE)")
            for role in self._roles:
                connection.execute(f"DROP ROLE IF EXISTS {role}")


def maintenance(cluster: Cluster):
    """Return a superuser connection to the maintenance database, in autocommit."""
    import psycopg

    return psycopg.connect(cluster.dsn(), autocommit=True)


def create_database(cluster: Cluster, template: str) -> Database:
    """Create a database of a name of its own from `template`."""
    name = f"test_{os.getpid()}_{next(_serial)}"
    with maintenance(cluster) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    return Database(cluster, name)


def create_template(cluster: Cluster) -> None:
    """Make the database that tests clone: the extension and what it requires, nothing else."""
    import psycopg

    with maintenance(cluster) as connection:
        connection.execute(f"CREATE DATABASE {TEMPLATE} TEMPLATE template0")
    with psycopg.connect(cluster.dsn(TEMPLATE), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION dbext CASCADE")


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """The run's private cluster (not durable), with the template database."""
    with Cluster.create("tests") as running:
        create_template(running)
        yield running


@pytest.fixture
def database(cluster: Cluster) -> Iterator[Database]:
    """A fresh database with the extension."""
    made = create_database(cluster, TEMPLATE)
    yield made
    made.close()


@pytest.fixture
def empty_database(cluster: Cluster) -> Iterator[Database]:
    """A fresh database without the extension."""
    made = create_database(cluster, "template0")
    yield made
    made.close()


@pytest.fixture
def make_cluster() -> Iterator[Callable[..., Cluster]]:
    """Make and start clusters of this test's own (durable=True, settings={...}), for crashes, restarts and installation."""
    made: list[Cluster] = []

    def make(*, with_template: bool = True, **options: Any) -> Cluster:
        one = Cluster.create("own", **options)
        made.append(one)
        one.start()
        if with_template and options.get("with_extension", True):
            create_template(one)
        return one

    yield make
    for one in made:
        one.remove()


@pytest.fixture
def open_database() -> Iterator[Callable[[Cluster], Database]]:
    """Clone the template on a cluster made by `make_cluster`."""
    made: list[Database] = []

    def clone(one: Cluster) -> Database:
        made.append(create_database(one, TEMPLATE))
        return made[-1]

    yield clone
    for one in made:
        for connection in one._connections:
            connection.close()
