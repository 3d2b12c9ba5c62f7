"""Ask about a past window, in the caller's session: stored answers at once, new ones when the second session has committed them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from dbext.database import catalog, ledger, moments, questions, rights, second_session
from dbext.database.catalog import TrackedTable
from dbext.database.questions import Answer, Question
from dbext.database.session import Session
from dbext.errors import BadArgument, NotSupported, SecondSessionUnavailable, WindowNotSealed
from dbext.mechanisms.error import answer_variance, half_width_95
from dbext.privacy.measure import COUNT, Measure, Values
from dbext.privacy.noise import noise_from_json
from dbext.query.predicate import Predicate, columns_of
from dbext.query.predicate_json import key, to_json
from dbext.service.numbers import epsilon_from, plain, require_noise_fits
from dbext.service.wish import Wish

EXAMPLE = "dp_window_count('cases', '2015-09-01', '2015-09-15', epsilon => 0.1)"
BEGINNING = "-infinity"


@dataclass(frozen=True)
class Asked:
    """A question that the caller may ask, before it is known whether it was answered already."""

    table: TrackedTable
    question: Question
    predicate: Predicate | None
    epsilon: str
    wish: Wish
    values: Values = COUNT


def window_stats(
    session: Session,
    *,
    tbl: int,
    window_start: str | None,
    window_end: str | None,
    predicate: str | None = None,
    measure: str | None = "net",
    epsilon: str | None = None,
    column_name: str | None = None,
    noise: str | None = None,
) -> dict[str, Any]:
    """Return an answer with its error and its window; runs in the caller's session.

    Nothing is charged here: a new question is charged, drawn, stored and committed in the second session, and only then read back.
    """
    who = rights.require_analyst(session)
    asked_epsilon = plain(epsilon_from(epsilon, EXAMPLE))
    wish = Wish(noise, asked_epsilon)
    table = catalog.tracked_by_regclass(session, str(tbl))
    compiled, term = _predicate(session, table, predicate), None
    if column_name is not None:
        from dbext.service.ask_sum import summed

        compiled, term = summed(session, table, compiled, column_name)
        if term.rows is not None and _measure(measure).counts_events:
            raise NotSupported(
                f"measure {measure} is of entries, and an entry of table {table.shown_name} is a unit of several rows",
                hint="Ask for measure net or state, or count units with dp_window_count.",
            )
    start, end = _window(session, table, window_start, window_end, _measure(measure))
    what = (_measure(measure).value, key(compiled), "" if term is None else json.dumps(term.to_json()))
    values = COUNT if term is None else term.values
    asked = Asked(table, Question(table.table_id, start, end, *what), compiled, asked_epsilon, wish, values)
    found = questions.remembered(session, asked.question, asked_epsilon, noise)
    answer = found or _ask(session, asked, who.name)
    grid = 1.0 if term is None else float(term.bounds.grid)
    return _stats(session, asked.question, answer, grid, remembered=found is not None)


def _measure(text: str | None) -> Measure:
    try:
        return Measure(text)
    except ValueError as fault:
        raise BadArgument("measure must be state, net, entered or left") from fault


def _predicate(session: Session, table: TrackedTable, text: str | None) -> Predicate | None:
    """Compile a predicate and check the caller's right to its columns. The compiler is imported only when there is something to compile."""
    if text is None:
        rights.require_asking(session, table.table_id, table.shown_name)
        return None
    from dbext.query.compiler import compile_predicate
    from dbext.service.literals import check_literals

    compiled = compile_predicate(text, catalog.columns(session, table.table_id))
    rights.require_asking(session, table.table_id, table.shown_name, columns_of(compiled))
    check_literals(session, table, compiled)
    return compiled


def _window(session: Session, table: TrackedTable, start: str | None, end: str | None, measure: Measure) -> tuple[int | None, int]:
    """Return the window in ticks, snapped outward; refused unless it lies in the table's sealed history."""
    if end is None:
        raise BadArgument("window_end is missing")
    last = moments.snap(session, table, "window_end", end)[1]
    first = None
    if start is not None and start.strip().lower() != BEGINNING:
        first = moments.snap(session, table, "window_start", start)[0]
    _require_shape(first, last, measure)
    _require_sealed(session, table, last)
    _require_history(session, table, last - 1 if first is None else first)
    return first, last


def _require_shape(first: int | None, last: int, measure: Measure) -> None:
    if first is None and measure is not Measure.STATE:
        raise BadArgument(f"measure {measure.value} needs a window_start")
    if first is not None and measure is Measure.STATE:
        raise BadArgument("a state depends on everything since the beginning", hint="Give NULL as window_start, or ask for measure net.")
    if first is not None and first >= last:
        raise BadArgument("window_end must be after window_start")


def _require_sealed(session: Session, table: TrackedTable, last: int) -> None:
    if last > table.sealed_tick:
        wanted, sealed = (moments.shown(session, table, boundary) for boundary in (last, table.sealed_tick))
        is_over = last <= moments.present_boundary(session, table)
        raise WindowNotSealed(
            f"the window ends at {wanted}, but table {table.shown_name} is sealed up to {sealed} only",
            hint="CALL dp_publish() seals." if is_over else "That moment is still to come; after it CALL dp_publish() seals.",
        )


def _require_history(session: Session, table: TrackedTable, first: int) -> None:
    if first < table.history_begins:
        begins = moments.shown(session, table, table.history_begins)
        raise BadArgument(
            f"the window begins before the history of table {table.shown_name}, which begins at {begins}",
            hint="Ask about a window that begins then or later.",
        )


def _ask(session: Session, asked: Asked, asked_by: str) -> Answer:
    """Have a question answered in the second session and return what was committed there."""
    budget_id = ledger.budget_id_of(session, asked.table.table_id, asked.table.shown_name)
    if ledger.holds_budget_lock(session):
        raise SecondSessionUnavailable(
            "this transaction has changed a budget or a release, which a question would have to wait for; nothing was spent",
            hint="COMMIT first, then ask.",
        )
    from dbext.query.planner import plan_question

    budget = ledger.read_budget(session, budget_id)
    noise, whole = asked.wish.settled(session, budget)
    plan = plan_question(
        asked.question.start,
        asked.question.end,
        measure=Measure(asked.question.measure),
        epsilon=Fraction(asked.epsilon),
        types=catalog.accounted_types(session, asked.table),
        delta=budget.delta,
        values=asked.values,
        noise=noise,
        whole=whole,
    )
    require_noise_fits(plan.noise)
    request = {
        "question": asdict(asked.question),
        "predicate": None if asked.predicate is None else to_json(asked.predicate),
        "epsilon": asked.epsilon,
        "noise": plan.noise.to_json(),
        "pure": plan.pure,
        "wish": asked.wish.to_json(),
        "settled": [noise, whole],
        "delta": str(budget.delta),
        "asked_by": asked_by,
    }
    return Answer(**second_session.ask(session, "answer_question", request))


def _stats(session: Session, question: Question, answer: Answer, grid: float, *, remembered: bool) -> dict[str, Any]:
    """Return the columns of dbext.window_answer; `grid` is what a step is worth."""
    noise = noise_from_json(answer.noise)
    half_width = half_width_95(noise, [1])
    start, end = moments.ends(session, question.table_id, question.start, question.end)
    return {
        "value": answer.value * grid,
        "std_error": answer_variance(noise, [1]) ** 0.5 * grid,
        "lower_95": (answer.value - half_width) * grid,
        "upper_95": (answer.value + half_width) * grid,
        "window_start": start,
        "window_end": end,
        "epsilon": answer.epsilon,
        "remembered": remembered,
    }
