"""What happened in one run of the demo: filled in step by step, told on the terminal and again in the report."""

from __future__ import annotations

from dataclasses import dataclass, field

from dbext.demo.replay import Timing
from dbext.demo.results import Coverage, Result
from dbext.demo.scenario import Rule, Scenario


@dataclass(frozen=True)
class Asked:
    """One answer of the database to a question, what was left of the budget after it (epsilon), and how long it took (seconds)."""

    value: float
    lower: float
    upper: float
    left: float
    remembered: bool
    seconds: float


@dataclass(frozen=True)
class Spending:
    """One use of the budget: what for, the epsilon it costs on its own over a lifetime, and its share of the budget (0 to 1)."""

    label: str
    epsilon: float
    share: float


@dataclass(frozen=True)
class Budget:
    """The state of the budget, in epsilon: in all, spent by what has left, reserved for what will, left; and its uses."""

    epsilon: float
    spent: float
    reserved: float
    left: float
    uses: tuple[Spending, ...]


@dataclass
class Story:
    """Everything that the report shows."""

    scenario: Scenario
    protected: str = ""
    constraints: list[tuple[Rule, str]] = field(default_factory=list)
    facts: dict[str, dict[str, str]] = field(default_factory=dict)
    timing: Timing = field(default_factory=Timing)
    results: list[Result] = field(default_factory=list)
    left_before: float = 0.0
    asked: list[Asked] = field(default_factory=list)
    exact_answer: int = 0
    refusal: str = ""
    budget: Budget | None = None

    @property
    def coverage(self) -> Coverage:
        """Coverage over all releases."""
        return sum((result.coverage for result in self.results), Coverage(0, 0, 0))
