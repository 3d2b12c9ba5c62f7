"""Declarations and what becomes of them, kept in files. To add a case, add it to the file: no Python is needed."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dbext.errors import DbextError
from dbext.privacy.constraint import Constraint, EntryType
from dbext.query.bounds import Bounds
from dbext.query.calendar import parse_span, tick_from_span
from dbext.query.choose import plan_publication
from dbext.query.compiler import compile_declaration, compile_predicate, resolve
from dbext.query.groups import group_source
from dbext.query.plan_text import publication_text
from dbext.query.planner import Request
from dbext.query.text import text
from tests.golden.loader import cases
from tests.unit.query.tables import COLUMNS

DEFAULTS = {"tick": "1 day", "types": "imported w28, local k3", "delta": "0", "start": "5700"}


def entry_types(spec):
    """`imported w28, local k3, both k3 w28, free` -> entry types."""
    made = []
    for number, words in enumerate((one.split() for one in spec.split(", ")), start=1):
        limits = {word[0]: int(word[1:]) for word in words[1:]}
        made.append(EntryType(number, words[0], Constraint(limits.get("k"), limits.get("w"))))
    return tuple(made)


def planned(case):
    """The plan's text under a case's settings: those of Request, tick, types, delta, bounds, and `boundary 2015-09-01: 5720`."""
    settings = DEFAULTS | case.settings
    boundaries = {key.removeprefix("boundary "): int(value) for key, value in settings.items() if key.startswith("boundary ")}
    declaration = resolve(compile_declaration(case.given), COLUMNS)
    if declaration.grouped or "groups" in settings:
        group_source(declaration, settings.get("groups"))
    request = Request(
        start_tick=int(settings["start"]),
        every=parse_span(settings["every"]) if "every" in settings else None,
        measure=settings.get("measure"),
        epsilon=Fraction(settings["epsilon"]) if "epsilon" in settings else None if "max_error" in settings else Fraction(1, 2),
        horizon=int(settings["horizon"]) if "horizon" in settings else None,
        max_error=Fraction(settings["max_error"]) if "max_error" in settings else None,
        aligned=case.settings.get("start") is None,
        cells=int(settings.get("cells", "1")),
        first_tick=int(settings["first_tick"]) if "first_tick" in settings else None,
        noise=settings.get("noise"),
        whole=settings.get("whole") == "yes",
    )
    tick, types = tick_from_span(parse_span(settings["tick"])), entry_types(settings["types"])
    bounds = column_bounds(settings.get("bounds", ""))
    made = plan_publication(declaration.with_boundaries(boundaries), request, tick, types, Fraction(settings["delta"]), bounds)
    return publication_text(made.publication, tick, types)


def column_bounds(spec):
    """`age 0 120 1, amount 0 1000 0.1` -> bounds by position."""
    made = {}
    for name, *figures in (one.split() for one in spec.split(", ") if one):
        made[next(one.position for one in COLUMNS if one.name == name)] = Bounds(*map(Fraction, figures))
    return made


def refusal(case, attempt):
    """What an attempt is refused with: `SQLSTATE at position: message` and the hint on a line of its own."""
    try:
        return f"accepted: {attempt(case)}"
    except DbextError as error:
        position = getattr(error, "position", None)
        where = f" at {position}" if position else ""
        return f"{error.sqlstate}{where}: {error.message}" + (f"\nhint: {error.hint}" if error.hint else "")


def predicate_text(case):
    return text(compile_predicate(case.given, COLUMNS))


@pytest.mark.parametrize("case", cases("plans"), ids=lambda case: case.where)
def test_plans(case):
    assert planned(case) == case.expected


@pytest.mark.parametrize("case", cases("refused_declarations"), ids=lambda case: case.where)
def test_refused_declarations(case):
    assert refusal(case, planned) == case.expected


@pytest.mark.parametrize("case", cases("predicates"), ids=lambda case: case.where)
def test_predicates(case):
    assert predicate_text(case) == case.expected


@pytest.mark.parametrize("case", cases("refused_predicates"), ids=lambda case: case.where)
def test_refused_predicates(case):
    assert refusal(case, predicate_text) == case.expected
