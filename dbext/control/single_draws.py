"""Experiments of the statistical audit in which the attacker sees single draws: answers, nodes of a hierarchy, reports of members."""

from __future__ import annotations

import psycopg

from dbext.control.experiments import CONFIDENCE, Finding, set_day
from dbext.mechanisms.protocol import Node
from dbext.privacy.audit_bound import epsilon_lower_bound
from dbext.query.plan import Plan, plan_from_json
from dbext.service.attacker import Figures, judged, laplace_ratios, scores_of

#: Each is charged in a session of its own, and all of them to one budget.
MOST_QUESTIONS = 200
DAILY = "FROM people WHERE dp_time > now() - INTERVAL '1 day'"
#: The days of a life of two changes that no block of the hierarchy holds both of.
COMES, LEAVES, LAST = 3, 8, 9


def question(
    with_entry: psycopg.Connection, without: psycopg.Connection, *, runs: int, epsilon: float, confidence: float = CONFIDENCE
) -> Finding:
    """Ask, of each of at most MOST_QUESTIONS places of its own, whether an entry came; every answer is drawn in a second session."""
    asked, answers = min(runs, MOST_QUESTIONS), []
    for connection, entries in ((with_entry, asked), (without, 0)):
        connection.execute("CREATE TABLE people (id integer PRIMARY KEY, place integer)")
        set_day(connection, 0)
        connection.execute("SELECT dp_track('people')")
        connection.execute("SELECT dp_add_constraint('people', 'any', max_mutations => 1)")
        connection.execute("SELECT dp_set_budget('people', epsilon => 1000)")
        set_day(connection, 1)
        connection.execute("INSERT INTO people SELECT i, i FROM generate_series(0, %s - 1) AS i", (entries,))
        set_day(connection, 3)
        connection.execute("CALL dp_publish()")
        ask = "SELECT dp_window_count('people', '2020-01-02', '2020-01-03', predicate => 'place = ' || i, epsilon => %s::numeric)"
        rows = connection.execute(f"{ask} FROM generate_series(0, %s - 1) AS i", (str(epsilon), asked)).fetchall()
        answers.append([value for (value,) in rows])
    proven = judged(*map(scores_of, answers), lambda *hits: epsilon_lower_bound(*hits, confidence=confidence))
    return Finding("question, net", "max_mutations 1", "one window", 0.0, "epsilon", epsilon, proven, asked)


def hierarchy(
    with_entry: psycopg.Connection, without: psycopg.Connection, *, runs: int, epsilon: float, confidence: float = CONFIDENCE
) -> Finding:
    """Look at every node of three levels that an entry touches by coming and by leaving: `dp_range` tells as much as all of them."""
    scores, plan = [], None
    for connection, entries in ((with_entry, runs), (without, 0)):
        _track(connection, epsilon, 2)
        keys = "VALUES " + ", ".join(f"({key})" for key in range(runs))
        connection.execute(
            "SELECT dp_create_release('audited', %s, '1 day', measure => 'net', epsilon => %s::numeric, groups => %s, horizon => %s, "
            "levels => '{1 day, 2 days, 4 days}')",
            (f"SELECT place, count(*) {DAILY} GROUP BY place", str(epsilon), keys, LAST),
        )
        set_day(connection, COMES)
        connection.execute("INSERT INTO people SELECT i, i FROM generate_series(0, %s - 1) AS i", (entries,))
        set_day(connection, LEAVES)
        connection.execute("DELETE FROM people")
        set_day(connection, LAST + 1)
        connection.execute("CALL dp_publish()")
        plan = plan_from_json(connection.execute("SELECT r.plan FROM dbext_private.release AS r").fetchone()[0]["plan"])
        scores.append(_of_nodes(connection, plan))
    proven = judged(*scores, lambda *hits: epsilon_lower_bound(*hits, confidence=confidence))
    return Finding("hierarchy, net", "max_mutations 2", plan.mechanism.name, 0.0, "epsilon", float(plan.epsilon), proven, runs)


def _of_nodes(connection: psycopg.Connection, plan: Plan) -> Figures:
    """Return the likelihood ratio of all touched nodes, by key: each node is Laplace noise of its own width around 0 or a change of 1."""
    (first,) = connection.execute("SELECT t.first_tick FROM dbext_private.tracked_table AS t").fetchone()
    changes = {node.number: _change(node, first) for period in range(1, LAST + 1) for node in plan.mechanism.nodes(period)}
    rows = connection.execute("SELECT n.node_no, n.noisy FROM dbext_private.node AS n").fetchall()
    return laplace_ratios((noisy, changes[number], float(plan.node_noise(number).scale)) for number, noisy in rows)


def _change(node: Node, first: int) -> int:
    """What the entry adds to a node; day 0 is the tick `first`."""
    comes, leaves = first + COMES, first + LEAVES
    return (node.start < comes <= node.end) - (node.start < leaves <= node.end)


def reports(
    with_entry: psycopg.Connection, without: psycopg.Connection, *, runs: int, epsilon: float, confidence: float = CONFIDENCE
) -> Finding:
    """Tell two lives apart by the reports of the local model: each member comes and leaves early in the one, late in the other.

    They touch four days between them, each of which is paid for.
    """
    scores = []
    for connection, days in ((with_entry, (1, 2)), (without, (3, 4))):
        _track(connection, epsilon, 2)
        roster = "VALUES " + ", ".join(f"({member})" for member in range(runs))
        connection.execute(
            "SELECT dp_create_release('audited', %s, '1 day', epsilon => %s::numeric, model => 'local', roster => %s, "
            "publish_reports => true)",
            (f"SELECT count(*) {DAILY}", str(epsilon), roster),
        )
        set_day(connection, days[0])
        connection.execute("INSERT INTO people SELECT i, i FROM generate_series(0, %s - 1) AS i", (runs,))
        set_day(connection, days[1])
        connection.execute("DELETE FROM people")
        set_day(connection, 5)
        connection.execute("CALL dp_publish()")
        scores.append(scores_of([score for (score,) in connection.execute(_SCORES).fetchall()]))
    proven = judged(*scores, lambda *hits: epsilon_lower_bound(*hits, confidence=confidence))
    return Finding("local model, net", "max_mutations 2", "randomized_response", 0.0, "epsilon", epsilon, proven, runs)


#: By member: -1, 0 or 1 for each day, those of the early life with their own sign, those of the late one against theirs.
_SCORES = """
SELECT sum(CASE WHEN r.release_no IN (1, 4) THEN 1 ELSE -1 END * r.report::integer)
FROM dp_release.audited_reports AS r WHERE r.release_no <= 4 GROUP BY r.pseudonym
"""


def _track(connection: psycopg.Connection, epsilon: float, changes: int) -> None:
    """Track an empty table on day 0, and let it be day 1, with a budget for one release."""
    connection.execute("CREATE TABLE people (id integer PRIMARY KEY, place integer)")
    set_day(connection, 0)
    connection.execute("SELECT dp_track('people')")
    connection.execute("SELECT dp_add_constraint('people', 'any', max_mutations => %s)", (changes,))
    connection.execute("SELECT dp_set_budget('people', epsilon => %s::numeric)", (str(epsilon),))
    set_day(connection, 1)
