"""The files an existing server needs: Python packages in a folder of their own, and the extension's script. Used by `install`."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dbext import __version__
from dbext.control import environment, extension
from dbext.control.packages import SERVER_REQUIREMENTS, compile_folder, copy_package, fingerprint, package_folder
from dbext.control.state import readable_umask
from dbext.control.steps import step
from dbext.errors import NotPermitted

#: Where the packages go unless told otherwise; one folder per version of dbext and of Python.
DEFAULT_PARENT = Path("/usr/local/lib/dbext")


@dataclass(frozen=True)
class Step:
    """One thing to do: what is printed, and what does it."""

    text: str
    action: Callable[[], object]


def carry_out(steps: Sequence[Step], obstacle: NotPermitted | None, done: str, *, dry_run: bool) -> None:
    """Print each step and do it, or only print what would be done; an obstacle ends it before the first step, or is remarked on."""
    if obstacle and not dry_run:
        raise obstacle
    with readable_umask():
        for one in steps:
            step(("would do: " if dry_run else "") + one.text)
            if not dry_run:
                one.action()
    step("dry run: nothing was changed" if dry_run else done)
    if obstacle:
        step(f"{obstacle.message}. {obstacle.hint}")


def default_folder(version: tuple[int, int]) -> Path:
    """Return the folder of this version of dbext for a version of Python."""
    return DEFAULT_PARENT / f"{__version__}-python{version[0]}.{version[1]}"


def site_packages(folder: Path, version: tuple[int, int]) -> Path:
    """Return where an environment keeps its packages: the folder that becomes first on the server's `sys.path`."""
    return folder / "lib" / f"python{version[0]}.{version[1]}" / "site-packages"


def not_writable(folders: Sequence[Path], command: str) -> NotPermitted | None:
    """Return the refusal, with the command that would work, if one of the folders cannot be made or written."""
    for folder in folders:
        nearest = next(one for one in (folder, *folder.parents) if one.exists())
        if not os.access(nearest, os.W_OK | os.X_OK):
            return NotPermitted(f"{nearest} cannot be written by this user", hint=f"Run: sudo {command}")
    return None


def script_steps(extension_folder: Path, site: Path, second_session: str) -> list[Step]:
    """Return the step that writes the extension's files, unless they are there as they should be."""
    contents = extension.files(str(site), second_session)
    if all(_has_text(extension_folder / name, text) for name, text in contents.items()):
        return []
    return [Step(f"write {' and '.join(contents)} to {extension_folder}", lambda: extension.write_files(extension_folder, contents))]


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
