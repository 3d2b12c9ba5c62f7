"""Installing what is missing with apt, where that is allowed. Standard library only."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence

from dbext.control.steps import run, step
from dbext.errors import NotSupported

#: Read by pg_createcluster: without it, installing the server would start one on port 5432.
NO_MAIN_CLUSTER = "/etc/postgresql-common/createcluster.d/dbext-no-main-cluster.conf"


def privilege() -> list[str] | None:
    """Return what to put before a command to run it as root: nothing, sudo without a password, or None if neither works."""
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") and subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False).returncode == 0:
        return ["sudo", "-n"]
    return None


@functools.cache
def update() -> None:
    """Bring apt's lists up to date, once per set-up and only where we may."""
    prefix = privilege()
    if prefix is not None and shutil.which("apt-get"):
        _apt_get(prefix, "update")


def default_major() -> int | None:
    """Return the major version that the package `postgresql` brings, None if apt does not know it (yet)."""
    if shutil.which("apt-cache") is None:
        return None
    done = subprocess.run(["apt-cache", "depends", "postgresql"], capture_output=True, text=True, check=False)
    found = re.search(r"Depends: postgresql-(\d+)", done.stdout)
    return int(found[1]) if found else None


def install_packages(names: Sequence[str], why: str) -> None:
    """Install packages with apt, starting no PostgreSQL server; refuse with the command to type where we may not."""
    by_hand = f"apt-get update && apt-get install -y {' '.join(names)}"
    prefix = privilege()
    if shutil.which("apt-get") is None:
        raise NotSupported(why, hint=f"Install it with this system's packages; on Debian or Ubuntu: {by_hand}")
    if prefix is None:
        raise NotSupported(f"{why}, and installing it needs root or sudo without a password", hint=f"Run as root: {by_hand}")
    step(f"{why}: installing {' '.join(names)}")
    with _no_main_cluster(prefix):
        update()
        _apt_get(prefix, "install", "-y", "--no-install-recommends", *names)


def _apt_get(prefix: list[str], *arguments: str) -> None:
    quiet = ["-q", "-o", "DPkg::Lock::Timeout=300"]
    run([*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", *quiet, *arguments], failing=f"apt-get {arguments[0]} failed")


@contextlib.contextmanager
def _no_main_cluster(prefix: list[str]) -> Iterator[None]:
    """Keep the packages from making and starting a server of their own while they are being installed."""
    folder = NO_MAIN_CLUSTER.rpartition("/")[0]
    run([*prefix, "mkdir", "-p", folder], failing=f"cannot make {folder}")
    run([*prefix, "tee", NO_MAIN_CLUSTER], failing=f"cannot write {NO_MAIN_CLUSTER}", stdin="create_main_cluster = false\n")
    try:
        yield
    finally:
        run([*prefix, "rm", "-f", NO_MAIN_CLUSTER], failing=f"cannot remove {NO_MAIN_CLUSTER}")
