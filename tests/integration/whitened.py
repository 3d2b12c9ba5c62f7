"""Published noise, freed of what correlates it: whatever mechanism it came from, as if every figure had been drawn by itself."""

from __future__ import annotations

import numpy as np

from dbext.query.plan import Plan


def mean_square(plan: Plan, figures: np.ndarray) -> float:
    """Return the mean square of figures (period, cell) that are noise alone, in units of what the plan says that all of them vary together.

    It is 1 for noise of the stated size. Its deviation is sqrt((k - 1) / n) for n figures, with a kurtosis k of 3 for Gaussian noise and of
    at most 6 for Laplace noise. Errors of one cell as they are published go up and down together, and their mean square deviates far more.
    """
    answers = [dict(plan.mechanism.answer(period)) for period in range(1, len(figures) + 1)]
    numbers = sorted({number for answer in answers for number in answer})
    weights = np.array([[answer.get(number, 0.0) for number in numbers] for answer in answers])
    covariance = weights * [plan.node_variance(number) for number in numbers] @ weights.T
    return float((np.linalg.solve(np.linalg.cholesky(covariance), figures) ** 2).mean())
