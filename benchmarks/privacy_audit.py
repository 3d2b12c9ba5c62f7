"""What an attacker who sees published figures can prove about epsilon, beside what was claimed. Run through SQL, as a user would.

Two databases differ in entries that change as badly as their constraint allows. One release publishes many independent experiments: every
entry has two group keys of its own, so that its cells look like those of a pair of databases that differ in that entry alone. The
attacker knows everything but whether the entry is there; he uses the likelihood ratio of all figures about it (for sums of several noises:
the best linear statistic), picks a threshold on one half of the experiments and tests it on the other with Clopper-Pearson limits.
Totals of a `state` all share the noise of their baseline, which hides much of what is charged: there the proven figure stays far below.

    python benchmarks/privacy_audit.py [--full] [--json FILE]
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psycopg

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from dbext.control.cluster import Cluster
from dbext.privacy.audit_bound import epsilon_lower_bound, mu_lower_bound
from dbext.privacy.noise import DiscreteLaplace
from dbext.query.plan import Plan, plan_from_json

CONFIDENCE = 0.99
FIRST_DAY = dt.date(2020, 1, 1)
#: Where an entry is at the end of a day of its life: at its first key, at its second, or absent.
HERE, THERE, GONE = 0, 1, None


@dataclass(frozen=True)
class Kind:
    """A kind of release and the life of an entry that costs it most: (day, place) changes, day 1 being the first period."""

    name: str
    declaration: str
    measure: str
    life: tuple[tuple[int, int | None], ...]
    max_mutations: int
    days: int
    horizon: int | None = None


@dataclass(frozen=True)
class Finding:
    """Claimed and proven figures: epsilon at delta 0; mu (sensitivity over sigma) of all figures together otherwise."""

    kind: str
    mechanism: str
    claimed: float
    proven: float
    runs: int


RECENT = "SELECT place, count(*) FROM people WHERE dp_time > now() - INTERVAL '{} days' GROUP BY place"
SINCE = "SELECT place, count(*) FROM people WHERE dp_time > '2020-01-02' GROUP BY place"
PRESENT = "SELECT place, count(*) FROM people GROUP BY place"
MOVES = ((2, HERE), (3, THERE), (4, GONE))

KINDS = (
    Kind("disjoint, entered", RECENT.format(1), "entered", ((2, HERE), (3, GONE)), 2, 4),
    Kind("disjoint, net with a move", RECENT.format(1), "net", MOVES, 3, 4),
    Kind("sliding, entered", RECENT.format(3), "entered", ((4, HERE), (5, GONE)), 2, 12),
    Kind("running total, net", SINCE, "net", ((1, HERE), (3, GONE)), 2, 3, 3),
    Kind("running total, state", PRESENT, "state", ((0, HERE), (1, THERE), (3, GONE)), 3, 3, 3),
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
    connection.execute("CREATE TABLE people (id integer PRIMARY KEY, place integer)")
    set_day(connection, 0)
    connection.execute("SELECT dp_track('people')")
    connection.execute("SELECT dp_add_constraint('people', 'any', max_mutations => %s)", (kind.max_mutations,))
    connection.execute("SELECT dp_set_budget('people', epsilon => %s::numeric, delta => %s::numeric)", (str(2 * epsilon), str(delta)))
    set_day(connection, 1)
    keys = "VALUES " + ", ".join(f"({key})" for key in range(2 * runs))
    every = "1 day"
    connection.execute(
        "SELECT dp_create_release('audited', %s, %s, measure => %s, epsilon => %s::numeric, groups => %s, horizon => %s)",
        (kind.declaration, every, kind.measure, str(epsilon), keys, kind.horizon),
    )


def live(connection: psycopg.Connection, kind: Kind, runs: int) -> None:
    """Let one entry per experiment live its life. Day 0 is that of the tracking: what is there then belongs to no period."""
    for day, place in kind.life:
        set_day(connection, day)
        if place is GONE:
            connection.execute("DELETE FROM people")
        elif connection.execute("SELECT count(*) FROM people").fetchone() == (0,):
            connection.execute("INSERT INTO people SELECT i, 2 * i + %s FROM generate_series(0, %s - 1) AS i", (place, runs))
        else:
            connection.execute("UPDATE people SET place = 2 * id + %s", (place,))


def published(connection: psycopg.Connection, kind: Kind, runs: int) -> np.ndarray:
    """Publish all days and return the figures: experiment x period x key."""
    set_day(connection, kind.days + 1)
    connection.execute("CALL dp_publish()")
    rows = connection.execute(f"SELECT release_no, place, r.{kind.measure} FROM dp_release.audited AS r").fetchall()
    figures = np.full((runs, kind.days, 2), np.nan)
    for period, place, value in rows:
        figures[place // 2, period - 1, place % 2] = value
    if np.isnan(figures).any():
        raise RuntimeError("a window or a key was not published")
    return figures


def place_at(kind: Kind, day: int) -> int | None:
    """Return where the entry is at the end of a day."""
    return next((place for since, place in reversed(kind.life) if since <= day), GONE)


def effect(kind: Kind, start: int | None, end: int, key: int) -> int:
    """Return what the entry does to the exact count of one key over the days (start, end]; None reaches back to the beginning."""
    if kind.measure == "entered":
        return sum(place_at(kind, day) == key and place_at(kind, day - 1) is GONE for day in range(start + 1, end + 1))
    return int(place_at(kind, end) == key) - int(start is not None and place_at(kind, start) == key)


def statistic(kind: Kind, plan: Plan, first_boundary: int) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function from figures (experiment x period x key) to what best tells whether the entry is there."""
    periods = range(1, kind.days + 1)
    nodes = {node.number: node for period in periods for node in plan.mechanism.nodes(period)}
    numbers = list(nodes)
    mixing = np.array([[dict(plan.mechanism.answer(period)).get(number, 0) for number in numbers] for period in periods], float)
    day = [(None if nodes[n].start is None else nodes[n].start - first_boundary, nodes[n].end - first_boundary) for n in numbers]
    signal = np.array([[effect(kind, start, end, key) for key in (HERE, THERE)] for start, end in day], float)
    if isinstance(plan.noise, DiscreteLaplace) and len(numbers) - kind.days in (0, 1):
        return lambda figures: _laplace_ratio(figures, mixing, signal, float(plan.noise.scale))
    weights = np.linalg.pinv(mixing @ mixing.T) @ mixing @ signal
    return lambda figures: (figures * weights).sum(axis=(1, 2))


def _laplace_ratio(figures: np.ndarray, mixing: np.ndarray, signal: np.ndarray, scale: float) -> np.ndarray:
    """Return the log likelihood ratio of figures (experiment x period x key) that are sums of as many nodes, or of one more.

    If one more node is mixed in, it is summed over: given its value, the figures determine all others.
    """
    if mixing.shape[0] == mixing.shape[1]:
        nodes = np.linalg.inv(mixing) @ figures
        return ((abs(nodes) - abs(nodes - signal)) / scale).sum(axis=(1, 2))
    extra = np.linspace(-30 * scale, 30 * scale, 601)
    rest = np.linalg.inv(mixing[:, 1:])
    nodes = (rest @ figures)[..., None] - (rest @ mixing[:, 0])[:, None, None] * extra

    def likelihood(shift: np.ndarray) -> np.ndarray:
        sums = -abs(nodes - shift[1:, :, None]).sum(axis=1) / scale - abs(extra - shift[0][:, None]) / scale
        return np.logaddexp.reduce(sums, axis=2).sum(axis=1)

    return likelihood(signal) - likelihood(np.zeros_like(signal))


def judged(with_entry: np.ndarray, without: np.ndarray, bound: Callable[[int, int, int, int], float]) -> float:
    """Return the best bound that a threshold chosen on one half of the experiments proves on the other."""
    half = len(with_entry) // 2
    best = max(_thresholds(with_entry[:half], without[:half]), key=lambda test: bound(*_hits(test, with_entry[:half], without[:half])))
    return bound(*_hits(best, with_entry[half:], without[half:]))


def _thresholds(with_entry: np.ndarray, without: np.ndarray) -> Iterator[tuple[float, bool]]:
    for threshold in np.quantile(np.concatenate([with_entry, without]), np.linspace(0.02, 0.98, 97)):
        yield float(threshold), True
        yield float(threshold), False


def _hits(test: tuple[float, bool], with_entry: np.ndarray, without: np.ndarray) -> tuple[int, int, int, int]:
    threshold, above = test
    if above:
        return int((with_entry >= threshold).sum()), len(with_entry), int((without >= threshold).sum()), len(without)
    return int((without <= threshold).sum()), len(without), int((with_entry <= threshold).sum()), len(with_entry)


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
    content, first = with_entry.execute("SELECT plan, next_end - 1 FROM dbext_private.release").fetchone()
    plan = plan_from_json(content["plan"])
    live(with_entry, kind, runs)
    for connection in (with_entry, without) if harm else ():
        harm(connection)
    score = statistic(kind, plan, first)
    scores = score(published(with_entry, kind, runs)), score(published(without, kind, runs))
    if plan.pure:
        proven = judged(*scores, lambda *hits: epsilon_lower_bound(*hits, confidence=confidence))
        return Finding(kind.name, plan.mechanism.name, float(plan.epsilon), proven, runs)
    proven = judged(*scores, lambda *hits: mu_lower_bound(*hits, confidence=confidence))
    return Finding(kind.name, plan.mechanism.name, math.sqrt(2 * max(plan.lifetime.values()) / 10**12), proven, runs)


@contextmanager
def fresh_pair(cluster: Cluster, number: int) -> Iterator[tuple[psycopg.Connection, psycopg.Connection]]:
    """Yield connections to two new databases with the extension."""
    names = f"with_{number}", f"without_{number}"
    with connect("postgres", cluster) as maintenance:
        for name in names:
            maintenance.execute(f"CREATE DATABASE {name}")
    with connect(names[0], cluster) as one, connect(names[1], cluster) as two:
        for connection in (one, two):
            connection.execute("CREATE EXTENSION dbext CASCADE")
        yield one, two


def main(arguments: Sequence[str] | None = None) -> None:
    """Audit every kind, under pure and zero-concentrated budgets."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="2,000 experiments of each kind instead of 200")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args(arguments)
    findings = []
    with Cluster.create("audit") as cluster:
        for number, (kind, delta) in enumerate((kind, delta) for delta in (0.0, 1e-6) for kind in KINDS):
            with fresh_pair(cluster, number) as (one, two):
                finding = audit(one, two, kind, runs=2000 if options.full else 200, epsilon=2.0 if delta == 0 else 8.0, delta=delta)
            figure = "epsilon" if delta == 0 else "mu     "
            print(f"{finding.kind:28} {finding.mechanism:20} {figure} claimed {finding.claimed:6.3f}  proven {finding.proven:6.3f}")
            findings.append({**finding.__dict__, "delta": delta})
    if options.json:
        options.json.write_text(json.dumps(findings, indent=2) + "\n")


if __name__ == "__main__":
    main()
