from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbext.errors import NotSupported, UnboundedLoss
from dbext.privacy.accountant import worst_case_loss
from dbext.privacy.charge import Charge
from dbext.privacy.constraint import Constraint, EntryType
from dbext.privacy.grid import MonthGrid, RegularGrid
from dbext.privacy.measure import Measure
from dbext.privacy.noise import DiscreteLaplace, RoundedGaussian
from dbext.privacy.pattern import Several, Single, Tree, Windows
from dbext.privacy.pico import PICOS, ceil_divide
from tests.unit.privacy.entries import norms, paths

UNIT = DiscreteLaplace(Fraction(1))
UNIT_GAUSSIAN = RoundedGaussian(Fraction(1, 2))
DAILY = RegularGrid(0, 1)


def loss(charges, constraint, *, pure=True):
    """Return the loss in whole epsilon (unit Laplace noise) or rho (Gaussian noise that costs the squared sensitivity)."""
    return worst_case_loss(charges, [EntryType(1, "any", constraint)], pure)[1] / PICOS


def net(pattern, **options):
    return Charge(pattern, UNIT, Measure.NET, **options)


PATTERNS = {
    "blocks of 1": Windows(DAILY, width_steps=1, count=5),
    "blocks of 2": Windows(RegularGrid(0, 2), width_steps=1, count=2),
    "windows of 3": Windows(DAILY, width_ticks=3, count=4),
    "tree": Tree(DAILY, 4),
    "tree with baseline": Several((Single(None, 1), Tree(RegularGrid(1, 1), 4))),
    "one": Single(1, 4),
    "from the beginning": Single(None, 3),
}
CONSTRAINTS = [Constraint(k, w) for k, w in product((None, 1, 2, 3, 4), (None, 0, 1, 3)) if (k, w) != (None, None)]


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("measure", list(Measure))
def test_no_entry_loses_more(name, measure, grouped):
    """Against the true effect of every life of an entry on the whole vector of filters and cells."""
    filters = list(PATTERNS[name].filters())
    for constraint in CONSTRAINTS:
        found = [norms(path, measure, filters) for path in paths(-1, 5, constraint, 2 if grouped else 1)]
        pure = loss([Charge(PATTERNS[name], UNIT, measure, grouped)], constraint)
        squares = loss([Charge(PATTERNS[name], UNIT_GAUSSIAN, measure, grouped)], constraint, pure=False)
        assert pure >= max(l1 for l1, _ in found), constraint
        assert squares >= max(l2 for _, l2 in found), constraint


@pytest.mark.parametrize("name", ["blocks of 1", "blocks of 2", "one", "from the beginning"])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_disjoint_blocks_are_priced_exactly(name, grouped, k):
    """Nothing cancels between disjoint filters: the figure is attained, for every number of mutations."""
    filters, constraint = list(PATTERNS[name].filters()), Constraint(max_mutations=k)
    for measure in (Measure.NET, Measure.ENTERED):
        found = max(norms(path, measure, filters)[0] for path in paths(-1, 5, constraint, 3 if grouped else 1))
        assert loss([Charge(PATTERNS[name], UNIT, measure, grouped)], constraint) == found


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("w", [0, 1, 2, 3])
def test_disjoint_blocks_under_both_constraints(k, w):
    filters, constraint = list(PATTERNS["blocks of 1"].filters()), Constraint(k, w)
    found = max(norms(path, Measure.NET, filters)[0] for path in paths(-1, 5, constraint, 1))
    assert loss([net(PATTERNS["blocks of 1"])], constraint) == found


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(1, 3), st.sampled_from(list(Measure)), st.booleans()), min_size=2, max_size=3),
    st.sampled_from(CONSTRAINTS),
)
def test_several_charges_together(shapes, constraint):
    """Charges about one predicate: no life of an entry loses more to all of them than the joint figure."""
    charges = [Charge(Single(start, start + ticks), UNIT, measure, grouped) for start, ticks, measure, grouped in shapes]
    figure = loss(charges, constraint)
    for path in paths(0, 5, constraint, 2):
        total = sum(norms(path, charge.measure, charge.pattern.filters())[0] for charge in charges if charge.grouped)
        total += sum(
            norms({t: "cell 0" if i.startswith("cell") else i for t, i in path.items()}, charge.measure, charge.pattern.filters())[0]
            for charge in charges
            if not charge.grouped
        )
        assert total <= figure


class TestClosedForms:
    """Section 1 of the theory, on tick indices."""

    @pytest.mark.parametrize(("step", "w"), [(7, 1), (7, 7), (7, 8), (7, 14), (7, 15), (1, 0), (1, 5), (3, 0)])
    def test_disjoint_release_within_a_time_bound(self, step, w):
        assert loss([net(Windows(RegularGrid(0, step), width_steps=1))], Constraint(active_within=w)) == ceil_divide(w, step) + 1

    @pytest.mark.parametrize("k", [2, 4, 12])
    def test_disjoint_release_with_few_mutations(self, k):
        assert loss([net(Windows(RegularGrid(0, 7), width_steps=1))], Constraint(max_mutations=k)) == k
        assert loss([net(Windows(RegularGrid(0, 7), width_steps=1, count=3))], Constraint(max_mutations=k)) == min(k, 3)

    @pytest.mark.parametrize(("step", "width", "k", "w"), [(1, 14, 2, 5), (2, 5, 4, 3), (10, 7, 2, 3), (10, 7, 2, 4), (7, 10, 2, 0)])
    def test_sliding_windows(self, step, width, k, w):
        windows = net(Windows(RegularGrid(0, step), width_ticks=width))
        assert loss([windows], Constraint(max_mutations=k)) == k * ceil_divide(width, step)
        assert loss([windows], Constraint(active_within=w)) == ceil_divide(width + w, step)

    def test_thirty_days_can_touch_three_months(self):
        monthly = net(Windows(MonthGrid(first_month=180, months=1), width_steps=1))
        assert loss([monthly], Constraint(active_within=28)) == 2
        assert loss([monthly], Constraint(active_within=29)) == 3, "28 February days and one on either side"
        assert loss([monthly], Constraint(active_within=31)) == 3

    def test_a_tree_path_per_mutation(self):
        for horizon, levels in ((1, 1), (3, 2), (4, 3), (1023, 10), (1024, 11)):
            assert loss([net(Tree(DAILY, horizon))], Constraint(max_mutations=1)) == levels

    def test_a_forgotten_root_is_seen(self):
        whole = loss([net(Tree(DAILY, 8))], Constraint(max_mutations=1))
        halves = Several((Tree(DAILY, 4), Tree(RegularGrid(4, 1), 4)))
        assert loss([net(halves)], Constraint(max_mutations=1)) == whole - 1


class TestOneReleaseIsOneCharge:
    """Events and ups and downs alternate: exact factors that touched filters alone do not show."""

    @pytest.mark.parametrize(("k", "factor"), [(1, 1), (2, 1), (3, 1), (4, 2), (12, 6)])
    def test_half_of_the_mutations_enter(self, k, factor):
        for count in (None, 200):
            daily = Charge(Windows(DAILY, width_steps=1, count=count), UNIT, Measure.ENTERED)
            assert loss([daily], Constraint(max_mutations=k)) == factor

    def test_half_of_the_ticks_enter(self):
        daily = Charge(Windows(DAILY, width_steps=1), UNIT, Measure.ENTERED)
        assert [loss([daily], Constraint(active_within=w)) for w in (0, 1, 2, 27, 28)] == [1, 1, 2, 14, 15]

    def test_events_in_long_blocks_cost_their_share(self):
        fortnights = Windows(RegularGrid(0, 14), width_steps=1)
        assert loss([Charge(fortnights, UNIT, Measure.ENTERED)], Constraint(max_mutations=12)) == 6
        assert loss([Charge(fortnights, UNIT_GAUSSIAN, Measure.ENTERED)], Constraint(max_mutations=12), pure=False) == 36

    def test_an_odd_number_of_changes_ends_absent(self):
        daily = Windows(DAILY, width_steps=1)
        assert [loss([net(daily)], Constraint(max_mutations=k)) for k in (1, 2, 3, 4, 5)] == [1, 2, 2, 4, 4]
        assert [loss([net(daily, grouped=True)], Constraint(max_mutations=k)) for k in (1, 2, 3, 4)] == [1, 2, 4, 6]

    def test_successive_releases_share_an_entrys_mutations(self):
        years = [net(Windows(RegularGrid(365 * year, 1), width_steps=1, count=365)) for year in range(4)]
        assert [loss(years[:count], Constraint(max_mutations=3)) for count in (1, 2, 3, 4)] == [2, 3, 3, 3]
        assert loss(years, Constraint(active_within=0)) == 1


class TestEndlessReleases:
    @given(
        st.integers(1, 4),
        st.integers(1, 6),
        st.integers(0, 3),
        st.one_of(st.none(), st.tuples(st.integers(0, 12), st.integers(1, 6))),
        st.sampled_from([Constraint(k, w) for k, w in product((None, 1, 2, 4), (None, 0, 3, 9)) if (k, w) != (None, None)]),
        st.booleans(),
        st.booleans(),
    )
    def test_equal_long_finite_ones(self, step, width, age, single, constraint, grouped, back):
        """An endless release costs what a long finite one does, alone and beside others."""

        def charges(count):
            sliding = Windows(RegularGrid(2, step), width_ticks=width, age=age, count=count)
            weekly = Windows(RegularGrid(-3, 3), width_steps=1, lead=1, count=count)
            found = [net(sliding, grouped=grouped), Charge(weekly, UNIT, Measure.STATE)]
            if single:
                found.append(net(Single(None if back else single[0], sum(single)), grouped=grouped))
            return found

        assert loss(charges(None), constraint) == loss(charges(60), constraint)

    def test_too_many_filters_fall_back_to_a_sum_of_worst_cases(self, monkeypatch):
        charges = [net(Windows(DAILY, width_ticks=3)), net(Windows(RegularGrid(0, 7), width_steps=1)), net(Single(0, 40))]
        for constraint in (Constraint(max_mutations=2), Constraint(active_within=9), Constraint(2, 9)):
            monkeypatch.undo()
            truth = loss(charges, constraint)
            monkeypatch.setattr("dbext.privacy.accountant._LARGEST_OVERLAP", 5)
            apart = loss(charges, constraint)
            monkeypatch.setattr("dbext.privacy.steady._LARGEST_CYCLE", 1)
            assert truth <= apart <= loss(charges, constraint)

    def test_months_beside_days_and_weeks(self):
        charges = [
            net(Windows(MonthGrid(180, 1), width_steps=1)),
            net(Windows(DAILY, width_ticks=14)),
            net(Windows(RegularGrid(0, 7), width_steps=1)),
        ]
        assert loss(charges, Constraint(max_mutations=2)) == 2 * 16
        assert loss(charges, Constraint(active_within=30)) == 3 + 44 + 6

    def test_early_periods_cost_less_than_later_ones(self):
        sliding = net(Windows(DAILY, width_ticks=5))
        assert loss([sliding, net(Single(-10, -5))], Constraint(active_within=0)) == 5


class TestTypes:
    TYPES = (
        EntryType(1, "ride", Constraint(max_mutations=12)),
        EntryType(2, "pass", Constraint(active_within=30)),
        EntryType(7, "open", Constraint()),
    )

    def test_every_type_has_its_own_figure(self):
        charges = [net(Windows(RegularGrid(0, 7), width_steps=1, count=100))]
        assert {number: picos / PICOS for number, picos in worst_case_loss(charges, self.TYPES, pure=True).items()} == {1: 12, 2: 6, 7: 100}

    def test_a_charge_may_concern_some_types_only(self):
        charges = [net(Windows(RegularGrid(0, 7), width_steps=1), types=(2,))]
        assert worst_case_loss(charges, self.TYPES, pure=True) == {1: 0, 2: 6 * PICOS, 7: 0}

    def test_an_endless_release_needs_a_limit_and_the_message_says_which(self):
        with pytest.raises(UnboundedLoss, match='type "open"') as refusal:
            worst_case_loss([net(Windows(DAILY, width_steps=1))], self.TYPES, pure=True)
        assert "max_mutations" in refusal.value.hint
        assert "horizon" in refusal.value.hint

    def test_events_since_the_beginning_need_a_limit(self):
        with pytest.raises(UnboundedLoss, match="entered"):
            worst_case_loss([Charge(Single(None, 5), UNIT, Measure.ENTERED)], self.TYPES, pure=True)

    def test_without_any_limit_every_filter_counts(self):
        charges = [
            net(Windows(DAILY, width_ticks=3, count=10), grouped=True),
            Charge(Single(0, 5), UNIT, Measure.ENTERED),
            net(Single(None, 9)),
        ]
        assert worst_case_loss(charges, self.TYPES[2:], pure=True) == {7: (20 + 3 + 1) * PICOS}

    def test_no_type_no_loss(self):
        assert worst_case_loss([net(Single(0, 1))], [], pure=True) == {}


class TestFigures:
    def test_gaussian_noise_is_refused_under_pure_budgets(self):
        with pytest.raises(NotSupported):
            loss([Charge(Single(0, 1), UNIT_GAUSSIAN, Measure.NET)], Constraint(max_mutations=1))

    def test_costs_are_rounded_up_and_stay_whole(self):
        charge = Charge(Windows(DAILY, width_steps=1), DiscreteLaplace(Fraction(30)), Measure.NET)
        assert worst_case_loss([charge], [EntryType(1, "any", Constraint(max_mutations=4))], pure=True) == {1: 4 * 33_333_333_334}

    @given(st.lists(st.sampled_from(sorted(PATTERNS)), min_size=1, max_size=4), st.sampled_from(CONSTRAINTS))
    def test_own_losses_bound_the_joint_figure(self, names, constraint):
        charges = [net(PATTERNS[name]) for name in names]
        types = [EntryType(1, "any", constraint)]
        own = [worst_case_loss([charge], types, pure=True) for charge in charges]
        joint = worst_case_loss(charges, types, pure=True)[1]
        assert max(one[1] for one in own) <= joint <= sum(one[1] for one in own)

    @pytest.mark.parametrize("k", [1, 2, 3, 5])
    def test_what_has_left_never_exceeds_what_was_reserved(self, k):
        types = [EntryType(1, "any", Constraint(k, None))]
        for measure, grouped, pattern in product(Measure, (False, True), (Windows(DAILY, width_steps=2, lead=1), Tree(DAILY, 9))):
            charge = Charge(pattern, UNIT, measure, grouped)
            spent = [worst_case_loss([charge.through(period)], types, pure=True)[1] for period in (1, 2, 5, 9, 30)]
            assert spent == sorted(spent)
            assert spent[-1] <= worst_case_loss([charge], types, pure=True)[1]
