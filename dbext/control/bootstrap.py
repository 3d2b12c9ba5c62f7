"""From a bare checkout to a running command: find or install PostgreSQL, make the environment, then become that command.

    /usr/bin/python3 -m dbext.control.bootstrap [--extra test] [--no-server] -- [PYTHON ARGUMENTS...]

Standard library only, because nothing is installed yet. `make` calls it; every step is printed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

from dbext.control import distribution, environment, postgres, steps
from dbext.control.cluster import remove_leftovers
from dbext.control.packages import package_folder
from dbext.control.state import server_account, state_folder
from dbext.control.steps import print_error, remark, step
from dbext.errors import DbextError, NotPermitted, NotSupported

#: What set-up, tests and demos put into the state folder; nothing else in it is ever removed.
MADE_HERE = ("venv-*", "bi-*", "server", "majors", "*.lock", "downloads", "demo-report.html")


def main(arguments: list[str]) -> int:
    """Set up and replace this process by the environment's Python; returns only on failure, or when there is nothing to run."""
    ours, command = _split(arguments)
    options = _parse(ours)
    steps.quiet = options.quiet
    try:
        if options.clean:
            return clean()
        python = prepare(options.extra, with_server=not options.no_server)
    except DbextError as error:
        print_error(error)
        return 1
    if not command:
        return 0
    path = os.pathsep.join(filter(None, [str(package_folder().parent), os.environ.get("PYTHONPATH")]))
    return os.execve(python, [str(python), *command], {**os.environ, "PYTHONPATH": path})  # noqa: S606 - becoming it is the point


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    at = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:at], arguments[at + 1 :]


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bootstrap", description="Set up dbext from its checkout, then run Python in it.")
    parser.add_argument("--extra", action="append", default=[], help="optional dependencies to install, such as test")
    parser.add_argument("--no-server", action="store_true", help="no PostgreSQL is needed")
    parser.add_argument("--quiet", action="store_true", help="print steps only when something has to be made")
    parser.add_argument("--clean", action="store_true", help="remove what earlier runs have made instead")
    return parser.parse_args(arguments)


def prepare(extras: list[str], *, with_server: bool) -> Path:
    """Do every step that is not done yet and return the environment's Python."""
    folder = state_folder()
    python = Path(sys.executable)
    if with_server:
        installation = ensure_server()
        python = environment.server_python(installation)
        remark(f"PostgreSQL {installation.major} with PL/Python from {installation.bindir}, run as {server_account().pw_name}")
    ensure_environments(python)
    made = environment.environment_for(python, *extras)
    remark(f"Python {sys.version.split()[0]} in {made.parent.parent}, state in {folder}")
    return made


def ensure_server() -> postgres.Installation:
    """Return the PostgreSQL to use, installing the distribution's if there is none and we may."""
    found = postgres.installations()
    if "PG_CONFIG" not in os.environ and not any(one.is_usable for one in found):
        distribution.update()
        distribution.install_packages(missing_packages(found), postgres.what_is_here(found))
    return postgres.usable_installation()


def missing_packages(found: list[postgres.Installation]) -> list[str]:
    """Return the distribution's packages to add to these installations: one server, its PL/Python, and virtual environments."""
    packaged = [one.major for one in found if one.has_server and one.bindir.is_relative_to(postgres.PACKAGED)]
    major = packaged[0] if packaged else distribution.default_major() or "NN"
    names = [*([] if packaged else ["postgresql"]), f"postgresql-plpython3-{major}"]
    return names if environment.can_make_environments(Path(sys.executable)) else [*names, "python3-venv"]


def ensure_environments(python: Path) -> None:
    """Make sure that virtual environments can be made from this Python."""
    version = environment.version_of(python)
    if version is None or version < environment.OLDEST:
        raise NotSupported(
            f"{python} is too old: dbext needs Python 3.10 or later", hint="Choose another: make PYTHON=/path/to/python3 ..."
        )
    if not environment.can_make_environments(python):
        distribution.install_packages([f"python{version[0]}.{version[1]}-venv"], f"{python} cannot make virtual environments")


def clean() -> int:
    """Remove what set-up and runs have made outside the checkout; refused while a server still runs from it."""
    folder = state_folder()
    remove_leftovers()
    if running := [path.name for path in folder.glob("cluster-*")]:
        raise NotPermitted(f"a private server still runs in {folder}: {', '.join(running)}", hint="Stop the demo or test run that uses it.")
    for path in (path for pattern in MADE_HERE for path in folder.glob(pattern)):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    remaining = [path.name for path in folder.iterdir()]
    if not remaining:
        folder.rmdir()
    step(f"emptied {folder}" + (f", except {', '.join(remaining)}" if remaining else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
