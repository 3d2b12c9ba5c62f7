"""The statements of the demo, as a database administrator or an analyst would type them: what is shown is what is run."""

from __future__ import annotations

from dbext.demo.scenario import Question, Rule, Scenario, Statistic


def quoted(text: str) -> str:
    """Return `text` as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def _call(function: str, *positional: str, **named: str | int | None) -> str:
    """Return a SELECT of one function; named arguments that are None are left out."""
    arguments = list(positional)
    arguments += [f"{name} => {value}" for name, value in named.items() if value is not None]
    return f"SELECT {function}({', '.join(arguments)});"


def track(scenario: Scenario) -> str:
    """Return the statement that starts tracking the table."""
    return _call("dp_track", quoted(scenario.table), tick=quoted("1 day"), time_zone=quoted(scenario.time_zone))


def add_constraint(scenario: Scenario, rule: Rule) -> str:
    """Return the statement that states one mutation constraint."""
    return _call(
        "dp_add_constraint",
        quoted(scenario.table),
        quoted(rule.name),
        applies_to=None if rule.applies_to is None else quoted(rule.applies_to),
        max_mutations=rule.max_mutations,
        active_within=None if rule.active_within_days is None else quoted(f"{rule.active_within_days} days"),
        at_limit=quoted("leave") if rule.leaves_at_limit else None,
    )


def set_budget(scenario: Scenario) -> str:
    """Return the statement that sets the budget."""
    return _call("dp_set_budget", quoted(scenario.table), epsilon=scenario.epsilon, delta=scenario.delta)


def mark_public(scenario: Scenario) -> str:
    """Return the statement that allows group keys to be read from the key table."""
    return _call("dp_mark_public", quoted(scenario.key_table), quoted("name"))


def create_release(statistic: Statistic) -> str:
    """Return the statement that declares one release."""
    body = statistic.declaration.replace("\n", "\n   ")
    named = [f"every => '1 day', measure => {quoted(statistic.measure)}, epsilon => {statistic.epsilon}"]
    if statistic.groups is not None:
        named.append(f"groups => {quoted(statistic.groups)}")
    if statistic.horizon is not None:
        named.append(f"horizon => {statistic.horizon}")
    return f"SELECT dp_create_release({quoted(statistic.name)}, $$\n   {body} $$,\n   {', '.join(named)});"


def ask(scenario: Scenario, question: Question) -> str:
    """Return the analyst's question for its answer with interval."""
    function = _window_function("dp_window_stats", scenario, question, question.epsilon)
    return f"SELECT * FROM {function};"  # noqa: S608 - every part is the scenario's own


def count(scenario: Scenario, question: Question, epsilon: str) -> str:
    """Return the same question for the number alone, at another epsilon."""
    return f"SELECT {_window_function('dp_window_count', scenario, question, epsilon)};"


def _window_function(function: str, scenario: Scenario, question: Question, epsilon: str) -> str:
    return (
        f"{function}({quoted(scenario.table)}, '{question.window_start}', '{question.window_end}',\n"
        f"   predicate => {quoted(question.predicate)}, measure => {quoted(question.measure)}, epsilon => {epsilon})"
    )
