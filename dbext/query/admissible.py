"""Which mechanisms can publish a shape, at prices in epsilon and in rho: what the planner compares.

Pure budgets know Laplace noise and interval mechanisms; signed trees are for them alone (their matrix is not triangular, so that their
loss under Gaussian noise does not add up adaptively). With delta > 0 noise is Gaussian, and the encoded mechanisms join: Laplace noise that
counts as rho beside it errs no less for any price.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dbext.errors import BadArgument
from dbext.mechanisms.binary_tree import BinaryTree
from dbext.mechanisms.buffered import buffered
from dbext.mechanisms.disjoint import disjoint_sums
from dbext.mechanisms.hierarchical import hierarchical_sums
from dbext.mechanisms.independent import IndependentWindows, OneWindow
from dbext.mechanisms.least_squares_tree import LeastSquaresTree
from dbext.mechanisms.plain_sums import PlainSums
from dbext.mechanisms.protocol import Mechanism
from dbext.mechanisms.sliding_root import SlidingRoot
from dbext.mechanisms.square_root import SquareRoot
from dbext.mechanisms.weighted_square_root import WeightedSquareRoot
from dbext.privacy.constraint import EntryType
from dbext.privacy.grid import RegularGrid
from dbext.privacy.pattern import Windows
from dbext.query.periods import Grid
from dbext.query.shape import MAX_BUFFERED_HORIZON, MAX_HORIZON, Shape
from dbext.query.signed_shares import signed_trees

#: Plain sums are best up to about thirty periods; far beyond, intervals of thousands of terms only cost time.
LONGEST_PLAIN = 128
#: A square root errs less than any Gaussian tree, the more so the longer the horizon: no time is spent on long ones.
LONGEST_LEAST_SQUARES = 512
#: Beyond this, noise from a few buffers is compared with noise that is all kept.
LONGEST_ALL_KEPT = 4_200
#: So many noisy numbers of a release are kept without a thought: some 100 MB, all read by every publication of a square root.
MOST_STORED = 10_000_000
#: Windows of more periods are left to blocks: their root takes seconds to work out.
LONGEST_ROOT = 1_024


def options(shape: Shape, types: Sequence[EntryType], *, pure: bool) -> Iterator[Mechanism]:
    """Yield mechanisms, simplest first."""
    if shape.kind == "once":
        yield OneWindow(shape.start, shape.end)
    elif shape.kind == "running_total":
        yield from _totals(shape, types, pure=pure)
    else:
        windows = Windows(shape.grid, shape.width.ticks, shape.width.steps, shape.age, shape.horizon)
        yield IndependentWindows(windows)
        if shape.kind == "sliding":
            yield from _sliding(windows, pure=pure)


def _totals(shape: Shape, types: Sequence[EntryType], *, pure: bool) -> Iterator[Mechanism]:
    what = (_aged(shape), shape.horizon)
    if shape.horizon > MAX_HORIZON:
        _refuse_pure(pure=pure)
        yield buffered(*what, baseline=shape.baseline, again=_change_again(shape, types))
        return
    if shape.horizon <= LONGEST_PLAIN:
        yield PlainSums(*what, shape.baseline)
    yield BinaryTree(*what, shape.baseline)
    if pure:
        yield from signed_trees(*what, types, baseline=shape.baseline)
        return
    if shape.horizon <= LONGEST_LEAST_SQUARES:
        yield LeastSquaresTree(*what, shape.baseline)
    yield SquareRoot(*what, shape.baseline)
    yield WeightedSquareRoot(*what, shape.baseline)
    if shape.horizon > LONGEST_ALL_KEPT or shape.horizon * shape.cells > MOST_STORED:
        yield buffered(*what, baseline=shape.baseline, again=_change_again(shape, types))


def _refuse_pure(*, pure: bool) -> None:
    if pure:
        raise BadArgument(
            f"with Laplace noise the horizon must lie between 1 and {MAX_HORIZON} periods",
            hint=f"With Gaussian noise (delta > 0), of which few numbers need to be kept, a total may have {MAX_BUFFERED_HORIZON}.",
        )


def _sliding(windows: Windows, *, pure: bool) -> Iterator[Mechanism]:
    assembled = disjoint_sums(windows)
    if assembled is None:
        return
    yield assembled
    layered = hierarchical_sums(windows, 2 if pure else 1)
    if layered is not None:
        yield layered
    if not pure and assembled.remainder == 0 and 1 < assembled.steps <= LONGEST_ROOT:
        yield SlidingRoot(windows.grid, assembled.steps, windows.age, windows.count)


def _change_again(shape: Shape, types: Sequence[EntryType]) -> bool:
    """Whether some entries change a sum more than once; events are of one sign, however many."""
    limits = [one.constraint for one in types]
    return not shape.measure.counts_events and any(one.max_mutations != 1 and one.active_within != 0 for one in limits)


def _aged(shape: Shape) -> Grid:
    """The periods a running total sums: as early as it is aged."""
    grid = shape.grid
    return replace(grid, origin=grid.origin - shape.age) if shape.age and isinstance(grid, RegularGrid) else grid
