"""A made-up year of ticket sales, for machines that cannot get the real data: seeded, the same on every run.

Multi-ride tickets mutate at most 12 times (sold, ten rides, gone); monthly passes mutate as often as they are used, but only
within 30 days of their sale.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date, timedelta
from functools import cache

from dbext.demo.scenario import Column, Image, Mutation, Question, Rule, Scenario, Statistic

YEAR = 2015
SEED = 20150101
MULTI_RIDE_TICKETS = 6_000
MONTHLY_PASSES = 25_000
RIDES_ON_A_TICKET = 10
DAYS_OF_A_PASS = 30
#: Share of the multi-ride tickets that are given back before they are used up.
RETURNED_EARLY = 0.125
#: Chance that a day drawn at random becomes a day of sale: fewer in summer, most after it, half on week-ends.
SUMMER, AUTUMN, OTHERWISE, WEEK_END = 0.45, 1.0, 0.7, 0.5
SATURDAY = 5

#: Every line of the network, with its share of the sales; the last one is not in service yet and sells nothing.
LINE_SHARES = {
    "Airport": 14,
    "Central": 40,
    "Circle": 24,
    "Harbour": 9,
    "Hill": 3,
    "Museum": 1,
    "University": 9,
    "West (planned)": 0,
}

COLUMNS = (
    Column("line", "text", constraint="NOT NULL REFERENCES line (name)"),
    Column("product", "text", constraint="NOT NULL"),
    Column("rides", "integer", updated=True, constraint="NOT NULL"),
    Column("status", "text", updated=True, constraint="NOT NULL"),
)


@cache
def load() -> Scenario:
    """Return the scenario."""
    return scenario(tuple(make_mutations(random.Random(SEED))))  # noqa: S311 - made-up data, the same on every run


def make_mutations(chance: random.Random) -> list[Mutation]:
    """Return the mutations of all tickets, in order of time."""
    products = ["multi-ride"] * MULTI_RIDE_TICKETS + ["monthly pass"] * MONTHLY_PASSES
    sold = sorted((_day_of_sale(chance), product) for product in products)
    mutations = []
    for number, (day, product) in enumerate(sold, start=1):
        line = chance.choices(list(LINE_SHARES), list(LINE_SHARES.values()))[0]
        mutations.extend(_life(chance, number, day, line, product))
    return sorted(mutations, key=lambda mutation: mutation.day)


def _day_of_sale(chance: random.Random) -> date:
    """Draw the day on which a ticket is sold."""
    while True:
        day = date(YEAR, 1, 1) + timedelta(days=chance.randrange(365))
        season = SUMMER if day.month in (7, 8) else AUTUMN if day.month in (9, 10) else OTHERWISE
        if chance.random() < season * (WEEK_END if day.weekday() >= SATURDAY else 1.0):
            return day


def _life(chance: random.Random, number: int, day: date, line: str, product: str) -> Iterator[Mutation]:
    yield Mutation(day, number, _image(line, product, 0))
    rides = _ride_days_of_pass(chance, day) if product == "monthly pass" else _ride_days_of_ticket(chance, day)
    for count, ride in enumerate(rides, start=1):
        yield Mutation(ride, number, _image(line, product, count))
    last = rides[-1] if rides else day
    gone = day + timedelta(days=DAYS_OF_A_PASS) if product == "monthly pass" else last + timedelta(days=1)
    yield Mutation(gone, number, None)


def _ride_days_of_ticket(chance: random.Random, sold: date) -> list[date]:
    """Draw the days of a multi-ride ticket's rides."""
    count = RIDES_ON_A_TICKET if chance.random() > RETURNED_EARLY else chance.randrange(1, RIDES_ON_A_TICKET)
    days, day = [], sold
    for _ in range(count):
        day += timedelta(days=chance.choice((0, 1, 1, 2, 3, 7)))
        days.append(day)
    return days


def _ride_days_of_pass(chance: random.Random, sold: date) -> list[date]:
    return sorted(sold + timedelta(days=chance.randrange(DAYS_OF_A_PASS)) for _ in range(chance.choice((1, 1, 1, 2, 5))))


def _image(line: str, product: str, rides: int) -> Image:
    return {"line": line, "product": product, "rides": rides, "status": "in use" if rides else "sold"}


RULES = (
    Rule(
        name="monthly pass",
        applies_to="product = 'monthly pass'",
        matches=lambda image: image["product"] == "monthly pass",
        active_within_days=DAYS_OF_A_PASS,
        leaves_at_limit=True,
        reason="a pass is valid for 30 days, however often it is used",
    ),
    Rule(
        name="multi-ride",
        max_mutations=RIDES_ON_A_TICKET + 2,
        reason="sold, ten rides, gone: twelve mutations at most",
    ),
)


def _in_use(image: Image) -> bool:
    return image["status"] == "in use"


def _any(_: Image) -> bool:
    return True


STATISTICS = (
    Statistic(
        name="sold_daily",
        title="Tickets sold per day, by line",
        meaning="tickets sold on that day",
        declaration="SELECT line, count(*)\nFROM   tickets\nGROUP  BY line, TUMBLE(dp_time, INTERVAL '1 day')",
        measure="entered",
        epsilon="1.8",
        satisfies=_any,
        window_days=1,
        group_column="line",
        groups="SELECT name FROM line",
    ),
    Statistic(
        name="started_14d",
        title="Tickets first used in the last 14 days, by line",
        meaning="tickets that came into use within the 14 days before",
        declaration=(
            "SELECT line, count(*)\nFROM   tickets\nWHERE  status = 'in use' AND dp_time > now() - INTERVAL '14 days'\nGROUP  BY line"
        ),
        measure="entered",
        epsilon="1.8",
        satisfies=_in_use,
        window_days=14,
        group_column="line",
        groups="SELECT name FROM line",
    ),
    Statistic(
        name="started_total",
        title="Tickets used so far, whole network",
        meaning="tickets that came into use since the beginning",
        declaration="SELECT count(*)\nFROM   tickets\nWHERE  status = 'in use'",
        measure="entered",
        epsilon="1.8",
        satisfies=_in_use,
        window_days=None,
        horizon=366,
    ),
    Statistic(
        name="valid_tickets",
        title="Valid tickets, whole network",
        meaning="tickets that are valid at the end of the day",
        declaration="SELECT count(*)\nFROM   tickets",
        measure="state",
        epsilon="1.8",
        satisfies=_any,
        window_days=None,
        horizon=366,
    ),
)

QUESTION = Question(
    words="How many tickets came into use in the first two weeks of September?",
    window_start=date(YEAR, 9, 1),
    window_end=date(YEAR, 9, 15),
    predicate="status = 'in use'",
    satisfies=_in_use,
    measure="entered",
    epsilon="0.6",
    refused_epsilon="3",
)


def scenario(mutations: tuple[Mutation, ...]) -> Scenario:
    """Return the scenario over the given mutations."""
    return Scenario(
        title=f"Tickets, {YEAR} (made up)",
        source=f"a made-up ticket table (random seed {SEED}, the same on every run)",
        entry_word="ticket",
        table="tickets",
        key="ticket_id",
        columns=COLUMNS,
        key_table="line",
        group_keys=tuple(LINE_SHARES),
        shown_groups=("Central", "Circle", "Airport", "Museum", "West (planned)"),
        time_zone="Asia/Taipei",
        rules=RULES,
        epsilon="4",
        delta="1e-6",
        statistics=STATISTICS,
        question=QUESTION,
        mutations=mutations,
        first_day=date(YEAR, 1, 1),
        last_day=date(YEAR, 12, 31),
        sample_day=date(YEAR, 10, 1),
    )
