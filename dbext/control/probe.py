"""What an existing server is like, asked from throw-away sessions whose transactions are rolled back."""

from __future__ import annotations

import json
import os
import pwd
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import conninfo, sql

from dbext.control.database import connect
from dbext.control.failures import CannotConnect
from dbext.control.postgres import SUPPORTED_MAJORS
from dbext.errors import NotPermitted, NotSupported, SecondSessionUnavailable

_FACTS = """
SELECT pg_catalog.current_setting('server_version_num')::int / 10000 AS major,
       pg_catalog.pg_is_in_recovery() AS standby,
       (SELECT r.rolname::text FROM pg_catalog.pg_roles r WHERE r.oid = 10) AS owner,
       pg_catalog.split_part(pg_catalog.current_setting('unix_socket_directories'), ',', 1) AS socket_folder,
       pg_catalog.current_setting('port') AS port,
       (SELECT e.extversion FROM pg_catalog.pg_extension e WHERE e.extname = 'dbext') AS installed,
       ARRAY(SELECT x.name::text FROM pg_catalog.pg_available_extensions x WHERE x.name IN ('plpython3u', 'dblink')) AS available
"""
_DBLINK_SCHEMA = """
SELECT n.nspname FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'dblink'
"""
_THERE_AND_BACK = """
SELECT t.started = pg_catalog.pg_postmaster_start_time()::text, t.superuser FROM {}.dblink(%s, %s) AS t(started text, superuser boolean)
"""
_WHERE_AM_I = """
SELECT pg_catalog.pg_postmaster_start_time()::text, (SELECT r.rolsuper FROM pg_catalog.pg_roles r WHERE r.rolname = current_user)
"""
_PYTHON_PROBE = """
import json, ssl, sys
return json.dumps({"version": sys.version_info[:2], "build": sys.version, "prefix": sys.base_prefix})
"""
_IMPORT_PROBE = """
import sys
sys.path.insert(0, %s)
import numpy, sqlglot, dbext
return dbext.__version__
"""


@dataclass(frozen=True)
class EmbeddedPython:
    """The Python inside PL/Python: version, full build string and installation prefix."""

    version: tuple[int, int]
    build: str
    prefix: Path


@dataclass(frozen=True)
class Server:
    """An existing server, as one of its superusers sees it."""

    major: int
    sharedir: Path
    owner: str
    socket_folder: str
    port: str
    #: Version of dbext in the database that was connected to, None if absent.
    installed: str | None
    python: EmbeddedPython

    @property
    def extension_folder(self) -> Path:
        """Where the running server looks for control files."""
        return self.sharedir / "extension"

    @property
    def own_session(self) -> str:
        """How the server most simply reaches itself: over its socket, as the role that owns the cluster."""
        return conninfo.make_conninfo(host=self.socket_folder.strip() or "localhost", port=self.port, user=self.owner)


def connect_as_administrator(dsn: str) -> psycopg.Connection:
    """Connect; root whom the server does not know connects as the socket's owner instead, as `sudo -u postgres` would."""
    try:
        return connect(dsn)
    except CannotConnect:
        owner = _socket_owner(dsn)
        if os.geteuid() != 0 or owner in (None, 0):
            raise
    os.seteuid(owner)
    try:
        return connect(dsn)
    finally:
        os.seteuid(0)


def other_account(dsn: str) -> str | None:
    """Return the account in whose place root connects to that server, None if whoever runs this connects as himself."""
    try:
        connect(dsn).close()
    except CannotConnect:
        owner = _socket_owner(dsn)
        return None if owner is None else pwd.getpwuid(owner).pw_name
    return None


def _socket_owner(dsn: str) -> int | None:
    """Return the uid that owns the socket a connection string leads to, None if it leads to none."""
    options = conninfo.conninfo_to_dict(dsn)
    folder = options.get("host") or os.environ.get("PGHOST") or "/var/run/postgresql"
    port = options.get("port") or os.environ.get("PGPORT") or "5432"
    try:
        return (Path(str(folder)) / f".s.PGSQL.{port}").stat().st_uid
    except OSError:
        return None


def examine(dsn: str) -> Server:
    """Ask a server all that an installation must know; refuse with what to do where dbext cannot be installed."""
    with connect_as_administrator(dsn) as connection:
        _require_superuser(connection)
        major, standby, owner, socket_folder, port, installed, available = connection.execute(_FACTS).fetchone()
        _require(major, standby, available)
        query = "SELECT c.setting FROM pg_catalog.pg_config() c WHERE c.name = 'SHAREDIR'"
        ((sharedir,),) = connection.execute(query).fetchall()
    return Server(major, Path(sharedir), owner, socket_folder, port, installed, embedded_python(dsn))


def _require_superuser(connection: psycopg.Connection) -> None:
    row = connection.execute("SELECT r.rolsuper FROM pg_catalog.pg_roles r WHERE r.rolname = current_user").fetchone()
    if row != (True,):
        raise NotPermitted("installing dbext needs a superuser", hint='Connect as one, for example with --dsn "user=postgres dbname=..."')


def _require(major: int, standby: bool, available: list[str]) -> None:  # noqa: FBT001 - columns of one row
    if major not in SUPPORTED_MAJORS:
        raise NotSupported(f"this server is PostgreSQL {major}; dbext supports {SUPPORTED_MAJORS[0]} to {SUPPORTED_MAJORS[-1]}")
    if standby:
        raise NotSupported("this server is a standby", hint="Install on the primary; put the same files on the standby for a failover.")
    if "plpython3u" not in available:
        raise NotSupported("this server has no PL/Python 3", hint=f"On Debian or Ubuntu: apt-get install postgresql-plpython3-{major}")
    if "dblink" not in available:
        raise NotSupported("this server has no dblink", hint="Install the contrib modules of this server (package postgresql-contrib).")


def run_throw_away(dsn: str, body: str) -> str:
    """Run a PL/Python body in a backend of its own and return its text; nothing it does stays."""
    with connect_as_administrator(dsn) as connection, connection.transaction(force_rollback=True):
        connection.execute("CREATE EXTENSION IF NOT EXISTS plpython3u")
        connection.execute(f"CREATE FUNCTION pg_temp.probe() RETURNS text LANGUAGE plpython3u AS $probe${body}$probe$")
        ((result,),) = connection.execute("SELECT pg_temp.probe()").fetchall()
    return result


def embedded_python(dsn: str) -> EmbeddedPython:
    """Ask PL/Python which Python it is; a broken one may end its backend, which is why it is a throw-away."""
    try:
        found = json.loads(run_throw_away(dsn, _PYTHON_PROBE))
    except psycopg.Error as error:
        raise NotSupported(
            "this server's PL/Python does not work",
            detail=str(error).strip(),
            hint="Its libpython, standard library and the python3 on the server's PATH must be of one build.",
        ) from error
    return EmbeddedPython(tuple(found["version"]), found["build"], Path(found["prefix"]))


def check_imports(dsn: str, python_path: str) -> str:
    """Import the packages from `python_path` in a throw-away backend, as the server's account; return dbext's version."""
    try:
        return run_throw_away(dsn, _IMPORT_PROBE % repr(python_path))
    except psycopg.Error as error:
        raise NotSupported(
            f"the server cannot import the packages in {python_path}",
            detail=str(error).strip(),
            hint="The server's account must be able to read that folder and every folder above it.",
        ) from error


def check_second_session(dsn: str, second_session: str) -> None:
    """Open the second session from inside the server, as questions will, and see that it ends in the same server."""
    with connect_as_administrator(dsn) as connection, connection.transaction(force_rollback=True):
        target = conninfo.make_conninfo(second_session, dbname=connection.info.dbname, connect_timeout=5)
        connection.execute("CREATE EXTENSION IF NOT EXISTS dblink")
        ((schema,),) = connection.execute(_DBLINK_SCHEMA).fetchall()
        try:
            query = sql.SQL(_THERE_AND_BACK).format(sql.Identifier(schema))
            ((is_same, is_superuser),) = connection.execute(query, [target, _WHERE_AM_I]).fetchall()
        except psycopg.Error as error:
            raise _no_second_session(second_session, error.diag.message_detail or error.diag.message_primary) from error
    if not (is_same and is_superuser):
        raise _no_second_session(second_session, "it leads to another server" if not is_same else "its role is not a superuser")


def _no_second_session(second_session: str, why: str | None) -> SecondSessionUnavailable:
    return SecondSessionUnavailable(
        f"the server cannot reach itself with: {without_password(second_session)}",
        detail=(why or "").strip() or None,
        hint="Let pg_hba.conf accept the cluster's owner on the socket (local all postgres peer), or give --second-session.",
    )


def without_password(dsn: str) -> str:
    """Return a connection string fit to be printed."""
    options = conninfo.conninfo_to_dict(dsn)
    options.pop("password", None)
    return conninfo.make_conninfo(**options)
