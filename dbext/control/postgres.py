"""Finding the PostgreSQL installations of this machine. Standard library only."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from dbext.errors import NotSupported

#: Major versions this release supports.
SUPPORTED_MAJORS = range(14, 19)
#: Where Debian and Ubuntu put the servers they package.
PACKAGED = Path("/usr/lib/postgresql")
#: Folders in which distributions and the PostgreSQL project put pg_config.
USUAL_FOLDERS = (
    f"{PACKAGED}/*/bin",
    "/usr/pgsql-*/bin",
    "/usr/local/pgsql/bin",
    "/usr/local/bin",
    "/opt/homebrew/opt/postgresql@*/bin",
)
#: NN is the major version that the first package brings.
HOW_TO_INSTALL = (
    "On Debian or Ubuntu: apt-get install postgresql postgresql-plpython3-NN, or name another with PG_CONFIG=/path/to/pg_config"
)


@dataclass(frozen=True)
class Installation:
    """One installed PostgreSQL, as its pg_config describes it."""

    major: int
    pg_config: Path
    bindir: Path
    sharedir: Path
    pkglibdir: Path

    @property
    def extension_folder(self) -> Path:
        """Folder of control files and install scripts."""
        return self.sharedir / "extension"

    @property
    def has_server(self) -> bool:
        """Whether the server itself is here (a client package alone has pg_config too)."""
        return (self.bindir / "postgres").exists() and (self.bindir / "initdb").exists()

    @property
    def has_plpython(self) -> bool:
        """Whether PL/Python 3 can be created."""
        library = any((self.pkglibdir / f"plpython3.{suffix}").exists() for suffix in ("so", "dylib"))
        return library and (self.extension_folder / "plpython3u.control").exists()

    @property
    def has_dblink(self) -> bool:
        """Whether the contrib module for second sessions is here."""
        return (self.extension_folder / "dblink.control").exists()

    @property
    def missing(self) -> str:
        """The extensions that this server lacks, in words."""
        return " and ".join(name for name, here in (("plpython3u", self.has_plpython), ("dblink", self.has_dblink)) if not here)

    @property
    def is_usable(self) -> bool:
        """Whether a private cluster with dbext can be made from it."""
        return self.has_server and self.has_plpython and self.has_dblink

    @property
    def python_version(self) -> tuple[int, int] | None:
        """Python that PL/Python was linked to, read from the name of the library it needs; None if it names none."""
        needed = re.search(rb"libpython3\.(\d+)\.", (self.pkglibdir / "plpython3.so").read_bytes())
        return (3, int(needed[1])) if needed else None


def describe(pg_config: Path) -> Installation | None:
    """Ask one pg_config; None if it cannot be run or is not a supported major."""
    keys = ("--version", "--bindir", "--sharedir", "--pkglibdir")
    try:
        done = subprocess.run([pg_config, *keys], capture_output=True, text=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return None
    version, bindir, sharedir, pkglibdir = done.stdout.splitlines()
    major = re.match(r"PostgreSQL (\d+)", version)
    if major is None or int(major[1]) not in SUPPORTED_MAJORS:
        return None
    return Installation(int(major[1]), pg_config, Path(bindir), Path(sharedir), Path(pkglibdir))


def installations() -> list[Installation]:
    """Return every supported installation, highest major first; `PG_CONFIG` and the PATH come before the usual folders."""
    candidates: list[str | Path | None] = [os.environ.get("PG_CONFIG"), shutil.which("pg_config")]
    for folder in USUAL_FOLDERS:
        candidates += sorted(Path("/").glob(f"{folder[1:]}/pg_config"))
    found: dict[Path, Installation] = {}
    for candidate in filter(None, candidates):
        if installation := describe(Path(candidate)):
            found.setdefault(installation.bindir, installation)
    return sorted(found.values(), key=lambda one: -one.major)


def usable_installation() -> Installation:
    """Return the highest installation with a server and PL/Python; `PG_CONFIG` in the environment decides alone."""
    chosen = os.environ.get("PG_CONFIG")
    found = [one for one in [describe(Path(chosen))] if one] if chosen else installations()
    for one in found:
        if one.is_usable:
            return one
    raise NotSupported(what_is_here(found, chosen), hint=HOW_TO_INSTALL)


def what_is_here(found: list[Installation], chosen: str | None = None) -> str:
    """Say why none of the installations found, or the one that PG_CONFIG chose, can be used."""
    servers = [one for one in found if one.has_server]
    if servers:
        return "; ".join(f"PostgreSQL {one.major} is here without {one.missing}" for one in servers)
    return "no PostgreSQL 14 to 18 server was found" + (f" with PG_CONFIG={chosen}" if chosen else "")
