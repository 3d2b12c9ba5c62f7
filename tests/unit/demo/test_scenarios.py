"""What the two scenarios hold: the real year by its known numbers, the made-up one by its own rules."""

import itertools
import random
from collections import Counter
from datetime import date, timedelta

import pytest

from dbext.control.state import state_folder
from dbext.demo import dengue, exact, tickets
from dbext.demo.wheels import FileNotAvailable

HEADER = "Date_Onset,Date_Confirmation,Date_Notification,Sex,Age_Group,County_living,Imported,Serotype\n"


@pytest.fixture(scope="module")
def epidemic():
    try:
        return dengue.load(state_folder() / "downloads")
    except FileNotAvailable as problem:
        pytest.skip(f"the real data cannot be had here: {problem.message}")


def test_the_real_year_has_its_known_size(epidemic):
    assert epidemic.entries == 43_710
    assert len(epidemic.mutations) == 131_130
    lives = {
        key: [m.day for m in group] for key, group in itertools.groupby(sorted(epidemic.mutations, key=lambda m: m.key), lambda m: m.key)
    }
    lengths = [(days[-1] - days[0]).days for days in lives.values()]
    assert sum(length > 21 for length in lengths) == 307
    assert sum(length > 28 for length in lengths) == 147


def test_every_real_case_is_notified_confirmed_and_closed_in_a_known_county(epidemic):
    by_key = Counter(mutation.key for mutation in epidemic.mutations)
    assert set(by_key.values()) == {3}
    assert {m.image["county"] for m in epidemic.mutations if m.image} <= set(epidemic.group_keys)
    assert [m.day for m in epidemic.mutations] == sorted(m.day for m in epidemic.mutations)


def test_constraints_change_almost_nothing_in_the_real_year(epidemic):
    active = epidemic.statistics[3]
    admitted = exact.series(epidemic, active, exact.all_steps(epidemic, admitted=True))
    raw = exact.series(epidemic, active, exact.all_steps(epidemic, admitted=False))
    assert max(abs(admitted[key] - raw[key]) for key in raw) <= 2


def test_the_county_list_is_complete():
    assert len(dengue.COUNTIES) == len(set(dengue.COUNTIES)) == 22


def test_a_case_becomes_insert_update_delete():
    content = (
        HEADER + "2014/12/30,2015/01/09,2015/01/05,F,30-34,Tainan City,N,DENV2\n2014/12/01,2014/12/05,2014/12/31,M,5-9,Tainan City,Y,None\n"
    )
    (case,) = dengue.read_cases(b"\xef\xbb\xbf" + content.encode())
    notified, confirmed, closed = dengue.mutations_of([case])
    assert (notified.day, notified.image["status"], notified.image["serotype"]) == (date(2015, 1, 5), "notified", None)
    assert (confirmed.day, confirmed.image["status"], confirmed.image["serotype"]) == (date(2015, 1, 9), "confirmed", "DENV2")
    assert (closed.day, closed.image) == (date(2015, 1, 9) + timedelta(days=14), None)


def test_tickets_are_the_same_on_every_run():
    assert tickets.make_mutations(random.Random(tickets.SEED)) == list(tickets.load().mutations)


def test_tickets_keep_their_own_rules():
    scenario = tickets.load()
    product, days = {}, {}
    for mutation in scenario.mutations:
        days.setdefault(mutation.key, []).append(mutation.day)
        if mutation.image:
            product[mutation.key] = mutation.image["product"]
    multi_ride = [days[key] for key, name in product.items() if name == "multi-ride"]
    passes = [days[key] for key, name in product.items() if name == "monthly pass"]
    assert max(map(len, multi_ride)) == 12
    assert max((one[-1] - one[0]).days for one in passes) == 30
    assert exact.all_steps(scenario, admitted=True) == exact.all_steps(scenario, admitted=False)
