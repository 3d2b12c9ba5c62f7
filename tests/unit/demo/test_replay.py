"""How a day's mutations become bulk statements, and the text of the statements shown."""

from datetime import date

from dbext.demo import dengue, statements, tickets
from dbext.demo.replay import rounds
from dbext.demo.scenario import Mutation

DAY = date(2015, 1, 1)
A, B = {"status": "a"}, {"status": "b"}


def test_mutations_of_one_entry_on_one_day_go_into_successive_rounds():
    present = {2, 3}
    day = [
        Mutation(DAY, 1, A),
        Mutation(DAY, 2, B),
        Mutation(DAY, 1, B),
        Mutation(DAY, 3, None),
        Mutation(DAY, 1, None),
        Mutation(DAY, 3, A),
    ]
    first, second, third = rounds(day, present)
    assert (first.inserts, first.updates, first.deletes) == ([(1, A)], [(2, B)], [3])
    assert (second.inserts, second.updates, second.deletes) == ([(3, A)], [(1, B)], [])
    assert (third.inserts, third.updates, third.deletes) == ([], [], [1])
    assert present == {2, 3}


def test_a_day_without_mutations_has_no_round():
    assert list(rounds([], set())) == []


def test_statements_are_what_a_person_would_type():
    scenario = tickets.scenario(())
    assert statements.add_constraint(scenario, scenario.rules[0]) == (
        "SELECT dp_add_constraint('tickets', 'monthly pass', applies_to => 'product = ''monthly pass''', "
        "active_within => '30 days', at_limit => 'leave');"
    )
    assert (
        statements.add_constraint(scenario, scenario.rules[1]) == "SELECT dp_add_constraint('tickets', 'multi-ride', max_mutations => 12);"
    )
    epidemic = dengue.scenario(())
    assert statements.set_budget(epidemic) == "SELECT dp_set_budget('cases', epsilon => 2, delta => 1e-6);"
    assert "epsilon => 1.5" in statements.count(epidemic, epidemic.question, "1.5")
