"""The report: one page, nothing from outside, whatever it is told."""

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import date, timedelta
from html.parser import HTMLParser

import pytest

from dbext.control.state import state_folder
from dbext.demo import charts, report, svg, tickets, vega
from dbext.demo.replay import Timing
from dbext.demo.results import Coverage, Point, Result
from dbext.demo.story import Asked, Budget, Spending, Story
from dbext.demo.wheels import FileNotAvailable

HOSTILE = '<img src="http://example.invalid/x">'
LOADING = {"src", "srcset", "poster", "data", "action", "formaction", "background", "href"}


def made_up_story():
    scenario = tickets.load()
    scenario = replace(scenario, group_keys=(*scenario.group_keys, 'Quote "and" </script>'))
    results = []
    for statistic in scenario.statistics:
        groups = scenario.group_keys if statistic.group_column else (None,)
        points = tuple(
            Point(scenario.first_day + timedelta(days=n), group, n + 3, n - 7, n + 13, n, n - (n == 4))
            for n in range(60)
            for group in groups
        )
        results.append(Result(statistic, points, {"noise": HOSTILE}))
    return Story(
        scenario,
        protected=f"one row of tickets {HOSTILE}",
        timing=Timing(1, 2, 0.1, 1000, 60),
        results=results,
        asked=[Asked(10, 5, 15, 0.4, False, 0.01), Asked(10, 5, 15, 0.4, True, 0.001)],
        exact_answer=11,
        refusal=f"ERROR: {HOSTILE}",
        budget=Budget(2, 1.5, 0.1, 0.4, (Spending(HOSTILE, 0.9, 0.5),)),
    )


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen, self.loads = [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.loads += [(tag, name, value) for name, value in attrs if name in LOADING]


def assert_loads_nothing(page):
    tags = Tags()
    tags.feed(page)
    assert not tags.loads
    assert not {"link", "iframe", "img", "object", "embed", "base"} & set(tags.seen)
    assert "Content-Security-Policy" in page
    assert not re.search(r"@import|url\(", page.split("<style>")[1].split("</style>")[0])


def test_the_page_loads_nothing_and_escapes_everything():
    page = report.page(made_up_story(), ("/* one */", "/* two */", "/* three */"))
    assert_loads_nothing(page)
    assert "only because this is a demo on public data" in page
    assert page.count("<script") == page.count("</script>") == 5


def test_charts_hold_every_figure():
    story = made_up_story()
    page = report.page(story, ("", "", ""))
    held = json.loads(page.split('id="charts">')[1].split("</script>")[0])
    assert list(held) == [result.statistic.name for result in story.results]
    for result in story.results:
        lines = held[result.statistic.name]["data"]["values"].splitlines()
        assert len(lines) == 1 + len(result.points)


def test_groups_are_offered_completely_and_once():
    scenario = tickets.load()
    story = made_up_story()
    spec = charts.chart(scenario, story.results[0])
    (choice,) = spec["params"]
    assert sorted(choice["bind"]["options"]) == sorted(scenario.group_keys)
    assert choice["value"] == scenario.shown_groups[0]
    assert "params" not in charts.chart(scenario, story.results[2])


def test_without_the_library_the_page_holds_still_pictures():
    page = report.page(made_up_story(), None)
    assert_loads_nothing(page)
    assert "<script" not in page
    assert page.count("<svg") == 4


@pytest.mark.parametrize("values", [(0, 0), (5, -5), (1e6, 2e6), (0.2, 0.3)])
def test_still_pictures_are_well_formed(values):
    points = [Point(date(2015, 1, 1) + timedelta(days=n), None, v, v - 1, v + 1, 0, 0) for n, v in enumerate(values)]
    root = ET.fromstring(svg.drawing(points, "a < b"))  # noqa: S314 - our own text
    assert len(root.findall("polyline")) == 2
    assert "-0" not in [text.text for text in root.findall("text")]


def test_a_single_figure_can_be_drawn():
    assert "polyline" in svg.drawing([Point(date(2015, 1, 1), None, 1, 0, 2, 1, 1)], "")


def test_differences_are_told():
    story = made_up_story()
    assert "the constraints change the exact value" in report.difference(story)
    same = [replace(result, points=tuple(replace(point, raw=point.exact) for point in result.points)) for result in story.results]
    story.results = same
    assert "changed nothing" in report.difference(story)


def test_coverage_counts_both_kinds_of_exact_value():
    point = Point(date(2015, 1, 1), None, 10, 5, 15, 5, 4)
    result = Result(tickets.load().statistics[2], (point, replace(point, exact=16, raw=16)))
    assert result.coverage == Coverage(2, 1, 0)
    assert result.coverage.share == 0.5


def test_the_charting_library_can_stand_inside_a_page():
    try:
        library = vega.load(state_folder() / "downloads")
    except FileNotAvailable as problem:
        pytest.skip(f"the charting library cannot be had here: {problem.message}")
    assert len(library) == 3
    assert all("</script" not in source and "<!--" not in source for source in library)
    assert_loads_nothing(report.page(made_up_story(), library))
