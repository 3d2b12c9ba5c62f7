"""The error of what is drawn against the predicted one, for every mechanism, over thousands of publications: within 3%."""

from __future__ import annotations

import numpy as np

from benchmarks.empirical import PERIODS, drawn_errors, measured, plans
from dbext.mechanisms.error import half_width

PUBLICATIONS = 4_000


def test_every_mechanism_errs_as_predicted():
    found = {one["mechanism"]: one["ratio"] for one in measured(PUBLICATIONS)}
    kinds = {name.split(",")[0] for name in found}
    assert kinds >= {"plain_sums", "binary_tree", "signed_tree", "square_root", "normalised_square_root", "sliding_root", "disjoint_sums"}
    for name, ratio in found.items():
        assert 0.97 < ratio < 1.03, name
        assert not 0.97 < 0.9 * ratio < 1.03, "a scale of 0.9 would be seen"
        assert not 0.97 < 1.1 * ratio < 1.03, "and one of 1.1"


def test_published_intervals_cover_as_often_as_they_say():
    for name, plan in plans():
        errors = np.abs(drawn_errors(plan, 1_000, PERIODS))
        widths = np.array([half_width(plan.draws(plan.mechanism.answer(period))) for period in range(1, PERIODS + 1)])
        assert 0.94 < (errors <= widths).mean() < 0.985, name
