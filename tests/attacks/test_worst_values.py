"""Whether anything succeeds, and what others' figures are, must not depend on one entry's values: that would tell of it, exactly and for nothing.

Columns, conditions, measures and figures are crossed from the code's own lists, so that what is new there is tried too.
"""

from __future__ import annotations

import psycopg
import pytest

from dbext.control.database import PsycopgSession
from dbext.database import catalog
from dbext.database.effects import window_total_sql
from dbext.errors import DbextError
from dbext.privacy.measure import Measure
from dbext.query.compile.read_predicate import _READERS
from dbext.query.compiler import compile_predicate
from dbext.query.words import FUNCTIONS
from tests.attacks.worst_values import CALLS, CONDITIONS, CREATED, KINDS

NAMES = {name: f"c{place}" for place, name in enumerate(KINDS)}
ENTRIES = max(len(kind.worst) for kind in KINDS.values())
USUAL = range(1, 41)


class World:
    """Table `entry` with a column of each kind, and forty usual entries; with or without some whose values are the worst there are."""

    def __init__(self, database, tracked, *, with_worst: bool):
        database.execute(CREATED)
        columns = ", ".join(f"{NAMES[name]} {kind.definition}" for name, kind in KINDS.items())
        self.table = tracked(f"id integer PRIMARY KEY, {columns}")
        self.session, self.with_worst = self.table.session, with_worst
        self.execute("SELECT dp_add_constraint('entry', 'some', max_mutations => 4, applies_to => $${}$$)".format(" OR ".join(self.types())))
        self.execute("SELECT dp_add_constraint('entry', 'any', max_mutations => 4)")
        self.execute("CREATE TABLE usual AS SELECT * FROM entry; CREATE TABLE worst AS SELECT * FROM entry")
        self.stage("usual", [f"(SELECT {number})" for number in USUAL], lambda kind, place: kind.usual)
        for number in range(ENTRIES):
            self.stage("worst", [str(1000 + number)], lambda kind, place, number=number: self.worst(kind, number - place))

    def execute(self, sql: str) -> None:
        self.session.execute(sql)

    def types(self) -> list[str]:
        """A condition on every column that takes one, for the choice of entry types."""
        return [f"{NAMES[name]} = {kind.literal}" for name, kind in KINDS.items() if kind.literal and kind.literal != "'usual'"] + [
            f"lower({NAMES['text']}) LIKE 'strange%'",
            f"upper({NAMES['character varying']}) < 'A'",
        ]

    @staticmethod
    def worst(kind, place: int) -> str:
        """Each of the worst values is that of one entry; others hold what is usual."""
        return kind.worst[place % ENTRIES] if place % ENTRIES < len(kind.worst) else kind.usual

    def stage(self, table: str, numbers: list[str], value) -> None:
        values = ", ".join(value(kind, place) for place, kind in enumerate(KINDS.values()))
        for number in numbers:
            self.execute(f"INSERT INTO {table} VALUES ({number}, {values})")

    def live(self) -> None:
        """A life in which entries have one record in a tick, or several that go to and fro, leave, and come back."""
        self.execute("INSERT INTO entry SELECT * FROM usual")
        self.come()
        self.table.day(1)
        self.change("usual")
        self.change("worst")
        self.table.day(2)
        self.change("usual", kept=True)
        self.execute("DELETE FROM entry WHERE id = 40")
        self.table.day(3)
        if self.with_worst:
            self.execute("DELETE FROM entry WHERE id >= 1000")
            self.come()
        self.table.day(4)

    def come(self) -> None:
        if self.with_worst:
            self.execute("INSERT INTO entry SELECT * FROM worst")
            self.change("usual")
            self.change("worst")

    def change(self, to: str, *, kept: bool = False) -> None:
        """Give the strange entries usual values, or their own again."""
        if self.with_worst:
            source = "(SELECT * FROM usual WHERE id = 1)" if to == "usual" else "worst"
            listed = ", ".join(f"{name} = s.{name}" for name in NAMES.values())
            self.execute(f"UPDATE entry AS e SET {listed} FROM {source} AS s WHERE e.id >= 1000 AND ({to == 'usual'} OR s.id = e.id)")


def test_seals_and_exact_sums_fail_for_no_value(database, tracked):
    world = World(database, tracked, with_worst=True)
    assert set(catalog.BASES) <= set(KINDS), "a type that predicates know is not tried"
    assert set(CONDITIONS) == set(_READERS), "a form of condition is not tried"
    world.live()
    world.table.seal()
    session, number = PsycopgSession(world.session), world.table.number
    columns = {column.name: column for column in catalog.columns(session, number)}
    tried = dict.fromkeys(KINDS, 0)
    for name, kind in KINDS.items():
        for text in conditions(name, kind):
            try:
                predicate = compile_predicate(text, tuple(columns.values()))
            except DbextError:
                continue
            tried[name] += 1
            for measure in Measure:
                (row,) = session.fetch(window_total_sql(number, measure, predicate), None, world.table.first + 3)
                assert -ENTRIES * 4 <= row["total"] <= 4 * (ENTRIES + len(USUAL)), text
    assert min(tried.values()) >= 2, tried
    assert all(tried[name] >= 10 for name, kind in KINDS.items() if kind.literal), tried


def conditions(name: str, kind) -> list[str]:
    """Every condition on a column, sensible or not; the compiler refuses what does not fit."""
    places = {"c": NAMES[name], "v": kind.literal or "'x'", "other": NAMES["text"] if kind.literal == "'usual'" else NAMES[name]}
    forms = [form for forms in CONDITIONS.values() for form in forms]
    return [form.format(**places) for form in forms] + [form.format(f=function, **places) for function in FUNCTIONS for form in CALLS]


@pytest.mark.parametrize("kind", ["tsquery", "oidvector"])
def test_values_that_cannot_leave_their_row_are_not_tracked(tracked, kind):
    """An entry that left with one and came back with another in the same tick would need a row for both."""
    with pytest.raises(psycopg.Error) as refusal:
        tracked(f"id integer PRIMARY KEY, value {kind}")
    assert refusal.value.sqlstate == "DP003"
