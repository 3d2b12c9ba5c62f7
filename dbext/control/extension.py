"""The extension's files: the install script assembled from its parts, and the control file. Standard library only.

The parts hold two placeholders, `@python_path@` and `@second_session@`, which become SQL literals: the folder that the
server imports the Python package from, and the connection string (without a database name) of the second session.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from dbext import __version__
from dbext.errors import InternalError

#: Name of the install script that CREATE EXTENSION runs.
SCRIPT_NAME = f"dbext--{__version__}.sql"


def sql_folder() -> Path:
    """Return the folder with `dbext.control` and `parts/`: inside the installed package, or beside it in a checkout."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "sql", package.parent / "sql"):
        if (folder / "parts").is_dir():
            return folder
    raise InternalError(f"the SQL parts of the extension are neither in {package} nor beside it")


def quote_literal(text: str) -> str:
    """Quote `text` as an SQL literal that reads the same whatever standard_conforming_strings says."""
    quoted = text.replace("'", "''")
    return f"'{quoted}'" if "\\" not in text else " E'" + quoted.replace("\\", "\\\\") + "'"


def assemble(python_path: str, second_session: str) -> str:
    """Return the install script: the parts in order of name, placeholders replaced."""
    parts = sorted((sql_folder() / "parts").glob("*.sql"))
    script = "\n".join(part.read_text(encoding="utf-8") for part in parts)
    script = script.replace("@python_path@", quote_literal(python_path))
    return script.replace("@second_session@", quote_literal(second_session))


def files(python_path: str, second_session: str) -> dict[str, str]:
    """Return the extension's files, by name."""
    control = (sql_folder() / "dbext.control").read_text(encoding="utf-8")
    return {"dbext.control": control, SCRIPT_NAME: assemble(python_path, second_session)}


def write_files(folder: Path, contents: dict[str, str]) -> None:
    """Write the extension's files into an extension folder, each replaced as a whole."""
    for name, text in contents.items():
        fresh = folder / f".{name}.{os.getpid()}"
        fresh.write_text(text, encoding="utf-8")
        fresh.chmod(0o644)
        fresh.replace(folder / name)


if __name__ == "__main__":
    # For sql/Makefile: the install script with a given folder and connection string, on standard output.
    sys.stdout.write(assemble(*sys.argv[1:]))
