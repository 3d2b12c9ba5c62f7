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


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_exists(document, dbext):
    for line in typed(document):
        if target := re.match(r"make (\w+)", line):
            subprocess.run(["make", "--dry-run", target[1]], cwd=ROOT, check=True, capture_output=True)
        if command := re.match(r"(?:\S*/)?dbext (\w+)", line):
            assert dbext(command[1], "--help").returncode == 0, line


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(document):
    links = re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", document.read_text(encoding="utf-8"))
    local = [(document.parent / path if path else document, place) for path, place in links if "://" not in path and not path.startswith("mailto:")]
    assert [path for path, _ in local if not path.exists()] == []
    assert [(path.name, place) for path, place in local if place and place not in headings(path)] == []


def headings(document: Path) -> set[str]:
    """Return the headings of a document as links name them."""
    prose = re.sub(r"^```.*?^```$", "", document.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in re.findall(r"^#+ (.+)$", prose, re.MULTILINE)}


def test_every_page_is_found_from_the_index():
    linked = set(re.findall(r"\]\(([a-z-]+\.md)", (ROOT / "docs" / "README.md").read_text(encoding="utf-8")))
    assert {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"} == linked
    assert "(docs/README.md)" in (ROOT / "README.md").read_text(encoding="utf-8")


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
