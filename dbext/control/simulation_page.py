"""A simulation as one HTML page: the table, the exact series beside single publications of it, and the error of every period."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dbext.service.simulate import Simulated

WIDTH, LEFT, BOTTOM = 900, 70, 24
COLOURS = ("#1d2733", "#c2410c", "#1d4ed8", "#15803d", "#7e22ce", "#0e7490", "#a16207", "#be185d")
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1d2733; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; } th, td { text-align: right; padding: .3rem .7rem; border-bottom: 1px solid #d8dee6; }
th:first-child, td:first-child { text-align: left; } .chosen { font-weight: 700; } svg { width: 100%; height: auto; }
"""
HEADINGS = ("Method", "Noise", "Epsilon", "Error", "Worst period", "Largest error", "In its 95% interval", "Draws")

Line = tuple[str, Sequence[float]]


def page(name: str, exact: Sequence[float], found: Sequence[Simulated], repetitions: int) -> str:
    """Return the whole page."""
    errors = [("", [0.0]), *((one.method, one.by_period) for one in found)]
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'><title>Simulation</title>",
        f"<style>{STYLE}</style></head><body>",
        f"<h1>Simulation of {escape(name)}</h1><p>{repetitions} repetitions. Errors are root mean squares in one group; the largest error",
        "is that of any period and group, on average. All methods lose the same epsilon over an entry's life.</p>",
        f"<table><tr>{''.join(f'<th>{one}' for one in HEADINGS)}</tr>{''.join(map(_row, found))}</table>",
        f"<h2>The first group, published once by each method</h2>{panels(exact, [(one.method, one.example) for one in found])}",
        f"<h2>Error by period</h2>{chart(errors)}</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _row(one: Simulated) -> str:
    covered = "" if one.covered is None else f"{one.covered:.1%}"
    errors = (f"{figure:.4g}" for figure in (one.error, one.worst, one.uniform))
    figures = (escape(one.noise), f"{one.epsilon:g}", *errors, covered, f"{one.draws:,}")
    mark = " class='chosen'" if one.chosen else ""
    return f"<tr{mark}><td>{escape(one.method)}{' (the plan)' if one.chosen else ''}{''.join(f'<td>{one}' for one in figures)}</tr>"


def panels(exact: Sequence[float], lines: Sequence[Line]) -> str:
    """Return a drawing of each line with the exact series in front of it, all to one scale, so that a noisy one hides no other."""
    values = [*exact, *(value for _, line in lines for value in line)]
    scale = min(values), max(values)
    drawn = (chart([("exact", exact), (name, line)], 150, scale, n) for n, (name, line) in enumerate(lines))
    return "".join(drawn)


def chart(lines: Sequence[Line], height: int = 300, scale: tuple[float, float] = (0.0, 0.0), skipped: int = 0) -> str:
    """Return an SVG drawing of lines over periods; the first is drawn last and dark. `skipped`: colours not to use for the others."""
    values = [*scale, *(value for _, line in lines for value in line)]
    low, high = min(0.0, *values), max(1.0, *values)
    length = max(len(line) for _, line in lines)
    colours = [COLOURS[0], *(COLOURS[1 + (skipped + n) % (len(COLOURS) - 1)] for n in range(len(lines) - 1))]

    def across(n: int) -> float:
        return LEFT + n * (WIDTH - LEFT - 10) / max(1, length - 1)

    def up(value: float) -> float:
        return height - BOTTOM - (value - low) * (height - BOTTOM - 30) / (high - low)

    drawn = [_line(line, colour, across, up) for (_, line), colour in zip(lines, colours, strict=True)]
    marks = "".join(_mark(value, up) for value in _round_values(low, high, height // 40))
    end = f"<text x='{WIDTH - 10}' y='{height - 6}' text-anchor='end'>period {length:,}</text>"
    content = marks + end + _legend([name for name, _ in lines], colours) + "".join(drawn[1:] + drawn[:1])
    return f"<svg viewBox='0 0 {WIDTH} {height}' role='img' font-size='11'>{content}</svg>"


def _legend(names: Sequence[str], colours: Sequence[str]) -> str:
    """One text, so that the browser keeps names of any length apart."""
    spans = (f"<tspan fill='{colour}' dx='14'>{escape(name)}</tspan>" for name, colour in zip(names, colours, strict=True) if name)
    return f"<text x='{LEFT - 14}' y='14'>{''.join(spans)}</text>"


def _round_values(low: float, high: float, count: int) -> list[float]:
    """Return about `count` multiples of 1, 2 or 5 times a power of ten between two values."""
    rough = (high - low) / count
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= rough)
    return [step * n for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _mark(value: float, up: Callable[[float], float]) -> str:
    line = f"<line x1='{LEFT}' x2='{WIDTH - 10}' y1='{up(value):.1f}' y2='{up(value):.1f}' stroke='#e8ecf1'/>"
    return f"{line}<text x='{LEFT - 6}' y='{up(value) + 4:.1f}' text-anchor='end' fill='#55606e'>{value:,.4g}</text>"


def _line(line: Sequence[float], colour: str, across: Callable[[int], float], up: Callable[[float], float]) -> str:
    points = " ".join(f"{across(n):.1f},{up(value):.1f}" for n, value in enumerate(line))
    return f"<polyline points='{points}' fill='none' stroke='{colour}' stroke-width='1.4'/>"
