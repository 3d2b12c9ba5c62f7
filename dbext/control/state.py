"""Where a checkout keeps what it makes (virtualenv, throw-away clusters) and who runs the server.

The state folder is outside the checkout and outside root's home, so that an unprivileged server can read it:
`DBEXT_HOME` if set, `/var/tmp/dbext-0` for root, `~/.cache/dbext` for anyone else. Standard library only.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path

from dbext.errors import NotPermitted, NotSupported

#: Accounts that may run the server when we are root, in order of preference: PostgreSQL refuses to run as root.
UNPRIVILEGED_ACCOUNTS = ("postgres", "nobody")


def state_folder() -> Path:
    """Return the state folder, made if absent. Refuses one that somebody else owns or may write (code would be run from it)."""
    folder = _state_path()
    with readable_umask():
        folder.mkdir(parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise NotPermitted(
            f"the state folder {folder} is not a folder that only you can write",
            hint=f"Remove it, or choose another: DBEXT_HOME=/path make ... (it must belong to uid {os.geteuid()}, mode 755).",
        )
    return folder


def _state_path() -> Path:
    if chosen := os.environ.get("DBEXT_HOME"):
        return Path(chosen).absolute()
    if os.geteuid() == 0:
        return Path("/var/tmp/dbext-0")  # noqa: S108 - state_folder() checks whose it is
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dbext"


@contextlib.contextmanager
def readable_umask() -> Iterator[None]:
    """Make new files readable by the server's account, whatever the caller's umask."""
    before = os.umask(0o022)
    try:
        yield
    finally:
        os.umask(before)


@contextlib.contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold the lock `name` of the state folder, waiting for whoever has it. Freed by the kernel if the holder dies."""
    with (state_folder() / f"{name}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def server_account() -> pwd.struct_passwd:
    """Return the account that runs the server: ourselves, or an unprivileged one when we are root."""
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid())
    for name in UNPRIVILEGED_ACCOUNTS:
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise NotSupported("PostgreSQL refuses to run as root and there is no account to run it", hint="Run: useradd --system postgres")
