"""Audit what was charged: every row traced to its charge, and the ledger's figure against lives that somebody could really live."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from dbext.database import audit, catalog, ledger
from dbext.database.ledger import Budget
from dbext.database.session import Session
from dbext.errors import NotSupported, UnboundedLoss
from dbext.mechanisms.explicit_lives import Noised, largest_loss
from dbext.mechanisms.protocol import Node
from dbext.privacy.charge import Charge
from dbext.privacy.loss import Loss
from dbext.privacy.measure import Measure, Values
from dbext.privacy.noise import noise_from_json, scaled
from dbext.privacy.pattern import Single
from dbext.privacy.pico import PICOS
from dbext.query.plan import Plan
from dbext.query.statistic import values_of
from dbext.service import epochs
from dbext.service.audit_finding import FAILED, LEDGER, PASSED, WARNING, Finding, judged
from dbext.service.audited import Audited
from dbext.service.budget import holds, lost_loss, table_loss
from dbext.service.key_delta import committed_key_delta
from dbext.service.numbers import plain, rounded_up

if TYPE_CHECKING:
    import numpy as np

#: Ticks of one table at which a life may change in the search for the worst one.
MOST_TICKS = 120
_ROUNDING = 1e-9


def release_findings(session: Session, one: Audited) -> Finding:
    """Trace what a release drew to its charges."""
    rows = audit.ledger_of_release(session, one.release.release_id)
    publication, last = one.due.publication, one.release.next_period - 1
    wrong = [] if _as_planned(session, one, rows["reserve"]) else ["its lifetime is not reserved once, as planned"]
    charged = rows["publish"][-1] if rows["publish"] else []
    if last:
        whole = epochs.spent(publication, rows["reserve"], last)
        wrong += [] if charged == whole else ["the last charge is not for all that was drawn"]
        for place, stream in enumerate(one.streams):
            wrong += _uncovered(stream.plan, last, publication.of_stream(charged, place))
    uncharged = sum(audit.node_facts(session, stream.noising.source).uncharged for stream in one.streams)
    wrong += [f"{uncharged} nodes have no charge in the transaction that drew them"] if uncharged else []
    if one.release.state == "dropped" and rows["return"] != [charged]:
        wrong.append("after the drop, not exactly what had been published stays charged")
    right = f"{last:,} periods, every node and row charged when it was drawn"
    return judged(LEDGER, "rows traced to charges", one.release.name, wrong, right, float(last))


def _as_planned(session: Session, one: Audited, reserved: Sequence[Sequence[Charge]]) -> bool:
    """Whether what was reserved, an epoch at a time, is for the filters and with the noise of the plan."""
    plan = one.due.publication
    if not reserved or list(reserved[0]) != list(plan.charges) or (len(reserved) > 1 and not plan.renews):
        return False
    types = catalog.accounted_types(session, one.table)
    renewed = ((charges, plan.charges_of_epoch(number, types)) for number, charges in enumerate(reserved[1:], 2))
    return all([_priced(c) for c in charges] == [_priced(c) for c in planned] for charges, planned in renewed)


def _priced(charge: Charge) -> tuple[object, ...]:
    """Return what a charge is for and in which unit it adds; bounds and constraints may be of another day."""
    return charge.pattern, charge.noise, charge.pure


def _uncovered(plan: Plan, last: int, charges: Sequence[Charge]) -> list[str]:
    """Compare what periods drew with the filters and the noise that were charged."""
    covered = Counter(one for charge in charges for one in charge.pattern.filters())
    drawn = Counter((node.start, node.end) for node in _ranges(plan, last))
    wrong = ["a time range was noised that was not charged"] if drawn - covered else []
    return wrong + ([] if _same_noise(plan, last, charges) else ["other noise was charged than is drawn"])


def _same_noise(plan: Plan, last: int, charges: Sequence[Charge]) -> bool:
    """Whether what is drawn has the noises charged, and nothing is charged that the plan does not draw, now or later.

    A level of which no block is over yet is charged for nothing; of signed trees the next longest block is charged a little early.
    """
    charged = {charge.noise for charge in charges if any(True for _ in charge.pattern.filters())}
    drawn = {plan.node_noise(node.number) for node in _ranges(plan, last)}
    return drawn <= charged <= {scaled(plan.noise, one) for one in plan.pattern_factors}


def _ranges(plan: Plan, last: int) -> list[Node]:
    """Return the time ranges that periods noise: nodes, or the leaves of encoder rows."""
    ranges = plan.mechanism.nodes if plan.whole_numbers else plan.mechanism.leaves
    return [node for period in range(1, last + 1) for node in ranges(period)]


def question_findings(session: Session) -> Finding:
    """Trace every answer to the charge for its window and noise."""
    wrong = []
    asked = audit.questions(session)
    for row in asked:
        noise = noise_from_json(json.loads(row["noise"]))
        window, values = Single(row["first_tick"], row["last_tick"]), _values(row["term"])
        charge = Charge(window, noise, Measure(row["measure"]), values=values, pure=row["pure"])
        if row["charges"] != [[charge]]:
            wrong.append(f"question {row['question_id']} is not charged once, for its window and noise and in its unit")
    lost = audit.lost_questions(session)
    wrong += [f"the answers of {lost} charged questions are gone"] if lost else []
    return judged(LEDGER, "answers traced to charges", "questions", wrong, f"{len(asked):,} answers, each charged once", float(len(asked)))


def budget_findings(session: Session, audited: Sequence[Audited]) -> Iterator[Finding]:
    """Yield for every budget whether it holds what it says, and whether its figure is one that no life exceeds."""
    for row in audit.budgets(session):
        budget = ledger.read_budget(session, row["budget_id"])
        tables = ledger.tables_of(session, budget.budget_id)
        try:
            committed = [table_loss(session, one, ledger.committed_charges(session, one), pure=budget.pure) for one in tables]
            lost = sum((lost_loss(session, one, pure=budget.pure) for one in tables), Loss())
            spent = {one: table_loss(session, one, ledger.spent_charges(session, one), pure=budget.pure) for one in tables}
        except (UnboundedLoss, NotSupported) as refusal:  # not supported: Gaussian noise that is charged in epsilon
            yield Finding(LEDGER, "budget holds", budget.name, FAILED, refusal.message)
            continue
        yield _holds(budget, sum(committed, lost))
        yield _keys_hold(session, budget)
        yield _history(session, budget, sum(spent.values(), lost))
        for table_id in tables:
            yield _against_lives(session, budget, table_id, spent[table_id], audited)


def _holds(budget: Budget, committed: Loss) -> Finding:
    loss, promised = committed.epsilon(budget.delta), float(budget.epsilon)
    verdict = PASSED if holds(budget, committed) else FAILED
    detail = f"spent and reserved {rounded_up(loss)} of {promised:g} at delta {float(budget.delta):g}"
    return Finding(LEDGER, "budget holds", budget.name, verdict, detail, float(loss), promised)


def _keys_hold(session: Session, budget: Budget) -> Finding:
    needed = committed_key_delta(session, budget)
    verdict = PASSED if needed <= budget.key_delta else FAILED
    detail = f"group keys taken from the data need {float(needed):.3g} of the {float(budget.key_delta):.3g} set aside for them"
    return Finding(LEDGER, "key delta holds", budget.name, verdict, detail, float(needed), float(budget.key_delta))


def _history(session: Session, budget: Budget, spent: Loss) -> Finding:
    """Compare the budget with what the ledger says was set last; warn of promises that were loosened after they had been used up."""
    rows = audit.budget_history(session, budget.budget_id)
    figures = [(Fraction(row["epsilon"]), Fraction(row["delta"]) - Fraction(row["key_delta"])) for row in rows]
    if not figures or figures[-1] != (budget.epsilon, budget.delta):
        return Finding(LEDGER, "budget reset", budget.name, FAILED, "its epsilon and delta are not those that were set last")
    broken = [one for one in figures if (one[1] == 0) == budget.pure and not spent.fits(*one)]
    if broken:
        epsilon, delta = broken[-1]
        detail = f"it was raised: an earlier promise of epsilon {float(epsilon):g} at delta {float(delta):g} is passed by what is spent now"
        return Finding(LEDGER, "budget reset", budget.name, WARNING, detail, float(spent.epsilon(budget.delta)), float(epsilon))
    return Finding(LEDGER, "budget reset", budget.name, PASSED, "as it was set last; nothing promised before was passed")


def _against_lives(session: Session, budget: Budget, table_id: int, spent: Loss, audited: Sequence[Audited]) -> Finding:
    """Compare the ledger's figures, unit by unit, with the worst lives found against the noise that was really drawn."""
    table = catalog.tracked_table(session, table_id)
    drawn = [one for one in audited if one.release.table_id == table_id and one.drawn]
    questions = [row for row in audit.questions(session) if row["table_id"] == table_id]
    ticks, limits = _ticks(table.first_tick, drawn, questions), [one.constraint for one in catalog.accounted_types(session, table)]
    wrong, said, worst, most = [], [], 0.0, 0.0
    for (unit, pure), figure in zip((("epsilon", True), ("rho", False)), spent.most, strict=True):
        asked = [row for row in questions if (budget.pure or row["pure"]) is pure]
        streams = [(stream, one) for one in drawn for stream in one.streams if (budget.pure or stream.plan.pure) is pure]
        noised = [_of_stream(stream.plan, one.release.next_period - 1, ticks) for stream, one in streams] + _of_questions(asked, ticks)
        found = max((largest_loss(noised, ticks, one, pure=pure) for one in limits), default=0.0) if noised else 0.0
        wrong += [unit] if found * PICOS > figure * (1 + _ROUNDING) + 1 else []
        if noised or pure is budget.pure:
            worst, most = found, figure / PICOS
            said.append(f"{worst:.6g} of {unit}, the ledger says {most:.6g}")
    detail = f"the worst life found loses {' and '.join(said)}"
    return Finding(LEDGER, "ledger against lives", table.shown_name, FAILED if wrong else PASSED, detail, worst, most)


def _ticks(first: int, drawn: Sequence[Audited], questions: Sequence[dict]) -> list[int]:
    """Return ticks at which a life may change: at most MOST_TICKS, spread over those that stand for the ranges noised."""
    ends = {node.end for one in drawn for node in _leaves(one)} | {row["last_tick"] for row in questions} | {first}
    ends |= {node.start + 1 for one in drawn for node in _leaves(one) if node.start is not None}
    ordered = sorted(ends)
    step = max(1, -(-len(ordered) // MOST_TICKS))
    return ordered[::step]


def _leaves(one: Audited) -> list[Node]:
    return [leaf for stream in one.streams for period in one.drawn for leaf in stream.plan.leaves(period)]


def _of_stream(plan: Plan, last: int, ticks: Sequence[int]) -> Noised:
    columns = _held(_ranges(plan, last), ticks) / _widths(plan, last) if plan.whole_numbers else encoded_columns(plan, last, ticks)
    return Noised(columns, plan.noise, plan.measure, plan.grouped, plan.values.magnitude)


def _widths(plan: Plan, last: int) -> np.ndarray:
    """Return how wide the noise of each drawn node is beside the plan's: what it is divided by, an effect is too."""
    import numpy as np

    factor = getattr(plan.mechanism, "factor", lambda _: 1)
    return np.array([float(factor(node.number)) for node in _ranges(plan, last)])


def _held(ranges: Sequence[Node], ticks: Sequence[int]) -> np.ndarray:
    """Return 1 where a range holds a tick."""
    import numpy as np

    at = np.array(ticks)[:, None]
    starts = np.array([-(2**62) if one.start is None else one.start for one in ranges])
    return ((starts < at) & (at <= np.array([one.end for one in ranges]))).astype(float)


def encoded_columns(plan: Plan, last: int, ticks: Sequence[int]) -> np.ndarray:
    """Return with which weight each encoder row holds what happens at a tick."""
    import numpy as np

    if plan.buffered is not None:
        return _of_buffers(plan, last, ticks)
    leaves = [leaf for period in range(1, last + 1) for leaf in plan.mechanism.leaves(period)]
    at, held = np.nonzero(_held(leaves, ticks))
    numbers, found = [leaves[place].number for place in held], []
    # A row at a time: all their weights together would take as much as the square of the number of periods.
    for row in (row for period in range(1, last + 1) for row in plan.mechanism.rows(period)):
        weights = dict(row.weights)
        found.append([weights.get(number, 0) for number in numbers])
    columns = np.zeros((len(ticks), len(found)))
    np.add.at(columns, at, np.array(found, float).T)
    return columns


def _of_buffers(plan: Plan, last: int, ticks: Sequence[int]) -> np.ndarray:
    """Return the columns of the encoder of buffered totals at the leaves that hold the ticks: each begins anew in its epoch."""
    import numpy as np

    mechanism, ends = plan.buffered, [leaf.end for leaf in _ranges(plan, last)]
    series = np.array([coefficient / (1 << mechanism.bits) for coefficient in mechanism.coefficients]) * (1 << mechanism.scale)
    length, columns = mechanism.positions, np.zeros((len(ticks), len(ends)))
    for row, tick in enumerate(ticks):
        place = bisect_left(ends, tick)
        if place < len(ends):
            later = length if place < length else length + -(-(place + 1 - length) // mechanism.horizon) * mechanism.horizon
            stop = min(later, len(ends))
            columns[row, place:stop] = series[: stop - place]
    return columns


def _of_questions(questions: Sequence[dict], ticks: Sequence[int]) -> list[Noised]:
    """Return the questions, those of one noise and measure together."""
    alike: dict[tuple[str, str, str], list[Node]] = {}
    for row in questions:
        window = Node(row["question_id"], row["first_tick"], row["last_tick"])
        alike.setdefault((row["noise"], row["measure"], row["term"]), []).append(window)
    return [
        Noised(_held(windows, ticks), noise_from_json(json.loads(noise)), Measure(measure), False, _values(term).magnitude)  # noqa: FBT003 no groups
        for (noise, measure, term), windows in alike.items()
    ]


def _values(term: str) -> Values:
    """Return what an entry adds to a question."""
    return values_of(json.loads(term) if term else None)


def shown_delta(delta: Fraction) -> str:
    """Write a delta as a decimal."""
    return plain(Decimal(delta.numerator) / Decimal(delta.denominator))
