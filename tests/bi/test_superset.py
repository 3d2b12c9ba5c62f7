"""Superset, in a real browser: the reader's connection, a data set, and a chart of a released series with its band."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import urllib.request
import zlib
from pathlib import Path

import numpy as np
import pytest

from dbext.control.state import locked
from tests.bi.conftest import HANGS, HERE, PERIODS, environment_of, program

CONFIGURATION = """
SECRET_KEY = "for a throw-away server of a test"
SQLALCHEMY_DATABASE_URI = "sqlite:///{folder}/superset.db"
WTF_CSRF_ENABLED = False
TALISMAN_ENABLED = False
RATELIMIT_ENABLED = False
PREVENT_UNSAFE_DB_CONNECTIONS = False
"""


@pytest.fixture(scope="session")
def superset_python():
    return environment_of("superset")


@pytest.fixture(scope="session")
def superset(superset_python, tmp_path_factory):
    """A running Superset with an empty catalogue of its own; its database is prepared once for each environment."""
    folder = tmp_path_factory.mktemp("superset")
    (folder / "superset_config.py").write_text(CONFIGURATION.format(folder=folder))
    command = superset_python.parent / "superset"
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "SUPERSET_CONFIG_PATH": str(folder / "superset_config.py"), "FLASK_APP": "superset",
    }  # fmt: skip
    _prepare(command, folder, environment, superset_python.parent.parent / "superset-prepared.db")
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [superset_python, HERE / "clients" / "serve_superset.py"], env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True
        )
    with process:
        try:
            yield _address(process, folder / "log")
        finally:
            process.kill()


def _prepare(command: Path, folder: Path, environment: dict[str, str], kept: Path) -> None:
    with locked("bi"):
        if kept.exists():
            shutil.copy(kept, folder / "superset.db")
            return
        user = ["--username", "admin", "--firstname", "BI", "--lastname", "Reader", "--email", "bi@example.org", "--password", "admin"]
        for arguments in (["db", "upgrade"], ["fab", "create-admin", *user], ["init"]):
            done = subprocess.run([command, *arguments], env=environment, cwd=folder, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr[-3000:]
        shutil.copy(folder / "superset.db", kept.with_suffix(".made"))
        kept.with_suffix(".made").rename(kept)


def _address(process: subprocess.Popen, log: Path) -> str:
    """Return where it is served, once it is: it prints its port."""
    port = next((line.split()[1] for line in process.stdout if line.startswith("port ")), None)
    assert port is not None, log.read_text()[-3000:]
    base = f"http://127.0.0.1:{port}"
    with urllib.request.urlopen(f"{base}/health", timeout=HANGS) as reply:  # noqa: S310 - our own server
        assert reply.status == 200
    return base


def colours(path: Path) -> int:
    """Return how many different colours a PNG of 8 bits a channel has, by its rows as they are stored: an empty page has few."""
    data, at, packed, channels = path.read_bytes(), 8, b"", 4
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + size]
        if kind == b"IHDR":
            channels = {2: 3, 6: 4}[body[9]]
        elif kind == b"IDAT":
            packed += body
        at += 12 + size
    raw = zlib.decompress(packed)
    return len({raw[place : place + channels] for place in range(1, len(raw) - channels, channels)})


def test_a_series_with_its_band(served, superset, superset_python, run_json, tmp_path):
    shots = Path(os.environ.get("BI_SCREENSHOTS", tmp_path))
    shots.mkdir(parents=True, exist_ok=True)
    shot = shots / "superset-band.png"
    seen = run_json(
        superset_python, HERE / "clients" / "draw_in_superset.py", superset, served.url, shot,
        program("chromium", "chromium"), program("chromedriver", "chromium-driver"), HOME=str(tmp_path),
    )  # fmt: skip
    assert seen["main_time"] == "window_end"
    assert set(seen["times"]) == {"window_end", "window_start"}
    assert seen["types"]["std_error"] == "DOUBLE PRECISION"
    assert seen["descriptions"]["std_error"] == "Standard error of the noise"
    wanted = served.database.fetch(
        "SELECT entered::float8, lower_95, upper_95 FROM dp_release.confirmed_14d WHERE county = 'Tainan' ORDER BY window_end"
    )
    assert len(wanted) == PERIODS
    drawn = sorted((row["value"], row["lower"], row["upper"]) for row in seen["data"])
    assert np.asarray(drawn) == pytest.approx(np.asarray(sorted(wanted)))
    assert colours(shot) > 200
    assert "error" not in seen["page"].lower()
