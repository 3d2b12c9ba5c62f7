"""Charge, draw and store an answer: what the second session does. It imports little, because every new question starts one."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

from dbext.database import catalog, ledger, questions, rights
from dbext.database.catalog import TrackedTable
from dbext.database.effects import window_total_sql
from dbext.database.ledger import Budget
from dbext.database.questions import Answer, Question
from dbext.database.session import Session
from dbext.errors import WindowNotSealed
from dbext.mechanisms.sampling import draw
from dbext.privacy.charge import Charge
from dbext.privacy.measure import COUNT, Measure, Values
from dbext.privacy.noise import Noise, noise_from_json
from dbext.privacy.pattern import Single
from dbext.service.allow import require_allowed
from dbext.service.budget import fits_at_once, require_fits, table_loss
from dbext.service.numbers import require_noise_fits
from dbext.service.wish import Settled, wish_from_json


def answer_question(
    session: Session,
    *,
    question: dict[str, Any],
    predicate: Any,
    epsilon: str,
    noise: dict[str, Any],
    pure: bool,
    wish: list[str | None],
    settled: list[Any],
    delta: str,
    asked_by: str,
) -> dict[str, Any]:
    """Answer a canonical question once; the caller commits this as a whole.

    The budget's lock comes first, and whatever decides is read after it: of two clients who ask the same, the second finds the answer of
    the first. `noise` is what the first session worked out for `epsilon` at `delta`, priced in epsilon if `pure`; it is priced here, and
    worked out anew if the constraints, the delta or what the `wish` comes to have changed since.
    """
    asked = Question(**question)
    table = catalog.tracked_table(session, asked.table_id)
    budget = ledger.lock_budget_of(session, asked.table_id, table.shown_name)
    wanted = wish_from_json(wish)
    answer = questions.remembered(session, asked, epsilon, wanted.noise)
    if answer is None:
        rights.require_home(session)
        if asked.end > catalog.tracked_table(session, asked.table_id).sealed_tick:
            raise WindowNotSealed(f"the window ends in a tick of table {table.shown_name} that is not sealed")
        now = wanted.settled(session, budget)
        proposed = (noise_from_json(noise), pure) if Fraction(delta) == budget.delta and now == tuple(settled) else None
        charge = _charge(session, table, budget, asked, proposed, now, Fraction(epsilon))
        ledger.settle_reservations(session)
        require_allowed(session, budget, table, [charge], epsilon, asked_by)
        if not fits_at_once(session, budget, table.table_id, [charge]):
            require_fits(session, budget, table.table_id, [charge], epsilon)
        answer = _draw_and_store(session, asked, predicate, charge, epsilon, asked_by)
        ledger.append(
            session, "question", budget.budget_id, recorded_by=asked_by, table_id=table.table_id,
            question_id=answer.question_id, charges=[charge], epsilon=epsilon,
        )  # fmt: skip
    return {"question_id": answer.question_id, "value": answer.value, "epsilon": answer.epsilon, "noise": answer.noise}


def _charge(
    session: Session,
    table: TrackedTable,
    budget: Budget,
    asked: Question,
    proposed: tuple[Noise, bool] | None,
    wish: Settled,
    epsilon: Fraction,
) -> Charge:
    """Return the charge of a question with the proposed noise, in its unit, or with more if that is not enough now."""
    pattern, measure, values = Single(asked.start, asked.end), Measure(asked.measure), _values(session, asked)
    if proposed is not None:
        noise, pure = proposed
        charge = Charge(pattern, noise, measure, values=values, pure=pure)
        if table_loss(session, table.table_id, [charge], pure=budget.pure).fits(epsilon, budget.delta):
            return charge
    from dbext.query.planner import plan_question

    types = catalog.accounted_types(session, table)
    noise, whole = wish
    plan = plan_question(
        asked.start, asked.end, measure=measure, epsilon=epsilon, types=types, delta=budget.delta, values=values, noise=noise, whole=whole
    )
    require_noise_fits(plan.noise)
    return Charge(pattern, plan.noise, measure, values=values, pure=plan.pure)


def _term(session: Session, asked: Question) -> Any:
    """Return what is summed; None is a count."""
    if not asked.term:
        return None
    from dbext.query.statistic import term_from_json

    return term_from_json(json.loads(asked.term), catalog.columns(session, asked.table_id))


def _values(session: Session, asked: Question) -> Values:
    """Return what an entry adds."""
    term = _term(session, asked)
    return COUNT if term is None else term.values


def _draw_and_store(session: Session, asked: Question, predicate: Any, charge: Charge, epsilon: str, asked_by: str) -> Answer:
    """Count exactly, add noise, store: the only place where a question draws."""
    tree = None
    if predicate is not None:
        from dbext.query.predicate_json import from_json

        tree = from_json(predicate, catalog.columns(session, asked.table_id))
    (row,) = session.fetch(window_total_sql(asked.table_id, charge.measure, tree, _term(session, asked)), asked.start, asked.end)
    (noise,) = draw(charge.noise, 1)
    return questions.remember(session, asked, epsilon, row["total"] + noise, charge, asked_by)
