"""The attacker's figures: what a threshold gains by the steps of discrete noise."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dbext.privacy.noise import DiscreteGaussian
from dbext.service.attacker import step_gain


@pytest.mark.parametrize(("sigma_squared", "gain"), [("1.65", 1.027), ("20", 1.002), ("1000000", 1.0)])
def test_what_a_threshold_gains(sigma_squared, gain):
    assert step_gain(DiscreteGaussian(Fraction(sigma_squared))) == pytest.approx(gain, abs=1e-3)
