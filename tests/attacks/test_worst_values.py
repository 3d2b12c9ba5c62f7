"""Whether anything succeeds must not depend on one entry's values: that would tell of it, exactly and for nothing.

Types, conditions, functions, measures and figures are crossed from the code's own lists, so that what is new there is tried too.
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
from dbext.query.words import FIGURES, FUNCTIONS
from dbext.service.selected_keys import PLAIN
from tests.attacks.worst_values import CALLS, CONDITIONS, CREATED, KINDS

NAMES = {name: f"c{place}" for place, name in enumerate(KINDS)}
ENTRIES = max(len(kind.worst) for kind in KINDS.values())
USUAL = range(1, 41)

MEASURES = ("entered", "left", "net", "net")
NUMBERS = ("smallint", "integer", "bigint", "numeric", "real", "double precision", "domain over numeric")
DAY = "dp_time > now() - INTERVAL '1 day'"
BINS = ("ARRAY[-3, 0.1, 3]", "-3, 3, 4")
#: Types that are widened while releases over them live, and values that only the wider ones hold.
WIDENED = {
    "smallint": ("bigint", "9223372036854775807"),
    "integer": ("bigint", "-9223372036854775808"),
    "real": ("double precision", "1e300"),
    "character varying": ("text", "repeat('a', 1000001)"),
}


class World:
    """Table `entry` with a column of each kind, and forty usual entries, and some whose values are the worst there are."""

    def __init__(self, database, tracked):
        database.execute(CREATED)
        columns = ", ".join(f"{NAMES[name]} {kind.definition}" for name, kind in KINDS.items())
        self.table = tracked(f"id integer PRIMARY KEY, {columns}")
        self.session = self.table.session
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
        self.change("usual")
        self.execute("DELETE FROM entry WHERE id = 40")
        self.table.day(3)
        self.execute("DELETE FROM entry WHERE id >= 1000")
        self.come()
        self.table.day(4)

    def come(self) -> None:
        self.execute("INSERT INTO entry SELECT * FROM worst")
        self.change("usual")
        self.change("worst")

    def change(self, to: str) -> None:
        """Give the strange entries usual values, or their own again."""
        source = "(SELECT * FROM usual WHERE id = 1)" if to == "usual" else "worst"
        listed = ", ".join(f"{name} = s.{name}" for name in NAMES.values())
        self.execute(f"UPDATE entry AS e SET {listed} FROM {source} AS s WHERE e.id >= 1000 AND ({to == 'usual'} OR s.id = e.id)")


def try_conditions(world) -> None:
    """Every condition on every column, under every measure."""
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
                (row,) = session.fetch(window_total_sql(number, measure, predicate), None, world.table.first + 5)
                assert -ENTRIES * 4 <= row["total"] <= 4 * (ENTRIES + len(USUAL)), text
    assert min(tried.values()) >= 2, tried
    assert all(tried[name] >= 10 for name, kind in KINDS.items() if kind.literal), tried


def conditions(name: str, kind) -> list[str]:
    """Every condition on a column, sensible or not; the compiler refuses what does not fit."""
    places = {"c": NAMES[name], "v": kind.literal or "'x'", "other": NAMES["text"] if kind.literal == "'usual'" else NAMES[name]}
    forms = [form for forms in CONDITIONS.values() for form in forms]
    return [form.format(**places) for form in forms] + [form.format(f=function, **places) for function in FUNCTIONS for form in CALLS]


@pytest.fixture
def world(database, tracked):
    made = World(database, tracked)
    made.execute("SELECT dp_set_budget('entry', epsilon => 40, delta => 1e-5, key_delta => 9e-6)")
    for name in NUMBERS:
        made.execute(f"SELECT dp_bounds('entry', '{NAMES[name]}', -10, 10, {1 if 'int' in name else 0.25})")
    return made


def texts() -> dict[str, tuple[str, str]]:
    """Name -> declaration and options of every kind of release over every kind of column."""
    made = {}
    for place, (name, kind) in enumerate((name, kind) for name, kind in KINDS.items() if kind.literal):
        column, listed = NAMES[name], f"groups => $$VALUES ({kind.literal})$$"
        measure = MEASURES[place % len(MEASURES)]
        made[f"by_{column}"] = f"SELECT {column}, count(*) FROM entry WHERE {DAY} GROUP BY {column}", f"'1 day', measure => '{measure}', {listed}"
    for place, name in enumerate(NUMBERS):
        column = NAMES[name]
        figures = ", ".join(f"{figure}({column}) FILTER (WHERE {column} <> 7) AS {figure}" for figure in sorted(FIGURES))
        made[f"figures_{column}"] = f"SELECT {figures} FROM entry", "'1 day', horizon => 20"
        middle = f"percentile_disc(0.5) WITHIN GROUP (ORDER BY dp_bounds({column}, -10, 10, 5)) AS middle"
        made[f"middle_{column}"] = f"SELECT {middle} FROM entry", "'1 day', horizon => 20"
        bins = f"width_bucket({column}, {BINS[place % 2]})"
        made[f"bins_{column}"] = f"SELECT {bins}, count(*) FROM entry WHERE {DAY} GROUP BY {bins}", "'1 day', measure => 'entered'"
    for name in ("text", "date", "real"):
        column, kind = NAMES[name], KINDS[name]
        condition = f"{column} = {kind.literal}"
        made[f"sliding_{column}"] = f"SELECT count(*) FROM entry WHERE {condition} AND dp_time > now() - INTERVAL '2 days'", "'1 day', horizon => 20"
        made[f"total_{column}"] = f"SELECT count(*) FROM entry WHERE {condition}", "'1 day', horizon => 20"
        made[f"levels_{column}"] = f"SELECT count(*) FROM entry WHERE {condition} AND {DAY}", "NULL, levels => '{1 day, 2 days}', horizon => 20"
        roster = "model => 'local', roster => 'VALUES (1), (2), (1003)'"
        made[f"local_{column}"] = f"SELECT count(*) FROM entry WHERE {condition} AND {DAY}", f"'1 day', {roster}"
        groups = f"groups => $$VALUES ({kind.literal})$$"
        made[f"group_{column}"] = f"SELECT {column}, count(*) FROM entry GROUP BY {column}", f"'1 day', horizon => 20, {roster}, {groups}"
    return made


def test_nothing_fails_for_one_entrys_value(world):
    """What succeeds whatever entries hold succeeds with and without each of them."""
    assert set(catalog.BASES) <= set(KINDS), "a type that predicates know is not tried"
    assert set(CONDITIONS) == set(_READERS), "a form of condition is not tried"
    made = texts()
    for name, (text, options) in made.items():
        world.execute(f"SELECT dp_create_release('{name}', $x${text}$x$, {options}, epsilon => 0.25)")
    keyed = [NAMES[name] for name, kind in KINDS.items() if takes_its_keys(world, NAMES[name], kind)]
    assert len(keyed) >= len(PLAIN)
    world.live()
    publish(world)
    widen(world)
    publish(world)
    states = world.session.execute("SELECT release, status, published FROM dbext.release_status").fetchall()
    assert {name: (status, published) for name, status, published in states} == dict.fromkeys([*made, *(f"keys_{one}" for one in keyed)], ("waiting", 6))
    try_conditions(world)
    ask(world)
    repair(world)


def ask(world) -> None:
    """Questions of each kind, and what is worked out from published rows."""
    asked = "'2020-03-03', '2020-03-08', epsilon => 0.05"
    for name, kind in ((name, kind) for name, kind in KINDS.items() if kind.literal):
        condition = f"({NAMES[name]} < {kind.literal}) IS NOT TRUE" if name != "boolean" else f"NOT {NAMES[name]}"
        world.execute(f"SELECT dp_window_count('entry', {asked}, predicate => $${condition}$$)")
    for name in NUMBERS:
        world.execute(f"SELECT dp_window_sum('entry', '{NAMES[name]}', {asked})")
    for name in ("text", "date"):
        column = NAMES[name]
        for release in (f"sliding_{column}", f"total_{column}", f"levels_{column}", f"local_{column}"):
            world.execute(f"SELECT * FROM dp_range_stats('{release}', '2020-03-04', '2020-03-06')")
        world.execute(f"SELECT * FROM dp_restated('levels_{column}')")


def repair(world) -> None:
    """What administrators do."""
    assert world.session.execute("SELECT * FROM dp_recount('entry')").fetchone() == (0, 0, 0)
    world.execute("SELECT dp_rebase('entry')")
    world.table.day(8)
    publish(world)
    world.execute("SELECT dp_retain('entry', '1 day')")
    world.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    failed = world.session.execute("SELECT subject, detail FROM dp_audit() WHERE verdict = 'failed'").fetchall()
    world.execute("COMMIT")
    assert failed == []


def takes_its_keys(world, column: str, kind) -> bool:
    """Declare a release of the keys that a column turns out to have; refused for types whose equal values can be written in several ways."""
    text = f"SELECT {column}, count(*) FROM entry GROUP BY {column}"
    try:
        world.execute(f"SELECT dp_create_release('keys_{column}', '{text}', '1 day', epsilon => 0.25, horizon => 20, key_delta => 5e-7)")
    except psycopg.Error as refusal:
        if refusal.sqlstate not in ("DP003", "DP010"):
            raise
        return False
    return True


def publish(world) -> None:
    said = []
    world.session.add_notice_handler(lambda notice: said.append(notice.message_primary))
    world.execute("CALL dp_publish()")
    assert said == []


def widen(world) -> None:
    """Give columns wider types while releases live, and an entry what only those hold."""
    listed = ", ".join(f"ALTER COLUMN {NAMES[name]} TYPE {kind}" for name, (kind, _) in WIDENED.items())
    world.execute(f"ALTER TABLE entry {listed}; SELECT dp_track('entry')")
    values = ", ".join(WIDENED[name][1] if name in WIDENED else f"u.{NAMES[name]}" for name in KINDS)
    world.execute(f"INSERT INTO entry SELECT 2000, {values} FROM usual AS u WHERE u.id = 1")
    world.table.day(7)


@pytest.mark.parametrize("kind", ["tsquery", "oidvector"])
def test_values_that_cannot_leave_their_row_are_not_tracked(tracked, kind):
    """An entry that left with one and came back with another in the same tick would need a row for both."""
    with pytest.raises(psycopg.Error) as refusal:
        tracked(f"id integer PRIMARY KEY, value {kind}")
    assert refusal.value.sqlstate == "DP003"
