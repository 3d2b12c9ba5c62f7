"""Noise on exact sums, and answers from what is stored, for each way in which a mechanism adds its noise.

What is drawn is stored once and never drawn again; what is answered is post-processing of committed nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from dbext.database import nodes
from dbext.database.nodes import Cells
from dbext.database.session import Session
from dbext.mechanisms.encoded import Row
from dbext.mechanisms.encoding import encode_rows, leaf_counts, noisy_table, weighted_sums
from dbext.mechanisms.protocol import Node
from dbext.mechanisms.ranges import Weights
from dbext.mechanisms.sampling import draw
from dbext.privacy.noise import Noise
from dbext.service.noised import Noising
from dbext.service.streaming import draw_streamed, streamed_answers

Answers = list[list[int]] | list[list[float]]
_Item = TypeVar("_Item")

#: Stored numbers of rows, or exact counts, that are looked at together: some 50 MB of a backend, however long the history.
VALUES_IN_MEMORY = 1_000_000


def draw_nodes(session: Session, noising: Noising, periods: Sequence[int]) -> None:
    """Draw and store what successive periods draw; exact tick sums must be there. The only place where a release draws."""
    if noising.plan.buffered is not None:
        draw_streamed(session, noising, periods)
        return
    numbers, exact = exact_nodes(session, noising, periods)
    if numbers:
        noises = _drawn(noising, numbers)
        noisy = [
            value + noise
            for number, values in zip(numbers, exact, strict=True)
            for value, noise in zip(values, noises[number], strict=True)
        ]
        nodes.store(session, noising.source, numbers, noisy, noising.cells)


def exact_nodes(session: Session, noising: Noising, periods: Sequence[int]) -> tuple[list[int], list[Cells]]:
    """Return what periods draw before it is noised: numbers and whole numbers, cell by cell."""
    return (_nodes if noising.plan.whole_numbers else _rows)(session, noising, periods)


def _drawn(noising: Noising, numbers: Sequence[int]) -> dict[int, list[int]]:
    """Return fresh noise for every cell of every node, drawn together where it is of the same width."""
    alike: dict[Noise, list[int]] = {}
    for number in numbers:
        alike.setdefault(noising.plan.node_noise(number), []).append(number)
    drawn = {}
    for noise, members in alike.items():
        values = draw(noise, len(members) * noising.cells)
        drawn |= {number: values[place * noising.cells : (place + 1) * noising.cells] for place, number in enumerate(members)}
    return drawn


def _nodes(session: Session, noising: Noising, periods: Sequence[int]) -> tuple[list[int], list[Cells]]:
    """Return the time ranges that periods draw: numbers and exact sums, zeros where noise is stored alone."""
    fresh = [node for period in periods for node in noising.plan.mechanism.nodes(period)]
    numbers = [node.number for node in fresh]
    if noising.noise_only or not fresh:
        return numbers, [[0] * noising.cells for _ in fresh]
    return numbers, nodes.exact_sums(session, noising.source, fresh, noising.cells, noising.beginning)


def _rows(session: Session, noising: Noising, periods: Sequence[int]) -> tuple[list[int], list[Cells]]:
    """Return the encoder rows that periods draw: numbers and whole-number combinations of exact counts."""
    mechanism = noising.plan.mechanism
    rows = [row for period in periods for row in mechanism.rows(period)]
    first = min(row.weights[0][0] for row in rows)
    leaves = [leaf for period in range(1, periods[-1] + 1) for leaf in mechanism.leaves(period) if leaf.number >= first]
    exact = [[0] * noising.cells for _ in rows]
    for part in _parts(leaves, noising.cells):
        start = noising.beginning if part[0].start is None else part[0].start
        texts = nodes.tick_texts(session, noising.source, start, part[-1].end)
        encoded = encode_rows(_within(rows, part), part[0].number, leaf_counts(part, texts, noising.cells))
        exact = [[sum(pair) for pair in zip(*both, strict=True)] for both in zip(exact, encoded, strict=True)]
    return [row.number for row in rows], exact


def _within(rows: Sequence[Row], leaves: Sequence[Node]) -> list[Row]:
    """Return the part of each row that is about some adjacent leaves."""
    first, last = leaves[0].number, leaves[-1].number
    return [Row(row.number, tuple(pair for pair in row.weights if first <= pair[0] <= last)) for row in rows]


def _parts(items: Sequence[_Item], cells: int) -> Iterator[Sequence[_Item]]:
    """Yield runs of rows, or leaves, that hold no more than VALUES_IN_MEMORY numbers together: memory does not grow with history."""
    size = max(1, VALUES_IN_MEMORY // cells)
    for start in range(0, len(items), size):
        yield items[start : start + size]


def answers(session: Session, noising: Noising, mechanism: Any, periods: Sequence[int]) -> Answers:
    """Return the answers, one number per cell, of the leading periods whose nodes are all committed.

    `mechanism` says how they are put together: the plan's own, turned to a window if it knows several.
    """
    if noising.plan.buffered is not None:
        return streamed_answers(session, noising, periods)
    return (_from_nodes if noising.plan.whole_numbers else _from_rows)(session, noising, mechanism, periods)


def combined(session: Session, noising: Noising, weights: Weights, start: int | None, end: int) -> Cells | list[float]:
    """Return the weighted sum of committed nodes or rows, which is about the range (start, end]: one number per cell."""
    if not noising.plan.whole_numbers:
        return _weighted(session, noising, nodes.committed_numbers(session, noising.source), [weights])[0]
    known = nodes.committed(session, noising.source, [number for number, _ in weights])
    total = [sum(known[number][cell] * weight for number, weight in weights) for cell in range(noising.cells)]
    if not noising.noise_only:
        return total
    (exact,) = nodes.exact_sums(session, noising.source, [Node(1, start, end)], noising.cells, noising.beginning)
    return [value + noise for value, noise in zip(exact, total, strict=True)]


def _from_nodes(session: Session, noising: Noising, mechanism: Any, periods: Sequence[int]) -> list[Cells]:
    """Sum committed nodes, and add the exact total where they hold noise alone."""
    known = nodes.committed(session, noising.source, {number for period in periods for number, _ in mechanism.answer(period)})
    found: list[Cells] = []
    for period in periods:
        terms = mechanism.answer(period)
        if any(number not in known for number, _ in terms):
            break
        found.append([sum(known[number][cell] * weight for number, weight in terms) for cell in range(noising.cells)])
    if not noising.noise_only or not found:
        return found
    windows = [Node(period, *mechanism.window(period)) for period in periods[: len(found)]]
    exact = nodes.exact_sums(session, noising.source, windows, noising.cells, noising.beginning)
    return [[total + part for total, part in zip(*pair, strict=True)] for pair in zip(exact, found, strict=True)]


def _from_rows(session: Session, noising: Noising, mechanism: Any, periods: Sequence[int]) -> list[list[float]]:
    """Weigh the committed noisy rows of a period and before."""
    stored = nodes.committed_numbers(session, noising.source)
    numbers = set(stored)
    terms = [mechanism.answer(period) for period in periods]
    ready = next((n for n, one in enumerate(terms) if any(number not in numbers for number, _ in one)), len(terms))
    return _weighted(session, noising, stored, terms[:ready]) if ready else []


def _weighted(session: Session, noising: Noising, stored: Sequence[int], terms: Sequence[Weights]) -> list[list[float]]:
    """Return weighted sums of stored rows, part by part; each is the same whatever else is asked or stored."""
    found = [[0.0] * noising.cells for _ in terms]
    for part in _parts(stored, noising.cells):
        table = noisy_table(nodes.committed_texts(session, noising.source, part[0], part[-1]))
        for place, one in enumerate(terms):
            here = [pair for pair in one if part[0] <= pair[0] <= part[-1]]
            if here:
                sums = weighted_sums(here, part[0], table)
                found[place] = [value + more for value, more in zip(found[place], sums, strict=True)]
    return found
