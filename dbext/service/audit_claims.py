"""Audit what a claim rests on: each condition that would make it void, one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from dbext.database import audit, catalog, ledger
from dbext.database.catalog import TrackedTable
from dbext.database.session import Session
from dbext.errors import NotSupported, UnboundedLoss
from dbext.service.audit_finding import CLAIM, FAILED, PASSED, WARNING, Finding, judged
from dbext.service.audit_ledger import shown_delta
from dbext.service.audited import Audited
from dbext.service.budget import LARGE_DELTA, table_loss
from dbext.service.figures import half_widths


def table_findings(session: Session, table: TrackedTable, *, charged: bool) -> Iterator[Finding]:
    """Yield whether an entry's contribution is bounded, and whether late changes have a fixed place."""
    yield _contribution(session, table, charged=charged)
    facts = audit.seal_facts(session, table.table_id)
    wrong = ["seals do not follow one another without a gap"] if facts["gaps"] else []
    wrong += [f"{facts['unsealed']} settled changes belong to ticks that no seal closed"] if facts["unsealed"] else []
    right = f"every tick is closed once; {facts['late']:,} late changes counted in the first open tick"
    found = judged(CLAIM, "late data", table.shown_name, wrong, right, float(facts["late"]))
    if not wrong and facts["open_events"]:
        found = Finding(CLAIM, "late data", table.shown_name, WARNING, "changes are not captured as a whole: see dbext.schema_event")
    yield found


def _contribution(session: Session, table: TrackedTable, *, charged: bool) -> Finding:
    """Check the limits that are declared, and that the settled images obey them."""
    check, name = "bounded contribution", table.shown_name
    entries, beyond = audit.contributions(session, table.table_id)
    if beyond:
        said = f"{beyond} of {entries:,} entries changed beyond the limits of their type"
        return Finding(CLAIM, check, name, FAILED, said, float(beyond), 0)
    free = [one.name for one in catalog.accounted_types(session, table) if not one.constraint.is_bounded]
    if free and charged:
        return _without_limit(session, table, free[0])
    return Finding(CLAIM, check, name, PASSED, f"{entries:,} entries changed within their limits", 0, 0)


def _without_limit(session: Session, table: TrackedTable, type_name: str) -> Finding:
    """Say whether anything bounds the loss of entries that may change for ever."""
    check, name = "bounded contribution", table.shown_name
    try:
        table_loss(session, table.table_id, ledger.committed_charges(session, table.table_id), pure=False)
    except UnboundedLoss as refusal:
        return Finding(CLAIM, check, name, FAILED, refusal.message)
    except NotSupported:  # Gaussian noise that is charged in epsilon: it is the limits alone that are asked for
        pass
    said = f"entries of type {type_name} have no limit: only what ends is bounded for them, by all of it"
    return Finding(CLAIM, check, name, WARNING, said)


def home_findings(session: Session) -> Iterator[Finding]:
    """Yield whether exact sums can be read by others, noise be redrawn, or charges be taken back."""
    leaks = audit.exposed(session)
    check, where = "exact sums are private", "schema dbext_private"
    readers = audit.readers_of_all(session)
    if readers and not leaks:
        yield Finding(CLAIM, check, where, WARNING, f"members of pg_read_all_data read everything: {', '.join(readers)}")
    else:
        yield judged(CLAIM, check, where, leaks, "nobody but dbext_owner and superusers reads them", float(len(leaks)))
    guards = audit.guards(session)
    wrong = [] if guards["drawn_once"] else ["the constraint that keeps a node from being drawn twice is gone"]
    wrong += [] if guards["home"] else ["this is a restored, promoted or cloned database: noise may have been drawn elsewhere too"]
    yield judged(CLAIM, "noise is not redrawn", "database", wrong, "a second draw of a node is refused; this database was not rolled back")
    wrong = [] if guards["append_only"] else ["the trigger that keeps the ledger append-only is off"]
    wrong += [f"table {name} took the name of one that had spent from another budget" for name in audit.namesakes(session)]
    yield judged(CLAIM, "budgets are not reset", "ledger", wrong, "the ledger is append-only, and no table began again under its old name")


def delta_findings(session: Session) -> Iterator[Finding]:
    """Yield whether the delta of every budget is acceptable."""
    for row in audit.budgets(session):
        budget = ledger.read_budget(session, row["budget_id"])
        declared = row["acceptable"]
        bound = Fraction(LARGE_DELTA if declared is None else declared)
        verdict = PASSED if budget.whole_delta <= bound else FAILED
        said = f"delta {shown_delta(budget.whole_delta)}; " + (
            f"at most {declared} was declared acceptable" if declared is not None else f"none was declared, above {LARGE_DELTA} none is"
        )
        yield Finding(CLAIM, "acceptable delta", budget.name, verdict, said, float(budget.whole_delta), float(bound))


def tolerance_findings(audited: Sequence[Audited], tolerances: Sequence[str | None]) -> Iterator[Finding]:
    """Yield whether releases are as exact as the decisions that are taken from them need."""
    for one, tolerance in zip(audited, tolerances, strict=True):
        if tolerance is None or one.release.state == "dropped":
            continue
        periods = one.answered or range(1, 2)
        widest = max((width for period in periods for width in half_widths(one.due.publication, period, one.due.cells)), default=0.0)
        verdict = PASSED if widest <= float(tolerance) else FAILED
        detail = f"the 95% interval reaches {widest:.6g} to either side; decisions bear {tolerance}"
        yield Finding(CLAIM, "decision tolerance", one.release.name, verdict, detail, widest, float(tolerance))
