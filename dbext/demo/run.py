"""`dbext demo` from the first step to the last: replay a year of real data and publish it privately, night by night."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import psycopg
from psycopg.rows import dict_row

from dbext.demo import dengue, exact, prepare, report, statements, tickets, vega
from dbext.demo.clock import set_clock
from dbext.demo.plans import in_a_line, plan_facts, read_budget
from dbext.demo.replay import replay
from dbext.demo.results import read_results
from dbext.demo.scenario import Scenario
from dbext.demo.story import Asked, Story
from dbext.demo.tell import Teller, sample
from dbext.demo.wheels import FileNotAvailable


@dataclass(frozen=True)
class DemoOptions:
    """What the user of the command line may choose."""

    keep: bool = False
    synthetic: bool = False
    report: Path | None = None


def run_demo(dsn: str, state: Path, options: DemoOptions, teller: Teller | None = None) -> int:
    """Run the demo in the fresh database `dsn`, which has the extension, as its superuser; return the exit code.

    Downloads are cached below the folder `state`, which also gets the report unless the options name a file.
    """
    teller, started = teller or Teller(), time.perf_counter()
    downloads, page = state / "downloads", options.report or state / "demo-report.html"
    teller.heading("The data")
    story = Story(choose_scenario(teller, downloads, synthetic=options.synthetic))
    with psycopg.connect(dsn, autocommit=True, application_name="dbext demo") as connection:
        perform(connection, story, teller)
    write_report(teller, story, downloads, page)
    teller.say(f"The demo took {time.perf_counter() - started:.0f} seconds.")
    say_how_to_look_around(teller, dsn, story, keep=options.keep)
    return 0


def choose_scenario(teller: Teller, downloads: Path, *, synthetic: bool) -> Scenario:
    """Return the epidemic, or the made-up tickets if asked for or if the real data cannot be had."""
    if not synthetic:
        try:
            scenario = dengue.load(downloads)
        except FileNotAvailable as problem:
            teller.say(f"The real data cannot be had here: {problem.message}. A made-up table takes its place.")
        else:
            return _introduced(teller, scenario)
    return _introduced(teller, tickets.load())


def _introduced(teller: Teller, scenario: Scenario) -> Scenario:
    teller.say(f"{scenario.title}: {scenario.source}.")
    inside = sum(mutation.day <= scenario.last_day for mutation in scenario.mutations)
    teller.say(
        f"{scenario.entries:,} {scenario.entry_word}s make {len(scenario.mutations):,} mutations (inserts, updates, deletes); "
        f"{inside:,} of them fall in {scenario.first_day.year}."
    )
    return scenario


def perform(connection: psycopg.Connection, story: Story, teller: Teller) -> None:
    """Do everything that happens in the database, and fill the story."""
    set_scene(connection, story, teller)
    declare_releases(connection, story, teller)
    replay_year(connection, story, teller)
    read_back(connection, story, teller)
    ask_twice(connection, story, teller)
    ask_too_much(connection, story, teller)
    show_budget(connection, story, teller)


def set_scene(connection: psycopg.Connection, story: Story, teller: Teller) -> None:
    """Create and track the table, state what entries can do, set the budget."""
    scenario = story.scenario
    teller.heading(f"Track the table, state what a {scenario.entry_word} can do, set the budget")
    prepare.create_tables(connection, scenario)
    story.protected = prepare.track(connection, scenario)
    teller.statement(statements.track(scenario), story.protected)
    for rule in scenario.rules:
        answer = prepare.add_constraint(connection, scenario, rule)
        story.constraints.append((rule, answer))
        teller.statement(statements.add_constraint(scenario, rule), answer)
    teller.statement(statements.set_budget(scenario), prepare.set_budget(connection, scenario))


def declare_releases(connection: psycopg.Connection, story: Story, teller: Teller) -> None:
    """Declare the releases and show the plan that each got."""
    teller.heading("Declare four releases; each reserves its lifetime loss at once")
    for statistic in story.scenario.statistics:
        prepare.create_release(connection, statistic)
        story.facts[statistic.name] = facts = plan_facts(connection, statistic)
        teller.statement(statements.create_release(statistic), in_a_line(facts))


def replay_year(connection: psycopg.Connection, story: Story, teller: Teller) -> None:
    """Replay every day and publish every night."""
    scenario = story.scenario
    teller.heading(f"Replay {scenario.first_day.year} day by day, and publish after every day")
    total = len(exact.days(scenario))
    with teller.progress("replaying", total) as bar:
        story.timing = replay(connection, scenario, lambda _: bar.advance(bar.task_ids[0]))
    timing = story.timing
    teller.say(
        f"{timing.mutations:,} mutations over {timing.days} days: {timing.writing:.1f} s of writing, {timing.publishing:.1f} s of sealing "
        f"and publishing ({1000 * timing.publishing / timing.days:.0f} ms per night, the slowest {1000 * timing.slowest_publish:.0f} ms)."
    )


def read_back(connection: psycopg.Connection, story: Story, teller: Teller) -> None:
    """Read the release tables, show some figures, and compare them with the exact series."""
    scenario = story.scenario
    teller.heading("What was published")
    story.results = read_results(connection, scenario, story.facts)
    for result in story.results:
        sample(teller, scenario, result)
    teller.say("The exact column exists only because this is public data: it was computed from the source file, outside the database.")
    coverage = story.coverage
    teller.say(f"{coverage.admitted:,} of {coverage.figures:,} 95% intervals ({coverage.share:.1%}) contain the exact value.")
    teller.say(report.difference(story))


def ask_twice(connection: psycopg.Connection, story: Story, teller: Teller) -> None:
    """Ask one question twice: the second answer is the stored one and costs nothing."""
    scenario, question = story.scenario, story.scenario.question
    teller.heading("An analyst asks a question, twice")
    set_clock(connection, scenario, scenario.last_day + timedelta(days=1))
    story.exact_answer = exact.question_answer(scenario, exact.all_steps(scenario, admitted=True))
    teller.say(question.words)
    teller.statement(statements.ask(scenario, question))
    story.left_before = read_budget(connection, scenario).left
    teller.say(f"Left of the budget before: epsilon {story.left_before:.4g}.")
    story.asked = [_ask(connection, story) for _ in range(2)]
    rows = [_asked_cells(word, asked) for word, asked in zip(("first time", "again"), story.asked, strict=True)]
    teller.table("Answers", ("asked", "answer", "95% interval", "remembered", "epsilon left after it", "time"), rows)
    teller.say(f"Exact (demo only): {story.exact_answer:,}.")


def _ask(connection: psycopg.Connection, story: Story) -> Asked:
    started = time.perf_counter()
    with connection.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(statements.ask(story.scenario, story.scenario.question)).fetchone()
    seconds = time.perf_counter() - started
    if row is None:
        raise psycopg.DataError("the question got no answer")
    left = read_budget(connection, story.scenario).left
    return Asked(row["value"], row["lower_95"], row["upper_95"], left, row["remembered"], seconds)


def _asked_cells(word: str, asked: Asked) -> tuple[str, ...]:
    return (
        word,
        f"{asked.value:,.0f}",
        f"{asked.lower:,.0f} to {asked.upper:,.0f}",
        "yes" if asked.remembered else "no",
        f"{asked.left:.4g}",
        f"{asked.seconds * 1000:.0f} ms",
    )


def ask_too_much(connection: psycopg.Connection, story: Story, teller: Teller) -> None:
    """Ask for more than the budget holds, and show the refusal."""
    scenario, question = story.scenario, story.scenario.question
    teller.heading("A question that the budget cannot take")
    statement = statements.count(scenario, question, question.refused_epsilon)
    teller.statement(statement)
    try:
        prepare.answer(connection, statement)
    except psycopg.Error as refusal:
        story.refusal = _message(refusal)
        teller.error(story.refusal)
    else:
        raise psycopg.DataError("the budget took a question that it should have refused")


def _message(error: psycopg.Error) -> str:
    """Return an error as psql shows it."""
    diagnostic = error.diag
    lines = [f"ERROR:  {diagnostic.sqlstate}: {diagnostic.message_primary}"]
    lines += [f"{name}:  {text}" for name, text in (("DETAIL", diagnostic.message_detail), ("HINT", diagnostic.message_hint)) if text]
    return "\n".join(lines)


def show_budget(connection: psycopg.Connection, story: Story, teller: Teller) -> None:
    """Show what the budget was spent on."""
    teller.heading("The budget")
    story.budget = budget = read_budget(connection, story.scenario)
    rows = [(use.label, f"{use.epsilon:.4g}", f"{use.share:.1%}") for use in budget.uses]
    teller.table("Lifetime loss of the worst entry", ("use", "epsilon on its own", "share of the budget"), rows)
    teller.say(report.budget_sentence(budget))


def write_report(teller: Teller, story: Story, downloads: Path, page: Path) -> None:
    """Write the report, with interactive charts if the charting library can be had."""
    teller.heading("The report")
    try:
        javascript = vega.load(downloads)
    except FileNotAvailable as problem:
        teller.say(f"The charting library cannot be had here: {problem.message}. The report shows still pictures.")
        javascript = None
    report.write(story, javascript, page)
    teller.say(f"One page with every release beside the exact series, to be opened in any browser: {page}")


def say_how_to_look_around(teller: Teller, dsn: str, story: Story, *, keep: bool) -> None:
    """Say how to connect, or how to get a server that stays."""
    if keep:
        teller.say("The server stays. Look around with:")
        teller.statement(f"psql {shlex.quote(dsn)} -c 'TABLE dp_release.{story.scenario.statistics[0].name} LIMIT 5'")
        scenario = story.scenario
        teller.say("A new session has today's clock: CALL dp_publish() would publish every empty night since the replay. Stay there with:")
        teller.statement(f"SET dbext.now = '{scenario.last_day} 12:00 {scenario.time_zone}'")
    else:
        teller.say("To look around in the database with psql, run the demo with --keep.")
