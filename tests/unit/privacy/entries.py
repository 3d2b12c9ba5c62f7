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


def paths(first: int, last: int, constraint: Constraint, cells: int, worths: Iterable[int] = (1,)) -> Iterator[Path]:
    """Yield every life on ticks first ... last, as {tick: image from then on}; only ticks that change the image are listed.

    In a cell an entry is worth 1 (a count), or one of `worths`.
    """
    images = [ABSENT, OUTSIDE, *(f"cell {number} {worth}" for number in range(cells) for worth in worths)]
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


def adds(image: str) -> tuple[str, int]:
    """Return the cell of an image ("cell 0", or "cell 0 7" for an entry that is worth 7) and what the entry adds to it."""
    name, number, *worth = image.split()
    return f"{name} {number}", int(*worth) if worth else 1


def effect(path: Path, measure: Measure, start: int | None, end: int) -> Counter[str]:
    """Return what the entry adds to every cell of one filter."""
    change: Counter[str] = Counter()
    if not measure.counts_events:
        for image, sign in ((image_at(path, end), 1), (image_at(path, start), -1)):
            if image.startswith("cell"):
                cell, worth = adds(image)
                change[cell] += sign * worth
        return change
    for tick in path:
        if (start is None or start < tick) and tick <= end:
            before, after = image_at(path, tick - 1), path[tick]
            if measure is Measure.ENTERED and after.startswith("cell") and not before.startswith("cell"):
                cell, worth = adds(after)
                change[cell] += worth
            if measure is Measure.LEFT and before.startswith("cell") and not after.startswith("cell"):
                cell, worth = adds(before)
                change[cell] += worth
    return change


def norms(path: Path, measure: Measure, filters: Iterable[tuple[int | None, int]]) -> tuple[int, int]:
    """Return the L1 norm and the squared L2 norm of the entry's effect on all filters and cells together."""
    changes = [value for start, end in filters for value in effect(path, measure, start, end).values()]
    return sum(abs(value) for value in changes), sum(value * value for value in changes)
