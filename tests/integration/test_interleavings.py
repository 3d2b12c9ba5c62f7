"""Sessions that get in each other's way, in every order of their steps. What must hold is recomputed from the tables themselves."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.integration.interleaving import orders, play

START = "2020-03-02 12:00 UTC"
NEXT_DAY = "2020-03-03 12:00 UTC"
SEAL = "SELECT dbext_private.seal_table({number})"


def require_every_mutation_once(table) -> None:
    """Replaying the settled changes gives the table; every log row was taken by exactly one seal; ticks follow each other."""
    table.seal_through(3)
    replayed = {key: new for _, key, _, new in table.changes()}
    assert {key: value for key, value in replayed.items() if value is not None} == dict(table.fetch(f"SELECT id, value FROM {table.name}"))
    assert table.settled() == dict(table.fetch(f"SELECT id, value FROM {table.name}"))
    seals = table.fetch("SELECT first_tick, last_tick, taken, mismatched FROM dbext_private.seal ORDER BY seal_no")
    assert sum(taken for _, _, taken, _ in seals) == table.fetch("SELECT count(*) FROM {log}")[0][0]
    assert all(mismatched == 0 for _, _, _, mismatched in seals)
    assert all(after[0] == before[1] + 1 for before, after in pairwise(seals))


@pytest.mark.parametrize("order", orders(4, 3)[::2], ids=lambda order: "".join("WS"[one] for one in order))
def test_a_seal_among_the_steps_of_a_writer(tracked, order):
    table = tracked(rows="VALUES (1, 'one'), (2, 'two')")
    writer = ("BEGIN", "UPDATE entry SET value = 'changed' WHERE id = 1", "INSERT INTO entry VALUES (3, 'three')", "COMMIT")
    sealer = ("BEGIN", SEAL.format(number=table.number), "COMMIT")
    _, sealing = play(table.database, order, (writer, sealer), (START, NEXT_DAY))
    assert sealing.error is None
    day = 0 if _committed_first(order) else 1
    require_every_mutation_once(table)
    assert [when for when, key, _, _ in table.changes() if key == 3] == [day]


def _committed_first(order) -> bool:
    """Whether the writer's last step comes before the sealer's second."""
    places = [place for place, one in enumerate(order) if one == 1]
    return max(place for place, one in enumerate(order) if one == 0) < places[1]


@pytest.mark.parametrize("order", [order for order in orders(3, 3) if order[0] == 0], ids=lambda order: "".join("AB"[one] for one in order))
def test_two_seals(tracked, order):
    table = tracked(rows="VALUES (1, 'one')")
    table.execute("UPDATE entry SET value = 'changed'")
    steps = ("BEGIN", SEAL.format(number=table.number), "COMMIT")
    for actor in play(table.database, order, (steps, steps), (NEXT_DAY, NEXT_DAY)):
        assert actor.error is None
    assert table.fetch("SELECT count(*), sum(taken) FROM dbext_private.seal") == [(1, 2)]
    require_every_mutation_once(table)


@pytest.mark.parametrize("order", orders(4, 3)[::2], ids=lambda order: "".join("WT"[one] for one in order))
def test_tracking_among_the_steps_of_a_writer(database, tracked, order):
    database.execute("CREATE TABLE later (id integer PRIMARY KEY, value text)")
    database.execute("INSERT INTO later VALUES (1, 'one'), (2, 'two')")
    table = tracked()  # for its clock
    writer = ("BEGIN", "UPDATE later SET value = 'changed' WHERE id = 1", "INSERT INTO later VALUES (3, 'three')", "COMMIT")
    tracker = ("BEGIN", "SELECT dp_track('later')", "COMMIT")
    for actor in play(database, order, (writer, tracker), (START, START)):
        assert actor.error is None
    table.name = "later"
    table.number = database.value("SELECT table_id FROM dbext_private.tracked_table WHERE table_name = 'later'")
    table.day(1)
    table.seal()
    assert table.settled() == {1: "changed", 2: "two", 3: "three"}
    assert dict(table.fetch("SELECT op::text, count(*) FROM {log} GROUP BY op")) in ({"B": 3}, {"B": 2, "U": 1, "I": 1})
    assert table.fetch("SELECT sum(mismatched) FROM dbext_private.seal WHERE table_id = " + str(table.number)) == [(0,)]


PUBLISH = ("BEGIN", "SELECT dbext_private.draw_release({number})", "COMMIT", "SELECT dbext_private.publish_release({number})")


def published(cases, name: str) -> list[tuple]:
    return cases.database.fetch(f"SELECT release_no, n FROM (SELECT release_no, count(*) AS n FROM dp_release.{name} GROUP BY 1) AS r ORDER BY 1")


def require_consistent_ledger(cases, name: str) -> None:
    """No period twice, none without its nodes, and the ledger counts at least what was published."""
    rows = published(cases, name)
    assert [period for period, _ in rows] == list(range(1, len(rows) + 1))
    assert {count for _, count in rows} <= {1}
    ((nodes, charged),) = cases.database.fetch(
        "SELECT (SELECT count(*) FROM dbext_private.node AS n WHERE n.release_id = r.release_id),"
        " (SELECT coalesce(max(jsonb_path_query_first(l.charges, '$[0].pattern.count')::text::integer), 0) FROM dbext_private.ledger AS l"
        "  WHERE l.release_id = r.release_id AND l.kind = 'publish') FROM dbext_private.release AS r WHERE r.name = %s",
        (name,),
    )
    assert nodes >= len(rows)
    assert charged >= len(rows)


@pytest.mark.parametrize("order", orders(4, 4)[::7], ids=lambda order: "".join("AB"[one] for one in order))
def test_two_publishers(ready, order):
    ready.declare("daily", "SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day'", every="1 day", measure="net", epsilon=1)
    ready.insert((1, "north", "new"), (2, "south", "new"))
    ready.day(2)
    ((table,),) = ready.database.fetch("SELECT table_id FROM dbext_private.tracked_table")
    ready.database.execute(f"SELECT dbext_private.seal_table({table})")
    steps = [step.format(number=1) for step in PUBLISH]
    for actor in play(ready.database, order, (steps, steps)):
        assert actor.error is None
    ready.publish()
    assert published(ready, "daily") == [(1, 1), (2, 1)]
    require_consistent_ledger(ready, "daily")


@pytest.mark.parametrize("order", orders(3, 4)[::4], ids=lambda order: "".join("DP"[one] for one in order))
def test_a_declaration_among_the_steps_of_a_publisher(ready, order):
    count = "SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day'"
    ready.declare("daily", count, every="1 day", measure="net", epsilon=1)
    ready.insert((1, "north", "new"))
    ready.day(2)
    now = ready.database.value("SHOW dbext.now")
    ((table,),) = ready.database.fetch("SELECT table_id FROM dbext_private.tracked_table")
    declare = (f"SELECT dp_create_release('second', $${count}$$, every => '1 day', measure => 'net', epsilon => 2)",)
    publisher = (f"SELECT dbext_private.seal_table({table})", *(step.format(number=1) for step in PUBLISH[1:2] + PUBLISH[3:]), "CALL dp_publish()")
    for actor in play(ready.database, order, (("BEGIN", *declare, "COMMIT"), publisher), (now, now)):
        assert actor.error is None
    ready.day(4)
    ready.publish()
    assert published(ready, "daily") == [(period, 1) for period in range(1, 5)]
    require_consistent_ledger(ready, "daily")
    require_consistent_ledger(ready, "second")
    spent = ready.database.value("SELECT sum(epsilon) FROM dbext_private.ledger WHERE kind = 'reserve'")
    assert spent == 3


def test_long_transactions_and_an_orphan_over_several_seals(tracked):
    table = tracked(rows="SELECT i, 'a' FROM generate_series(1, 6) AS i")
    open_sessions = []
    for day in (0, 1, 2):
        table.day(day)
        session = table.database.connect(autocommit=False)
        table.set_now(table.session.execute("SHOW dbext.now").fetchone()[0], session)
        session.execute("UPDATE entry SET value = %s WHERE id = %s", (f"day {day}", day + 1))
        if day == 1:
            session.execute("PREPARE TRANSACTION 'orphan'")
            session.close()
        else:
            open_sessions.append(session)
        table.execute("UPDATE entry SET value = value || '.' WHERE id > 3")
        table.seal_through(day)
    for session in open_sessions:
        session.commit()
    table.seal_through(3)
    assert [(day, new) for day, key, _, new in table.changes() if key in (1, 3) and new != "a"] == [(3, "day 0"), (3, "day 2")]
    table.execute("COMMIT PREPARED 'orphan'")
    table.seal_through(4)
    assert [change for change in table.changes() if change[1] == 2] == [(0, 2, None, "a"), (4, 2, "a", "day 1")]
    assert table.settled() == dict(table.fetch("SELECT id, value FROM entry"))
    assert table.fetch("SELECT sum(taken) FROM dbext_private.seal")[0] == table.fetch("SELECT count(*) FROM {log}")[0]
