"""Totals whose noise is made from buffers: drawn from what was left after the last period, answered from the last exact total.

A node holds the noise of one total, in steps of the mechanism's lattice. Nodes stay until their period is answered; the last one and the
buffers are all that later noise is made of. So neither what is stored nor what a publication reads grows with the number of periods.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dbext.database import nodes, noise_states
from dbext.database.nodes import Cells
from dbext.database.noise_states import NoiseState
from dbext.database.session import Session
from dbext.errors import InternalError, NotSupported
from dbext.mechanisms.buffers import State, advanced, beginning
from dbext.mechanisms.protocol import Node
from dbext.mechanisms.sampling import draw
from dbext.query.plan import Plan
from dbext.service.noised import Noising

#: Draws that are made together for cells that join later.
_AT_ONCE = 100_000


def draw_streamed(session: Session, noising: Noising, periods: Sequence[int]) -> None:
    """Draw and store the noise of successive periods, and move the state on; a period that was drawn is refused."""
    plan, source, cells = noising.plan, noising.source, noising.cells
    known = noise_states.read(session, source, cells)
    if known is None:
        known = noise_states.begin(session, source, plan.buffered.circuit.blank(cells), cells)
    if known.drawn != periods[0] - 1:
        raise InternalError("the noise of a release does not stand where it was left")
    state, numbers, noises = State(_last(session, noising, known.drawn), known.buffers), [], []
    for number, after in _steps(plan, state, periods, cells):
        state = after
        numbers.append(number)
        noises += after.noise
    nodes.store(session, source, numbers, noises, cells)
    noise_states.move_noise(session, source, known.drawn, periods[-1], state.buffers)


def _last(session: Session, noising: Noising, drawn: int) -> Cells:
    """Return the noise that later noise goes on from: none before the first draw."""
    if not drawn:
        return [0] * noising.cells
    stored = dict(_noises(session, noising, drawn, drawn))
    if drawn not in stored:
        raise InternalError("the last noise of a release is gone, and none can be drawn without it")
    return stored[drawn]


def _steps(plan: Plan, state: State, periods: Sequence[int], cells: int) -> Iterator[tuple[int, State]]:
    """Yield the number of each node that periods draw, with the state after it."""
    numbers = [number for period in periods for number in numbers_of(plan, period)]
    draws = draw(plan.noise, len(numbers) * cells)
    for place, number in enumerate(numbers):
        state = advanced(plan.buffered.circuit, started(plan, state, number, cells), draws[place * cells : (place + 1) * cells])
        yield number, state


def numbers_of(plan: Plan, period: int) -> tuple[int, ...]:
    """Return the numbers of the nodes of a period: its own, at first that of the baseline before it."""
    return (0, 1) if period == 1 and plan.buffered.baseline else (period,)


def started(plan: Plan, state: State, number: int, cells: int) -> State:
    """Return the state from which a node is drawn: a new epoch begins with empty buffers, and its total goes on."""
    begins = plan.renews and number > 1 and (number - 1) % plan.horizon == 0
    return State(state.noise, plan.buffered.circuit.blank(cells)) if begins else state


def streamed_answers(session: Session, noising: Noising, periods: Sequence[int]) -> list[list[float]]:
    """Return the answers, one number per cell, of the leading periods whose nodes are committed."""
    known = dict(_noises(session, noising, periods[0], periods[-1], committed=True))
    ready = next((place for place, period in enumerate(periods) if period not in known), len(periods))
    unit = 1 << noising.plan.buffered.scale
    exact = exact_totals(session, noising, periods[:ready])
    return [
        [(total * unit + noise) / unit for total, noise in zip(totals, known[period], strict=True)]
        for period, totals in zip(periods, exact, strict=False)
    ]


def exact_totals(session: Session, noising: Noising, periods: Sequence[int]) -> list[Cells]:
    """Return the exact totals of periods from the last answered one on, cell by cell, from the ticks since then."""
    if not periods:
        return []
    known = _known(session, noising)
    since = noising.plan.window(known.answered)[1] if known.answered else noising.plan.window(1)[0]
    ends = [noising.plan.window(period)[1] for period in periods]
    added = nodes.exact_sums(session, noising.source, [Node(0, since, end) for end in ends], noising.cells, noising.beginning)
    return [[total + more for total, more in zip(known.totals, one, strict=True)] for one in added]


def move_on(session: Session, noising: Noising, period: int) -> None:
    """Let a period be the last that was answered: its exact totals are kept, and nodes before it are not needed any more."""
    (totals,) = exact_totals(session, noising, [period])
    noise_states.move_totals(session, noising.source, period, totals)
    noise_states.forget(session, noising.source, period)


def join(session: Session, noising: Noising, added: int) -> None:
    """Give noise to cells that join later: drawn from the first period on, as if they had always been there."""
    known, plan = noise_states.read(session, noising.source, noising.cells), noising.plan
    if known is None:
        return
    stored, fresh = nodes.stored_numbers(session, noising.source), []
    state, size = beginning(plan.buffered.circuit, added), max(1, _AT_ONCE // added)
    for start in range(1, known.drawn + 1, size):
        for number, after in _steps(plan, state, range(start, min(start + size, known.drawn + 1)), added):
            state = after
            if number in stored:
                fresh += after.noise
    nodes.widen(session, noising.source, stored, fresh, added)
    buffers = [held + more for held, more in zip(known.buffers, state.buffers, strict=True)]
    noise_states.move_noise(session, noising.source, known.drawn, known.drawn, buffers)
    noise_states.move_totals(session, noising.source, known.answered, known.totals + [0] * added)


def require_kept(plan: Plan, name: str, what: str) -> None:
    """Refuse what needs the noise of the past, of a release that keeps the last one alone."""
    if plan.buffered is not None:
        raise NotSupported(
            f"{what} is put together from stored noise, and release {name} (mechanism buffered) keeps that of its last period alone",
            hint="Its published totals can be added and subtracted: they say all that there is.",
        )


def _known(session: Session, noising: Noising) -> NoiseState:
    known = noise_states.read(session, noising.source, noising.cells)
    if known is None:
        raise InternalError("nothing was drawn of a release that is answered")
    return known


def _noises(session: Session, noising: Noising, first: int, last: int, *, committed: bool = False) -> list[tuple[int, Cells]]:
    """Return the stored noises of periods; drawing goes on from what this very transaction drew, answers never."""
    read = nodes.committed_texts if committed else nodes.texts
    return [(number, [int(value) for value in text.split(",")]) for number, text in read(session, noising.source, max(first, 1), last)]
