"""Admission by brute force: every history of one entry over a few ticks, under every kind of constraint, through the real seal.

The model below is written from the rules alone, one entry and one tick at a time; the seal works on all entries at once.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import pytest

from dbext.privacy.constraint import Constraint
from dbext.privacy.measure import Measure, sensitivity

IMAGES = (None, "a", "b")
#: Longest run of mutations tried within each tick; runs of two pass through an image that the tick does not end with.
RUNS = (2, 1, 2, 1)


@dataclass(frozen=True)
class Rule:
    """A constraint as declared."""

    mutations: int | None
    within: int | None
    leave: bool = False

    @property
    def constraint(self) -> Constraint:
        return Constraint(self.mutations, self.within)


RULES = (
    *(Rule(k, w) for k in (None, 1, 2, 3) for w in (None, 1, 2) if (k, w) != (None, None)),
    *(Rule(k, w, leave=True) for k in (None, 2, 3) for w in (1, 2)),
)


def runs_from(image: str | None, longest: int) -> list[tuple]:
    """Return every sequence of up to `longest` images, each unlike the one before it."""
    found, newest = [()], [()]
    for _ in range(longest):
        newest = [(*run, other) for run in newest for other in IMAGES if other != (run[-1] if run else image)]
        found += newest
    return found


def histories() -> list[tuple]:
    """Return (image before tracking, run of each tick) for every history."""
    found = [((image,), image) for image in IMAGES]
    for longest in RUNS:
        found = [((*path, run), run[-1] if run else image) for path, image in found for run in runs_from(image, longest)]
    return [path for path, _ in found]


def admitted(history: tuple, rule: Rule) -> list[tuple]:
    """Return (tick, settled before, settled after) as the rules have it."""
    baseline, *runs = history
    settled, slots, first, changes = None, 0, None, []
    for tick, run in enumerate(runs):
        mutated = bool(run) or (tick == 0 and baseline is not None)
        if mutated and first is None:
            first = tick
        if first is None or (rule.within is not None and tick > first + rule.within):
            continue
        time_is_over = rule.leave and tick == first + rule.within
        if not mutated and not time_is_over:
            continue
        image = None if time_is_over else run[-1] if run else baseline
        if image == settled:
            continue
        number, k = slots + 1, rule.mutations
        if k is None or number < k or (number == k and (k == 1 or image is None)):
            changes.append((tick, settled, image))
            settled, slots = image, number
    return changes


def replay(table, entries: list[tuple[int, tuple]]) -> None:
    """Let every entry live its history, a few statements for all of them at a time."""
    current = {number: history[0] for number, history in entries}
    for tick, longest in enumerate(RUNS):
        table.day(tick)
        for step in range(longest):
            moves = [(number, history[tick + 1][step]) for number, history in entries if len(history[tick + 1]) > step]
            apply(table, [(number, current[number], image) for number, image in moves])
            current.update(moves)
        yield tick


def apply(table, moves: list[tuple[int, str | None, str | None]]) -> None:
    inserted = [number for number, before, _ in moves if before is None]
    images = {number: after for number, _, after in moves}
    deleted = [number for number, _, after in moves if after is None]
    updated = [number for number, before, after in moves if before is not None and after is not None]
    table.execute(
        f"INSERT INTO {table.name} SELECT id, value, kind FROM unnest(%s::integer[], %s::text[]) AS m (id, value) JOIN kinds USING (id)",
        (inserted, [images[number] for number in inserted]),
    )
    table.execute(f"DELETE FROM {table.name} WHERE id = ANY (%s)", (deleted,))
    table.execute(
        f"UPDATE {table.name} AS e SET value = m.value FROM unnest(%s::integer[], %s::text[]) AS m (id, value) WHERE e.id = m.id",
        (updated, [images[number] for number in updated]),
    )


def constrain(table, rules) -> None:
    for place, rule in enumerate(rules):
        table.execute(
            f"SELECT dp_add_constraint('{table.name}', %s, applies_to => %s, max_mutations => %s, active_within => %s::interval, at_limit => %s)",
            (f"rule {place}", f"kind = {place}", rule.mutations, rule.within and f"{rule.within} days", "leave" if rule.leave else "stay"),
        )


def settled_changes(table) -> dict[int, list[tuple]]:
    found: dict[int, list[tuple]] = {}
    for tick, number, old, new in table.changes():
        found.setdefault(number, []).append((tick, old, new))
    return found


def lay_out(rules) -> list[tuple[int, Rule, tuple]]:
    """Return (entry number, rule, history) for every rule and history."""
    pairs = itertools.product(rules, histories())
    return [(number, rule, history) for number, (rule, history) in enumerate(pairs)]


def prepare(database, tracked, plan, rules, name: str):
    database.execute("CREATE TABLE IF NOT EXISTS kinds (id integer PRIMARY KEY, kind integer)")
    rows = [(number, rules.index(rule)) for number, rule, _ in plan]
    database.execute(
        "INSERT INTO kinds SELECT * FROM unnest(%s::integer[], %s::integer[]) ON CONFLICT DO NOTHING",
        ([r[0] for r in rows], [r[1] for r in rows]),
    )
    database.execute(
        "CREATE TABLE baseline AS SELECT * FROM unnest(%s::integer[], %s::text[]) AS b (id, value)",
        ([number for number, _, history in plan if history[0]], [history[0] for _, _, history in plan if history[0]]),
    )
    table = tracked(
        "id integer PRIMARY KEY, value text, kind integer", name=name, rows="SELECT id, value, kind FROM baseline JOIN kinds USING (id)"
    )
    database.execute("DROP TABLE baseline")
    constrain(table, rules)
    return table


@pytest.mark.slow
def test_every_history_is_admitted_by_the_rules_and_stays_within_its_sensitivity(database, tracked):
    plan = lay_out(RULES)
    entries = [(number, history) for number, _, history in plan]
    daily = prepare(database, tracked, plan, RULES, "daily")
    for tick in replay(daily, entries):
        daily.seal_through(tick)
    seen = settled_changes(daily)
    for number, rule, history in plan:
        assert seen.get(number, []) == admitted(history, rule), (rule, history)
    check_effects(plan, seen)

    # The same histories, sealed in one pass over all ticks.
    late = prepare(database, tracked, plan, RULES, "late")
    assert list(replay(late, entries)) == list(range(len(RUNS)))
    late.seal_through(len(RUNS) - 1)
    assert settled_changes(late) == seen
    assert late.fetch("SELECT sum(late), sum(mismatched) FROM dbext_private.seal") == [(0, 0)]
    columns = "key_1, type_no, slots, first_tick, present, image_2, image_3"
    one, other = (f"(SELECT {columns} FROM dbext_private.admission_{table.number})" for table in (daily, late))
    assert database.fetch(f"({one} EXCEPT {other}) UNION ALL ({other} EXCEPT {one})") == []


def check_effects(plan, seen) -> None:
    """Each leaf's effect is within its sensitivity, and no more ticks are touched than the accountant assumes."""
    ticks = len(RUNS)
    filters = [(a, b) for b in range(ticks) for a in (None, *range(-1, b))]
    for rule in RULES:
        lives = {tuple(seen.get(number, ())): history for number, one, history in plan if one == rule}
        for life, history in lives.items():
            touched = [tick for tick, _, _ in life]
            assert rule.mutations is None or len(touched) <= rule.mutations
            first = 0 if history[0] is not None else next((tick for tick, run in enumerate(history[1:]) if run), None)
            assert rule.within is None or all(first <= tick <= first + rule.within for tick in touched)
            for (a, b), measure, grouped in itertools.product(filters, Measure, (False, True)):
                if (measure is Measure.STATE) == (a is None):
                    check_leaf(life, (a, b), measure, grouped=grouped, rule=rule)


def check_leaf(life, window, measure, *, grouped: bool, rule: Rule) -> None:
    a, b = window
    length = None if a is None else b - a
    bound = sensitivity(measure, grouped, length, rule.constraint)
    if bound is None:
        return
    for accepted in ({"a"}, {"a", "b"}):
        cells: dict[str, int] = {}
        for tick, old, new in life:
            if (a is None or tick > a) and tick <= b:
                for image, sign in effects(old in accepted, new in accepted, old, new, measure):
                    cell = image if grouped else "all"
                    cells[cell] = cells.get(cell, 0) + sign
        assert sum(map(abs, cells.values())) <= bound.l1, (life, window, measure, grouped, rule)
        assert sum(value * value for value in cells.values()) <= bound.l2_squared, (life, window, measure, grouped, rule)


def effects(was: bool, is_now: bool, old, new, measure) -> list[tuple]:
    if measure is Measure.ENTERED:
        return [(new, 1)] if is_now and not was else []
    if measure is Measure.LEFT:
        return [(old, 1)] if was and not is_now else []
    return [(new, 1)] * is_now + [(old, -1)] * was
