"""`dbext install`: extension files and Python packages for an existing server, then the extension in one of its databases.

Every step is printed, done only if it is not done already, and checked from a throw-away backend before the next depends on it.
Running it again repairs what is missing and moves a database to the present folder; it never removes a table or a row.
"""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from dbext import __version__
from dbext.control import environment, probe
from dbext.control.packages import package_folder
from dbext.control.postgres import describe, usable_installation
from dbext.control.provision import (
    DEFAULT_PARENT,
    Step,
    carry_out,
    default_folder,
    not_writable,
    package_steps,
    script_steps,
    site_packages,
)
from dbext.control.steps import step
from dbext.errors import NotSupported, VersionMismatch

#: How a server of Debian's and of the official image reaches itself.
USUAL_SESSION = "host=/var/run/postgresql port=5432 user=postgres"


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
    _require_this_machine(server)
    probe.check_second_session(dsn, target.second_session)
    step(f"the server reaches itself with: {probe.without_password(target.second_session)}")
    steps, folders = steps_for(target)
    done = f"dbext {__version__} is installed; see \\df dp_* in psql, or run: {_command_line(target, 'status')}"
    carry_out(steps, not_writable(folders, _command_line(target, "install", *_install_options(target))), done, dry_run=dry_run)


def install_files(pg_config: Path | None, *, dry_run: bool, folder: Path | None, second_session: str) -> None:
    """Put the files in place for a server that does not run (an image being built); whoever starts it creates the extension."""
    installation = describe(pg_config) if pg_config else usable_installation()
    if installation is None:
        raise NotSupported(f"{pg_config} does not describe a PostgreSQL 14 to 18")
    python = environment.server_python(installation)
    version = environment.version_of(python)
    where = (folder or default_folder(version)).absolute()
    site = site_packages(where, version)
    step(f"PostgreSQL {installation.major}, extensions in {installation.extension_folder}, PL/Python {version[0]}.{version[1]}")
    steps = [*package_steps(python, where, site), *script_steps(installation.extension_folder, site, second_session or USUAL_SESSION)]
    obstacle = not_writable([installation.extension_folder, where], "the same command")
    carry_out(steps, obstacle, "the files are in place; when the server runs: CREATE EXTENSION dbext CASCADE", dry_run=dry_run)


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


def _require_this_machine(server: probe.Server) -> None:
    if not (server.extension_folder / "plpython3u.control").exists():
        raise NotSupported(f"{server.extension_folder} is not on this machine", hint="Run dbext install on the machine of the server.")


def _command_line(target: Target, command: str, *options: str) -> str:
    """Return a command of ours for the same database, as one would type it (a password stays out of it)."""
    script = package_folder().parent / "bin" / "dbext"
    program = script if script.exists() else Path(sys.executable).parent / "dbext"
    account = probe.other_account(target.dsn) if command != "install" else None
    switch = ["sudo", "-u", account] if account else []
    return shlex.join([*switch, str(program), command, "--dsn", probe.without_password(target.dsn), *options])


def _install_options(target: Target) -> list[str]:
    own = target.second_session == target.server.own_session
    return [
        *([] if own else ["--second-session", probe.without_password(target.second_session)]),
        *(["--folder", str(target.folder)] if target.folder.parent != DEFAULT_PARENT else []),
    ]


def steps_for(target: Target) -> tuple[list[Step], list[Path]]:
    """Return the steps that are still needed, in order (the checks always are), and the folders that they write."""
    packages = package_steps(target.python, target.folder, target.site)
    script = script_steps(target.server.extension_folder, target.site, target.second_session)
    folders = [*([target.folder] if packages else []), *([target.server.extension_folder] if script else [])]
    check = Step("import the packages in a throw-away backend", lambda: probe.check_imports(target.dsn, str(target.site)))
    load = Step("load dbext in a new session", lambda: _execute(target.dsn, "SELECT dbext_private.boot()"))
    return [*packages, check, *script, *_database_steps(target), load], folders


def _database_steps(target: Target) -> list[Step]:
    """Create the extension if it is not there; then see that it has this server's values, as the script may be another server's too."""
    move = Step("give it the folder of the packages and the second session of this server", lambda: _move(target))
    if target.server.installed is not None:
        return [move]
    return [Step("CREATE EXTENSION dbext CASCADE", lambda: _execute(target.dsn, "CREATE EXTENSION dbext CASCADE")), move]


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
