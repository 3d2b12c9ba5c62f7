"""What a seal reads: the mutations that are new, whatever lies behind them and whoever left a transaction open."""

from __future__ import annotations

import pytest

ROWS = 15_000
#: A block range of the log's index.
RANGE = 32


def sealed_blocks(table, day: int) -> int:
    """Seal through a day and return how many blocks of the log and its segments were read."""
    table.day(day + 1)
    with table.database.connect(autocommit=False) as session:
        session.execute("SELECT set_config('dbext.now', %s, false)", (table.session.execute("SHOW dbext.now").fetchone()[0],))
        session.commit()
        assert table.seal(session) == day
        (blocks,) = session.execute(
            "SELECT sum(pg_stat_get_xact_blocks_fetched(l.relation))::integer FROM dbext_private.log_relations(%s) AS l", (table.number,)
        ).fetchone()
        session.commit()
    return blocks


@pytest.mark.parametrize("orphan", [False, True], ids=["alone", "orphaned prepared transaction"])
def test_a_seal_reads_what_is_new(tracked, orphan):
    table = tracked(rows=f"SELECT i, 'a' FROM generate_series(1, {ROWS}) AS i")
    table.execute(f"ALTER TABLE dbext_private.log_{table.number} SET (autovacuum_enabled = off)")
    if orphan:
        with table.database.connect(autocommit=False) as session:
            table.set_now("2020-03-02 12:00 UTC", session)
            session.execute("INSERT INTO entry VALUES (0, 'lost')")
            session.execute("PREPARE TRANSACTION 'orphan'")
    blocks = []
    for day in range(7):
        table.day(day)
        table.execute("UPDATE entry SET value = %s", (f"day {day}",))
        blocks.append(sealed_blocks(table, day))
    log = table.fetch("SELECT pg_relation_size('{log}') / current_setting('block_size')::integer")[0][0]
    assert log > 7 * RANGE
    assert sum(blocks[4:]) < 1.3 * sum(blocks[1:4]), blocks
    assert blocks[6] < log, blocks
    if orphan:
        table.execute("COMMIT PREPARED 'orphan'")
        table.seal_through(7)
        assert [row for row in table.changes() if row[1] == 0] == [(7, 0, None, "lost")]


def test_a_seal_does_without_the_summary_when_the_log_is_being_vacuumed(tracked):
    table = tracked()
    table.execute("INSERT INTO entry VALUES (1, 'a')")
    with table.database.connect(autocommit=False) as vacuum:
        vacuum.execute(f"LOCK TABLE dbext_private.log_{table.number} IN SHARE UPDATE EXCLUSIVE MODE")
        table.seal_through(0)
        vacuum.rollback()
    assert table.changes() == [(0, 1, None, "a")]


def test_a_seal_leaves_no_summary_that_writers_would_have_to_widen(tracked):
    """brin_summarize_range returns 1 where there was no summary yet."""
    table = tracked(rows=f"SELECT i, 'a' FROM generate_series(1, {ROWS}) AS i")
    table.execute(f"ALTER TABLE dbext_private.log_{table.number} SET (autovacuum_enabled = off)")
    table.seal_through(0)
    ((blocks,),) = table.fetch("SELECT pg_relation_size('{log}') / current_setting('block_size')::integer")
    assert blocks > RANGE
    assert blocks % RANGE > 0
    made = table.fetch(f"SELECT brin_summarize_range('dbext_private.log_{table.number}_new', b) FROM generate_series(0, {blocks}, {RANGE}) AS b ORDER BY b")
    assert [new for (new,) in made] == [0] * (blocks // RANGE) + [1]
