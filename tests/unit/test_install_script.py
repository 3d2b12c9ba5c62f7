"""The assembled install script: placeholders, plain statements, thin PL/Python, comments."""

from __future__ import annotations

import re

import pytest

from dbext import __version__
from dbext.control import extension

PATH, CONNECTION = "/srv/it's\\here", "host=/tmp port=5432 user='x'"
SCRIPT = extension.assemble(PATH, CONNECTION)
WITHOUT_COMMENTS = re.sub(r"--[^\n]*", "", SCRIPT)
#: Bodies in PL/Python that do more than hand over: it prepares the interpreter itself.
LONG_PYTHON_BODIES = {"boot"}


def test_it_starts_with_a_guard_against_being_run_by_hand():
    first = next(line for line in SCRIPT.splitlines() if line and not line.startswith("--"))
    assert first.startswith("\\echo")
    assert first.endswith("\\quit")


def test_placeholders_become_literals():
    assert extension.quote_literal(PATH) in SCRIPT
    assert extension.quote_literal(CONNECTION) in SCRIPT
    assert set(re.findall(r"@\w+@", WITHOUT_COMMENTS)) <= {"@extschema@"}


@pytest.mark.parametrize(
    ("text", "literal"),
    [("plain", "'plain'"), ("it's", "'it''s'"), ("a\\b", " E'a\\\\b'"), ("a\\'b", " E'a\\\\''b'"), ("", "''")],
)
def test_literals_are_quoted_whatever_the_setting(text, literal):
    assert extension.quote_literal(text) == literal


def test_statements_are_plain():
    assert not re.search(r"\bIF NOT EXISTS\b|\bCREATE OR REPLACE\b", outside_bodies(WITHOUT_COMMENTS), re.IGNORECASE)


def test_python_bodies_only_hand_over():
    pattern = r"CREATE FUNCTION (?:\w+\.)?(\w+)\s*\([^;]*?LANGUAGE plpython3u.*?AS (\$\w*\$)\n(.*?)\2"
    bodies = re.findall(pattern, SCRIPT, re.DOTALL)
    assert bodies
    assert {name: body for name, _, body in bodies if name not in LONG_PYTHON_BODIES and len(body.strip().splitlines()) > 2} == {}


@pytest.mark.parametrize("kind", ["FUNCTION", "PROCEDURE", "TABLE", "VIEW", "SCHEMA"])
def test_every_object_has_a_comment(kind):
    made = names(rf"CREATE {kind} ((?:\w+\.)?\w+)")
    assert made - names(rf"COMMENT ON {kind} ((?:\w+\.)?\w+)") == set()


def test_the_control_file_names_this_version():
    control = (extension.sql_folder() / "dbext.control").read_text(encoding="utf-8")
    assert f"default_version = '{__version__}'" in control


def outside_bodies(script: str) -> str:
    return re.sub(r"(\$\w*\$).*?\1", "''", script, flags=re.DOTALL)


def names(pattern: str) -> set[str]:
    return set(re.findall(pattern, outside_bodies(WITHOUT_COMMENTS)))
