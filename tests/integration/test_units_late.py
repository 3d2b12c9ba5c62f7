"""Units of several rows, with transactions that stay open over days and ticks that are closed many at a time, while the log's segments come and go.

Which tick a record belongs to is worked out from the stored seals alone: its own, or the first one of the seal that could see it.
"""

from __future__ import annotations

import random
from collections import defaultdict

import pytest

MOST = 3
#: What is forgotten is judged as well: every record and every settled change is copied before.
COPY = """INSERT INTO every_record SELECT * FROM {log} ON CONFLICT DO NOTHING;
    INSERT INTO every_change SELECT * FROM {change} AS c WHERE NOT EXISTS (SELECT FROM every_change)
        OR NOT c.baseline AND c.tick > (SELECT max(tick) FROM every_change)"""
RECORDS = """SELECT greatest(dbext_private.table_tick_of(1, e.mutated_at), s.first_tick), e.number, e.op::text, e.key_1, e.key_2, e.new_3
    FROM every_record AS e CROSS JOIN LATERAL (SELECT s.first_tick FROM dbext_private.seal AS s
        WHERE pg_visible_in_snapshot(e.xid, s.snapshot) AND e.mutated_at <= s.boundary ORDER BY s.seal_no LIMIT 1) AS s ORDER BY 1, 2"""
CHANGES = "SELECT tick, key_2, CASE WHEN old_present THEN old_1 END, CASE WHEN old_present THEN old_3 END, CASE WHEN new_present THEN new_1 END, CASE WHEN new_present THEN new_3 END FROM every_change"


class Writer:
    """A session that changes rows of its own (every third), of units that are everybody's."""

    def __init__(self, table, number: int, chance: random.Random):
        self.table, self.number, self.chance, self.prepared = table, number, chance, False
        self.name = f"{table.database.name} {number}"
        self.session = table.database.connect(autocommit=False)

    def step(self, moment: str) -> None:
        """Write something, or end what was begun; nothing while its rows are held by what was prepared."""
        if self.prepared:
            return
        self.table.set_now(moment, self.session)
        row, unit = 3 * self.chance.randrange(7) + self.number, f"p{self.chance.randrange(5)}"
        end = self.chance.random()
        if end < 0.25:
            self.session.commit()
        elif end < 0.32:
            self.session.execute(f"PREPARE TRANSACTION '{self.name}'")
            self.session.commit()
            self.prepared = True
        elif end < 0.36:
            self.session.rollback()
        else:
            self.session.execute(
                self.chance.choice(
                    (
                        f"INSERT INTO visits VALUES ({row}, '{unit}', 1) ON CONFLICT (id) DO UPDATE SET cost = visits.cost + 1, patient = excluded.patient",
                        f"UPDATE visits SET cost = cost + 10 WHERE id % 3 = {self.number} AND patient = '{unit}'",
                        f"UPDATE visits SET id = id + 300 WHERE id = {row} AND NOT EXISTS (SELECT FROM visits WHERE id = {row + 300})",
                        f"DELETE FROM visits WHERE id IN ({row}, {row + 300})",
                        f"SAVEPOINT s; DELETE FROM visits WHERE id % 3 = {self.number}; ROLLBACK TO s",
                    )
                )
            )

    def settle_prepared(self) -> None:
        """End what was prepared, one way or the other."""
        if self.prepared:
            self.table.execute(f"{self.chance.choice(('COMMIT', 'ROLLBACK'))} PREPARED '{self.name}'")
            self.prepared = False


def expected_changes(records: list[tuple]) -> set[tuple]:
    """Return (tick, unit, rows and values before, those after) of every change of what is settled, from the records alone."""
    by_tick, rows, settled, changes = defaultdict(list), {}, {}, set()
    for record in records:
        by_tick[record[0]].append(record)
    for tick, those in sorted(by_tick.items()):
        for _, _, op, number, unit, cost in those:
            rows.pop((number, unit), None)
            if op != "D":
                rows[number, unit] = cost
        for unit in {record[4] for record in those}:
            first = sorted((number, cost) for (number, mine), cost in rows.items() if mine == unit)[:MOST]
            after = tuple(tuple(column) for column in zip(*first, strict=True)) or (None, None)
            before = settled.get(unit, (None, None))
            if after != before:
                changes.add((tick, unit, *before, *after))
                settled[unit] = after
    return changes


@pytest.mark.parametrize("capture", ["statement", "row"])
def test_every_record_is_in_its_tick_and_every_image_is_that_of_the_tick(tracked, capture):
    rows = "SELECT i, 'p' || i % 4, 1 FROM generate_series(1, 12) AS i"
    table = tracked("id integer PRIMARY KEY, patient text NOT NULL, cost integer", name="visits", rows=rows, unit=["patient"], rows_per_unit=MOST, capture=capture)
    table.execute(f"CREATE TABLE every_record (LIKE dbext_private.log_{table.number}); CREATE UNIQUE INDEX ON every_record (number)")
    table.execute(f"CREATE TABLE every_change (LIKE dbext_private.change_{table.number})")
    chance, day, passes = random.Random(6), 0, []
    writers = [Writer(table, number, chance) for number in range(3)]
    names = {kind: f"dbext_private.{kind}_{table.number}" for kind in ("log", "change")}

    def seal() -> None:
        before = table.head()
        table.seal()
        passes.append(table.head() - before)
        table.execute(COPY.format(**names))
        table.execute("SELECT dp_retain('visits', '2 days', segments => true)")

    for step in range(500):
        if step % 8 == 7:
            day += chance.choice((0, 1, 3))
            table.day(day)
        if step % 40 == 39:
            seal()
        chance.choice(writers).step(table.session.execute("SHOW dbext.now").fetchone()[0])
        if step % 6 == 5:
            chance.choice(writers).settle_prepared()
    for writer in writers:
        writer.session.commit()
        writer.settle_prepared()
        writer.session.close()
    table.day(day + 2)
    seal()
    records, changes = table.fetch(RECORDS), table.fetch(CHANGES)
    frozen = {(tick, unit, *(None if one is None else tuple(one) for one in images)) for tick, unit, *images in changes}
    assert frozen == expected_changes(records)
    assert len(frozen) == len(changes) > 40
    assert table.fetch("SELECT sum(taken)::integer, sum(mismatched)::integer FROM dbext_private.seal") == [(len(records), 0)]
    assert table.fetch("SELECT count(*) FROM every_record") == [(len(records),)]
    assert table.fetch("SELECT sum(late) > 0 FROM dbext_private.seal") == [(True,)]
    assert max(passes) > 3
    assert table.fetch("SELECT min(segment) > 1 FROM dbext_private.log_segment") == [(True,)]
    assert table.fetch("SELECT * FROM dp_recount('visits')") == [(0, 0, 0)]
