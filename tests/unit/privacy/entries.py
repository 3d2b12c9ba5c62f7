"""Every entry that obeys a constraint, on a short time axis, and what it truly does to filters: the oracle of the accountant's tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import combinations, product

from dbext.privacy.constraint import Constraint
from dbext.privacy.measure import Measure

#: Settled images that matter to one count: absent, present without satisfying the predicate, satisfying it in some cell.
ABSENT, OUTSIDE = "absent", "outside"

Path = dict[int, str]


def paths(first: int, last: int, constraint: Constraint, cells: int) -> Iterator[Path]:
    """Yield every life on ticks first ... last, as {tick: image from then on}; only ticks that change the image are listed."""
    images = [ABSENT, OUTSIDE, *(f"cell {number}" for number in range(cells))]
    longest = last - first + 1
    most = longest if constraint.max_mutations is None else min(constraint.max_mutations, longest)
    for count in range(1, most + 1):
        for ticks in combinations(range(first, last + 1), count):
            if constraint.active_within is None or ticks[-1] - ticks[0] <= constraint.active_within:
                for chosen in product(images, repeat=count):
                    if _allowed(chosen, constraint):
                        yield dict(zip(ticks, chosen, strict=True))


def _allowed(images: tuple[str, ...], constraint: Constraint) -> bool:
    """Every step changes the image, and the last of k >= 2 slots admits only a departure."""
    if any(before == after for before, after in zip((ABSENT, *images), images, strict=False)):
        return False
    return len(images) == 1 or len(images) != constraint.max_mutations or images[-1] == ABSENT


def image_at(path: Path, tick: int | None) -> str:
    """Return the image at the end of a tick; None is before everything."""
    seen = [t for t in path if tick is not None and t <= tick]
    return path[max(seen)] if seen else ABSENT


def effect(path: Path, measure: Measure, start: int | None, end: int) -> Counter[str]:
    """Return what the entry adds to every cell of one filter."""
    change: Counter[str] = Counter()
    if not measure.counts_events:
        for image, sign in ((image_at(path, end), 1), (image_at(path, start), -1)):
            if image.startswith("cell"):
                change[image] += sign
        return change
    for tick in path:
        if (start is None or start < tick) and tick <= end:
            before, after = image_at(path, tick - 1), path[tick]
            if measure is Measure.ENTERED and after.startswith("cell") and not before.startswith("cell"):
                change[after] += 1
            if measure is Measure.LEFT and before.startswith("cell") and not after.startswith("cell"):
                change[before] += 1
    return change


def norms(path: Path, measure: Measure, filters: Iterable[tuple[int | None, int]]) -> tuple[int, int]:
    """Return the L1 norm and the squared L2 norm of the entry's effect on all filters and cells together."""
    changes = [value for start, end in filters for value in effect(path, measure, start, end).values()]
    return sum(abs(value) for value in changes), sum(value * value for value in changes)
