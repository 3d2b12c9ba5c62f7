"""A plain drawing of a release, for a machine that cannot get the charting library: a still picture, no script."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

from dbext.demo.charts import BAND, COLOURS, EXACT, RELEASED
from dbext.demo.results import Point

WIDTH, HEIGHT = 940, 280
LEFT, RIGHT, TOP, BOTTOM = 62, 10, 26, 24
#: At most this many lines across the picture.
GRID_LINES = 5

#: A point of the picture, in its own units, y downwards.
Place = tuple[float, float]


def drawing(points: Sequence[Point], label: str) -> str:
    """Return an SVG element with band, released line and exact line of one group; `label` names the group, if any."""
    low = min(0.0, *(min(p.lower, p.exact) for p in points))
    high = max(1.0, *(max(p.upper, p.exact) for p in points))
    across, up = _scales(len(points), low, high)

    def path(values: Callable[[Point], float]) -> list[Place]:
        return [(across(n), up(values(p))) for n, p in enumerate(points)]

    band = path(lambda p: p.upper) + path(lambda p: p.lower)[::-1]
    parts = [*_grid(low, high, up), *_months(points, across), *_legend(label)]
    parts.append(f'<polygon points="{_coordinates(band)}" fill="{COLOURS[BAND]}" opacity="0.55"/>')
    parts.append(_line(path(lambda p: p.value), COLOURS[RELEASED], ""))
    parts.append(_line(path(lambda p: p.exact), COLOURS[EXACT], ' stroke-dasharray="4 2"'))
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" font-size="11" fill="#55606e">{"".join(parts)}</svg>'


def _scales(count: int, low: float, high: float) -> tuple[Callable[[int], float], Callable[[float], float]]:
    step = (WIDTH - LEFT - RIGHT) / max(count - 1, 1)
    rise = (HEIGHT - TOP - BOTTOM) / (high - low)
    return (lambda n: LEFT + n * step), (lambda value: HEIGHT - BOTTOM - (value - low) * rise)


def _coordinates(path: Sequence[Place]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in path)


def _line(path: Sequence[Place], colour: str, extra: str) -> str:
    return f'<polyline points="{_coordinates(path)}" fill="none" stroke="{colour}" stroke-width="1.5"{extra}/>'


def _grid(low: float, high: float, up: Callable[[float], float]) -> list[str]:
    step = _round_step((high - low) / GRID_LINES)
    value = step * -(-low // step) + 0.0  # never minus zero
    parts = []
    while value <= high:
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{up(value):.1f}" y2="{up(value):.1f}" stroke="#e8ecf1"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{up(value) + 4:.1f}" text-anchor="end">{value:,.0f}</text>')
        value += step
    return parts


def _round_step(rough: float) -> float:
    """Return the smallest 1, 2 or 5 times a power of ten that is not below `rough` (at least 1)."""
    size = 1.0
    while True:
        for factor in (1, 2, 5):
            if size * factor >= rough:
                return size * factor
        size *= 10


def _months(points: Sequence[Point], across: Callable[[int], float]) -> list[str]:
    return [
        f'<text x="{across(n):.1f}" y="{HEIGHT - 6}" text-anchor="middle">{point.day:%b}</text>'
        for n, point in enumerate(points)
        if point.day.day == 1
    ]


def _legend(label: str) -> list[str]:
    parts = [f'<text x="{LEFT}" y="14" font-weight="600" fill="#1f2933">{escape(label)}</text>']
    for n, (name, colour) in enumerate(COLOURS.items()):
        x = WIDTH - 360 + 115 * n
        parts.append(f'<line x1="{x}" x2="{x + 18}" y1="10" y2="10" stroke="{colour}" stroke-width="3"/>')
        parts.append(f'<text x="{x + 24}" y="14">{escape(name)}</text>')
    return parts
