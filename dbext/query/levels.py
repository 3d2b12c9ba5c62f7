"""The levels of a hierarchical release: from declared lengths to blocks, and how much of the budget each level is worth."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product

from dbext.errors import BadArgument
from dbext.mechanisms.levelled import Course, LevelledSums, course, ranges_that_matter
from dbext.mechanisms.protocol import Mechanism
from dbext.mechanisms.unequal_budgets import Family, divide
from dbext.privacy.constraint import Constraint, EntryType
from dbext.privacy.grid import MonthGrid, RegularGrid
from dbext.query.calendar import Span, Tick, whole_ticks
from dbext.query.declaration import Ago, Declaration
from dbext.query.periods import Grid, is_calendar_month
from dbext.query.shape import Request, Shape

MOST_LEVELS, MOST_RANGES = 8, 16
EXAMPLE = "levels => '{1 day, 7 days, 28 days}'"
#: No level's noise is wider than this many times the narrowest: every range keeps an error worth knowing.
_WIDEST = 16.0
#: Steps by which widths are improved, and how much better an improvement must be.
_STEPS, _BETTER = (1.6, 1.2, 1.06), 0.9999
#: Positions of a range that are looked at, and periods in them altogether.
_FEWEST, _MOST, _WORK = 8, 48, 6000
#: Widths are multiples of 1 / 64: fine enough to lose no accuracy, short enough for fast exact sampling.
_FINENESS = 64
_SHORTEST_MONTH = 28


def ending(request: Request, declaration: Declaration, what: str) -> Request:
    """Return the request for a running total that ends at its horizon, because `what` cannot go on in a new epoch."""
    if declaration.range.is_fixed or isinstance(declaration.range.lower, Ago):
        return request
    if request.at_horizon == "renew":
        raise BadArgument(f"{what} ends at its horizon", hint="Leave at_horizon out, and give a horizon that is long enough.")
    return replace(request, at_horizon="end")


def with_period(request: Request, declaration: Declaration) -> Request:
    """Return the request with the period that its first level states."""
    if not request.levels:
        if request.ranges:
            raise BadArgument("ranges are for a release with levels", hint=f"Say its levels: {EXAMPLE}.")
        return request
    if len(request.levels) > MOST_LEVELS or len(request.ranges) > MOST_RANGES:
        raise BadArgument(f"a release has at most {MOST_LEVELS} levels, tuned to at most {MOST_RANGES} ranges")
    if request.every not in (None, request.levels[0]):
        raise BadArgument("the first level must be the period", hint="Leave every out, or give it the same length.")
    return ending(replace(request, every=request.levels[0]), declaration, "a release with levels")


def with_levels(shape: Shape, request: Request, tick: Tick) -> Shape:
    """Return the shape with the blocks of its levels, and the ranges that matter in periods. Raises BadArgument."""
    if not request.levels:
        return shape
    if shape.kind == "once":
        raise BadArgument("a fixed range has one answer and no levels", hint="Let the range move with now().")
    steps = _steps(shape)
    first = shape.grid.end(0 if steps is None else 1 - steps)
    aligned = request.aligned and _is_aligned(shape.grid)
    levels = tuple(_blocks(span, shape.grid, tick, first, aligned=aligned) for span in request.levels)
    _require_order(request.levels, levels, shape)
    ranges = tuple(_periods(span, shape.grid, tick) for span in request.ranges)
    if shape.horizon is not None and max(ranges, default=0) > shape.horizon:
        raise BadArgument("a range that matters is longer than the horizon")
    return replace(shape, levels=levels, ranges=ranges, steps=steps)


def levelled(shape: Shape, types: Sequence[EntryType], *, pure: bool) -> Iterator[Mechanism]:
    """Yield an equal share of the budget for every level, and the shares that serve its ranges best."""
    equal = [1.0] * len(shape.levels)
    yield _made(shape, equal, pure=pure)
    if len(equal) > 1 and (shape.ranges or shape.kind != "disjoint"):
        yield _made(shape, _tuned(shape, types, pure=pure), pure=pure)


def _is_aligned(grid: Grid) -> bool:
    """Whether periods are where they are by default; those of a total since a fixed time begin there."""
    return grid.origin % grid.step == 0 if isinstance(grid, RegularGrid) else grid.first_month % grid.months == 0


def _steps(shape: Shape) -> int | None:
    if shape.width is None or shape.width.steps is not None:
        return None if shape.width is None else shape.width.steps
    steps, rest = divmod(shape.width.ticks, shape.grid.step) if isinstance(shape.grid, RegularGrid) else (0, 1)
    if rest:
        raise BadArgument("with levels, a window must be a whole number of periods")
    return steps


def _blocks(span: Span, base: Grid, tick: Tick, first: int, *, aligned: bool) -> Grid:
    """Return the blocks of a level, whole numbers of periods; period 1 is the first that begins at `first` or after it."""
    if is_calendar_month(span, tick):
        return _calendar_blocks(span, base, first, aligned=aligned)
    if isinstance(base, MonthGrid):
        raise BadArgument(f"a level of {span.text} is not a whole number of periods", hint="Use months and years.")
    length = whole_ticks(span, tick, "a level")
    if length % base.step:
        raise BadArgument(f"a level of {span.text} is not a whole number of periods of {tick.times(base.step).text}")
    origin = 0 if aligned else base.origin
    return RegularGrid(origin - (origin - first) // length * length, length)


def _calendar_blocks(span: Span, base: Grid, first: int, *, aligned: bool) -> MonthGrid:
    """Return blocks of calendar months, counted from January 2000 (or from the start that the user chose, if periods are months)."""
    whole = span.months % base.months == 0 if isinstance(base, MonthGrid) else base.step == 1
    if not whole:
        raise BadArgument(f"a level of {span.text} is not a whole number of periods", hint="Publish every day, or every month.")
    origin = base.first_month if isinstance(base, MonthGrid) and not aligned else 0
    grid = MonthGrid(origin, span.months)
    number = grid.last_end(first - 1) + 1
    return MonthGrid(origin + number * span.months, span.months)


def _require_order(spans: Sequence[Span], levels: Sequence[Grid], shape: Shape) -> None:
    """Refuse levels that do not grow, and one of which no block is ever over."""
    for (shorter, longer), (below, above) in zip(pairwise(spans), pairwise(levels), strict=True):
        if above.end(1) - above.end(0) <= below.end(1) - below.end(0):
            raise BadArgument(f"levels must grow, but {longer.text} comes after {shorter.text}")
    if shape.horizon is not None and levels[-1].end(1) > shape.grid.end(shape.horizon):
        raise BadArgument(
            f"no block of {spans[-1].text} is over before the horizon", hint="Leave that level out, or give a longer horizon."
        )


def _periods(span: Span, grid: Grid, tick: Tick) -> int:
    """Return how many periods a range lasts; days for months are those of the mean month."""
    if isinstance(grid, MonthGrid):
        steps, rest = divmod(span.months, grid.months) if is_calendar_month(span, tick) else (0, 1)
    elif is_calendar_month(span, tick):
        steps, rest = round(span.months * 365.2425 / 12 / grid.step), 0
    else:
        steps, rest = divmod(whole_ticks(span, tick, "a range"), grid.step)
    if rest or not steps:
        raise BadArgument(f"a range of {span.text} is not a whole number of periods")
    return steps


def _made(shape: Shape, widths: Sequence[float], *, pure: bool) -> LevelledSums:
    """Return the mechanism with noise of these widths by level.

    The baseline may cost as much as one block of every level together: an entry in it has spent that mutation on nothing else.
    """
    factors = _factors(widths)
    if shape.baseline:
        alone = 1 / float(sum(1 / factor for factor in factors)) if pure else float(sum(1 / factor**2 for factor in factors)) ** -0.5
        factors.append(Fraction(max(1, round(alone * _FINENESS)), _FINENESS))
    return LevelledSums(shape.grid, shape.levels, shape.steps, tuple(factors), shape.baseline, shape.age, shape.horizon, shape.ranges)


def _factors(widths: Sequence[float]) -> list[Fraction]:
    return [Fraction(max(1, round(width * _FINENESS)), _FINENESS) for width in widths]


def _tuned(shape: Shape, types: Sequence[EntryType], *, pure: bool) -> list[float]:
    """Return the widths of noise, by level, that serve the ranges best; the narrowest is 1.

    With u_l blocks of level l in a range, v_l their variance and c_l the blocks of the level that an entry touches, the sum of u_l v_l is
    least under a given sum of c_l times the cost of a block for the shares of `divide` along a chain of uses u_l c_l^2 (pure: the cost is
    v_l^(-1/2)), or u_l c_l (else: the cost is 1 / v_l). Which blocks cover a range depends on the widths again: that division, the equal
    one and those that favour a single level are improved step by step, and the best outcome is taken.
    """
    touched = [max((_touched(grid, one.constraint) for one in types), default=1) for grid in shape.levels]
    courses = _courses(shape)

    def burden(widths: Sequence[float]) -> float:
        """Mean variance of the ranges at equal price, but for a constant."""
        price = sum(touch / width ** (1 if pure else 2) for touch, width in zip(touched, widths, strict=True))
        return price ** (2 if pure else 1) * sum(use * width**2 for use, width in zip(_uses(courses, widths), widths, strict=True))

    equal = [1.0] * len(touched)
    uses = [use * touch ** (2 if pure else 1) for use, touch in zip(_uses(courses, equal), touched, strict=True)]
    shares = divide(Family((*range(1, len(touched)), None), tuple(max(use, 1e-9) for use in uses)), pure=pure).shares
    divided = [(touch / max(share, 1e-6)) ** (1.0 if pure else 0.5) for share, touch in zip(shares, touched, strict=True)]
    favoured = ([1.0 if one == level else _WIDEST for one in range(len(touched))] for level in range(len(touched)))
    return min((_improved(_bounded(one), burden) for one in (equal, divided, *favoured)), key=burden)


def _improved(widths: list[float], burden: Callable[[Sequence[float]], float]) -> list[float]:
    """Widen and narrow one level after the other, by smaller and smaller steps, as long as that helps."""
    best = burden(widths)
    for step in _STEPS:
        tried = True
        while tried:
            tried = False
            for level, factor in product(range(len(widths)), (step, 1 / step)):
                other = _bounded([width * factor if one == level else width for one, width in enumerate(widths)])
                if other != widths and (found := burden(other)) < best * _BETTER:
                    widths, best, tried = other, found, True
    return widths


def _bounded(widths: Sequence[float]) -> list[float]:
    """Return widths with 1 for the narrowest, and no level so wide that what it answers alone is lost."""
    narrowest = min(widths)
    return [min(width / narrowest, _WIDEST) for width in widths]


def _courses(shape: Shape) -> tuple[int, list[tuple[Course, list[int]]]]:
    """Return the number of ranges that matter, and the courses of periods with the ends of those that begin with them."""
    mechanism = _made(shape, [1.0] * len(shape.levels), pure=False)
    longest = max(shape.ranges, default=shape.steps or 1)
    ends: dict[int, list[int]] = {}
    for start, end in (ranges := ranges_that_matter(mechanism, max(_FEWEST, min(_MOST, _WORK // longest)))):
        ends.setdefault(start, []).append(end)
    return len(ranges), [(course(mechanism, start, max(some)), some) for start, some in ends.items()]


def _uses(courses: tuple[int, list[tuple[Course, list[int]]]], widths: Sequence[float]) -> list[float]:
    """Return the mean number of blocks of each level in the ranges that matter."""
    weights = [float(factor) ** 2 for factor in _factors(widths)]
    counts = zip(*(one.uses(weights, ends) for one, ends in courses[1]), strict=True)
    return [sum(count) / courses[0] for count in counts]


def _touched(grid: Grid, constraint: Constraint) -> int:
    """Return about how many blocks of a level an entry touches."""
    shortest = grid.step if isinstance(grid, RegularGrid) else _SHORTEST_MONTH * grid.months
    limits = [constraint.max_mutations, None if constraint.active_within is None else -(-constraint.active_within // shortest) + 1]
    return min((limit for limit in limits if limit is not None), default=1)
