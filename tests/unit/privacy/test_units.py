"""Units of several rows: everything that their rows can add up to, by enumeration, against what is charged."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from dbext.privacy.constraint import Constraint
from dbext.privacy.measure import Measure, appearance, sensitivity
from dbext.query.bounds import Bounds
from dbext.query.statistic import Term, term_from_json, values_of

#: What one row may add, as terms with bounds, centre and power.
ROWS = {
    "count": ((1,), None, 0, 0),
    "positive": ((2, 3), (2, 3), 0, 1),
    "negative": ((-3, -1), (-3, -1), 0, 1),
    "two_sided": ((-1, 0, 2), (-1, 2), 0, 1),
    "from the middle": ((-1, 0, 1), (1, 3), 2, 1),
    "squares": ((0, 1), (1, 3), 2, 2),
}


def states(values, cells, most):
    """Every vector of sums, by cell, of up to `most` rows with these values."""
    rows = [*itertools.product(values, range(cells))]
    found = set()
    for number in range(most + 1):
        for chosen in itertools.combinations_with_replacement(rows, number):
            sums = [0] * cells
            for value, cell in chosen:
                sums[cell] += value
            found.add(tuple(sums))
    return sorted(found)


def term(name, most):
    _, bounds, centre, power = ROWS[name]
    made = None if bounds is None else Bounds(*(Fraction(one) for one in bounds), Fraction(1))
    return Term(None, made, centre, power, most)


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("cells", [1, 2, 3])
def test_no_change_of_a_unit_is_larger_than_what_is_charged(name, cells):
    for most in (1, 2, 3):
        values = term(name, most).values
        possible = states(ROWS[name][0], cells, most)
        charged = sensitivity(Measure.NET, cells > 1, 5, Constraint(3), values)
        first = appearance(values)
        changes = [tuple(a - b for a, b in zip(*pair, strict=True)) for pair in itertools.product(possible, repeat=2)]
        assert max(sum(map(abs, one)) for one in changes) <= charged.l1
        assert max(sum(x * x for x in one) for one in changes) <= charged.l2_squared
        assert max(sum(map(abs, one)) for one in possible) == first.l1
        assert max(sum(x * x for x in one) for one in possible) == first.l2_squared
        if cells == 1:
            assert max(abs(x) for (x,) in changes) == charged.l1 == values.swing


@pytest.mark.parametrize("most", [1, 2, 3])
def test_units_in_groups_of_their_rows_change_no_more_than_the_rows(most):
    values = term("count", most).values
    cells = [*itertools.product((0, 1), repeat=4)]
    possible = [one for one in cells if sum(one) <= most]
    charged = sensitivity(Measure.NET, True, 5, Constraint(3), values)
    changes = [tuple(a - b for a, b in zip(*pair, strict=True)) for pair in itertools.product(possible, repeat=2)]
    assert max(sum(map(abs, one)) for one in changes) <= charged.l1
    assert max(sum(x * x for x in one) for one in changes) <= charged.l2_squared
    assert set(possible) <= set(states((1,), 4, most))


@pytest.mark.parametrize("name", ["count", "positive", "two_sided"])
def test_no_life_of_a_unit_is_worse_than_that_of_an_entry_which_adds_as_much_in_one_cell(name):
    """Whatever mixes ticks linearly: the worst norm over all lives of a unit is that of lives that hold n rows' worth in one cell."""
    most, cells, ticks = 2, 2, 3
    rng = np.random.default_rng(5)
    single = sorted({(0,) * cells, *(tuple(most * v * (c == cell) for c in range(cells)) for v in ROWS[name][0] for cell in range(cells))})
    for _ in range(3):
        mix = np.tril(rng.integers(-3, 4, (ticks, ticks)))
        worst = {}
        for kind, possible in (("unit", states(ROWS[name][0], cells, most)), ("entry", single)):
            lives = np.array([*itertools.product(possible, repeat=ticks)], dtype=float)  # life, tick, cell
            steps = np.diff(lives, axis=1, prepend=0)
            effects = np.einsum("rt,ltc->lrc", mix, steps).reshape(len(lives), -1)
            worst[kind] = (np.abs(effects).sum(axis=1).max(), (effects**2).sum(axis=1).max())
        assert worst["unit"] == worst["entry"]


def test_terms_of_units_survive_json():
    for name in ROWS:
        for most in (None, 1, 7) if name != "count" else (1, 7):
            made = term(name, most)
            said = {
                "column": None,
                "bounds": None if made.bounds is None else made.bounds.to_json(),
                "centre": made.centre,
                "power": made.power,
            }
            assert values_of(said if most is None else {**said, "rows": most}) == made.values
    assert term_from_json(None, ()) is None
