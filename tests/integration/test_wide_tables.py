"""Tables of many or wide columns: what could not always be recorded and sealed is refused, the rest is recorded and sealed."""

from __future__ import annotations

import psycopg
import pytest

WIDE = {
    "501 columns": ", ".join(f"c{i} boolean" for i in range(501)),
    "900 columns": ", ".join(f"c{i} integer" for i in range(900)),
    "wide columns": ", ".join(f"c{i} name" for i in range(70)),
    "many texts": ", ".join(f"c{i} text" for i in range(180)),
}


@pytest.mark.parametrize("name", WIDE)
def test_tables_too_wide_for_two_images_in_a_row(database, name):
    database.execute(f"CREATE TABLE t (id integer PRIMARY KEY, {WIDE[name]})")
    with pytest.raises(psycopg.Error) as refusal:
        database.execute("SELECT dp_track('t')")
    assert (refusal.value.sqlstate, "columns =>" in refusal.value.diag.message_hint) == ("DP003", True)
    database.execute("SELECT dp_track('t', columns => '{c1,c2}')")


FITTING = {
    "columns": (480, "bigint", "9"),
    "texts": (160, "text", "'12345678901234567890123'"),
}


@pytest.mark.parametrize("days", [1, 3])
@pytest.mark.parametrize("name", FITTING)
def test_what_is_not_too_wide_can_be_recorded_and_sealed(tracked, name, days):
    number, kind, value = FITTING[name]
    table = tracked("id integer PRIMARY KEY, " + ", ".join(f"c{i} {kind}" for i in range(number)))
    table.execute("SELECT dp_add_constraint('entry', 'any', max_mutations => 9, active_within => '100 days', at_limit => 'leave')")
    table.execute(f"INSERT INTO entry VALUES (1, {', '.join([value] * number)})")
    table.seal_through(0)
    table.execute(f"UPDATE entry SET {', '.join(f'c{i} = {value[::-1]}' for i in range(number))}, id = id")
    table.execute("UPDATE entry SET c1 = NULL")
    table.seal_through(days)
    assert table.fetch("SELECT count(*) FROM {change}") == [(2,)]
