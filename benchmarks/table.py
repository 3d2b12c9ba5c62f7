"""The accuracy figures as the table of the accuracy page: one line for each kind, size and delta."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.peers import best_peer

HEAD = ("kind", "size", "delta", "k = 1", "k = 2", "k = 4", "mechanism at k = 1", "in rho", "times its bound", "best other package")
RESTATED = ("periods", "delta", "ours", "of", "as it was published", "OpenDP")


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the rows as Markdown; what is compared with bounds and packages is at one mutation an entry."""
    at = {(row["kind"], row["size"], row["delta"], row["mutations"]): row for row in rows if row.get("kind")}
    lines = [_cells(HEAD), "|" + "---|" * len(HEAD)]
    for (kind, size, delta, mutations), row in at.items():
        if mutations == 1:
            errors = [f"{at[kind, size, delta, k]['best']:.2f}" if (kind, size, delta, k) in at else "" for k in (1, 2, 4)]
            lines.append(_cells([kind, f"{size:,}", f"{delta:g}", *errors, *_compared(row)]))
    return "\n".join(lines) + "\n"


def _compared(row: dict[str, Any]) -> list[str]:
    adds = f" in {row['adds_in']}" if row["delta"] else ""
    in_rho = [f"{row['best_in_rho']:.2f}", f"{row['best_in_rho'] / row['bound']:.4f}"] if row.get("bound") else ["", ""]
    best = best_peer(row, restating=False)
    return [f"`{row['chosen']}`{adds}", *in_rho, f"{best[1]:.2f} ({best[0]})" if best else ""]


def restated_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return what running totals err by when their history is restated, ours beside the package that does so too."""
    deltas: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        if ours := row.get("restated"):
            of = "levels of " + ", ".join(f"{length:,}" for length in ours["levels"]) if "levels" in ours else f"`{ours['mechanism']}`"
            other = best_peer(row, restating=True)
            figures = f"{ours['error']:.2f}", of, f"{ours.get('published', ours['error']):.2f}", f"{other[1]:.2f}" if other else ""
            deltas.setdefault((f"{row['size']:,}", *figures), []).append(f"{row['delta']:g}")
    lines = [_cells([size, ", ".join(some), *figures]) for (size, *figures), some in deltas.items()]
    return "\n".join([_cells(RESTATED), "|" + "---|" * len(RESTATED), *lines]) + "\n"


def _cells(texts: Sequence[str]) -> str:
    return f"| {' | '.join(texts)} |".replace("|  |", "| |").replace("|  |", "| |")
