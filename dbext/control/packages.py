"""The folder the server imports from: a copy of this package beside links to the few packages it needs. Standard library only.

The folder's name is a hash of the package's sources, so a changed source gives a new folder, a running server never sees
half a change, and several checkouts may share one state folder. Sources are compiled here because the server may not.
"""

from __future__ import annotations

import compileall
import hashlib
import os
import shutil
import sysconfig
from collections.abc import Container, Iterable
from pathlib import Path

from dbext.control.state import locked, readable_umask, state_folder

#: What the backend may import; everything else stays outside its reach.
SERVER_PACKAGES = ("numpy", "numpy.libs", "sqlglot")
#: How the same packages are asked for on a server of its own; the project's metadata says the same.
SERVER_REQUIREMENTS = ("numpy>=1.26,<3", "sqlglot==30.30.0")
#: What is copied from the package: code and the named statements.
COPIED_SUFFIXES = (".py", ".sql")
#: Folders of older sources that are kept, besides those that clusters use.
KEPT = 16
#: Name of the link by which a cluster says which folder it uses.
IN_USE = "packages-in-use"


def package_folder() -> Path:
    """Return the folder of this very package."""
    return Path(__file__).resolve().parent.parent


def sources(package: Path) -> list[Path]:
    """Return the files of the package that the server needs, in order."""
    return sorted(path for path in package.rglob("*") if path.suffix in COPIED_SUFFIXES and path.is_file())


def fingerprint(package: Path) -> str:
    """Return a hash of names and contents of the package's sources."""
    digest = hashlib.sha256()
    for path in sources(package):
        digest.update(str(path.relative_to(package)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def server_folder(site_packages: Path | None = None) -> Path:
    """Return a folder to put first on the server's `sys.path`, made if these sources have none yet.

    `site_packages` holds numpy and sqlglot, built for the server's Python; default: those of the running interpreter.
    """
    site = site_packages or Path(sysconfig.get_paths()["purelib"])
    package = package_folder()
    parent = state_folder() / "server"
    name = hashlib.sha256(f"{fingerprint(package)} {site}".encode()).hexdigest()[:16]
    with locked("server"), readable_umask():
        if not (parent / name).exists():
            _fill(parent / f".{name}.{os.getpid()}", package, site, parent / name)
        os.utime(parent / name)
        keep_newest(parent.glob("[!.]*"), KEPT, in_use={link.resolve() for link in state_folder().glob(f"cluster-*/{IN_USE}")})
    return parent / name


def _fill(fresh: Path, package: Path, site: Path, final: Path) -> None:
    fresh.mkdir(parents=True)
    copy_package(package, fresh / package.name)
    for name in SERVER_PACKAGES:
        if (site / name).exists():
            (fresh / name).symlink_to(site / name)
    compile_folder(fresh / package.name, final / package.name)
    fresh.rename(final)


def copy_package(package: Path, target: Path) -> None:
    """Copy the package's sources to `target`, with ordinary modes."""
    for path in sources(package):
        copy = target / path.relative_to(package)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)


def compile_folder(folder: Path, final: Path | None = None) -> None:
    """Compile a folder's Python files; `final` is the name that tracebacks shall show."""
    compileall.compile_dir(folder, ddir=str(final or folder), quiet=1, workers=1)


def keep_newest(folders: Iterable[Path], count: int, mark: str = ".", in_use: Container[Path] = ()) -> None:
    """Remove all but the `count` folders whose file `mark` was touched last, and those in use."""
    ordered = sorted((one for one in folders if (one / mark).exists()), key=lambda one: -(one / mark).stat().st_mtime)
    for folder in ordered[count:]:
        if folder.resolve() not in in_use:
            shutil.rmtree(folder, ignore_errors=True)
