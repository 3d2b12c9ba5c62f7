"""One entry with a value of absurd length must not decide whether something succeeds: that would tell of it, exactly and for nothing."""

import pytest

HUGE = "repeat('x', 268435456)"


@pytest.mark.parametrize("there", [False, True])
def test_an_absurdly_long_text_changes_no_outcome(database, tracked, there):
    database.execute("CREATE EXTENSION citext")
    made = tracked("id integer PRIMARY KEY, value text, loose citext")
    made.execute("SELECT dp_add_constraint('entry', 'some', applies_to => $$upper(value) = 'A'$$, max_mutations => 3)")
    made.execute("SELECT dp_add_constraint('entry', 'any', max_mutations => 3), dp_set_budget('entry', epsilon => 20)")
    made.execute(
        "SELECT dp_create_release('counts', 'SELECT loose, count(*) FROM entry GROUP BY loose', '1 day', epsilon => 1, groups => $$VALUES ('a')$$, horizon => 20)"
    )
    made.execute("INSERT INTO entry VALUES (1, 'a', 'A')")
    if there:
        made.execute(f"INSERT INTO entry VALUES (9000, {HUGE}, {HUGE})")
    made.day(2)
    made.execute("CALL dp_publish()")
    assert made.session.execute("SELECT count(*) FROM dp_release.counts").fetchone() == (1,)
    for predicate in ("lower(value) = 'a'", "loose = 'a'", "loose IN ('a', 'b')", "value = 'a'"):
        question = "SELECT dp_window_count('entry', '2020-03-02', '2020-03-03', predicate => %s, epsilon => 1)"
        assert made.session.execute(question, (predicate,)).fetchone() is not None
