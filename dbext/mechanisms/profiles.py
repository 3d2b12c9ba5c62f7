"""Sensitivity profiles of finite Toeplitz encoders with declining coefficients, put together from the bounds of their parts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate

from dbext.errors import InternalError
from dbext.mechanisms.alternating import AlternatingBounds, alternating_bounds, declines, long_bounds, runs_repel
from dbext.mechanisms.dense_paths import dense_bound
from dbext.mechanisms.gram import margin, round_up, rows_from_the_last
from dbext.mechanisms.same_sign import packed_norms
from dbext.mechanisms.toeplitz import scaled
from dbext.privacy.measure import Measure
from dbext.privacy.pico import ceil_divide
from dbext.privacy.profile import Profile, Reach

#: Longest horizon whose positions are searched one by one: 4096 periods and a baseline.
WIDEST = 4097
#: Beyond this, entries that may change nearly always are bounded by the length of their runs alone.
_WIDEST_DENSE = 512
_WORK = 300_000_000
_MOST_CHANGES, _MOST_LISTED, _MOST_EVENTS = 64, 1024, 32


def toeplitz_profile(coefficients: Sequence[int], measure: Measure, grouped: bool, limits: Reach) -> Profile:  # noqa: FBT001 of the release
    """Return the profile of an encoder with non-negative, non-increasing coefficients over a horizon of as many periods."""
    if not declines(coefficients):
        raise InternalError("an encoder's coefficients must not increase")
    if measure.counts_events:
        return _events(coefficients, limits)
    norm = sum(value * value for value in coefficients)
    if not runs_repel(coefficients):
        return _by_the_rule(norm, grouped, limits.span)
    return _moves(coefficients, norm, limits) if grouped else _one_cell(coefficients, norm, limits)


def _events(coefficients: Sequence[int], limits: Reach) -> Profile:
    """List exact norms of crowded events. Beyond them: |Rx|^2 <= (sum of c)^2 |x|^2, and |x|^2 <= s * (events per period)."""
    table = _crowded(tuple(coefficients), limits.longest)[: min(limits.events or _MOST_EVENTS, _MOST_EVENTS)]
    return Profile(table, table, sum(coefficients) ** 2 * ceil_divide(limits.longest, 2), None, limits.span)


@lru_cache(maxsize=2)
def _crowded(coefficients: tuple[int, ...], longest: int) -> tuple[int, ...]:
    """List as many norms as are ever wanted: those of entries without a limit are, beside those of others."""
    return tuple(packed_norms(coefficients, _MOST_EVENTS, longest))


def _by_the_rule(norm: int, grouped: bool, span: int | None) -> Profile:  # noqa: FBT001 of the release
    """Bound k changes by k norms, moves by two each (the first one by one): all that declining coefficients give."""
    return Profile((norm,), (norm,), 2 * norm if grouped else norm, None, span)


def _one_cell(coefficients: Sequence[int], norm: int, limits: Reach) -> Profile:
    bounds, width = _searched(coefficients, limits)
    whole = [min(round_up(value, coefficients[0]), k * norm) for k, value in enumerate(bounds.one_cell, 1) if value > 0]
    stay = list(accumulate(whole, max))
    leave = list(accumulate((value if k % 2 == 0 else 0 for k, value in enumerate(whole, 1)), max))
    extended = _extended(stay, stay[len(stay) // 2 * 2 - 1] if len(stay) > 1 else norm, len(stay) // 2 * 2 or 1, _listed(limits, width))
    # An entry that has left after j > listed changes made an even number of them, or fewer.
    leave += extended[len(leave) :]
    ceiling = None
    if width <= WIDEST and _is_dense(limits, width):
        ceiling = round_up(_dense(coefficients, width), coefficients[0])
    return Profile(tuple(extended), tuple(leave), norm, ceiling, limits.span)


def _moves(coefficients: Sequence[int], norm: int, limits: Reach) -> Profile:
    bounds, width = _searched(coefficients, limits)
    unit = coefficients[0]
    pairs = [(stay, leave) for stay, leave in zip(bounds.moves_stay, bounds.moves_leave, strict=True) if stay > 0]
    stay = list(accumulate((min(round_up(value, unit), (2 * k - 1) * norm) for k, (value, _) in enumerate(pairs, 1)), max))
    leave = list(accumulate((min(round_up(max(value, 0.0), unit), (2 * k - 2) * norm) for k, (_, value) in enumerate(pairs, 1)), max))
    listed = _listed(limits, width)
    # The first j - 1 visits of many, then the rest as if they were the first ones.
    more_stay, more_leave = (_extended(table, leave[-1], max(len(leave) - 1, 1), listed) for table in (stay, leave))
    return Profile(tuple(more_stay), tuple(more_leave), 2 * norm, None, limits.span)


def _searched(coefficients: Sequence[int], limits: Reach) -> tuple[AlternatingBounds, int]:
    width = min(len(coefficients), limits.span or len(coefficients))
    wanted = min(width, limits.touches or width, _MOST_CHANGES)
    if width > WIDEST or (width > _WIDEST_DENSE and _is_dense(limits, width)):
        return long_bounds(scaled(coefficients), wanted), width
    affordable = max(4, _WORK // width**2 // 2 * 2)
    return alternating_bounds(scaled(coefficients), min(wanted, affordable), width), width


def _is_dense(limits: Reach, width: int) -> bool:
    """Whether an entry may change in so many periods that a bound on any number of changes decides."""
    return limits.touches is None or 4 * limits.touches >= width


def _dense(coefficients: Sequence[int], width: int) -> float:
    c = scaled(coefficients)
    return dense_bound(rows_from_the_last(c, width), width) + margin(20 * width, len(c), float(c @ c))


def _listed(limits: Reach, width: int) -> int:
    return min(limits.touches or width, width, _MOST_LISTED)


def _extended(table: list[int], block: int, length: int, listed: int) -> list[int]:
    """Continue a table: j changes are the first `length` of them, bounded by `block`, and j - length more that start afresh.

    The two parts are sums of whole runs, whose inner products are at most 0, and shifting the second one to the left raises it.
    """
    extended = list(table)
    while len(extended) < listed:
        extended.append(max(extended[-1], block + extended[len(extended) - length]))
    return extended
