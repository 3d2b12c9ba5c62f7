"""Which unit a publication is priced in, and what is shown of the other."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from dbext.privacy.constraint import Constraint, EntryType
from dbext.query.calendar import Span
from dbext.query.choose import plan_publication
from dbext.query.compiler import compile_declaration, resolve
from dbext.query.shape import Request
from tests.unit.query.tables import COLUMNS, DAY, DELTA, PURE

TOTAL = "SELECT count(*) FROM cases WHERE imported"
WINDOWS = "SELECT count(*) FILTER (WHERE dp_time > now() - INTERVAL '7 days') AS a, count(*) FILTER (WHERE dp_time > now() - INTERVAL '14 days') AS b FROM cases"
MANY = "SELECT county, count(*) AS n, count(*) FILTER (WHERE imported) AS abroad FROM cases WHERE dp_time > now() - INTERVAL '1 day' GROUP BY county"


def made(sql, delta=DELTA, mutations=1, **wishes):
    request = replace(Request(5700, every=Span(days=1), epsilon=Fraction(1, 2), first_tick=5600), **wishes)
    return plan_publication(resolve(compile_declaration(sql), COLUMNS), request, DAY, (EntryType(1, "any", Constraint(mutations)),), delta)


def units(planned):
    return {one.plan.pure for one in planned.publication.streams} | {charge.pure for charge in planned.publication.charges}


@pytest.mark.parametrize("sql", [TOTAL, WINDOWS, MANY])
def test_the_price_is_in_rho_unless_asked_otherwise(sql):
    wishes = {"horizon": 16} if sql == TOTAL else {}
    assert units(made(sql, **wishes)) == {False}
    assert units(made(sql, noise="gaussian", **wishes)) == {False}
    assert units(made(sql, noise="laplace", **wishes)) == {True}
    assert units(made(sql, PURE, **wishes)) == {True}
    assert units(made(sql, whole=True, **wishes)) == {True}, "Laplace noise errs less here"
    assert made(sql, whole=True, **wishes).error == made(sql, noise="laplace", **wishes).error


def test_the_whole_is_in_rho_where_that_errs_less():
    assert units(made(TOTAL, mutations=4, horizon=500, whole=True)) == {False}
    assert made(TOTAL, mutations=4, horizon=500, whole=True).error < made(TOTAL, mutations=4, horizon=500, noise="laplace").error


@pytest.mark.parametrize("sql", [TOTAL, WINDOWS, MANY])
def test_both_units_are_shown_and_one_candidate_of_each_stream_is_chosen(sql):
    wishes = {"horizon": 16} if sql == TOTAL else {}
    for noise in (None, "laplace"):
        planned = made(sql, noise=noise, **wishes)
        assert {one.candidate.plan.pure for one in planned.options} == {True, False}
        chosen = [one for one in planned.options if one.candidate.chosen]
        assert len(chosen) == len(planned.publication.streams)
        assert {one.candidate.plan.pure for one in chosen} == {noise == "laplace"}
        others = [one.candidate.reason for one in planned.options if one.candidate.plan.pure is (noise is None)]
        assert all(reason.startswith("adds in rho" if noise else "adds in epsilon, with noise => 'laplace'") for reason in others)
    assert not any(one.candidate.plan.pure for one in made(sql, noise="gaussian", **wishes).options)


def notes(planned):
    return [note for note in planned.publication.notes if "plainly" in note]


def test_notes_say_when_laplace_noise_would_err_less_and_what_it_takes():
    (note,) = notes(made(TOTAL, horizon=16))
    assert "4 such releases take epsilon 2, which holds 13 of those in rho" in note
    assert notes(made(MANY))[0].startswith("noise => 'laplace' would err 0.")
    assert notes(made(TOTAL, horizon=16, noise="laplace"))[0].startswith("its price adds in epsilon")
    assert not notes(made(TOTAL, mutations=4, horizon=500))
    assert not notes(made(TOTAL, PURE, horizon=16))
    (note,) = notes(made(TOTAL, horizon=16, epsilon=None, max_error=Fraction(30)))
    assert note.startswith("noise => 'laplace' would need an epsilon of")
