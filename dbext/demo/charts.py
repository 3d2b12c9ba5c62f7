"""Vega-Lite specifications of the report's charts: a release with its band beside the exact series, and its error below."""

from __future__ import annotations

from typing import Any

from dbext.demo.results import Point, Result
from dbext.demo.scenario import Scenario

Json = dict[str, Any]

#: What the lines and the band are called in the legend, with their colours.
RELEASED, BAND, EXACT = "released", "95% interval", "exact (demo only)"
COLOURS = {RELEASED: "#1d4f91", BAND: "#9dbde6", EXACT: "#e07a1f"}

CONFIG: Json = {
    "font": "system-ui, -apple-system, Segoe UI, Roboto, Helvetica, Arial, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": "#55606e",
        "titleColor": "#55606e",
        "titleFontWeight": "normal",
        "gridColor": "#e8ecf1",
        "domain": False,
        "tickColor": "#cfd6de",
        "labelFontSize": 11,
        "titleFontSize": 11,
    },
    "legend": {
        "orient": "top",
        "title": None,
        "labelColor": "#2b3440",
        "labelFontSize": 12,
        "symbolType": "stroke",
        "symbolSize": 400,
        "symbolStrokeWidth": 4,
        "columnPadding": 18,
        "symbolOpacity": 1,
    },
}


def chart(scenario: Scenario, result: Result) -> Json:
    """Return the specification for one release. Groups, if any, are chosen from a list above the chart."""
    spec: Json = {
        "background": "transparent",
        "config": CONFIG,
        "data": {"values": as_csv(result.points), "format": _csv_format()},
        "transform": [
            {"calculate": "datum.value - datum.exact", "as": "error"},
            {"calculate": "datum.lower - datum.value", "as": "error_low"},
            {"calculate": "datum.upper - datum.value", "as": "error_high"},
        ],
        "spacing": 14,
        "vconcat": [_main(), _error()],
    }
    if result.statistic.group_column:
        spec["params"] = [_group_choice(scenario, result.statistic.group_column)]
        spec["transform"].insert(0, {"filter": "datum.group === chosen_group"})
    return spec


def as_csv(points: tuple[Point, ...]) -> str:
    """Return the figures as comma-separated text, the most compact form that Vega-Lite reads."""
    lines = ["day,group,value,lower,upper,exact"]
    lines += [f"{p.day.isoformat()},{_quoted(p.group)},{p.value:.10g},{p.lower:.10g},{p.upper:.10g},{p.exact}" for p in points]
    return "\n".join(lines)


def _quoted(group: str | None) -> str:
    return "" if group is None else '"' + group.replace('"', '""') + '"'


def _csv_format() -> Json:
    numbers = dict.fromkeys(("value", "lower", "upper", "exact"), "number")
    return {"type": "csv", "parse": {"day": "date:'%Y-%m-%d'", "group": "string", **numbers}}


def _group_choice(scenario: Scenario, column: str) -> Json:
    options = [*scenario.shown_groups, *(key for key in scenario.group_keys if key not in scenario.shown_groups)]
    return {"name": "chosen_group", "value": options[0], "bind": {"input": "select", "options": options, "name": f"{column} "}}


def _main() -> Json:
    day, colour = _day(labels=False), {"scale": {"domain": list(COLOURS), "range": list(COLOURS.values())}}
    return {
        "height": 240,
        "encoding": {"x": day},
        "layer": [
            {
                "mark": {"type": "area", "opacity": 0.55},
                "encoding": {
                    "y": {"field": "lower", "type": "quantitative", "title": None, "scale": {"nice": False}},
                    "y2": {"field": "upper"},
                    "color": {"datum": BAND, "type": "nominal", **colour},
                },
            },
            {
                "mark": {"type": "line", "strokeWidth": 1.6},
                "encoding": {"y": {"field": "value", "type": "quantitative"}, "color": {"datum": RELEASED, "type": "nominal", **colour}},
            },
            {
                "mark": {"type": "line", "strokeWidth": 1.4, "strokeDash": [4, 2]},
                "encoding": {"y": {"field": "exact", "type": "quantitative"}, "color": {"datum": EXACT, "type": "nominal", **colour}},
            },
            _hover(),
        ],
    }


def _hover() -> Json:
    """Return a rule that follows the pointer and shows the figures of the nearest day."""
    fields = [("value", "released"), ("lower", "95% from"), ("upper", "95% to"), ("exact", EXACT)]
    return {
        "mark": {"type": "rule", "color": "#55606e"},
        "params": [
            {"name": "hover", "select": {"type": "point", "fields": ["day"], "nearest": True, "on": "pointerover", "clear": "pointerout"}}
        ],
        "encoding": {
            "opacity": {"condition": {"param": "hover", "empty": False, "value": 0.5}, "value": 0},
            "tooltip": [
                {"field": "day", "type": "temporal", "format": "%d %B %Y", "title": "day"},
                *({"field": field, "type": "quantitative", "format": ",.0f", "title": title} for field, title in fields),
            ],
        },
    }


def _error() -> Json:
    return {
        "height": 80,
        "encoding": {"x": _day(labels=True)},
        "layer": [
            {
                "mark": {"type": "area", "opacity": 0.35, "color": COLOURS[BAND]},
                "encoding": {
                    "y": {"field": "error_low", "type": "quantitative", "title": "released minus exact"},
                    "y2": {"field": "error_high"},
                },
            },
            {"mark": {"type": "rule", "color": COLOURS[EXACT], "strokeDash": [4, 2]}, "encoding": {"x": None, "y": {"datum": 0}}},
            {
                "mark": {"type": "line", "strokeWidth": 1.2, "color": COLOURS[RELEASED]},
                "encoding": {"y": {"field": "error", "type": "quantitative"}},
            },
        ],
    }


def _day(*, labels: bool) -> Json:
    return {
        "field": "day",
        "type": "temporal",
        "title": None,
        "axis": {"labels": labels, "ticks": labels, "format": "%b", "tickCount": "month"},
    }
