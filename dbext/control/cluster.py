"""A private, throw-away PostgreSQL cluster: own data folder, own extension folder, Unix socket only. Standard library only."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from dbext.control.extension import files, write_files
from dbext.control.packages import IN_USE, server_folder
from dbext.control.postgres import Installation, usable_installation
from dbext.control.state import locked, readable_umask, server_account, state_folder
from dbext.control.tree import relocate
from dbext.errors import InternalError, NotSupported

#: The bootstrap superuser of every private cluster.
SUPERUSER = "postgres"
#: Names the socket file; nothing listens on a network port.
PORT = 5432
SETTINGS = {
    "listen_addresses": "",
    "port": str(PORT),
    "max_connections": "60",
    "max_prepared_transactions": "20",
    "shared_buffers": "128MB",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "logging_collector": "off",
}
#: For clusters whose crash nobody needs to survive.
NOT_DURABLE = {"fsync": "off", "full_page_writes": "off"}
#: The longest path a Unix socket may have (108 bytes with its end mark), less the file's own name.
SOCKET_FOLDER_LIMIT = 107 - len(f"/.s.PGSQL.{PORT}")
#: Variables of our own environment that the server gets too: where its libraries are, and how numpy's are to behave.
PASSED_ON = ("LD_LIBRARY_PATH", "OPENBLAS_")
#: Seconds until a start or a stop is given up.
PATIENCE = 60.0


class Cluster:
    """One private cluster. `create()` makes it, `start()` runs it, `remove()` leaves nothing behind.

    The server dies with the process that started it, so an interrupted run leaves no server.
    """

    def __init__(self, folder: Path, socket_folder: Path, installation: Installation):
        self.folder, self.socket_folder, self.installation = folder, socket_folder, installation
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    def create(cls, name: str, *, settings: Mapping[str, str] | None = None, durable: bool = False, with_extension: bool = True) -> Cluster:
        """Make the tree, the data folder and (unless `with_extension` is false) the extension's files; nothing runs yet."""
        installed = usable_installation()
        with locked("cluster"), readable_umask():
            remove_leftovers()
            folder = Path(tempfile.mkdtemp(prefix=f"cluster-{os.getpid()}-{name}-", dir=state_folder()))
            folder.chmod(0o755)
            cluster = cls(folder, _socket_folder(), relocate(installed, folder / "tree"))
            (folder / "socket").symlink_to(cluster.socket_folder)
            try:
                cluster._initialise({**SETTINGS, **({} if durable else NOT_DURABLE), **(settings or {})})
                if with_extension:
                    cluster.install_extension()
            except BaseException:
                cluster.remove()
                raise
        return cluster

    @property
    def data(self) -> Path:
        """The data folder."""
        return self.folder / "data"

    @property
    def log(self) -> Path:
        """The server's log file."""
        return self.folder / "server.log"

    @property
    def second_session(self) -> str:
        """How the server reaches itself; the database name is added by whoever connects."""
        return f"host={self.socket_folder} port={PORT} user={SUPERUSER}"

    def dsn(self, database: str = "postgres", role: str = SUPERUSER) -> str:
        """Return a connection string for `role`. Whoever may enter the socket folder is trusted."""
        return f"host={self.socket_folder} port={PORT} user={role} dbname={database}"

    def install_extension(self) -> None:
        """Put the extension's files, made from the sources as they are now, into this cluster's own folder."""
        embedded = self.installation.python_version
        if embedded not in (None, sys.version_info[:2]):
            raise NotSupported(f"PL/Python embeds Python {embedded[0]}.{embedded[1]}, but this is Python {sys.version.split()[0]}")
        packages = server_folder()
        link = self.folder / IN_USE
        link.unlink(missing_ok=True)
        link.symlink_to(packages)
        contents = files(str(packages), self.second_session)
        write_files(self.installation.extension_folder, contents)

    def start(self) -> None:
        """Start the server and wait until it takes connections."""
        command = [self.installation.bindir / "postgres", "-D", self.data]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - it sets one flag of the child and takes no lock
                **_as_server(),
            )
        self._wait_until_ready()

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server: SIGINT ends sessions, SIGQUIT does not even write a checkpoint (crash recovery follows)."""
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.send_signal(how)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGQUIT)
            process.wait(PATIENCE)

    def restart(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop and start; `how` as in `stop`."""
        self.stop(how)
        self.start()

    def kill(self) -> None:
        """End the postmaster at once, as a crash would (its children notice and leave), and wait until all are gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE)
            self._process = None
            _wait_until_free(self.data)

    def remove(self) -> None:
        """Stop the server, without a checkpoint that nobody would read, and delete every file of the cluster."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.socket_folder, ignore_errors=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Cluster:  # noqa: PYI034 - typing.Self needs Python 3.11
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def _initialise(self, settings: Mapping[str, str]) -> None:
        account = server_account()
        self.data.mkdir(mode=0o700)
        os.chown(self.data, account.pw_uid, account.pw_gid)
        command = [self.installation.bindir / "initdb", "-D", self.data, "-U", SUPERUSER, "-E", "UTF8", "--locale=C.UTF-8"]
        command += ["--auth=trust", "--no-sync"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, **_as_server())
        if done.returncode:
            raise InternalError(f"initdb failed: {done.stderr.strip()}")
        settings = {**settings, "unix_socket_directories": str(self.socket_folder)}
        with (self.data / "postgresql.conf").open("a", encoding="utf-8") as handle:
            handle.writelines(f"{name} = '{value}'\n" for name, value in settings.items())

    def _is_ready(self) -> bool:
        with contextlib.suppress(OSError, IndexError):
            lines = (self.data / "postmaster.pid").read_text().splitlines()
            return lines[0] == str(self._process.pid) and lines[7].strip() == "ready"
        return False

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                tail = self.log.read_text(errors="replace")[-2000:]
                raise InternalError(f"the private server did not start; the end of {self.log}:\n{tail}")
            time.sleep(0.01)


def remove_leftovers() -> None:
    """Delete clusters whose makers are gone (their servers went with them)."""
    for folder in state_folder().glob("cluster-*-*"):
        maker = folder.name.split("-")[1]
        if maker.isdigit() and not Path(f"/proc/{maker}").exists() and not _is_running(folder / "data"):
            _remove_linked(folder / "socket")
            shutil.rmtree(folder, ignore_errors=True)


def _remove_linked(link: Path) -> None:
    with contextlib.suppress(OSError):
        shutil.rmtree(link.readlink(), ignore_errors=True)


def _socket_folder() -> Path:
    """Make a short folder for the socket that only the server's account (and root) can enter."""
    account = server_account()
    folder = Path(tempfile.mkdtemp(prefix="dbext-"))
    if len(str(folder)) > SOCKET_FOLDER_LIMIT:
        folder.rmdir()
        folder = Path(tempfile.mkdtemp(prefix="dbext-", dir="/tmp"))
    os.chown(folder, account.pw_uid, account.pw_gid)
    return folder


def _as_server() -> dict[str, object]:
    """Return the Popen arguments that run a program as the server's account, in a clean environment.

    PATH decides which standard library the embedded Python finds, so it holds the system's folders only.
    """
    account = server_account()
    environment = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LANG": "C.UTF-8", "HOME": "/", "OPENBLAS_NUM_THREADS": "1"}
    environment.update((name, value) for name, value in os.environ.items() if name.startswith(PASSED_ON))
    arguments: dict[str, object] = {"cwd": "/", "env": environment, "start_new_session": True}
    if os.geteuid() == 0:
        arguments |= {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    return arguments


def _die_with_parent() -> None:
    """Ask the kernel to stop the server (fast shutdown) when the process that started it ends."""
    if sys.platform == "linux":
        set_death_signal = 1
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGINT)


def _is_running(data: Path) -> bool:
    with contextlib.suppress(OSError, ValueError, IndexError):
        number = int((data / "postmaster.pid").read_text().splitlines()[0])
        return str(data) in Path(f"/proc/{number}/cmdline").read_text()
    return False


def _wait_until_free(data: Path) -> None:
    """Wait until no process of a killed server works in `data` any more."""
    deadline = time.monotonic() + PATIENCE
    while any(_works_in(data, one) for one in Path("/proc").glob("[0-9]*")):
        if time.monotonic() > deadline:
            raise NotSupported(f"processes of the killed server still use {data}")
        time.sleep(0.02)


def _works_in(data: Path, process: Path) -> bool:
    with contextlib.suppress(OSError):
        return (process / "cwd").readlink() == data
    return False
