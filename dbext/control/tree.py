"""A relocated PostgreSQL tree: the installed server with an extension folder of its own, no system folder written.

PostgreSQL finds its share and library folders relative to its executable (`make_relative_path` in its `src/port/path.c`):
what follows the longest common prefix of the built-in folders is kept. So a copy of the executables at the same relative
place, beside linked share and library folders, behaves as the installed server but reads *our* `extension` folder.
The executables must be copies, because the server resolves links to itself before it looks around. Standard library only.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

from dbext.control.postgres import Installation

#: What a private cluster runs.
EXECUTABLES = ("postgres", "initdb")


def relocate(installation: Installation, root: Path) -> Installation:
    """Build a tree of `installation` under `root` (made here) and return its description; its extension folder is writable."""
    folders = (installation.bindir, installation.sharedir, installation.pkglibdir)
    prefix = Path(os.path.commonpath(folders))
    bindir, sharedir, pkglibdir = (root / folder.relative_to(prefix) for folder in folders)
    bindir.mkdir(parents=True)
    for name in EXECUTABLES:
        shutil.copy2(installation.bindir / name, bindir / name)
    pkglibdir.parent.mkdir(parents=True, exist_ok=True)
    pkglibdir.symlink_to(installation.pkglibdir)
    _link_entries(installation.sharedir, sharedir, omit="extension")
    _link_entries(installation.extension_folder, sharedir / "extension", omit="")
    return replace(installation, bindir=bindir, sharedir=sharedir, pkglibdir=pkglibdir)


def _link_entries(source: Path, target: Path, omit: str) -> None:
    target.mkdir(parents=True)
    for entry in source.iterdir():
        is_our_own = entry.name.startswith(("dbext.control", "dbext--"))
        if entry.name != omit and not is_our_own:
            (target / entry.name).symlink_to(entry)
