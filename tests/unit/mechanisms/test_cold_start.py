"""A new database session pays for what it uses: everyday figures and draws load no numpy."""

from __future__ import annotations

import subprocess
import sys

EVERYDAY = """
import sys
from fractions import Fraction
from dbext.mechanisms.error import half_width_95
from dbext.mechanisms.hierarchical import hierarchical_sums
from dbext.mechanisms.registry import mechanism_from_json
from dbext.mechanisms.sampling import draw
from dbext.privacy.accountant import worst_case_loss
from dbext.privacy.calibrate import noise_for
from dbext.privacy.charge import Charge
from dbext.privacy.constraint import Constraint, EntryType
from dbext.privacy.conversion import budget_picos, epsilon_of
from dbext.privacy.grid import RegularGrid
from dbext.privacy.measure import Measure
from dbext.privacy.noise import RoundedGaussian, DiscreteLaplace
from dbext.privacy.pattern import Single, Tree, Windows

grid = RegularGrid(0, 1)
types = [EntryType(1, "few", Constraint(12)), EntryType(2, "short", Constraint(None, 28)), EntryType(3, "both", Constraint(3, 28))]
patterns = [Windows(grid, width_ticks=14), Tree(grid, 365)]
for pure, kind in ((True, DiscreteLaplace), (False, RoundedGaussian)):
    noise = noise_for(patterns, Measure.NET, True, types, budget_picos(Fraction(1), Fraction(1, 10**6)), pure, kind)
    charges = [Charge(pattern, noise, Measure.NET, True) for pattern in patterns]
    charges += [Charge(Single(day, day + 30), noise, Measure.NET) for day in range(100)]
    epsilon_of(max(worst_case_loss(charges, types, pure).values()), Fraction(0) if pure else Fraction(1, 10**6))
    draw(noise, 500)
    half_width_95(noise, [1] * 14)
hierarchical_sums(Windows(grid, width_ticks=365), 2)
print("numpy" in sys.modules)
"""


def test_everyday_work_loads_no_numpy():
    found = subprocess.run([sys.executable, "-c", EVERYDAY], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
