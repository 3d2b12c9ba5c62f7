"""What a release tells about an entry's present status, given a model of how that status moves: its outputs, and the risk.

Let X be the status and O_n what period n draws: a function of what an entry did up to the tick tau_n, and of fresh noise, with
replacement loss epsilon_n (any two lives). Given X at tau_n, what an entry did before says nothing more about X later (the model). So

    P(O_1 ... O_n | X at tau_n)  =  E[ P(O_1 ... O_(n-1) | life) P(O_n | life) | X at tau_n ],

the second factor within e^epsilon_n, and what is left, P(O_1 ... O_(n-1) | X at tau_n), tells at most
ln(1 + Delta(tau_n - tau_(n-1)) (e^(e_(n-1)) - 1)). Windows may overlap. Besides, e_n never passes the replacement loss of everything
together, which limits on an entry's changes keep finite for ever. Proven for pure loss only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from dbext.errors import UnboundedLoss
from dbext.mechanisms.protocol import Node
from dbext.privacy.accountant import worst_case_loss
from dbext.privacy.ageing import Memory, Outlook, Publication, aged, outlook
from dbext.privacy.charge import Charge
from dbext.privacy.constraint import EntryType
from dbext.privacy.measure import Measure
from dbext.privacy.noise import DiscreteLaplace, Noise
from dbext.privacy.pattern import Several, Single
from dbext.privacy.pico import PICOS
from dbext.query.local_plan import LocalPlan
from dbext.query.plan import Plan

#: Periods that are followed one by one; beyond, and for the outlook, every output counts as the dearest.
FOLLOWED = 400
#: Endless mechanisms whose periods are all alike from some period on.
_ALIKE = ("independent_windows", "disjoint_sums")


@dataclass(frozen=True)
class AgedRelease:
    """The outputs of a release by period, the most that all of them lose together against replacement (None: without end).

    `interval` is the least number of ticks between two inputs, `age` the least age of an input when it is published, `dearest` the largest
    loss of one output.
    """

    outputs: tuple[Publication, ...]
    most: float | None
    interval: int
    age: int
    dearest: float
    ends: bool

    def losses(self, memory: Memory) -> list[tuple[int, float]]:
        """Return (input tick, loss about the status at it) after each output."""
        found: list[tuple[int, float]] = []
        for one in self.outputs:
            latest, loss = found[-1] if found else (one.input, 0.0)
            gap = max(0, one.input - latest)
            found.append((latest + gap, self._within(one.epsilon + aged(loss, memory(gap)))))
        return found

    def _within(self, loss: float) -> float:
        return loss if self.most is None else min(loss, self.most)

    def delayed(self, late: int) -> AgedRelease:
        """Return the release whose outputs all appear so many ticks later."""
        outputs = tuple(replace(one, published=one.published + late) for one in self.outputs)
        return replace(self, outputs=outputs, age=self.age + late)

    def curve(self, memory: Memory, ticks: Sequence[int]) -> list[tuple[int | None, float, bool]]:
        """Return (age of information, risk, whether an output appears) at the end of each tick; no age before the first output."""
        losses, points = self.losses(memory), []
        for tick in ticks:
            known = [n for n, one in enumerate(self.outputs) if one.published <= tick]
            if not known:
                points.append((None, 0.0, False))
                continue
            latest, loss = losses[known[-1]]
            points.append((tick - latest, aged(loss, memory(tick - latest)), self.outputs[known[-1]].published == tick))
        return points

    def peak(self, memory: Memory) -> float:
        """Return the largest risk there will ever be: it is met when an output appears."""
        risks = [aged(loss, memory(one.published - latest)) for one, (latest, loss) in zip(self.outputs, self.losses(memory), strict=True)]
        if not self.ends:
            risks.append(self.outlook(memory).peak if self.most is None else self._within_at_age(memory))
        return max(risks, default=0.0)

    def _within_at_age(self, memory: Memory) -> float:
        return min(self.outlook(memory).peak, aged(self.most, memory(self.age)))

    def outlook(self, memory: Memory) -> Outlook:
        """Return what becomes of outputs of the dearest kind for ever."""
        return outlook(self.interval, self.age, self.dearest, memory)

    def is_bounded(self, memory: Memory) -> bool:
        """Whether the risk stays below some figure for ever."""
        return self.ends or self.most is not None or self.outlook(memory).is_bounded

    def reason(self, memory: Memory) -> str:
        """Say why the risk is bounded, or is not."""
        if self.ends:
            return "the release ends"
        told = self.outlook(memory).reason
        if self.most is not None:
            return f"limits on changes keep the loss of everything together below {self.most:.4g}; {told}"
        return told


def aged_release(plan: Plan, types: Sequence[EntryType]) -> AgedRelease | None:
    """Return the outputs of a plan; None unless its loss is pure: its noise is Laplace, and nothing else is proven."""
    if not isinstance(plan.noise, DiscreteLaplace) or not plan.whole_numbers:
        return None
    periods = _followed(plan.last_period)
    most = _together(plan, types)
    losses = [_within(_output(plan, period, types), most) for period in periods]
    inputs = [min(plan.window(period)[1], plan.due_tick(period)) for period in periods]
    outputs = tuple(Publication(at, plan.due_tick(n), loss) for n, at, loss in zip(periods, inputs, losses, strict=True))
    return _summed_up(outputs, most, plan.last_period, alike=plan.mechanism.name in _ALIKE)


def aged_reports(plan: LocalPlan, types: Sequence[EntryType]) -> AgedRelease:
    """Return the outputs of a release of the local model: one report of an entry for each node, each with its replacement loss."""
    try:
        most = max(worst_case_loss(plan.charges, types, pure=True).values(), default=0) / PICOS
    except UnboundedLoss:
        most = None
    outputs = []
    for period in _followed(plan.horizon):
        nodes, due = plan.mechanism.nodes(period), plan.due_tick(period)
        loss = float(sum(plan.response_of(node.number).epsilon for node in nodes))
        outputs.append(Publication(min(max((node.end for node in nodes), default=due), due), due, _within(loss, most)))
    return _summed_up(tuple(outputs), most, plan.horizon, alike=plan.mechanism.name in _ALIKE)


def one_answer(end: int, charge: Charge, types: Sequence[EntryType]) -> AgedRelease | None:
    """Return the answer to a question about a window that ends with a tick, as if it had been given then; None unless it is pure."""
    if not isinstance(charge.noise, DiscreteLaplace):
        return None
    loss = 2 * max(worst_case_loss([charge], types, pure=True).values(), default=0) / PICOS
    return _summed_up((Publication(end, end, loss),), loss, 1, alike=True)


def in_step(parts: Sequence[AgedRelease]) -> AgedRelease:
    """Return streams that one release draws together as one: an output loses what all of them do, from data as new as the newest."""
    outputs = tuple(
        Publication(max(one.input for one in same), same[0].published, sum(one.epsilon for one in same))
        for same in zip(*(part.outputs for part in parts), strict=True)
    )
    most = None if any(part.most is None for part in parts) else sum(part.most for part in parts)
    first = parts[0]
    interval, age = min(part.interval for part in parts), min(part.age for part in parts)
    return AgedRelease(outputs, most, interval, age, sum(part.dearest for part in parts), first.ends)


def together(parts: Sequence[AgedRelease]) -> AgedRelease:
    """Return everything that several releases publish, as one. Their figures do not add up: ln(1 + D (e^(a + b) - 1)) is more than the sum.

    The recurrence takes outputs in any order; what all of them lose together is at most the sum of what each does.
    """
    outputs = tuple(sorted((one for part in parts for one in part.outputs), key=lambda one: (one.published, one.input)))
    most = None if any(part.most is None for part in parts) else sum(part.most for part in parts)
    ends = all(part.ends for part in parts)
    dearest = max(part.dearest for part in parts) if ends else math.inf
    return AgedRelease(outputs, most, min(part.interval for part in parts), min(part.age for part in parts), dearest, ends)


def _followed(last: int | None) -> range:
    return range(1, (FOLLOWED if last is None else min(last, FOLLOWED)) + 1)


def _summed_up(outputs: tuple[Publication, ...], most: float | None, last: int | None, *, alike: bool) -> AgedRelease:
    """Return a release; beyond what is followed each output counts as the dearest seen if all are alike, else as all of them together."""
    ends = last is not None and last <= FOLLOWED
    gaps = [later.input - earlier.input for earlier, later in pairwise(outputs)]
    dearest = max(one.epsilon for one in outputs) if alike or ends else (math.inf if most is None else most)
    age = min(one.published - one.input for one in outputs)
    return AgedRelease(outputs, most, max(1, min(gaps, default=1)), age, dearest, ends)


def _within(loss: float | None, most: float | None) -> float:
    known = [one for one in (loss, most) if one is not None]
    return min(known) if known else math.inf


def _together(plan: Plan, types: Sequence[EntryType]) -> float | None:
    """Return the replacement loss of everything that the release ever draws: two lives at worst, each added or removed."""
    if plan.renews:
        return None
    try:
        return 2 * max(worst_case_loss(plan.charges, types, pure=True).values(), default=0) / PICOS
    except UnboundedLoss:
        return None


def _output(plan: Plan, period: int, types: Sequence[EntryType]) -> float | None:
    """Return the replacement loss of what one period draws; None if blocks that are not over yet make that no output of its own.

    Once the loss of adding an entry where one number is drawn for which an entry counts as 0 or 1 or more: both lives lie on one side of
    absence. Twice where it may count either way (`net`), or where lives may touch different numbers: several nodes, or groups.
    """
    if getattr(plan.mechanism, "noise_only", False):
        return None
    nodes = plan.mechanism.nodes(period)
    if not nodes:
        return 0.0
    added = max(worst_case_loss(_charges(plan, nodes), types, pure=True).values(), default=0) / PICOS
    one_sided = plan.measure.counts_events or all(node.start is None for node in nodes if plan.measure is Measure.STATE)
    once = len(nodes) == 1 and not plan.grouped and not plan.values.two_sided and plan.measure is not Measure.NET and one_sided
    return added if once else 2 * added


def _charges(plan: Plan, nodes: Sequence[Node]) -> list[Charge]:
    alike: dict[Noise, list[Single]] = {}
    for node in nodes:
        alike.setdefault(plan.node_noise(node.number), []).append(Single(node.start, node.end))
    return [Charge(Several(tuple(windows)), noise, plan.measure, plan.grouped, values=plan.values) for noise, windows in alike.items()]
