"""What the README tells people to type exists and works; its SQL is run as it stands, in order, in a fresh database."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from dbext.control.postgres import usable_installation
from tests.acceptance.conftest import clean_environment
from tests.documents import ROOT, fenced

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(document: Path, *languages: str) -> list[str]:
    """Return the fenced blocks of a document in the given languages."""
    return [text for language, text in fenced(document.read_text(encoding="utf-8")) if language in languages]


def typed(document: Path) -> list[str]:
    """Return the command lines of a document's shell blocks, without prompts."""
    lines = "\n".join(blocks(document, "sh", "console", "bash", "shell")).splitlines()
    return [line.removeprefix("$ ").strip() for line in lines]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_command_exists(document, dbext):
    for line in typed(document):
        if target := re.match(r"make (\w+)", line):
            subprocess.run(["make", "--dry-run", target[1]], cwd=ROOT, check=True, capture_output=True)
        if command := re.match(r"(?:\S*/)?dbext (\w+)", line):
            assert dbext(command[1], "--help").returncode == 0, line


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_leads_somewhere(document):
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link and not link.startswith("mailto:")]
    assert [link for link in local if not (document.parent / link).exists()] == []


def test_the_tour_runs_as_it_stands(empty_database):
    script = "\n".join(blocks(ROOT / "README.md", "sql"))
    assert "CREATE EXTENSION dbext" in script
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
