"""Audit what was published: every value recomputed from stored nodes, every node drawn once, the noise in them what it should be."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dbext.database import audit, noise_states, releases
from dbext.database.effects import wrong_sums_sql
from dbext.database.release_table import transcript_sql
from dbext.database.session import DatabaseError, Session
from dbext.errors import NotSupported
from dbext.privacy import noise_tests
from dbext.privacy.noise import Noise
from dbext.query.statistic import scale_of
from dbext.service.audit_finding import FAILED, PASSED, TRANSCRIPT, WARNING, Finding, judged
from dbext.service.audit_streamed import expected_numbers, replayed
from dbext.service.audited import Audited, AuditedStream
from dbext.service.declare import sum_from
from dbext.service.due import batches
from dbext.service.figures import figure_arrays
from dbext.service.grouping import columns_from_json, groups_from_json
from dbext.service.noising import Answers, exact_nodes
from dbext.service.publish import answered

if TYPE_CHECKING:
    import numpy as np

#: Chance that one test of honest noise raises a false alarm.
LEVEL = 1e-9
_CLOSE = 1e-9
_MISSING_TABLE = "42P01"


def findings(session: Session, one: Audited) -> Iterator[Finding]:
    """Yield what a release's transcript shows."""
    yield _published(session, one)
    for stream in one.streams:
        yield from _of_stream(session, stream)


def _of_stream(session: Session, stream: AuditedStream) -> Iterator[Finding]:
    """Yield what the nodes of one stream show."""
    one = stream.one
    yield _exact_sums(session, stream)
    stored = audit.stored_nodes(session, stream.noising.source)
    if stream.plan.buffered is not None:
        yield from _of_buffered(session, stream, stored)
        return
    numbers, exact = exact_nodes(session, stream.noising, one.drawn) if one.drawn else ([], [])
    yield _drawn_once(session, stream, numbers, stored)
    noises: dict[Noise, list[list[int]]] = {}
    for number, sums in zip(numbers, exact, strict=True):
        if len(stored.get(number, ())) == len(sums):
            noise = [noisy - true for noisy, true in zip(stored[number], sums, strict=True)]
            noises.setdefault(stream.plan.node_noise(number), []).append(noise)
    for place, (law, drawn) in enumerate(noises.items(), 1):
        import numpy as np

        name = stream.name if len(noises) == 1 else f"{stream.name}, noise {place} of {len(noises)}"
        yield from _noise(name, law, np.array(drawn, dtype=float))


def _of_buffered(session: Session, stream: AuditedStream, stored: dict[int, list[int]]) -> Iterator[Finding]:
    """Yield what is left of the noise of buffered totals shows, and what was published."""
    import numpy as np

    yield _drawn_once(session, stream, expected_numbers(stream), stored)
    found, draws = replayed(session, stream, stored)
    yield found
    if draws:
        yield from _noise(stream.name, stream.plan.noise, np.array(draws, dtype=float))


def _published(session: Session, one: Audited) -> Finding:
    """Recompute every published row from committed nodes; of buffered totals, whose draws are read back from them, the last one."""
    name = one.release.name
    if one.release.state == "dropped":
        return Finding(TRANSCRIPT, "published values", name, PASSED, "the release was dropped, and its table with it")
    try:
        found = [
            {row["period"]: row for row in session.fetch(sql, one.release.release_id, one.release.table_id)}
            for sql in (transcript_sql(one.due.table, figure) for figure in one.due.table.figures)
        ]
    except DatabaseError as fault:
        if fault.sqlstate != _MISSING_TABLE:
            raise
        return Finding(TRANSCRIPT, "published values", name, FAILED, "the release table is gone, though the release was not dropped")
    shown = releases.shown_cells(session, one.release.release_id)
    wrong = [f"period {period} is in the table but was never published" for period in sorted(set(found[0]) - set(one.answered))]
    buffered = any(stream.plan.buffered for stream in one.streams)
    for batch in batches(_recomputed(session, one) if buffered else one.answered, one.due.values):
        made = answered(session, one.due, batch)
        ready = min(len(values) for values in made)
        wrong += [f"the nodes of period {period} are gone" for period in batch[ready:]]
        for place, period in enumerate(batch[:ready]):
            cells = [cell for cell, since in shown.items() if since <= period]
            noisy = [[_of_cells(values[place], cells, one.due.publication.width(number))] for number, values in enumerate(made)]
            wrong += [f"period {period}: {what}" for what in _wrong_in(one, period, noisy, [rows.get(period) for rows in found])]
    if buffered:
        wrong += [f"period {period}: {what}" for period in one.answered[:-1] for what in _wrong_in_shape(one, period, found)]
    values = (1 if buffered else len(one.answered)) * one.due.cells * len(one.due.table.figures)
    return judged(TRANSCRIPT, "published values", name, wrong, f"{values:,} values are what their stored nodes make", float(len(wrong)))


def _recomputed(session: Session, one: Audited) -> range:
    """Return the periods of buffered totals that can be recomputed: the last one; none if the state of the noise is gone."""
    states = (noise_states.read(session, stream.noising.source, stream.noising.cells) for stream in one.streams if stream.plan.buffered)
    known = all(state is not None and state.answered == len(one.answered) for state in states)
    return one.answered[-1:] if known else range(0)


def _wrong_in_shape(one: Audited, period: int, found: list[dict[int, dict[str, Any]]]) -> Iterator[str]:
    """Yield what is wrong with the rows of a period whose nodes are not kept: its keys, its window, and errors that are alike in all."""
    rows = [rows.get(period) for rows in found]
    linear = all(formula.is_linear for formula in one.due.publication.formulas)
    if rows[0] is None:
        yield from [] if one.due.checks is not None else ["no row"]
    elif linear and one.due.checks is None:
        units = [float(scale_of(one.due.publication.statistic(formula.sources[0]))) for formula in one.due.publication.formulas]
        shown = {formula.sources[0]: (row, unit) for formula, row, unit in zip(one.due.publication.formulas, rows, units, strict=True)}
        places = range(len(one.due.publication.readings))
        noisy = [[[float(text) / shown[place][1] for text in shown[place][0]["values"].split(",")]] for place in places]
        yield from _wrong_in(one, period, noisy, rows)


def _of_cells(values: Sequence[float], cells: Sequence[int], width: int) -> list[float]:
    """Return what belongs to some keys, each of which has so many numbers."""
    return [value for cell in cells for value in values[(cell - 1) * width : cell * width]]


def _wrong_in(one: Audited, period: int, noisy: list[Answers], rows: list[dict[str, Any] | None]) -> Iterator[str]:
    """Yield what is wrong with the rows of a period; `rows` holds what is published of each figure, `noisy` the answers of shown cells."""
    cells, row = len(noisy[0][0]) // one.due.publication.width(0), rows[0]
    if row is None and cells == 0:
        return
    if row is None:
        yield "no row"
        return
    if row["rows"] != cells or row["cells"] != cells or row["windows"] != 1:
        yield "not one row for every key, all of one window"
        return
    start, end = one.due.publication.window(period)
    if (row["first"], row["last"]) != (one.table.first_tick - 1 if start is None else start, end):
        yield "another window than planned"
    arrays = iter(figure_arrays(one.due.publication, [period], noisy, cells))
    for figure, shown in zip(one.due.table.figures, rows, strict=True):
        yield from (_wrong_in_line if figure.linear else _wrong_in_cells)(shown, arrays)


def _wrong_in_line(row: dict[str, Any], arrays: Iterator[list]) -> Iterator[str]:
    """Yield what is wrong with a figure whose errors are alike in all cells."""
    values, (width,), (half,) = next(arrays), next(arrays), next(arrays)
    shown = [float(text) for text in row["values"].split(",")]
    if any(abs(a - b) > _CLOSE * (abs(a) + width) for a, b in zip(shown, values, strict=True)):
        yield "a value differs from what its nodes make"
    largest = max(map(abs, shown))
    stated = {"std_error": width, "below": half, "above": half}
    if any(abs(row[f"{side}_{what}"] - true) > _CLOSE * (true + largest) for what, true in stated.items() for side in ("least", "most")):
        yield "another standard error or interval than its noise has"


def _wrong_in_cells(row: dict[str, Any], arrays: Iterator[list]) -> Iterator[str]:
    """Yield what is wrong with a figure that is worked out cell by cell."""
    for name in ("values", "errors", "lowers", "uppers"):
        shown, made = [float(text) for text in row[name].split(",")], next(arrays)
        if any(abs(a - b) > _CLOSE * (abs(a) + abs(b) + 1) for a, b in zip(shown, made, strict=True)):
            yield "a value, error or bound differs from what its nodes make"


def _exact_sums(session: Session, stream: AuditedStream) -> Finding:
    """Recompute the exact sums from the settled images: nobody touched them, or a tick that was closed, since they were stored."""
    one = stream.one
    check, name, release = "exact sums", stream.name, one.release
    try:
        releases.require_labels(session, release)
    except NotSupported:
        return Finding(TRANSCRIPT, check, name, WARNING, "labels of an enum were renamed since: what was counted cannot be counted again")
    columns = columns_from_json(release.content["columns"])
    groups = groups_from_json(release.content["groups"], columns)
    summed = one.due.publication.streams[stream.number]
    source = release.table_id, stream.noising.source.stream_no
    sql = wrong_sums_sql(source, stream.plan.measure, summed.predicate, groups, summed.term, summed.spread)
    since = sum_from(one.table, one.due.publication)
    floor = max([node.end for node in stream.plan.leaves(1) if node.start is None], default=since)
    forgotten = audit.forgotten_through(session, release.table_id)
    lost = forgotten is not None and forgotten >= floor
    (row,) = session.fetch(sql, release.release_id, forgotten if lost else since, release.summed_through, floor)
    wrong = [f"{row['wrong']} stored sums of ticks are not those of the settled images"] if row["wrong"] else []
    right = "all are those of the settled images" + (", as far back as single changes are kept" if lost else "")
    return judged(TRANSCRIPT, check, name, wrong, right, float(row["wrong"]))


def _drawn_once(session: Session, stream: AuditedStream, numbers: list[int], stored: dict[int, list[int]]) -> Finding:
    """Compare the stored nodes with those that the drawn periods have, and with the transactions that drew them."""
    facts = audit.node_facts(session, stream.noising.source)
    missing, strange = set(numbers) - set(stored), set(stored) - set(numbers)
    wrong = [f"{len(missing)} nodes are gone"] if missing else []
    wrong += [f"{len(strange)} nodes are stored that no drawn period has"] if strange else []
    wrong += ["a node has another number of cells than the release has keys"] if set(facts.widths) - {stream.noising.cells} else []
    wrong += [f"{facts.rewritten} nodes were written again after they were drawn"] if facts.rewritten else []
    restored = facts.nodes - facts.uncharged - facts.known
    said = f"{facts.nodes:,} nodes, each drawn once"
    said += f"; {restored:,} were restored from a dump, so that their rows do not tell whether they were written again" if restored else ""
    return judged(TRANSCRIPT, "nodes drawn once", stream.name, wrong, said, float(len(wrong)))


def _noise(name: str, law: Noise, draws: np.ndarray) -> Iterator[Finding]:
    """Test the stored noise: independent draws of the law it was calibrated to."""
    tests = [
        ("noise variance", noise_tests.spread(law, draws), "the ratio of its variance to that of its calibration"),
        ("noise signs", noise_tests.signs(draws), "its sum in units of its length"),
        ("noise law", noise_tests.law(law, draws), "the relative entropy of its classes to the exact law, times the number of draws"),
        ("noise from node to node", noise_tests.correlation(draws, 0), "the correlation of successive nodes, in units of chance"),
        ("noise from key to key", noise_tests.correlation(draws, 1), "the correlation of neighbouring keys, in units of chance"),
    ]
    for check, evidence, what in tests:
        failed = evidence.log_chance < math.log(LEVEL)
        chance = f"honest noise is this far off with a chance of at most {math.exp(evidence.log_chance):.2g}"
        detail = f"{what}, over {draws.size:,} draws; {chance}"
        yield Finding(TRANSCRIPT, check, name, FAILED if failed else PASSED, detail, evidence.figure, evidence.expected)
