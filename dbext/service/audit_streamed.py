"""Audit buffered totals: the draws read back from what was published, and whether they lead to the noise and the buffers that are stored.

Of the past only what was published is kept. A published total less the exact one is its noise, to the last step of the lattice; successive
noises give all draws (`buffers.read_back`), which must be what was calibrated, and end in the stored state. A total that was altered later,
however long ago, leads elsewhere. What cannot be read back so: means and variances (two noises in one figure), keys that are hidden, and
totals so large that a float does not hold them to a step of the lattice. Of those the last period alone is checked.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from dbext.database import nodes, noise_states
from dbext.database.nodes import Cells
from dbext.database.release_table import transcript_sql
from dbext.database.session import Session
from dbext.mechanisms.buffers import State, beginning, read_back
from dbext.mechanisms.protocol import Node
from dbext.query.statistic import scale_of
from dbext.service.audit_finding import PASSED, TRANSCRIPT, WARNING, Finding, judged
from dbext.service.audited import AuditedStream
from dbext.service.due import batches
from dbext.service.streaming import numbers_of, started

#: Floats hold whole numbers up to here; draws that are tested at most.
_EXACT, _MOST_TESTED = 2.0**52, 2_000_000

Stored = Mapping[int, Cells]


class Unreadable(Exception):
    """Draws cannot be read back from what was published; says why."""


def replayed(session: Session, stream: AuditedStream, stored: Stored) -> tuple[Finding, list[Cells]]:
    """Return whether the published totals lead to the stored state, and the latest of the draws behind them."""
    check, name = "noise behind totals", stream.name
    known = noise_states.read(session, stream.noising.source, stream.noising.cells)
    if known is None:
        return judged(TRANSCRIPT, check, name, ["the state of the noise is gone"] if stream.one.drawn else [], "nothing is drawn yet"), []
    wrong = [] if (known.drawn, known.answered) == (len(stream.one.drawn), len(stream.one.answered)) else ["its state is of another period"]
    draws: deque[Cells] = deque(maxlen=max(1, _MOST_TESTED // stream.noising.cells))
    try:
        state = _followed(stream, chain(_from_rows(session, stream, stored), _not_answered(stream, stored)), draws)
    except Unreadable as why:
        verdict = PASSED if stream.one.release.state == "dropped" else WARNING
        return (judged(TRANSCRIPT, check, name, wrong, "") if wrong else Finding(TRANSCRIPT, check, name, verdict, str(why))), []
    wrong += [] if state.noise == stored.get(known.drawn) else ["the last total does not hold the stored noise"]
    wrong += [] if state.buffers == known.buffers else ["the published totals do not lead to the stored buffers: one of them was altered"]
    right = f"{len(stream.one.answered):,} totals of each key lead back to their draws, and these to the stored noise and buffers, exactly"
    return judged(TRANSCRIPT, check, name, wrong, right, float(len(wrong))), list(draws)


def expected_numbers(stream: AuditedStream) -> list[int]:
    """Return the nodes that must be stored: that of the last period answered, those drawn since, and the baseline's."""
    drawn, answered = stream.one.drawn, stream.one.answered
    numbers = [number for period in drawn[max(0, len(answered) - 1) :] for number in numbers_of(stream.plan, period)]
    return sorted({*numbers, *(number for number in numbers_of(stream.plan, 1) if number == 0 and drawn)})


def _followed(stream: AuditedStream, noises: Iterator[tuple[int, Cells]], draws: deque[Cells]) -> State:
    """Return the state that successive noises lead to; their draws are appended."""
    circuit, cells = stream.plan.buffered.circuit, stream.noising.cells
    state = beginning(circuit, cells)
    for number, noise in noises:
        ((drawn, state),) = read_back(circuit, started(stream.plan, state, number, cells), [noise])
        draws.append(drawn)
    return state


def _not_answered(stream: AuditedStream, stored: Stored) -> Iterator[tuple[int, Cells]]:
    for period in stream.one.drawn[len(stream.one.answered) :]:
        for number in numbers_of(stream.plan, period):
            if number not in stored:
                raise Unreadable(f"the noise of period {period} is gone")
            if number or not stream.one.answered:
                yield number, stored[number]


def _from_rows(session: Session, stream: AuditedStream, stored: Stored) -> Iterator[tuple[int, Cells]]:
    """Yield the noise of every published total, the baseline's before them."""
    one, unit = stream.one, 1 << stream.plan.buffered.scale
    rows, step = _rows(session, stream)
    if one.answered and numbers_of(stream.plan, 1)[0] == 0:
        if 0 not in stored:
            raise Unreadable("the noise of the baseline is gone")
        yield 0, stored[0]
    for period, exact in _exact(session, stream):
        texts = rows[period]["values"].split(",") if period in rows else []
        noisy = [float(text) / step * unit for text in texts]
        if len(noisy) != len(exact):
            raise Unreadable(f"period {period} is not published for every key")
        if any(abs(value) >= _EXACT for value in noisy):
            raise Unreadable("totals are too large for their noise to be read back to a step of the lattice")
        yield period, [round(value) - total * unit for value, total in zip(noisy, exact, strict=True)]


def _rows(session: Session, stream: AuditedStream) -> tuple[dict[int, dict[str, Any]], float]:
    """Return the published rows of a figure that is this stream's statistic alone, by period, and what a step of its grid is worth."""
    one, publication = stream.one, stream.one.due.publication
    if one.release.state == "dropped":
        raise Unreadable("the release was dropped, and its table with it")
    if one.due.checks is not None:
        raise Unreadable("some of its keys are hidden: of earlier periods nothing is kept to recompute their rows from")
    for formula, figure in zip(publication.formulas, one.due.table.figures, strict=True):
        if formula.is_linear and publication.readings[formula.sources[0]].stream == stream.number:
            rows = session.fetch(transcript_sql(one.due.table, figure), one.release.release_id, one.release.table_id)
            return {row["period"]: row for row in rows}, float(scale_of(publication.statistic(formula.sources[0])))
    raise Unreadable("its figures hold several noises each: of earlier periods nothing is kept to recompute their rows from")


def _exact(session: Session, stream: AuditedStream) -> Iterator[tuple[int, Cells]]:
    """Yield the exact total of every answered period."""
    noising, totals = stream.noising, [0] * stream.noising.cells
    since = stream.plan.window(1)[0]
    for batch in batches(stream.one.answered, noising.cells):
        ends = [stream.plan.window(period)[1] for period in batch]
        parts = [Node(period, start, end) for period, start, end in zip(batch, [since, *ends], ends, strict=False)]
        since = ends[-1]
        for part, added in zip(parts, nodes.exact_sums(session, noising.source, parts, noising.cells, noising.beginning), strict=True):
            totals = [total + more for total, more in zip(totals, added, strict=True)]
            yield part.number, totals

