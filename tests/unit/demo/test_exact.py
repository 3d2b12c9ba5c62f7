"""The exact series of the demo: admission by hand-worked lives, windows by recounting."""

from dataclasses import replace
from datetime import date, timedelta

import pytest

from dbext.demo import exact, tickets
from dbext.demo.scenario import Mutation, Rule

DAY = date(2015, 3, 1)
A, B, C = {"status": "a"}, {"status": "b"}, {"status": "c"}


def on(offset):
    return DAY + timedelta(days=offset)


def life(*images):
    return [(on(offset), image) for offset, image in images]


@pytest.mark.parametrize(
    ("rule", "images", "expected"),
    [
        (Rule("all", ""), [(0, A), (1, B), (2, None)], [(0, None, A), (1, A, B), (2, B, None)]),
        (Rule("all", ""), [(0, A), (1, A), (2, None)], [(0, None, A), (2, A, None)]),
        (Rule("k", "", max_mutations=3), [(0, A), (1, B), (2, None)], [(0, None, A), (1, A, B), (2, B, None)]),
        (Rule("k", "", max_mutations=3), [(0, A), (1, B), (2, C), (3, None)], [(0, None, A), (1, A, B), (3, B, None)]),
        (Rule("k", "", max_mutations=2), [(0, A), (1, B), (2, None), (3, A)], [(0, None, A), (2, A, None)]),
        (Rule("k", "", max_mutations=1), [(0, A), (1, None)], [(0, None, A)]),
        (Rule("w", "", active_within_days=2), [(0, A), (2, B), (3, None)], [(0, None, A), (2, A, B)]),
        (Rule("w", "", active_within_days=2, leaves_at_limit=True), [(0, A), (1, B), (5, None)], [(0, None, A), (1, A, B), (2, B, None)]),
        (Rule("w", "", active_within_days=2, leaves_at_limit=True), [(0, A), (1, None)], [(0, None, A), (1, A, None)]),
        (Rule("w", "", active_within_days=2, leaves_at_limit=True), [(0, A), (2, B)], [(0, None, A), (2, A, None)]),
    ],
)
def test_admission_of_one_entry(rule, images, expected):
    assert exact.steps(life(*images), rule) == [(on(day), before, after) for day, before, after in expected]


def test_the_last_image_of_a_day_is_the_one_that_counts():
    mutations = [Mutation(DAY, 1, A), Mutation(DAY, 1, B), Mutation(on(1), 1, None), Mutation(on(1), 1, C)]
    assert exact.histories(mutations) == [life((0, B), (1, C))]


def test_the_type_is_that_of_the_first_image_and_untyped_entries_do_not_count():
    only_passes = (Rule("pass", "", applies_to="product = 'monthly pass'", matches=lambda image: image["product"] == "monthly pass"),)
    scenario = replace(tickets.load(), rules=only_passes)
    steps = exact.all_steps(scenario, admitted=True)
    assert steps
    assert {image["product"] for _, before, after in steps for image in (before, after) if image} == {"monthly pass"}


def test_series_agree_with_recounting():
    scenario = tickets.load()
    changes = exact.all_steps(scenario, admitted=False)
    sold, started, total, valid = scenario.statistics
    last: dict[int, dict] = {}
    sold_count, started_count, everything = {}, {}, 0
    probe = date(2015, 10, 1)
    for mutation in scenario.mutations:
        if mutation.day > probe:
            break
        before, after = last.get(mutation.key), mutation.image
        if before is None and after is not None:
            sold_count[mutation.day, after["line"]] = sold_count.get((mutation.day, after["line"]), 0) + 1
        if after is not None and after["status"] == "in use" and (before is None or before["status"] != "in use"):
            started_count[mutation.day, after["line"]] = started_count.get((mutation.day, after["line"]), 0) + 1
            everything += 1
        last[mutation.key] = after
    fortnight = sum(started_count.get((probe - timedelta(days=n), "Central"), 0) for n in range(14))
    assert exact.series(scenario, sold, changes)["Central", probe] == sold_count[probe, "Central"]
    assert exact.series(scenario, started, changes)["Central", probe] == fortnight
    assert exact.series(scenario, total, changes)[None, probe] == everything
    assert exact.series(scenario, valid, changes)[None, probe] == sum(image is not None for image in last.values())


def test_every_group_has_a_figure_for_every_day():
    scenario = tickets.load()
    series = exact.series(scenario, scenario.statistics[0], exact.all_steps(scenario, admitted=True))
    assert len(series) == 365 * len(scenario.group_keys)
    assert all(series["West (planned)", day] == 0 for day in exact.days(scenario))
