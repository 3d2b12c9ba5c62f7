"""Virtual environments made by the very Python that the server embeds. Standard library only.

Compiled wheels need the same Python version on both sides, and the server's account must be able to read them; so the
environment is made from the system's Python, in the state folder, never from a Python under root's home.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from dbext.control.packages import keep_newest, package_folder
from dbext.control.postgres import Installation
from dbext.control.state import locked, readable_umask, state_folder
from dbext.control.steps import remark, run
from dbext.errors import InternalError, NotSupported

#: The oldest Python that dbext runs on.
OLDEST = (3, 10)
#: Written into an environment when all of it is there.
COMPLETE = "dbext-complete"
#: Environments of other dependency lists that are kept.
KEPT = 4
_READ_PROJECT = """
import json, sys
try:
    import tomllib
except ImportError:
    from pip._vendor import tomli as tomllib
project = tomllib.loads(open(sys.argv[1], encoding="utf-8").read())["project"]
print(json.dumps(project["dependencies"] + [one for name in sys.argv[2:] for one in project["optional-dependencies"][name]]))
"""


def version_of(python: Path) -> tuple[int, int] | None:
    """Return a Python's version, None if it cannot be run."""
    try:
        done = subprocess.run([python, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    major, minor = done.stdout.split()
    return int(major), int(minor)


def build_of(python: Path) -> str | None:
    """Return a Python's build string, None if it cannot be run."""
    try:
        return subprocess.run([python, "-c", "import sys; print(sys.version, end='')"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None


def compile_with(python: Path, folder: Path, final: Path) -> None:
    """Compile a folder's Python files with another Python; `final` is the name that tracebacks shall show."""
    run([python, "-m", "compileall", "-q", "-d", final, folder], failing=f"cannot compile {folder}")


def can_make_environments(python: Path) -> bool:
    """Whether this Python has what `python -m venv` needs (Debian ships it as a package of its own)."""
    return subprocess.run([python, "-c", "import venv, ensurepip"], capture_output=True, check=False).returncode == 0


def server_python(installation: Installation) -> Path:
    """Return the system's Python of the version that PL/Python was built with."""
    wanted = installation.python_version
    if wanted is not None and wanted < OLDEST:
        raise NotSupported(f"PL/Python of PostgreSQL {installation.major} embeds Python {_dotted(wanted)}; dbext needs 3.10 or later")
    names = ["python3"] if wanted is None else [f"python{_dotted(wanted)}", "python3"]
    for python in (Path("/usr/bin") / name for name in names):
        found = version_of(python)
        if found is not None and found >= OLDEST and wanted in (None, found):
            return python
    package = f"python{_dotted(wanted)}" if wanted else "python3"
    raise NotSupported(
        f"PL/Python of PostgreSQL {installation.major} embeds Python {_dotted(wanted) if wanted else '3'}, which is not in /usr/bin",
        hint=f"On Debian or Ubuntu: apt-get install {package} {package}-venv",
    )


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def environment_for(python: Path, *extras: str) -> Path:
    """Return the Python of an environment with the project's dependencies, built if absent. One builder at a time."""
    project = package_folder().parent / "pyproject.toml"
    metadata = project.read_text(encoding="utf-8").partition("\n[tool.")[0]
    wanted = hashlib.sha256(f"{metadata} {version_of(python)} {extras}".encode()).hexdigest()[:12]
    folder = state_folder() / f"venv-{wanted}"
    with locked("venv"), readable_umask():
        if not is_complete(folder):
            make(python, folder)
            install_into(folder, _requirements(folder, project, extras))
        (folder / COMPLETE).touch()
        keep_newest(state_folder().glob("venv-*"), KEPT, COMPLETE, environments_in_use())
    return folder / "bin" / "python"


def environments_in_use() -> set[Path]:
    """Return the environments that the folders made for servers have links into."""
    return {parent for link in state_folder().glob("server/*/numpy") for parent in link.resolve().parents}


def is_complete(folder: Path) -> bool:
    """Whether an environment was built to its end and its Python still runs (a system upgrade may have taken it away)."""
    return (folder / COMPLETE).exists() and version_of(folder / "bin" / "python") is not None


def make(python: Path, folder: Path) -> None:
    """Make an empty environment, replacing an unfinished one."""
    shutil.rmtree(folder, ignore_errors=True)
    hint = "On Debian or Ubuntu: apt-get install python3-venv"
    run([python, "-m", "venv", folder], failing=f"cannot make a virtual environment in {folder}", hint=hint)


def install_into(folder: Path, requirements: Sequence[str]) -> None:
    """Install packages from PyPI (or whatever index pip is configured for) and compile them."""
    chatter = [] if sys.stderr.isatty() else ["--quiet"]
    command = [folder / "bin" / "python", "-m", "pip", "install", "--disable-pip-version-check", "--no-input", *chatter, *requirements]
    run(command, failing="pip could not install the packages", hint="See pip's message above; a mirror can be set with PIP_INDEX_URL.")


def _requirements(folder: Path, project: Path, extras: Sequence[str]) -> list[str]:
    """Read the dependencies with the environment's own Python, which can read TOML whatever its version."""
    command = [folder / "bin" / "python", "-c", _READ_PROJECT, project, *extras]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InternalError(f"cannot read the dependencies in {project}: {done.stderr.strip()}")
    remark(f"dependencies read from {project}")
    return json.loads(done.stdout)
