"""What kind of release a declaration is: its periods, the windows on them, its measure. No privacy yet, and no data ever."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from dbext.errors import BadArgument, InternalError
from dbext.privacy.grid import RegularGrid
from dbext.privacy.measure import COUNT, Measure, Values
from dbext.query.calendar import Span, Tick, whole_ticks
from dbext.query.declaration import Ago, Declaration, Fixed
from dbext.query.periods import MAX_PERIODS_IN_WINDOW, Grid, Width, grid_for, width_of
from dbext.query.refusal import refused

MAX_HORIZON = 20_000
#: Totals whose noise is made from buffers can be longer: nothing that they keep or read grows with their horizon.
MAX_BUFFERED_HORIZON = 100_000

#: Without a horizon, a running total is calibrated for ten years of periods, but for no more than this many.
DEFAULT_YEARS, DEFAULT_HORIZON = 10, 4096
_DAYS_IN_TEN_YEARS, _MONTHS_IN_TEN_YEARS = 3653, 120


@dataclass(frozen=True)
class Request:
    """What is asked for beside the declaration.

    `start_tick` is the boundary at which the release begins, by default the present one; `first_tick` the tick that holds the baseline.
    `aligned` is False when the user chose the start. With `max_error`, the smallest epsilon is taken whose widest 95% interval reaches
    no further than that to either side; `epsilon` then is the most it may cost. `max_errors` are such limits by the name of a figure.
    `band` is pointwise (the default) or simultaneous.
    `levels` are the lengths of a hierarchy's blocks, `ranges` those of the ranges that matter most.
    `at_horizon` says whether a running total ends there or renews itself; by default one with a stated horizon ends.
    `noise` laplace takes Laplace noise at its price in epsilon, gaussian only Gaussian noise; without it what errs least at a price in rho
    is taken. `whole` says that this asks for all of a budget that nothing was charged to: then whatever errs least.
    `cells` is the number of groups.
    """

    start_tick: int
    every: Span | None = None
    measure: str | None = None
    epsilon: Fraction | None = None
    horizon: int | None = None
    max_error: Fraction | None = None
    aligned: bool = True
    first_tick: int | None = None
    band: str | None = None
    levels: tuple[Span, ...] = ()
    ranges: tuple[Span, ...] = ()
    at_horizon: str | None = None
    noise: str | None = None
    whole: bool = False
    max_errors: tuple[tuple[str, Fraction], ...] = ()
    cells: int = 1

    @property
    def asks_error(self) -> bool:
        """Whether errors are given, and the price is sought."""
        return self.max_error is not None or bool(self.max_errors)


@dataclass(frozen=True)
class Shape:
    """Periods and windows of a release.

    `kind` is disjoint, sliding, running_total or once. `width` is set for the first two, `start` and `end` for the last;
    `baseline` says that a running total begins with everything before its first period. `horizon` None is endless. `values` is what an
    entry adds; `renews` says that a new epoch begins at the horizon; `cells` is the number of groups.
    Of a hierarchy, `levels` holds the blocks, `ranges` the ranges that matter and `steps` the window, both in periods.
    """

    kind: str
    measure: Measure
    grid: Grid
    horizon: int | None
    width: Width | None = None
    age: int = 0
    baseline: bool = False
    start: int | None = None
    end: int | None = None
    notes: tuple[str, ...] = ()
    values: Values = COUNT
    band: str = "pointwise"
    levels: tuple[Grid, ...] = ()
    ranges: tuple[int, ...] = ()
    steps: int | None = None
    renews: bool = False
    cells: int = 1


def shape_of(declaration: Declaration, request: Request, tick: Tick) -> Shape:
    """The shape of a release. Raises BadArgument or DeclarationRefused for ranges, periods and measures that do not fit together."""
    running = not declaration.range.is_fixed and not isinstance(declaration.range.lower, Ago)
    longest = MAX_BUFFERED_HORIZON if running and not request.levels else MAX_HORIZON
    if request.horizon is not None and not 1 <= request.horizon <= longest:
        raise BadArgument(f"horizon must lie between 1 and {longest} periods")
    if request.at_horizon not in (None, "end", "renew"):
        raise BadArgument("at_horizon must be end or renew")
    if request.at_horizon is not None and not running:
        raise BadArgument("at_horizon is for running totals: windows need no horizon", hint="Leave at_horizon out.")
    if declaration.range.is_fixed:
        shape = _once(declaration, request)
    elif isinstance(declaration.range.lower, Ago):
        shape = _window(declaration, request, tick)
    else:
        shape = _running_total(declaration, request, tick)
    return _banded(replace(shape, notes=declaration.notes + shape.notes), request, grouped=declaration.grouped)


def _banded(shape: Shape, request: Request, *, grouped: bool) -> Shape:
    """Return the shape with the kind of intervals asked for. A band holds at every window and for every group at once."""
    if request.band in (None, "pointwise"):
        return shape
    if request.band != "simultaneous":
        raise BadArgument("band must be pointwise or simultaneous")
    if shape.horizon is None:
        raise BadArgument(
            "a simultaneous band over windows without end would be infinitely wide", hint="Give the release a horizon: horizon => 365."
        )
    if grouped and request.asks_error:
        raise BadArgument(
            "max_error is about one window, not about a simultaneous band of many groups", hint="Ask for an epsilon, or leave band out."
        )
    note = f"bounds are a simultaneous 95% band over {shape.horizon} windows{' and all groups' if grouped else ''}"
    return replace(shape, band="simultaneous", notes=(*shape.notes, note))


def _measure(request: Request, default: Measure) -> Measure:
    try:
        return default if request.measure is None else Measure(request.measure)
    except ValueError:
        raise BadArgument("measure must be state, net, entered or left") from None


def _every(declaration: Declaration, request: Request) -> Span:
    stated, asked = declaration.range.every, request.every
    if stated is not None and asked is not None and stated != asked:
        raise BadArgument(f"every => '{asked.text}' contradicts the {stated.text} of the declaration", hint="Leave every out.")
    every = stated or asked
    if every is None:
        raise BadArgument("it is not said how often to publish", hint="Add every => '1 day'.")
    return every


def _once(declaration: Declaration, request: Request) -> Shape:
    """One answer about a fixed range; without a lower bound, about everything up to its end."""
    if request.every is not None or (request.horizon or 1) != 1:
        raise BadArgument("a fixed range has one answer", hint="Leave every and horizon out, or let the range move with now().")
    start, end = _boundary(declaration.range.lower), _boundary(declaration.range.upper)
    if start is not None and start >= end:
        raise refused("the range of dp_time is empty", declaration.range.upper.offset, "It must end after it starts.")
    measure = _measure(request, Measure.STATE if start is None else Measure.NET)
    _refuse_state(measure, bounded=start is not None)
    grid = RegularGrid(end - 1, 1) if start is None else RegularGrid(start, end - start)
    return Shape("once", measure, grid, 1, start=start, end=end)


def _window(declaration: Declaration, request: Request, tick: Tick) -> Shape:
    """A window that moves with now(); windows that do not overlap are disjoint, wider ones slide."""
    measure = _measure(request, Measure.NET)
    _refuse_state(measure, bounded=True)
    every, age = _every(declaration, request), _age(declaration, tick)
    grid = _grid(every, tick, request)
    width = width_of(declaration.range.lower.span, grid, tick, age)
    if width.periods(grid) > MAX_PERIODS_IN_WINDOW:
        raise BadArgument(
            f"a window may last at most {MAX_PERIODS_IN_WINDOW} periods", hint="Publish less often, or ask for a shorter window."
        )
    return Shape("disjoint" if width.within_period(grid) else "sliding", measure, grid, request.horizon, width, age)


def _running_total(declaration: Declaration, request: Request, tick: Tick) -> Shape:
    """Everything since the beginning (`state`), or all change since the start (other measures)."""
    every, age = _every(declaration, request), _age(declaration, tick)
    since = declaration.range.lower
    measure = _measure(request, Measure.STATE if since is None else Measure.NET)
    _refuse_state(measure, bounded=since is not None)
    if since is not None:
        request = _starting_at(request, _boundary(since) + age)
    grid = _grid(every, tick, request)
    if age and not isinstance(grid, RegularGrid):
        raise BadArgument(
            "a running total by calendar months cannot be aged by days", hint="Publish every so many days, or track by months."
        )
    horizon = request.horizon or _default_horizon(grid, tick)
    renews = request.at_horizon == "renew" or (request.at_horizon is None and request.horizon is None)
    notes = [] if request.horizon else [f"horizon {horizon} periods by default: noise is calibrated for so many"]
    notes += [f"after {horizon} periods a new epoch begins, whose total goes on"] if renews else []
    if measure is not Measure.STATE and since is None:
        notes.append(f"{measure.value} counts from the start of the first period on, not what was there before")
    return Shape("running_total", measure, grid, horizon, age=age, baseline=measure is Measure.STATE, notes=tuple(notes), renews=renews)


def _refuse_state(measure: Measure, *, bounded: bool) -> None:
    if measure is Measure.STATE and bounded:
        raise BadArgument(
            "state has no lower bound: it depends on everything since the beginning",
            hint="Leave dp_time out for the present state, or use measure => 'net', 'entered' or 'left'.",
        )


def _boundary(bound: Fixed | None) -> int | None:
    if bound is None:
        return None
    if not isinstance(bound, Fixed) or bound.tick is None:
        raise InternalError("a fixed time was not turned into a boundary")
    return bound.tick


def _starting_at(request: Request, boundary: int) -> Request:
    if not request.aligned and request.start_tick != boundary:
        raise BadArgument("start contradicts the lower bound of dp_time", hint="Leave start out.")
    return replace(request, start_tick=boundary, aligned=False)


def _age(declaration: Declaration, tick: Tick) -> int:
    upper = declaration.range.upper
    return 0 if upper is None else whole_ticks(upper.span, tick, "an age")


def _grid(every: Span, tick: Tick, request: Request) -> Grid:
    return grid_for(every, tick, request.start_tick, aligned=request.aligned, first_tick=request.first_tick)


def _default_horizon(grid: Grid, tick: Tick) -> int:
    """Ten years of periods, rounded up, capped."""
    if not isinstance(grid, RegularGrid):
        periods = -(-_MONTHS_IN_TEN_YEARS // grid.months)
    else:
        length = tick.times(grid.step)
        days = length.days + 30 * length.months + Fraction(length.microseconds, 86_400_000_000)
        periods = -(-_DAYS_IN_TEN_YEARS // days)
    return int(min(DEFAULT_HORIZON, max(1, periods)))
