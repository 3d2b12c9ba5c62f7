"""The examples of the SQL reference, run by psql in the order of the page, in a fresh database.

Blocks marked `sql` succeed. In blocks marked `sql refused` every line `-- SQLSTATE` stands above statements of which the last fails so.
"""

from __future__ import annotations

import re
import shutil
import subprocess

from dbext.control.postgres import usable_installation
from tests.acceptance.conftest import clean_environment
from tests.documents import SQL_REFERENCE, fenced

_REFUSED = re.compile(r"^-- (\w{5})\n(.*?)(?=^-- \w{5}\n|\Z)", re.DOTALL | re.MULTILINE)
_MARK = "SQLSTATE:"


def script_of(blocks: list[tuple[str, str]]) -> tuple[str, list[tuple[str, str]]]:
    """Return a psql script that prints how each refused example ended, and (expected SQLSTATE, example) in the same order."""
    script, expected = [], []
    for kind, text in blocks:
        if kind == "sql":
            script.append(text)
        if kind == "sql refused":
            examples = _REFUSED.findall(text)
            assert "".join(f"-- {state}\n{example}" for state, example in examples) == text, text
            for state, example in examples:
                expected.append((state, example))
                script.append(f"\\set ON_ERROR_STOP off\n{example}\\echo {_MARK}:SQLSTATE\n\\set ON_ERROR_STOP on\n")
    return "".join(script), expected


def test_examples_do_what_the_page_says(empty_database):
    script, expected = script_of(fenced(SQL_REFERENCE.read_text(encoding="utf-8")))
    psql = shutil.which("psql") or str(usable_installation().bindir / "psql")
    done = subprocess.run(
        [psql, "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--dbname", empty_database.dsn()],
        input=script,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=clean_environment(),
    )
    assert done.returncode == 0, done.stderr
    ended = [line.removeprefix(_MARK) for line in done.stdout.splitlines() if line.startswith(_MARK)]
    assert [(state, example) for state, (_, example) in zip(ended, expected, strict=True)] == expected
