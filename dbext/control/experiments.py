"""`dbext audit --statistical`: what an attacker who sees published figures can prove about epsilon, beside what was claimed.

Two databases of a private server differ in entries that change as badly as their constraint allows, through SQL, as a user would. One
release publishes many independent experiments: every entry has two group keys of its own, so that its cells look like those of a pair of
databases that differ in that entry alone (`attacker` has the rest). Totals of a `state` all share the noise of their baseline, which hides
much of what is charged: there the proven figure stays far below.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from dataclasses import dataclass

import psycopg
from psycopg import sql

from dbext.control.cluster import Cluster
from dbext.privacy.accountant import worst_case_loss
from dbext.privacy.audit_bound import epsilon_lower_bound, mu_lower_bound
from dbext.privacy.constraint import Constraint, EntryType
from dbext.privacy.noise import RoundedGaussian
from dbext.privacy.pico import PICOS
from dbext.query.plan import Plan, plan_from_json
from dbext.service.attacker import BOTH, GONE, HERE, THERE, Figures, Kind, collected, judged, statistic

#: Of one bound: about three dozen are made at a time, and all of them should be right.
CONFIDENCE = 0.9995
FIRST_DAY = dt.date(2020, 1, 1)


@dataclass(frozen=True)
class Finding:
    """Claimed and proven figures: epsilon of Laplace noise; mu (sensitivity over sigma) of all figures together of Gaussian noise."""

    kind: str
    limits: str
    mechanism: str
    delta: float
    figure: str
    claimed: float
    proven: float
    runs: int

    @property
    def holds(self) -> bool:
        """Whether nothing was proven beyond the claim."""
        return self.proven <= self.claimed


RECENT = "SELECT place, count(*) FROM people WHERE dp_time > now() - INTERVAL '{} days' GROUP BY place"
SINCE = "SELECT place, count(*) FROM people WHERE dp_time > '2020-01-02' GROUP BY place"
PRESENT = "SELECT place, count(*) FROM people GROUP BY place"
PEOPLE = "SELECT place, count(DISTINCT person) FROM people WHERE dp_time > now() - INTERVAL '1 day' GROUP BY place"
FIXED = "SELECT place, count(*) FROM people WHERE dp_time > '2020-01-02' AND dp_time <= '2020-01-04' GROUP BY place"
MOVES = ((2, HERE), (3, THERE), (4, GONE))
COMES = ((2, HERE), (3, GONE))
#: Rows that a unit of several has beyond those that count.
BEYOND = 6


def times(count: int) -> dict[str, int | str]:
    """Return the limit of so many changes."""
    return {"max_mutations": count}


def within(days: int) -> dict[str, int | str]:
    """Return the limit of a life of so many days."""
    return {"active_within": f"{days} days"}


KINDS = (
    Kind("disjoint, entered", RECENT.format(1), "entered", COMES, times(2), 4),
    Kind("disjoint, left", RECENT.format(1), "left", COMES, times(2), 4),
    Kind("disjoint, net with a move", RECENT.format(1), "net", MOVES, times(3), 4),
    Kind("disjoint, net", RECENT.format(1), "net", MOVES, within(2), 4),
    Kind("disjoint, net", RECENT.format(1), "net", MOVES, times(3) | within(2), 4),
    Kind("disjoint, entered", RECENT.format(1), "entered", ((2, HERE), (3, GONE), (4, HERE)), within(2), 4),
    Kind("sliding, entered", RECENT.format(3), "entered", ((4, HERE), (5, GONE)), times(2), 12),
    Kind("sliding, net", RECENT.format(3), "net", ((4, HERE), (5, GONE)), within(1), 12),
    Kind("running total, net", SINCE, "net", ((1, HERE), (3, GONE)), times(2), 3, 3),
    Kind("running total, net", SINCE, "net", ((1, HERE), (2, GONE)), within(1), 3, 3),
    Kind("running total, state", PRESENT, "state", ((0, HERE), (1, THERE), (3, GONE)), times(3), 3, 3),
    Kind("one window, net", FIXED, "net", ((2, HERE),), times(1), 3, every=None),
    Kind("running total that is renewed, net", SINCE, "net", ((2, HERE), (5, GONE)), times(2), 6, 3, renews=True),
    Kind("rows of units, disjoint, net", RECENT.format(1), "net", ((2, HERE),), times(1), 3, rows=2),
    Kind("rows of units, running total, net", SINCE, "net", ((1, HERE), (3, GONE)), times(2), 3, 3, rows=3),
    Kind("units by what their rows say, net", PEOPLE, "net", ((2, BOTH),), times(1), 3, rows=2),
    Kind("running total with buffers, net", SINCE, "net", ((1, HERE),), times(1), 30, 20_001, gaussian=True),
)


def connect(database: str, cluster: Cluster) -> psycopg.Connection:
    """Open a superuser connection."""
    return psycopg.connect(cluster.dsn(database), autocommit=True)


def set_day(connection: psycopg.Connection, day: int) -> None:
    """Let it be noon of a day; day 1 is the first period of every release."""
    moment = f"{FIRST_DAY + dt.timedelta(days=day)} 12:00+00"
    connection.execute("SELECT set_config('dbext.now', %s, false)", (moment,))


def prepare(connection: psycopg.Connection, kind: Kind, runs: int, epsilon: float, delta: float) -> None:
    """Track an empty table the day before the first period and declare the release, with two keys for each experiment."""
    connection.execute("CREATE TABLE people (id integer PRIMARY KEY, person integer NOT NULL, place integer)")
    set_day(connection, 0)
    connection.execute("SELECT dp_track('people', unit => %s, rows_per_unit => %s)", (kind.rows and ["person"], kind.rows))
    connection.execute(
        "SELECT dp_add_constraint('people', 'any', max_mutations => %s, active_within => %s::interval)",
        (kind.limits.get("max_mutations"), kind.limits.get("active_within")),
    )
    connection.execute("SELECT dp_set_budget('people', epsilon => %s::numeric, delta => %s::numeric)", (str(2 * epsilon), str(delta)))
    set_day(connection, 1)
    keys = "VALUES " + ", ".join(f"({key})" for key in range(2 * runs))
    connection.execute(
        "SELECT dp_create_release('audited', %s, %s, measure => %s, epsilon => %s::numeric, groups => %s, horizon => %s, at_horizon => %s)",
        (kind.declaration, kind.every, kind.measure, str(epsilon), keys, kind.horizon, kind.at_horizon),
    )


def live(connection: psycopg.Connection, kind: Kind, runs: int) -> None:
    """Let one entry per experiment live its life. Day 0 is that of the tracking: what is there then belongs to no period.

    A unit of several rows has more of them than count.
    """
    rows = 1 if kind.rows is None else kind.rows + BEYOND
    for day, place in kind.life:
        set_day(connection, day)
        given = {"place": place, "both": BOTH, "rows": rows, "last": rows * runs - 1}
        if place is GONE:
            connection.execute("DELETE FROM people")
        elif connection.execute("SELECT count(*) FROM people").fetchone() == (0,):
            connection.execute(_COME, given)
        else:
            connection.execute(_MOVE, given)


_COME = """
INSERT INTO people SELECT p.id, p.person, 2 * p.person + CASE %(place)s::integer WHEN %(both)s THEN mod(p.id, 2) ELSE %(place)s END
FROM (SELECT id, id / %(rows)s::integer AS person FROM generate_series(0, %(last)s::integer) AS id) AS p
"""
_MOVE = "UPDATE people SET place = 2 * person + CASE %(place)s::integer WHEN %(both)s THEN mod(id, 2) ELSE %(place)s END"


def published(connection: psycopg.Connection, kind: Kind, runs: int) -> Figures:
    """Publish all days and return the figures: experiment x period x key."""
    set_day(connection, kind.days + 1)
    connection.execute("CALL dp_publish()")
    figure = sql.Identifier(kind.measure)
    rows = connection.execute(sql.SQL("SELECT release_no, place, r.{} FROM dp_release.audited AS r").format(figure)).fetchall()
    return collected(rows, runs, kind.periods)


def audit(
    with_entry: psycopg.Connection,
    without: psycopg.Connection,
    kind: Kind,
    *,
    runs: int,
    epsilon: float,
    delta: float = 0.0,
    confidence: float = CONFIDENCE,
    harm: Callable[[psycopg.Connection], None] | None = None,
) -> Finding:
    """Run the experiments of one kind in two fresh databases. `harm` may break something before anything is published."""
    for connection in (with_entry, without):
        prepare(connection, kind, runs, epsilon, delta)
    (content,) = with_entry.execute("SELECT r.plan FROM dbext_private.release AS r").fetchone()
    (first,) = with_entry.execute("SELECT t.first_tick FROM dbext_private.tracked_table AS t").fetchone()
    plan = plan_from_json(content["plan"])
    live(with_entry, kind, runs)
    for connection in (with_entry, without) if harm else ():
        harm(connection)
    score = statistic(kind, plan, first)
    scores = score(published(with_entry, kind, runs)), score(published(without, kind, runs))
    gaussian = isinstance(plan.noise, RoundedGaussian)
    bound, figure = (mu_lower_bound, "mu") if gaussian else (epsilon_lower_bound, "epsilon")
    claimed = math.sqrt(2 * _loss(kind, plan, pure=False)) if gaussian else _pure_loss(kind, plan)
    proven = judged(*scores, lambda *hits: bound(*hits, confidence=confidence))
    limits = ", ".join(f"{name} {value}" for name, value in kind.limits.items())
    return Finding(kind.name, limits, plan.mechanism.name, delta, figure, claimed, proven, runs)


def _pure_loss(kind: Kind, plan: Plan) -> float:
    """Return the epsilon that Laplace noise claims: what was asked for at delta 0, else what its charges cost without any delta."""
    return float(plan.epsilon) if plan.pure and not kind.renews else _loss(kind, plan, pure=True)


def _loss(kind: Kind, plan: Plan, *, pure: bool) -> float:
    """Return what all epochs together are charged, in epsilon or in rho."""
    days = kind.limits.get("active_within")
    limits = Constraint(kind.limits.get("max_mutations"), None if days is None else int(days.partition(" ")[0]))
    types = [EntryType(1, "any", limits)]
    charges = [charge for epoch in range(1, kind.epochs + 1) for charge in plan.charges_of_epoch(epoch, types)]
    return max(worst_case_loss(charges, types, pure=pure).values()) / PICOS
