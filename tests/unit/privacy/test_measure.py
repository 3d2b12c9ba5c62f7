from itertools import product

import pytest

from dbext.privacy.constraint import Constraint
from dbext.privacy.measure import Measure, Sensitivity, sensitivity
from tests.unit.privacy.entries import norms, paths

CONSTRAINTS = [Constraint(k, w) for k, w in product((None, 1, 2, 3, 4), (None, 0, 1, 2)) if (k, w) != (None, None)]


def largest_effect(measure, cells, ticks, constraint):
    """One filter (0, ticks], with room for an entry to begin before it."""
    found = [norms(path, measure, [(0, ticks)]) for path in paths(-2, ticks, constraint, cells)]
    return Sensitivity(max(l1 for l1, _ in found), max(l2 for _, l2 in found))


@pytest.mark.parametrize("measure", [Measure.NET, Measure.STATE, Measure.ENTERED, Measure.LEFT])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("ticks", [1, 2, 3])
@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=str)
def test_sensitivity_covers_every_entry(measure, grouped, ticks, constraint):
    bound = sensitivity(measure, grouped, ticks, constraint)
    truth = largest_effect(measure, 2 if grouped else 1, ticks, constraint)
    assert bound.l1 >= truth.l1
    assert bound.l2_squared >= truth.l2_squared


@pytest.mark.parametrize("ticks", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
def test_event_sensitivity_is_attained(ticks, k):
    """Equality, except that an entry needs a slot before it can leave."""
    constraint = Constraint(max_mutations=k)
    assert sensitivity(Measure.ENTERED, False, ticks, constraint) == largest_effect(Measure.ENTERED, 1, ticks, constraint)
    if k > 1:
        assert sensitivity(Measure.LEFT, False, ticks, constraint) == largest_effect(Measure.LEFT, 1, ticks, constraint)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_a_move_touches_two_cells_unless_nothing_can_move(k):
    assert sensitivity(Measure.NET, True, 3, Constraint(max_mutations=3)) == Sensitivity(2, 2)
    assert sensitivity(Measure.NET, True, 3, Constraint(max_mutations=1)) == Sensitivity(1, 1)
    assert sensitivity(Measure.NET, True, 3, Constraint(k, 0)) == Sensitivity(1, 1)
    assert sensitivity(Measure.STATE, True, None, Constraint(max_mutations=k)) == Sensitivity(1, 1)


def test_events_without_any_limit_have_no_sensitivity():
    assert sensitivity(Measure.ENTERED, False, None, Constraint()) is None
    assert sensitivity(Measure.ENTERED, False, 7, Constraint()) == Sensitivity(4, 16)
    assert sensitivity(Measure.ENTERED, False, None, Constraint(active_within=5)) == Sensitivity(3, 9)
    assert sensitivity(Measure.NET, False, 7, Constraint()) == Sensitivity(1, 1)
