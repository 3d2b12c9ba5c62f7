"""The accuracy figures as the table of the accuracy page: one line for each kind, size and delta."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

HEAD = ("kind", "size", "delta", "k = 1", "k = 2", "k = 4", "mechanism at k = 1", "in rho", "times its bound", "best other package")


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
    others = row.get("peers", {})
    best = min(others, key=others.get, default=None)
    return [f"`{row['chosen']}`{adds}", *in_rho, f"{others[best]:.2f} ({best})" if best else ""]


def _cells(texts: Sequence[str]) -> str:
    return f"| {' | '.join(texts)} |".replace("|  |", "| |").replace("|  |", "| |")
