"""The documents on privacy: every test that they name exists, and their links lead somewhere."""

from __future__ import annotations

import ast
import re

import pytest

from tests.documents import ROOT, tables

DOCS = ROOT / "docs"
THREATS = (DOCS / "threat-model.md").read_text(encoding="utf-8")
PAGES = sorted(DOCS.glob("*.md"))


def functions_in(path):
    return {node.name for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef)}


def test_every_defence_names_a_test_that_exists():
    rows = [row for rows in tables(THREATS) if "test" in rows[0] for row in rows]
    named = [re.fullmatch(r"`(tests/[\w/]+\.py)::(test_\w+)`", row["test"]) for row in rows]
    assert len(rows) > 30
    assert all(named), [row["test"] for row, one in zip(rows, named, strict=True) if one is None]
    assert [one[0] for one in named if one[2] not in functions_in(one[1])] == []
    assert all(row[key] for row in rows for key in ("attacker", "channel", "defence"))


def test_every_attacker_is_introduced():
    (introduced,) = [{row["attacker"] for row in rows} for rows in tables(THREATS) if list(rows[0]) == ["attacker", "what he has"]]
    named = {name for rows in tables(THREATS) if "channel" in rows[0] for row in rows for name in row["attacker"].split(", ")}
    assert named <= introduced | {"anybody"}
    assert introduced <= named


def anchors(text):
    """Return the anchors that headings of a page have on the web."""
    return {re.sub(r"[^\w\- ]", "", line.lstrip("# ").lower()).replace(" ", "-") for line in text.splitlines() if line.startswith("#")}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text):
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        assert file.exists(), target
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file.read_text(encoding="utf-8")), target
