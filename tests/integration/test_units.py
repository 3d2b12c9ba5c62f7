"""Units of several rows, judged by recomputation: plain Python keeps the table, takes the first rows of each unit, admits and counts.

The model below is written from the rules alone; the seal and the sums of releases work on all units at once.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

import pytest

#: Columns by position: row key, unit, two values.
COLUMNS = "id integer PRIMARY KEY, patient text NOT NULL, ward text, cost integer"
MOST, DAYS = 2, 9
#: The rules as they are declared, by the condition on some row of the first image.
TYPES = {
    "ward = 'A'": "'short', max_mutations => 3",
    "cost > 70": "'brief', active_within => '3 days', at_limit => 'leave'",
    None: "'any', max_mutations => 25",
}
RULES = {"short": (3, None, "stay"), "brief": (None, 3, "leave"), "any": (25, None, "stay")}


@dataclass
class Model:
    """What the table holds, day by day, and what is settled of each unit under the rules."""

    rows: dict = field(default_factory=dict)
    settled: dict = field(default_factory=dict)
    known: dict = field(default_factory=dict)
    changes: list = field(default_factory=list)

    def image(self, patient):
        """The first rows of a unit, by primary key."""
        return tuple((number, *row[1:]) for number, row in sorted(self.rows.items()) if row[0] == patient)[:MOST]

    def end_day(self, day, type_of):
        for patient in {row[0] for row in self.rows.values()} | set(self.known):
            self._settle(day, patient, self.image(patient), type_of)

    def _settle(self, day, patient, image, type_of):
        if patient not in self.known:
            if not image:
                return
            self.known[patient] = [day, type_of(image), 0]
        first, kind, slots = self.known[patient]
        most, within, at_limit = RULES[kind]
        before = self.settled.get(patient, ())
        if within is not None and at_limit == "leave" and day >= first + within:
            image = before if day > first + within else ()
        if image == before:
            return
        if most is None or slots + 1 < most or (slots + 1 == most and not image):
            self.changes.append((day, patient, before, image))
            self.settled[patient] = image
            self.known[patient][2] += 1


def kind_of(image):
    """The first type of which some row of the first image satisfies the condition."""
    if any(ward == "A" for _, ward, _ in image):
        return "short"
    return "brief" if any(cost is not None and cost > 70 for _, _, cost in image) else "any"


BASELINE = {1: ("p0", "A", 5), 2: ("p0", "B", 80), 3: ("p0", "B", 9), 4: ("p1", None, 71)}


@pytest.fixture
def make_visits(tracked):
    """Make a table of visits of patients, of which two of each count, under three types."""

    def make(kind="plain"):
        definition = f"{COLUMNS}) PARTITION BY RANGE (id" if kind == "partitioned" else COLUMNS
        listed = ", ".join(f"({number}, '{patient}', {ward!r}, {cost})" for number, (patient, ward, cost) in BASELINE.items())
        rows = "VALUES " + listed.replace("None", "NULL")
        options = {"unit": ["patient"], "rows_per_unit": MOST, "capture": "row" if kind == "rows" else "statement"}
        made = tracked(definition, name="visits", rows=None if kind == "partitioned" else rows, **options)
        for applies_to, limits in TYPES.items():
            made.execute(f"SELECT dp_add_constraint('visits', {limits}, applies_to => %s)", (applies_to,))
        made.execute("SELECT dp_set_budget('visits', 1000)")
        made.execute("SELECT dp_bounds('visits', 'cost', 0, 100, 10)")
        if kind == "partitioned":
            made.execute("CREATE TABLE low PARTITION OF visits FOR VALUES FROM (MINVALUE) TO (30)")
            made.execute("CREATE TABLE high PARTITION OF visits FOR VALUES FROM (30) TO (MAXVALUE) PARTITION BY HASH (id)")
            made.execute("CREATE TABLE highest PARTITION OF high FOR VALUES WITH (MODULUS 1, REMAINDER 0)")
            made.execute(f"INSERT INTO visits {rows}")
        made.model = Model(dict(BASELINE))
        return made

    return make


@pytest.fixture
def visits(make_visits):
    return make_visits()


def some_row(chance):
    return f"p{chance.randrange(9)}", chance.choice(["A", "B", "C", None]), chance.choice([None, -5, 3, 14, 55, 99, 1000])


def insert(visits, chance, _):
    """Rows that come, where there is none or in place of those that are there."""
    rows, replaces = visits.model.rows, chance.random() < 0.5
    new = {number: some_row(chance) for number in chance.sample(range(1, 60), 3)}
    values = ", ".join(["(%s::integer, %s, %s, %s::integer)"] * len(new))
    does = "DO UPDATE SET patient = excluded.patient, ward = excluded.ward, cost = excluded.cost" if replaces else "DO NOTHING"
    listed = [value for number, row in new.items() for value in (number, *row)]
    visits.execute(f"INSERT INTO visits VALUES {values} ON CONFLICT (id) {does}", listed)
    rows.update({number: row for number, row in new.items() if replaces or number not in rows})


def update(visits, _, some):
    visits.execute("UPDATE visits SET cost = cost + 7, ward = 'C' WHERE id = ANY (%s)", (some,))
    for number in some:
        patient, _, cost = visits.model.rows[number]
        visits.model.rows[number] = (patient, "C", None if cost is None else cost + 7)


def swap(visits, _, some):
    """Two rows move between units in one statement."""
    rows, (first, second) = visits.model.rows, (some[0], some[-1])
    visits.execute("UPDATE visits AS v SET patient = o.patient FROM visits AS o WHERE (v.id, o.id) IN ((%s, %s), (%s, %s))",
        (first, second, second, first))  # fmt: skip
    one, other = rows[first], rows[second]
    rows[first], rows[second] = (other[0], *one[1:]), (one[0], *other[1:])


def shift(visits, _, some):
    """Keys change, so that another row of the unit may be the first."""
    rows = visits.model.rows
    some = [number for number in some if number + 500 not in rows]
    visits.execute("UPDATE visits SET id = id + 1000 WHERE id = ANY (%s)", (some,))
    visits.execute("UPDATE visits SET id = id - 500 WHERE id > 1000")
    for number in some:
        rows[number + 500] = rows.pop(number)


def delete(visits, _, some):
    visits.execute("DELETE FROM visits WHERE id = ANY (%s)", (some,))
    for number in some:
        del visits.model.rows[number]


def truncate(visits, _, __):
    visits.execute("TRUNCATE visits")
    visits.model.rows.clear()


def write(visits, chance):
    """One statement of any kind, on the table and in the model."""
    present = sorted(number for number in visits.model.rows if number <= 500)
    some = chance.sample(present, min(len(present), chance.randint(1, 3)))
    kinds, weights = (insert, update, swap, shift, delete, truncate), (35, 20, 15, 10, 17, 3)
    (insert if not some else chance.choices(kinds, weights)[0])(visits, chance, some)


def stored_changes(visits):
    rows = visits.fetch(
        "SELECT tick, key_2, old_present, old_1, old_3, old_4, new_present, new_1, new_3, new_4 FROM {change} ORDER BY tick, key_2"
    )
    return [
        (tick - visits.first, patient, *(tuple(zip(*image[1:], strict=True)) if image[0] else () for image in (row[:4], row[4:])))
        for tick, patient, *row in rows
    ]


def live(visits, seed, *, seals="daily", gaps=(1,) * DAYS):
    """Days of random statements, `gaps` apart, sealed one by one, now and then, or all at once; the model goes through every day.

    Returns the last day.
    """
    chance, day = random.Random(seed), 0
    visits.model.end_day(0, kind_of)
    if seals == "daily":
        seal_through(visits, 0)
    for gap in gaps:
        for idle in range(day + 1, day + gap):
            visits.model.end_day(idle, kind_of)
        day += gap
        visits.day(day)
        for _ in range(chance.randint(0, 4)):
            write(visits, chance)
        visits.model.end_day(day, kind_of)
        if seals == "daily" or (seals == "now and then" and chance.random() < SEALED):
            seal_through(visits, day)
    seal_through(visits, day)
    return day


def seal_through(visits, day):
    """Seal, and compare what is known of single rows with the model."""
    visits.seal_through(day)
    mirror = {number: tuple(row) for number, *row in visits.fetch("SELECT key_1, key_2, image_3, image_4 FROM {row}")}
    assert mirror == visits.model.rows


#: Days of random statements, long gaps between them; how often some are sealed.
LONG, SEALED = (1, 1, 40, 1, 2, 1, 1, 90, 1, 3, 1, 1, 1, 2, 400, 1, 1), 0.3


@pytest.mark.parametrize(
    ("seed", "seals", "kind", "gaps"),
    [
        (1, "daily", "plain", (1,) * DAYS),
        (2, "daily", "plain", (1,) * DAYS),
        (3, "at last", "plain", (1,) * DAYS),
        (4, "at last", "plain", LONG),
        (5, "now and then", "plain", LONG * 4),
        (9, "at last", "plain", LONG * 3),
        (6, "daily", "partitioned", (1,) * DAYS),
        (7, "at last", "partitioned", LONG),
        (8, "daily", "rows", (1,) * DAYS),
    ],
)
def test_images_of_units_are_their_first_rows_and_are_admitted_like_entries(make_visits, seed, seals, kind, gaps):
    """The model works out each unit from its own rows: so what is settled of a unit does not depend on any other."""
    visits = make_visits(kind)
    assert visits.fetch(f"SELECT row_triggers FROM dbext_private.tracked_table WHERE table_id = {visits.number}") == [(kind == "rows",)]
    day = live(visits, seed, seals=seals, gaps=gaps)
    assert seals == "daily" or visits.fetch("SELECT count(*) FROM dbext_private.seal")[0][0] <= 1 + day / 20
    expected = sorted(visits.model.changes)
    assert stored_changes(visits) == expected
    assert any(len(new) == MOST for *_, new in expected)
    settled = {
        unit: tuple(zip(*image, strict=True))
        for unit, *image in visits.fetch("SELECT key_2, image_1, image_3, image_4 FROM {admission} WHERE present")
    }
    assert settled == {unit: image for unit, image in visits.model.settled.items() if image}
    assert visits.fetch(f"SELECT sum(mismatched)::integer FROM dbext_private.seal WHERE table_id = {visits.number}") == [(0,)]


#: Figures of releases, and what they are of an image: a function of its (id, ward, cost) rows.
FIGURES = {
    "visits_now": ("SELECT count(*) FROM visits", len),
    "in_c": ("SELECT count(*) FROM visits WHERE ward = 'C'", lambda rows: sum(ward == "C" for _, ward, _ in rows)),
    "patients": ("SELECT count(DISTINCT patient) FROM visits", lambda rows: int(bool(rows))),
    "patients_c": (
        "SELECT count(DISTINCT patient) FROM visits WHERE ward = 'C' AND cost > 10",
        lambda rows: int(any(_in_c(*row) for row in rows)),
    ),
    "known": ("SELECT count(cost) FROM visits WHERE patient <> 'p3'", lambda rows: sum(cost is not None for *_, cost in rows)),
    "costs": ("SELECT sum(cost) FROM visits", lambda rows: sum(_tens(cost) for *_, cost in rows if cost is not None)),
}


def _in_c(_, ward, cost):
    return ward == "C" and cost is not None and cost > 10


def _tens(cost):
    """A cost within its bounds, in steps of ten; PostgreSQL rounds halves of numerics away from 0."""
    return (min(max(cost, 0), 100) + 5) // 10


def declare(visits, name, text, **options):
    options = {"every": "1 day", "epsilon": 5, "horizon": 30} | options
    named = "".join(f", {option} => %s" for option in options)
    return visits.session.execute(f"SELECT dp_create_release(%s, %s{named})", [name, text, *options.values()]).fetchone()[0]


def summed(visits, name):
    """The exact sums of a release so far, by day and cell; days before the release are summed in one."""
    rows = visits.database.fetch(
        "SELECT s.tick, s.sums FROM dbext_private.tick_sum AS s JOIN dbext_private.release AS r USING (release_id) WHERE r.name = %s ORDER BY s.tick",
        (name,),
    )
    return {tick - visits.first: sums for tick, sums in rows if any(sums)}


def test_statistics_are_functions_of_the_settled_images(visits):
    for name, (text, _) in FIGURES.items():
        declare(visits, name, text)
    declare(visits, "by_ward", "SELECT ward, count(*) FROM visits GROUP BY ward", groups="VALUES ('A'), ('B')")
    declare(
        visits,
        "costs_by_ward",
        "SELECT ward, sum(cost) FROM visits WHERE dp_time > now() - INTERVAL '1 day' GROUP BY ward",
        groups="VALUES ('B')",
        horizon=None,
    )
    declare(
        visits,
        "people_by_ward",
        "SELECT ward, count(DISTINCT patient) FROM visits WHERE cost > 3 GROUP BY ward",
        groups="VALUES ('A'), ('C'), ('Z')",
    )
    declare(visits, "people_by_cost", "SELECT width_bucket(cost, 0, 100, 1) AS bin, count(DISTINCT patient) FROM visits GROUP BY bin")
    declare(visits, "by_cost", "SELECT width_bucket(cost, 0, 100, 2) AS bin, count(*) FROM visits GROUP BY bin")
    declare(
        visits,
        "came",
        "SELECT count(DISTINCT patient) FROM visits WHERE ward = 'C' AND dp_time > now() - INTERVAL '1 day'",
        measure="entered",
        horizon=None,
    )
    declare(visits, "mean", "SELECT count(*) AS n, avg(cost) AS mean, count(DISTINCT patient) AS people FROM visits")
    live(visits, 5)
    said = []
    visits.session.add_notice_handler(lambda notice: said.append(notice.message_primary))
    visits.execute("CALL dp_publish()")
    assert not said
    for name, (_, value) in FIGURES.items():
        pick = (lambda unit: unit != "p3") if name == "known" else (lambda unit: True)
        assert summed(visits, name) == _daily(visits.model, lambda image, value=value: [value(image)], pick), name
    wards = lambda value, cells: lambda image: [sum(value(row) for row in image if row[1] == cell) for cell in cells]  # noqa: E731
    assert summed(visits, "by_ward") == _daily(visits.model, wards(lambda _: 1, "AB"))
    assert summed(visits, "costs_by_ward") == _daily(visits.model, wards(lambda row: 0 if row[2] is None else _tens(row[2]), "B"), start=1)
    people = lambda image: [int(any(w == ward and c is not None and c > 3 for _, w, c in image)) for ward in "ACZ"]  # noqa: E731
    assert summed(visits, "people_by_ward") == _daily(visits.model, people)
    halves = lambda image: [int(any(c is not None and (c >= 0) + (c >= 100) == n for *_, c in image)) for n in range(3)]  # noqa: E731
    assert summed(visits, "people_by_cost") == _daily(visits.model, halves)
    bins = lambda image: [sum(cost is not None and (cost >= 0) + (cost >= 50) + (cost >= 100) == n for *_, cost in image) for n in range(4)]  # noqa: E731
    assert summed(visits, "by_cost") == _daily(visits.model, bins)
    came = Counter(
        day
        for day, _, old, new in visits.model.changes
        if day and any(w == "C" for _, w, _ in new) and not any(w == "C" for _, w, _ in old)
    )
    assert summed(visits, "came") == {day: [number] for day, number in came.items()}
    rows = visits.database.fetch("SELECT n, mean, mean_lower_95, mean_upper_95, people FROM dp_release.mean ORDER BY release_no")
    assert len(rows) == DAYS
    assert all(0 <= low <= mean <= high <= 100 for _, mean, low, high, _ in rows)


def _daily(model, value, pick=lambda unit: True, start=0):
    """What the changes of the model add up to, day by day; those before the first period count in its baseline."""
    found: dict = {}
    for day, unit, old, new in model.changes:
        if pick(unit) and day >= start:
            before = found.get(day, [0] * len(value(())))
            found[day] = [have + after - was for have, after, was in zip(before, value(new), value(old), strict=True)]
    return {day: sums for day, sums in found.items() if any(sums)}
