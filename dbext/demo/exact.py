"""The exact series beside each release: computed from the source file alone, never from the database.

A demo on public data may show exact figures; the product never does. This module repeats the admission rules in its own words:
it shares no code with what the releases went through, so that a fault there shows up as missing coverage here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import date, timedelta

from dbext.demo.scenario import Image, Mutation, Rule, Scenario, Statistic

#: What changed for one entry at the end of a day: image before, image after (None: absent).
Step = tuple[date, "Image | None", "Image | None"]
#: Value per group (None without GROUP BY) and day.
Series = dict[tuple["str | None", date], int]

#: A rule that admits everything.
UNLIMITED = Rule(name="everything", reason="")


def histories(mutations: Iterable[Mutation]) -> list[list[tuple[date, Image | None]]]:
    """Return for each entry its images at the end of each day on which it mutated, in order of time."""
    by_key: dict[int, dict[date, Image | None]] = defaultdict(dict)
    for mutation in mutations:
        by_key[mutation.key][mutation.day] = mutation.image
    return [list(days.items()) for days in by_key.values()]


def steps(history: list[tuple[date, Image | None]], rule: Rule) -> list[Step]:
    """Return the changes of one entry that count under `rule`.

    With k mutations allowed, k - 1 days may change the entry as they like and the last one only by ending its presence.
    With w days of activity, nothing after day first + w counts; if the rule says so, the entry is absent from that day on.
    """
    first, counted, before = history[0][0], 0, None
    limit = None if rule.active_within_days is None else first + timedelta(days=rule.active_within_days)
    ending = limit if rule.leaves_at_limit else None
    changes: list[Step] = []
    for day, image in _until(history, limit, ending):
        if image == before or not _has_slot(rule.max_mutations, counted, image):
            continue
        changes.append((day, before, image))
        counted, before = counted + 1, image
    return changes


def _until(history: list[tuple[date, Image | None]], limit: date | None, ending: date | None) -> list[tuple[date, Image | None]]:
    """Return the days of a history up to `limit`; on day `ending`, if any, the entry is absent whatever happened."""
    days = [(day, image) for day, image in history if limit is None or day <= limit]
    if ending is not None:
        days = [(day, image) for day, image in days if day < ending] + [(ending, None)]
    return days


def _has_slot(max_mutations: int | None, counted: int, image: Image | None) -> bool:
    if max_mutations is None or counted < max_mutations - 1:
        return True
    return counted < max_mutations and (image is None or max_mutations == 1)


def rule_of(scenario: Scenario, first_image: Image | None) -> Rule | None:
    """Return the first rule that matches an entry's first image, else None: such an entry is in no statistic."""
    if first_image is None:
        return None
    return next((rule for rule in scenario.rules if rule.matches is None or rule.matches(first_image)), None)


def all_steps(scenario: Scenario, *, admitted: bool) -> list[Step]:
    """Return the changes of all entries that count: as admitted under the scenario's rules, or all of them."""
    found: list[Step] = []
    first_images = _first_images(scenario.mutations)
    for history, first_image in zip(histories(scenario.mutations), first_images, strict=True):
        rule = rule_of(scenario, first_image) if admitted else UNLIMITED
        if rule is not None:
            found.extend(steps(history, rule))
    return found


def _first_images(mutations: Iterable[Mutation]) -> list[Image | None]:
    first: dict[int, Image | None] = {}
    for mutation in mutations:
        first.setdefault(mutation.key, mutation.image)
    return list(first.values())


def series(scenario: Scenario, statistic: Statistic, changes: list[Step]) -> Series:
    """Return the exact value of a statistic for every group and every day of the scenario."""
    daily: Series = defaultdict(int)
    for day, before, after in changes:
        for image, sign in effects(statistic.measure, statistic.satisfies, before, after):
            daily[(image[statistic.group_column] if statistic.group_column else None, day)] += sign
    groups = scenario.group_keys if statistic.group_column else (None,)
    return {(group, day): value for group in groups for day, value in _windowed(scenario, statistic, daily, group)}


def effects(measure: str, satisfies: Callable[[Image], bool], before: Image | None, after: Image | None) -> list[tuple[Image, int]]:
    """Return (image whose cell is meant, sign) of what a change counts as."""
    was = before is not None and satisfies(before)
    will = after is not None and satisfies(after)
    if measure == "entered":
        return [(after, 1)] if will and not was and after is not None else []
    leaves = [(before, -1)] if was and before is not None else []
    return leaves + ([(after, 1)] if will and after is not None else [])


def _windowed(scenario: Scenario, statistic: Statistic, daily: Series, group: str | None) -> Iterable[tuple[date, int]]:
    total, width = 0, statistic.window_days
    for day in days(scenario):
        total += daily.get((group, day), 0)
        if width is not None:
            total -= daily.get((group, day - timedelta(days=width)), 0)
        yield day, total


def days(scenario: Scenario) -> list[date]:
    """Return the days of the scenario's year."""
    count = (scenario.last_day - scenario.first_day).days + 1
    return [scenario.first_day + timedelta(days=n) for n in range(count)]


def question_answer(scenario: Scenario, changes: list[Step]) -> int:
    """Return the exact answer to the scenario's question: entries that came to satisfy its predicate in the window."""
    question = scenario.question
    return sum(
        sign
        for day, before, after in changes
        if question.window_start <= day < question.window_end
        for _, sign in effects(question.measure, question.satisfies, before, after)
    )
