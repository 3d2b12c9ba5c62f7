"""The recurrences against enumeration of every set of mutations, in both forms."""

from __future__ import annotations

from bisect import bisect_left
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbext.privacy import coverage, coverage_joint, coverage_within
from dbext.privacy.cells import PricedFilter, cells_of
from dbext.privacy.coverage import deepest_window, heaviest_points, touched_by_all
from dbext.privacy.coverage_joint import heaviest_points_within
from dbext.privacy.coverage_nested import nested_points
from dbext.privacy.coverage_plain import point_layers as plain_layers
from dbext.privacy.coverage_tiled import tiled_points, tiled_within
from dbext.privacy.coverage_wide import point_layers as wide_layers
from dbext.privacy.coverage_within import layers_within

PLAIN, WIDE = 10**12, -1


@st.composite
def filter_lists(draw, *, moving: bool = True):
    found = []
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, 8))
        end = start + draw(st.integers(1, 6))
        opening = draw(st.integers(1, 9))
        later = opening + (draw(st.integers(0, 9)) if moving and draw(st.booleans()) else 0)
        found.append(
            PricedFilter(draw(st.sampled_from([start, start, start, None])), draw(st.sampled_from([end, end, end, None])), opening, later)
        )
    return found


def holds(f: PricedFilter, tick: int) -> bool:
    return (f.start is None or f.start < tick) and (f.end is None or tick <= f.end)


def paid(filters, ticks, points):
    """What mutations at these ticks pay: once per filter, the opening price at the first and at the last of all `points`."""
    touched, total = set(), 0
    for number, tick in enumerate(ticks, 1):
        for index, f in enumerate(filters):
            if index not in touched and holds(f, tick):
                touched.add(index)
                total += f.opening if number == 1 or number == points > 1 else f.later
    return total


def axis(filters, margin=1):
    bounds = [bound for f in filters for bound in (f.start, f.end) if bound is not None] or [0]
    return range(min(bounds) - margin, max(bounds) + 2)


def brute_points(filters, points, beyond=(0, 0)):
    """Up to `points` mutations on the axis, the rest of them far beyond it."""
    best = 0
    for inside in range(points + 1):
        for ticks in combinations(axis(filters), inside):
            total = paid(filters, ticks, points)
            fresh = [f for f in filters if f.end is None and not any(holds(f, tick) for tick in ticks)]
            for number in range(inside + 1, points + 1):
                opens = number == 1 or number == points > 1
                total += beyond[0] if opens else beyond[1]
                total += sum(f.opening if opens else f.later for f in fresh)
                fresh = []
            best = max(best, total)
    return best


def brute_window(filters, within):
    best = 0
    for first in axis(filters, within + 1):
        window = range(first, first + within + 1)
        total = sum(f.opening if holds(f, first) else f.later for f in filters if any(holds(f, tick) for tick in window))
        best = max(best, total)
    return best


def brute_both(filters, points, within):
    best = 0
    for first in axis(filters, within + 1):
        for count in range(points):
            for rest in combinations(range(first + 1, first + within + 1), count):
                best = max(best, paid(filters, (first, *rest), points))
    return best


@given(filter_lists(), st.integers(1, 3), st.sampled_from([(0, 0), (3, 3), (2, 5)]))
def test_points(filters, points, beyond):
    assert heaviest_points(filters, points, beyond) == brute_points(filters, points, beyond)


@st.composite
def tilings(draw):
    """Periods side by side of one price, behind everything before them or not; sometimes spoilt by a gap or another price."""
    opening, later = sorted([draw(st.integers(1, 9)), draw(st.integers(1, 9))])
    opening = draw(st.sampled_from([opening, later]))
    step, start = draw(st.integers(1, 3)), draw(st.integers(-2, 2))
    found = [PricedFilter(start + n * step, start + (n + 1) * step, opening, later) for n in range(draw(st.integers(1, 5)))]
    if draw(st.booleans()):
        price = draw(st.integers(1, 12))
        found.insert(0, PricedFilter(None, start, price, draw(st.sampled_from([price, draw(st.integers(1, 12))]))))
    if draw(st.integers(0, 3)) == 0:
        place = draw(st.integers(0, len(found) - 1))
        spoilt = draw(st.sampled_from([{"later": later + 3}, {"end": found[place].end + 1}, {"start": None}, {"end": None}]))
        found[place] = found[place]._replace(**spoilt)
    return found


@given(tilings(), st.integers(1, 4))
def test_periods_side_by_side(filters, points):
    assert tiled_points(filters, points) in (None, brute_points(filters, points))
    assert heaviest_points(filters, points) == brute_points(filters, points)


@given(tilings(), st.integers(1, 4), st.integers(0, 5))
def test_periods_side_by_side_within_a_span(filters, points, within):
    assert tiled_within(filters, points, within) in (None, brute_both(filters, points, within))
    assert heaviest_points_within(filters, points, within) == brute_both(filters, points, within)


def test_periods_side_by_side_need_no_search():
    many = [PricedFilter(None, 0, 5, 7), *(PricedFilter(n, n + 1, 3, 4) for n in range(50))]
    assert tiled_points(many, 4) == 5 + 4 + 4 + 3
    assert tiled_points(many[1:], 4) == 3 + 4 + 4 + 3
    assert tiled_points([*many, PricedFilter(50, None, 3, 4)], 4) is None
    assert tiled_points([*many, PricedFilter(60, 61, 3, 4)], 4) is None
    assert tiled_points([PricedFilter(None, None, 3, 4), PricedFilter(None, 1, 3, 4)], 4) is None


@st.composite
def forests(draw):
    """Filters that are nested or apart, of one price each; sometimes a wider one that overlaps others."""
    found, radix, levels = [], draw(st.integers(2, 3)), draw(st.integers(1, 3))
    for level in range(levels):
        length = radix**level
        blocks = range(draw(st.integers(1, max(1, 9 // length))))
        found += [PricedFilter(n * length, (n + 1) * length, price, price) for n in blocks for price in [draw(st.integers(0, 9))]]
    for bounds in draw(st.lists(st.sampled_from([(None, 0), (None, None), (0, None), (None, 3), (2, 9), (4, None)]), max_size=2)):
        price = draw(st.integers(1, 9))
        found.append(PricedFilter(*bounds, price, price))
    return draw(st.permutations(found))


@given(forests(), st.integers(1, 4))
def test_forests(filters, points):
    assert nested_points(filters, points) in (None, brute_points(filters, points))
    assert heaviest_points(filters, points) == brute_points(filters, points)


def test_forests_need_no_search():
    tree = [PricedFilter(start, start + length, 1, 1) for length in (1, 4, 16) for start in range(0, 64, length)]
    assert [nested_points(tree, points) for points in (1, 4, 5, 16, 17, 64)] == [3, 12, 14, 36, 37, 84]
    assert nested_points([*tree, PricedFilter(2, 6, 1, 1)], 2) is None
    assert nested_points([*tree, PricedFilter(0, 4, 1, 2)], 2) is None


@given(filter_lists(), st.integers(1, 6))
def test_both_forms_agree_layer_by_layer(filters, points):
    cells = cells_of(filters)
    layers = min(points, cells.count)
    if layers:
        assert plain_layers(filters, cells, layers, points) == wide_layers(filters, cells, layers, points)


@given(filter_lists(), st.integers(0, 5))
def test_window(filters, within):
    assert deepest_window(filters, within) == brute_window(filters, within)


@pytest.mark.parametrize("form", [PLAIN, WIDE])
@given(filters=filter_lists(), points=st.integers(1, 4), within=st.integers(0, 4))
def test_both_constraints(form, filters, points, within):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coverage, "WIDE_FROM", form)
        coverage_joint._within.cache_clear()
        assert heaviest_points_within(filters, points, within) == brute_both(filters, points, within)


@st.composite
def repeating(draw):
    """Levels of blocks of several lengths and prices, whose windows repeat, and a filter or two that break the pattern."""
    found = []
    for _ in range(draw(st.integers(1, 3))):
        length, offset, opening = draw(st.sampled_from([1, 2, 3, 4, 8])), draw(st.integers(0, 2)), draw(st.sampled_from([1, 5, 10**6, 10**12]))
        later = opening * draw(st.sampled_from([1, 1, 2]))
        found += [PricedFilter(offset + n * length, offset + (n + 1) * length, opening, later) for n in range(48 // length)]
    return found + draw(filter_lists().map(lambda some: some[:2]))


@given(repeating(), st.integers(1, 9), st.integers(0, 12))
def test_windows_of_one_kind_are_solved_once(filters, points, within):
    cells = cells_of(filters, every=True)
    reach = [bisect_left(cells.lefts, right + within) - 1 for right in cells.rights]
    layers = min(points, max(last - first for first, last in enumerate(reach)) + 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coverage, "WIDE_FROM", PLAIN)
        coverage_joint._within.cache_clear()
        exact = heaviest_points_within(filters, points, within)
    assert layers_within(filters, cells, layers, points, reach) == exact


def test_few_cells_are_left_of_a_long_line():
    blocks = [PricedFilter(n * length, (n + 1) * length, length, length) for length in (1, 10) for n in range(1000 // length)]
    cells = cells_of(blocks, every=True)
    reach = [bisect_left(cells.lefts, right + 7) - 1 for right in cells.rights]
    whole = coverage_within._problem(blocks, cells, reach)
    assert len(whole.depths) == 1002
    assert len(coverage_within._distinct(whole).depths) < 60


@given(filter_lists(), st.integers(1, 4), st.integers(0, 4))
def test_past_the_limit_of_work_the_joint_figure_is_an_upper_bound(filters, points, within):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coverage, "WIDE_FROM", WIDE)
        patch.setattr(coverage_joint, "_JOINT_LIMIT", -1)
        coverage_joint._within.cache_clear()
        bound = heaviest_points_within(filters, points, within)
    assert bound >= brute_both(filters, points, within)
    assert bound == min(heaviest_points(filters, points), deepest_window(filters, within))


@given(filter_lists(), st.sampled_from([(0, 0), (2, 5)]))
def test_more_mutations_than_filters(filters, beyond):
    """Past the number that touches everything, only far ones add anything."""
    many = len(filters) + 3
    gained = heaviest_points(filters, many + 7, beyond) - heaviest_points(filters, many, beyond)
    assert gained == 7 * beyond[1]
    assert heaviest_points(filters, many) == touched_by_all(filters)


@given(filter_lists(moving=False))
def test_limits_that_do_not_bind_touch_everything(filters):
    many = len(filters)
    assert heaviest_points(filters, many) == sum(f.opening for f in filters) == touched_by_all(filters)


@given(filter_lists(), filter_lists(), st.integers(1, 4), st.integers(0, 4))
def test_figures_of_a_union_are_monotone_and_subadditive(one, other, points, within):
    for figure in (
        lambda f: heaviest_points(f, points),
        lambda f: deepest_window(f, within),
        lambda f: heaviest_points_within(f, points, within),
    ):
        assert max(figure(one), figure(other)) <= figure([*one, *other]) <= figure(one) + figure(other)


@given(filter_lists(moving=False), st.integers(1, 5))
def test_loss_is_concave_in_the_number_of_mutations(filters, points):
    """The linear programme behind it has consecutive ones: totally unimodular, so its value is concave in k."""
    loss = [heaviest_points(filters, k) for k in range(1, points + 2)]
    gains = [after - before for before, after in zip([0, *loss], loss, strict=False)]
    assert gains == sorted(gains, reverse=True)


@given(filter_lists(moving=False), st.integers(0, 4), st.integers(-1000, 1000))
def test_only_distances_matter(filters, within, shift):
    moved = [PricedFilter(*(None if bound is None else bound + shift for bound in f[:2]), *f[2:]) for f in filters]
    assert deepest_window(moved, within) == deepest_window(filters, within)
    assert heaviest_points(moved, 3) == heaviest_points(filters, 3)


def test_sums_beyond_64_bits_are_exact():
    huge = 10**30
    filters = [PricedFilter(n, n + 2, huge + n, huge + n) for n in range(40)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coverage, "WIDE_FROM", WIDE)
        assert heaviest_points(filters, 2) == sum(sorted((f.opening for f in filters), reverse=True)[:4])
        assert heaviest_points_within(filters, 2, 3) == sum(huge + n for n in (36, 37, 38, 39))


@pytest.mark.parametrize("wrong", ["boundary", "later price", "window end"])
def test_off_by_one_variants_differ(wrong):
    """The tests above would see them: each of these neighbours of the truth gives another figure on a plain instance."""
    filters = [PricedFilter(0, 3, 1, 2), PricedFilter(3, 6, 1, 2), PricedFilter(6, 9, 1, 2)]
    truth = brute_both(filters, 3, 4)
    variants = {
        "boundary": brute_both([f._replace(start=f.start - 1) for f in filters], 3, 4),
        "later price": brute_both([f._replace(later=f.opening) for f in filters], 3, 4),
        "window end": brute_both(filters, 3, 3),
    }
    assert heaviest_points_within(filters, 3, 4) == truth != variants[wrong]


def test_large_prices_with_a_common_divisor_are_exact_under_both_limits():
    """Sums of large values: past 64 bits, but a multiple of what counts cost."""
    counts = [PricedFilter(n * length, (n + 1) * length, 1, 1) for length in (1, 4, 16) for n in range(3200 // length)]
    sums = [f._replace(opening=10**18, later=10**18) for f in counts]
    assert heaviest_points_within(sums, 4, 28) == 10**18 * heaviest_points_within(counts, 4, 28)
    assert heaviest_points_within(counts, 4, 28) < min(heaviest_points(counts, 4), deepest_window(counts, 28))
