"""The accuracy figures as a picture: error against size, ours, the bounds and other packages, on logarithmic axes. Plain SVG, no script."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 520, 360, 60, 40, 30
COLOURS = ("#1f5fa8", "#c0392b", "#2e8b57", "#8e5ea2", "#b8860b", "#555555", "#17a2b8", "#d2691e", "#7a7a7a", "#000000")


def picture(rows: Sequence[dict[str, Any]]) -> str:
    """Return an HTML page with one chart for each kind and delta, at one mutation an entry."""
    charts = []
    for kind in dict.fromkeys(row["kind"] for row in rows):
        for delta in dict.fromkeys(row["delta"] for row in rows):
            chosen = [row for row in rows if row["kind"] == kind and row["delta"] == delta and row["mutations"] == 1]
            if chosen:
                charts.append(_chart(f"{kind}, epsilon 1, delta {delta:g}", _series(chosen)))
    return f'<!doctype html><meta charset="utf-8"><title>Accuracy</title><body style="font:13px sans-serif">{"".join(charts)}'


def _series(rows: Sequence[dict[str, Any]]) -> dict[str, list[tuple[float, float]]]:
    series: dict[str, list[tuple[float, float]]] = {"dbext": [(row["size"], row["best"]) for row in rows]}
    series["lower bound"] = [(row["size"], row["bound"]) for row in rows if row.get("bound")]
    for row in rows:
        for name, error in row.get("peers", {}).items():
            if math.isfinite(error):
                series.setdefault(name, []).append((row["size"], error))
    return {name: points for name, points in series.items() if points}


def _chart(title: str, series: dict[str, list[tuple[float, float]]]) -> str:
    xs = [math.log(x) for points in series.values() for x, _ in points]
    ys = [math.log(y) for points in series.values() for _, y in points]

    def place(x: float, y: float) -> tuple[float, float]:
        across = (math.log(x) - min(xs)) / (max(xs) - min(xs) or 1)
        up = (math.log(y) - min(ys)) / (max(ys) - min(ys) or 1)
        return LEFT + across * (WIDTH - LEFT - 150), HEIGHT - BOTTOM - up * (HEIGHT - BOTTOM - TOP)

    parts = [f'<text x="{LEFT}" y="16" font-weight="bold">{escape(title)}</text>']
    for size in sorted({x for x, _ in series["dbext"]}):
        x, _ = place(size, math.exp(min(ys)))
        parts.append(f'<text x="{x:.0f}" y="{HEIGHT - 20}" text-anchor="middle">{size:g}</text>')
    for share in (0, 0.5, 1):
        value = math.exp(min(ys) + share * (max(ys) - min(ys)))
        _, y = place(math.exp(min(xs)), value)
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.0f}" text-anchor="end">{value:.3g}</text>')
    for n, (name, points) in enumerate(series.items()):
        colour, dashes = COLOURS[n % len(COLOURS)], ' stroke-dasharray="4 3"' if name == "lower bound" else ""
        line = " ".join("{:.1f},{:.1f}".format(*place(*point)) for point in sorted(points))
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="{2.5 if name == "dbext" else 1.2}"{dashes}/>')
        parts.append(f'<text x="{WIDTH - 145}" y="{TOP + 16 * n}" fill="{colour}">{escape(name)}</text>')
    return f'<svg width="{WIDTH}" height="{HEIGHT}" font-size="11">{"".join(parts)}</svg>'
