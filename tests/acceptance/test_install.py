"""`dbext install` onto a server that knows nothing of dbext: another private cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing

import psycopg
import pytest

from dbext.control import probe
from dbext.errors import NotSupported, SecondSessionUnavailable
from tests.acceptance.conftest import clean_environment
from tests.conftest import create_database


@pytest.fixture
def server(make_cluster):
    return make_cluster(with_extension=False)


@pytest.fixture
def target(server):
    database = create_database(server, "template0")
    yield database
    database.close()


def test_the_python_inside_the_server_is_found(server):
    found = probe.examine(server.dsn())
    assert (found.major, found.installed) == (server.installation.major, None)
    assert found.extension_folder == server.installation.extension_folder
    assert found.python.version == server.installation.python_version
    assert server.installation.python_version in (None, sys.version_info[:2])


def test_a_probe_leaves_nothing_behind(target):
    probe.examine(target.dsn())
    probe.check_second_session(target.dsn(), target.cluster.second_session)
    assert target.fetch("SELECT extname FROM pg_extension ORDER BY 1") == [("plpgsql",)]


def test_packages_that_the_server_cannot_read_are_found_out(target, tmp_path):
    with pytest.raises(NotSupported, match="cannot import"):
        probe.check_imports(target.dsn(), str(tmp_path))


@pytest.mark.parametrize(
    "second_session", ["host=/nowhere user=postgres", "host={} port=5432 user=nobody_at_all", "host={} port=9 user=postgres"]
)
def test_a_second_session_that_does_not_work_is_found_out(target, second_session):
    with pytest.raises(SecondSessionUnavailable) as refusal:
        probe.check_second_session(target.dsn(), second_session.format(target.cluster.socket_folder))
    assert "pg_hba.conf" in refusal.value.hint


def test_a_second_session_of_an_ordinary_role_is_refused(target):
    role = target.create_role()
    with pytest.raises(SecondSessionUnavailable) as refusal:
        probe.check_second_session(target.dsn(), f"host={target.cluster.socket_folder} user={role}")
    assert refusal.value.detail == "its role is not a superuser"


def test_only_a_superuser_installs(dbext, target):
    done = dbext("install", "--dsn", target.dsn(target.create_role()))
    assert done.returncode == 1
    assert "needs a superuser" in done.stderr


def test_a_dry_run_changes_nothing(dbext, target):
    packages = target.cluster.folder / "packages"
    done = dbext("install", "--dsn", target.dsn(), "--folder", str(packages), "--dry-run")
    assert done.returncode == 0, done.stderr
    steps = [line for line in done.stderr.splitlines() if "would do" in line]
    assert len(steps) == 8
    assert "nothing was changed" in done.stderr
    assert not packages.exists()
    assert not (target.cluster.installation.extension_folder / "dbext.control").exists()
    assert target.fetch("SELECT extname FROM pg_extension") == [("plpgsql",)]


def install_as_another(target, *options):
    """Run the installation as a user without rights on the server's folders (where we can become one)."""
    target.cluster.socket_folder.chmod(0o755)
    command = [sys.executable, "-m", "dbext.control", "install", "--dsn", f"{target.dsn()} password=hush", *options]
    another = {"user": "nobody", "extra_groups": []} if os.geteuid() == 0 else {}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=clean_environment(), cwd="/", **another)


def test_who_may_not_write_is_told_the_command_that_would(target):
    done = install_as_another(target)
    assert done.returncode == 1
    assert "cannot be written" in done.stderr
    assert "hint: Run: sudo " in done.stderr
    assert "bin/dbext install --dsn" in done.stderr
    assert "hush" not in done.stderr
    shown = install_as_another(target, "--dry-run")
    assert shown.returncode == 0, shown.stderr
    assert len([line for line in shown.stderr.splitlines() if "would do" in line]) == 8
    assert shown.stderr.splitlines()[-1].startswith("==> ")
    assert "cannot be written" in shown.stderr.splitlines()[-1]
    assert "hush" not in shown.stderr


@pytest.mark.slow
def test_install_repair_and_move(dbext, target):
    packages = target.cluster.folder / "packages"
    options = ("install", "--dsn", target.dsn(), "--folder", str(packages))
    first = dbext(*options)
    assert first.returncode == 0, first.stderr
    assert "or run: " in first.stderr
    assert "bin/dbext status --dsn" in first.stderr
    assert target.value("SELECT extversion FROM pg_extension WHERE extname = 'dbext'") == "0.1.0"
    use(target)
    again = dbext(*options)
    assert again.returncode == 0, again.stderr
    assert "make a virtual environment" not in again.stderr
    assert "write dbext.control" not in again.stderr
    (packages / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages" / "dbext" / "errors.py").unlink()
    repaired = dbext(*options)
    assert repaired.returncode == 0, repaired.stderr
    assert "copy dbext 0.1.0" in repaired.stderr
    assert target.value("SELECT count(*) FROM dbext.tracked_table") == 1
    assert install_as_another(target, *options[3:]).returncode == 0
    second_database(dbext, target, options)


def use(target):
    """Do something that needs the Python packages, in a new session, and leave a tracked table behind."""
    with psycopg.connect(target.dsn(), autocommit=True) as connection:
        connection.execute("CREATE TABLE ticket (id bigint PRIMARY KEY, line text)")
        connection.execute("SELECT dp_track('ticket')")
        connection.execute("SELECT dp_add_constraint('ticket', 'rides', max_mutations => 3)")


def second_database(dbext, target, options):
    """The files serve every database of the server; each gets the extension by itself."""
    with closing(create_database(target.cluster, "template0")) as other:
        done = dbext("install", "--dsn", other.dsn(), *options[3:])
        assert done.returncode == 0, done.stderr
        assert "virtual environment" not in done.stderr
        assert other.value("SELECT extversion FROM pg_extension WHERE extname = 'dbext'") == "0.1.0"


def test_another_version_in_the_database_is_left_alone(dbext, database):
    database.execute("UPDATE pg_extension SET extversion = '0.0.1' WHERE extname = 'dbext'")
    done = dbext("install", "--dsn", database.dsn())
    assert done.returncode == 1
    assert "0.0.1" in done.stderr


@pytest.mark.slow
def test_files_for_a_server_that_does_not_run(dbext, server):
    server.stop()
    packages = server.folder / "packages"
    options = ("--files-only", "--folder", str(packages), "--second-session", server.second_session)
    done = dbext("install", *options, PG_CONFIG=relocated_pg_config(server))
    assert done.returncode == 0, done.stderr
    server.start()
    with closing(create_database(server, "template0")) as database:
        database.execute("CREATE EXTENSION dbext CASCADE")
        use(database)


def relocated_pg_config(server):
    """Return a pg_config that describes the private cluster's own tree."""
    one = server.installation
    script = server.folder / "pg_config"
    script.write_text(f"#!/bin/sh\nprintf 'PostgreSQL {one.major}.0\\n{one.bindir}\\n{one.sharedir}\\n{one.pkglibdir}\\n'\n")
    script.chmod(0o755)
    return str(script)
