"""The audit as one HTML page that a privacy officer can file: no script, nothing loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from dbext import __version__
from dbext.control.output import text

AREAS = {
    "transcript": (
        "What was published",
        (
            "Every published value is computed again from the stored noisy nodes, and every node from the settled images of the entries. "
            "What is left is the noise, which must be independent draws of the law it was calibrated to. A test of honest noise fails "
            "with a chance of at most one in a billion."
        ),
    ),
    "ledger": (
        "What was charged",
        (
            "Every node and every answer is traced to its charge. The ledger's figure, which is the worst case over all lives that the "
            "limits allow, is compared with lives that somebody could really live, priced at the noise that was really drawn."
        ),
    ),
    "claim": (
        "What the claims rest on",
        "Each condition that would make a privacy claim void, checked one by one.",
    ),
}
HEADINGS = "<thead><tr><th>Verdict<th>Check<th>Subject<th>Found<th>Figure<th>Bound</tr></thead>"
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1d2733; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .35rem .6rem; border-bottom: 1px solid #d8dee6; vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.passed { color: #17653a; } .failed { color: #a11; font-weight: 700; } .warning { color: #8a5a00; font-weight: 600; }
.sum { border: 1px solid #d8dee6; border-left: .5rem solid; padding: .8rem 1rem; margin: 1rem 0; }
"""
VERDICTS = {
    "passed": "No check failed.",
    "warning": "No check failed. Some need an eye.",
    "failed": "Checks failed: the claims of this installation do not hold as stated.",
}


def page(about: Mapping[str, Any], findings: Sequence[Mapping[str, Any]]) -> str:
    """Return the whole page."""
    verdicts = {one["verdict"] for one in findings}
    worst = next((verdict for verdict in ("failed", "warning") if verdict in verdicts), "passed")
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'><title>Privacy audit</title>",
        f"<style>{STYLE}</style></head><body><h1>Privacy audit of database {escape(str(about['database']))}</h1>",
        f"<p class='sum {worst}'>{VERDICTS[worst]} {_counted(findings)}</p>",
        f"<p>Made {escape(text(about['audited_at']))} by {escape(str(about['audited_by']))},",
        f"dbext {__version__}, {escape(str(about['server']))}.",
        " This page is private: statistics of stored noise tell something of exact figures.</p>",
        *_areas(findings),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _counted(findings: Sequence[Mapping[str, Any]]) -> str:
    counts = {verdict: sum(one["verdict"] == verdict for one in findings) for verdict in ("passed", "warning", "failed")}
    return f"{len(findings)} checks: {counts['passed']} passed, {counts['warning']} warnings, {counts['failed']} failed."


def _areas(findings: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for area, (title, method) in AREAS.items():
        rows = [one for one in findings if one["area"] == area]
        if rows:
            yield f"<h2>{title}</h2><p>{method}</p><table>{HEADINGS}<tbody>"
            yield from (_row(one) for one in sorted(rows, key=_rank))
            yield "</tbody></table>"


def _rank(one: Mapping[str, Any]) -> int:
    return ("failed", "warning", "passed").index(one["verdict"])


def _row(one: Mapping[str, Any]) -> str:
    shown = ["" if one[name] is None else f"{one[name]:.6g}" for name in ("figure", "bound")]
    figures = "".join(f"<td class='number'>{figure}" for figure in shown)
    words = "".join(f"<td>{escape(str(one[name]))}" for name in ("check", "subject", "detail"))
    return f"<tr><td class='{escape(one['verdict'])}'>{escape(one['verdict'])}{words}{figures}</tr>"
