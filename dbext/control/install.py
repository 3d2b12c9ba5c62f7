"""`dbext install`: extension files and Python packages for an existing server, then the extension in one of its databases.

Every step is printed, done only if it is not done already, and checked from a throw-away backend before the next depends on it.
Running it again repairs what is missing and moves a database to the present folder; it never removes a table or a row.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dbext import __version__
from dbext.control import environment, extension, probe
from dbext.control.packages import SERVER_REQUIREMENTS, compile_folder, copy_package, fingerprint, package_folder
from dbext.control.state import readable_umask
from dbext.control.steps import step
from dbext.errors import NotPermitted, NotSupported, VersionMismatch

#: Where the packages go unless told otherwise; one folder per version of dbext and of Python.
DEFAULT_PARENT = Path("/usr/local/lib/dbext")


@dataclass(frozen=True)
class Step:
    """One thing to do: what is printed, and what does it."""

    text: str
    action: Callable[[], object]


@dataclass(frozen=True)
class Target:
    """What is installed where."""

    dsn: str
    server: probe.Server
    python: Path
    folder: Path
    second_session: str

    @property
    def site(self) -> Path:
        """The folder that becomes first on the server's `sys.path`."""
        return site_packages(self.folder, self.server.python.version)


def site_packages(folder: Path, version: tuple[int, int]) -> Path:
    """Return where an environment keeps its packages."""
    return folder / "lib" / f"python{version[0]}.{version[1]}" / "site-packages"


def default_folder(version: tuple[int, int]) -> Path:
    """Return the folder of this version of dbext for a version of Python."""
    return DEFAULT_PARENT / f"{__version__}-python{version[0]}.{version[1]}"


def install(dsn: str, *, dry_run: bool, folder: Path | None, second_session: str) -> None:
    """Carry out (or, with `dry_run`, only print) every step that the server behind `dsn` still needs."""
    server = probe.examine(dsn)
    step(f"PostgreSQL {server.major}, extensions in {server.extension_folder}, PL/Python {'.'.join(map(str, server.python.version))}")
    if server.installed not in (None, __version__):
        raise VersionMismatch(
            f"the database has dbext {server.installed}, this is {__version__}",
            hint="Update it with the version that ships the update script.",
        )
    where = (folder or default_folder(server.python.version)).absolute()
    target = Target(dsn, server, matching_python(server.python), where, second_session or server.own_session)
    _require_rights(target)
    probe.check_second_session(dsn, target.second_session)
    step(f"the server reaches itself with: {probe.without_password(target.second_session)}")
    with readable_umask():
        for one in steps_for(target):
            step(("would do: " if dry_run else "") + one.text)
            if not dry_run:
                one.action()
    step("dry run: nothing was changed" if dry_run else f"dbext {__version__} is installed; see \\df dp_* in psql")


def matching_python(embedded: probe.EmbeddedPython) -> Path:
    """Return the executable of the Python that the server embeds: the very build, found beside its library or in /usr/bin."""
    name = "python" + ".".join(map(str, embedded.version))
    folders = (embedded.prefix / "bin", Path("/usr/bin"))
    for python in (folder / one for one in (name, "python3") for folder in folders):
        if environment.version_of(python) == embedded.version and environment.build_of(python) == embedded.build:
            if embedded.version < environment.OLDEST:
                raise NotSupported(f"this server embeds {name}; dbext needs Python 3.10 or later")
            return python
    raise NotSupported(
        f"this server embeds {name} ({embedded.build.split()[0]}), whose executable is not in {embedded.prefix}/bin or /usr/bin",
        hint=f"On Debian or Ubuntu: apt-get install {name} {name}-venv",
    )


def _require_rights(target: Target) -> None:
    """Refuse early, with the command that would work, if the folders cannot be written."""
    for folder in (target.server.extension_folder, target.folder):
        nearest = next(one for one in (folder, *folder.parents) if one.exists())
        if not os.access(nearest, os.W_OK | os.X_OK):
            raise NotPermitted(f"{nearest} cannot be written by this user", hint=f"Run: sudo {_command_line(target)}")
    if not (target.server.extension_folder / "plpython3u.control").exists():
        raise NotSupported(
            f"{target.server.extension_folder} is not on this machine", hint="Run dbext install on the machine of the server."
        )


def _command_line(target: Target) -> str:
    """Return this very command, to be run with more rights (a password stays out of it)."""
    script = package_folder().parent / "bin" / "dbext"
    program = script if script.exists() else Path(sys.executable).parent / "dbext"
    command = [str(program), "install", "--dsn", probe.without_password(target.dsn)]
    if target.second_session != target.server.own_session:
        command += ["--second-session", probe.without_password(target.second_session)]
    return shlex.join([*command, *(["--folder", str(target.folder)] if target.folder.parent != DEFAULT_PARENT else [])])


def steps_for(target: Target) -> list[Step]:
    """Return the steps that are still needed, in order; the checks always are."""
    contents = extension.files(str(target.site), target.second_session)
    has_files = all(_has_text(target.server.extension_folder / name, text) for name, text in contents.items())
    steps = package_steps(target.python, target.folder, target.site)
    steps.append(Step("import the packages in a throw-away backend", lambda: probe.check_imports(target.dsn, str(target.site))))
    if not has_files:
        text = f"write {' and '.join(contents)} to {target.server.extension_folder}"
        steps.append(Step(text, lambda: extension.write_files(target.server.extension_folder, contents)))
    if target.server.installed is None:
        steps.append(Step("CREATE EXTENSION dbext CASCADE", lambda: _execute(target.dsn, "CREATE EXTENSION dbext CASCADE")))
    else:
        steps.append(Step("dbext is in this database already: set its folder and second session", lambda: _move(target)))
    return [*steps, Step("load dbext in a new session", lambda: _execute(target.dsn, "SELECT dbext_private.boot()"))]


def package_steps(python: Path, folder: Path, site: Path) -> list[Step]:
    """Return the steps that give `folder` an environment with the server's packages and this very version of dbext."""
    package = package_folder()
    copy = site / package.name
    steps = []
    if not environment.is_complete(folder):
        steps.append(Step(f"make a virtual environment of {python} in {folder}", lambda: environment.make(python, folder)))
        steps.append(Step(f"install {', '.join(SERVER_REQUIREMENTS)} in it", lambda: environment.install_into(folder, SERVER_REQUIREMENTS)))
    if not copy.exists() or fingerprint(copy) != fingerprint(package):
        steps.append(Step(f"copy dbext {__version__} to {site} and compile it", lambda: _replace_package(package, copy, folder)))
    return steps


def _replace_package(package: Path, copy: Path, folder: Path) -> None:
    """Put a compiled copy of the package in place; sessions that have imported the old one go on with it."""
    fresh, old = copy.with_name(".dbext-new"), copy.with_name(".dbext-old")
    for leftover in (fresh, old):
        shutil.rmtree(leftover, ignore_errors=True)
    copy_package(package, fresh)
    _compile_with(folder / "bin" / "python", fresh, copy)
    if copy.exists():
        copy.rename(old)
    fresh.rename(copy)
    shutil.rmtree(old, ignore_errors=True)
    (folder / environment.COMPLETE).touch()


def _compile_with(python: Path, folder: Path, final: Path) -> None:
    """Compile with the server's Python, which may not be ours."""
    if environment.build_of(python) == sys.version:
        compile_folder(folder, final)
    else:
        environment.compile_with(python, folder, final)


def _has_text(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


def _execute(dsn: str, statement: str) -> None:
    with probe.connect_as_administrator(dsn) as connection:
        connection.execute(statement)


def _move(target: Target) -> None:
    """Point an existing extension at the present folder and second session, if they changed."""
    statement = """
        UPDATE dbext_private.runtime SET python_path = %(path)s, second_session = %(session)s
        WHERE (python_path, second_session) IS DISTINCT FROM (%(path)s, %(session)s)
    """
    with probe.connect_as_administrator(target.dsn) as connection:
        connection.execute(statement, {"path": str(target.site), "session": target.second_session})
