"""A checkout on a machine where only the system's packages are: as ourselves and as an ordinary user."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from dbext.control.cluster import Cluster
from dbext.control.packages import sources
from tests.acceptance.conftest import ROOT, wait_until

PYTHON = "/usr/bin/python3"
#: What a checkout needs to run; tests, documentation and caches stay behind.
CHECKED_OUT = ("bin", "dbext", "sql", "Makefile", "README.md", "pyproject.toml")
#: Who sets a checkout up: ourselves, and an ordinary user where we can become one.
ACCOUNTS = [None, "nobody"] if os.geteuid() == 0 else [None]
START_A_SERVER = """
import psycopg
from dbext.control.cluster import Cluster
from dbext.control.packages import sources
with Cluster.create("smoke") as cluster, psycopg.connect(cluster.dsn(), autocommit=True) as connection:
    connection.execute("CREATE EXTENSION dbext CASCADE")
    connection.execute("SELECT dbext_private.boot()")
    print(connection.info.server_version > 0, cluster.folder.parent)
"""


@pytest.fixture
def short_folder(tmp_path_factory):
    """A folder that any user can enter (pytest's own belong to root alone)."""
    folder = Path("/var/tmp") / f"dbext-test-{os.getpid()}"
    folder.mkdir(mode=0o755)
    yield folder
    shutil.rmtree(folder)


def check_out(folder: Path) -> Path:
    checkout = folder / "checkout"
    checkout.mkdir()
    for name in CHECKED_OUT:
        source = ROOT / name
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, checkout / name, ignore=ignored) if source.is_dir() else shutil.copy2(source, checkout / name)
    return checkout


def files_of(checkout: Path) -> list[Path]:
    return sorted(path for path in checkout.rglob("*") if "__pycache__" not in path.parts)


def bare_environment(**variables: str) -> dict[str, str]:
    """A login's environment: nothing of ours but what package installers need."""
    kept = {
        name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "REQUESTS_", "PG_CONFIG", "LD_", "OPENBLAS"))
    }
    return {**kept, "PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8", **variables}


def run(command, **options):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, timeout=300, **options)


@pytest.mark.slow
@pytest.mark.parametrize("account", ACCOUNTS)
def test_a_fresh_checkout_sets_itself_up_and_serves(short_folder, account):
    checkout, state = check_out(short_folder), short_folder / "state"
    identity = {"user": account, "group": "nogroup", "extra_groups": []} if account else {}
    if account:
        subprocess.run(["chown", "-R", f"{account}:nogroup", short_folder], check=True)
    before = files_of(checkout)
    options = {"env": bare_environment(DBEXT_HOME=str(state)), "cwd": checkout, "umask": 0o077, **identity}
    first = run(["bin/dbext", "--version"], **options)
    assert (first.returncode, first.stdout) == (0, "0.1.0\n"), first.stderr
    assert "-m venv" in first.stderr
    again = run(["bin/dbext", "--version"], **options)
    assert (again.returncode, again.stdout, again.stderr) == (0, "0.1.0\n", "")
    served = run([PYTHON, "-m", "dbext.control.bootstrap", "--", "-c", START_A_SERVER], **options)
    assert (served.returncode, served.stdout) == (0, f"True {state}\n"), served.stderr
    assert files_of(checkout) == before
    cleaned = run(["make", f"PYTHON={PYTHON}", "clean"], **options)
    assert cleaned.returncode == 0, cleaned.stderr
    assert not state.exists()


START_AND_DIE = """
import os
from dbext.control.cluster import Cluster
from dbext.control.packages import sources
cluster = Cluster.create("orphan")
cluster.start()
print(cluster.data, flush=True)
os.kill(os.getpid(), 9)
"""


def test_a_server_ends_with_whoever_started_it(short_folder):
    environment = bare_environment(DBEXT_HOME=str(short_folder / "state"), PYTHONPATH=str(ROOT))
    done = run([sys.executable, "-c", START_AND_DIE], cwd=ROOT, env=environment)
    data = Path(done.stdout.strip())
    assert data.exists()
    wait_until(lambda: not (data / "postmaster.pid").exists(), lambda: "the server outlived its starter")
    shutil.rmtree((data.parent / "socket").readlink())  # the next run would do it, but this state folder has none


def test_what_an_interrupted_run_left_is_removed_by_the_next(monkeypatch, short_folder):
    monkeypatch.setenv("DBEXT_HOME", str(short_folder / "state"))
    dead = short_folder / "state" / "cluster-999999999-gone"
    dead.mkdir(parents=True)
    (short_folder / "state").chmod(0o755)
    cluster = Cluster.create("next", with_extension=False)
    try:
        assert not dead.exists()
    finally:
        cluster.remove()


@pytest.mark.slow
def test_an_installed_package_has_all_that_a_server_needs(short_folder):
    checkout = check_out(short_folder)
    wheels = short_folder / "wheels"
    built = run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", wheels, checkout])
    assert built.returncode == 0, built.stderr
    (wheel,) = wheels.iterdir()
    packed = set(ZipFile(wheel).namelist())
    code = {f"dbext/{path.relative_to(ROOT / 'dbext')}" for path in sources(ROOT / "dbext")}
    scripts = {f"dbext/sql/{path.relative_to(ROOT / 'sql')}" for path in (ROOT / "sql").rglob("*.*") if path.suffix in (".sql", ".control")}
    assert code | scripts <= packed
