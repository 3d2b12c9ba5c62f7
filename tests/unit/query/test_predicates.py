"""Predicates: what is accepted, in which canonical form, and that no two different questions share one."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbext.errors import DbextError, DeclarationRefused, InternalError
from dbext.query.bind import _bind
from dbext.query.canonical import canonical
from dbext.query.column import by_name
from dbext.query.compile import predicate_of
from dbext.query.compiler import compile_predicate
from dbext.query.predicate import And, ColumnRef, Compare, In, IsNull, IsTruth, Not, Or, columns_of, literals
from dbext.query.predicate_json import from_json, key, to_json
from dbext.query.render import quote_text, render
from dbext.query.text import text
from tests.unit.query.tables import COLUMNS


def compiled(sql):
    return compile_predicate(sql, COLUMNS)


@pytest.mark.parametrize(
    ("respelled", "form"),
    [
        (
            ["status = 'a'", "'a' = status", "STATUS='a'", "\"status\" = 'a'", "(status) = ('a')", "not status <> 'a'", "status in ('a')"],
            "status = 'a'",
        ),
        (["status = 'b' or status = 'a'", "status in ('b', 'a', 'b')", "not (status <> 'a' and 'b' <> status)"], "status IN ('a', 'b')"),
        (
            ["age between 1 and 5", "age >= 1 and age <= 5", "not (age < 1 or age > '05')", "1.0 <= age and 5 >= age"],
            "age <= 5 AND age >= 1",
        ),
        (["not age between 1 and 5", "age not between 1 and 5"], "age < 1 OR age > 5"),
        (["imported", "imported = true", "imported <> false", "not not imported", "imported is true", "imported = 'yes'"], "imported"),
        (["not imported", "imported = false", "imported is false", "not (imported is not false)"], "NOT imported"),
        (["imported is not true", "not (imported is true)"], "imported IS NOT TRUE"),
        (["imported is unknown", "imported is null"], "imported IS NULL"),
        (["status is null", "not status is not null"], "status IS NULL"),
        (
            ["status = 'a' and (age = 1 and imported)", "imported and age = 1 and status = 'a' and imported"],
            "age = 1 AND imported AND status = 'a'",
        ),
        (["not (status = 'a' or age = 1)", "age <> 1 and status != 'a'"], "age <> 1 AND status <> 'a'"),
        (["status not in ('a') and status <> 'b'", "not status in ('b', 'a')"], "status NOT IN ('a', 'b')"),
        (["amount = 1.50", "amount = '1.5'", "amount = 15e-1", "amount = 001.500"], "amount = 1.5"),
        (["amount = 0", "amount = -0.0"], "amount = 0"),
        (["onset = '2015-09-01'", "onset = DATE '2015-09-01'"], "onset = '2015-09-01'"),
        (["seen > '2015-09-01 12:00+08'", "seen > '2015-09-01T04:00:00.000Z'"], "seen > '2015-09-01 04:00:00+00'"),
        (["noted > '2015-09-01'", "noted > TIMESTAMP '2015-09-01 00:00'", "noted > date '2015-09-01'"], "noted > '2015-09-01 00:00:00'"),
        (
            ["token = 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "token = '{a0eebc999c0b4ef8bb6d6bb9bd380a11}'"],
            "token = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",
        ),
        (["serotype = 'unknown'"], "serotype = 'unknown'"),
        (["lower(status) like 'conf%'", "LOWER( status ) LIKE 'conf%'"], "lower(status) LIKE 'conf%'"),
        (['status = "user"', '"user" = status'], '"user" = status'),
        (["\"Kreis\" = 'a'"], "\"Kreis\" = 'a'"),
        (["縣市 = '台南市'", "\"縣市\" = '台南市'"], "\"縣市\" = '台南市'"),
        (["address = '10.0.0.1'"], "address = '10.0.0.1'"),
        (["status = 'it''s' -- a comment\n", "status /* /* nested */ */ = 'it''s'"], "status = 'it''s'"),
        (["status = '\\'", "'\\' = status"], "status = '\\'"),
        (["imported and age = 1 or status = 'a'"], "(age = 1 AND imported) OR status = 'a'"),
        (["stay is not null"], "stay IS NOT NULL"),
    ],
)
def test_respelling_changes_nothing(respelled, form):
    for sql in respelled:
        assert text(compiled(sql)) == form, sql
    assert text(compiled(form)) == form


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("status = 'a'", "status = 'A'"),
        ("status = 'a'", "status = 'a '"),
        ("status = 'a'", "county = 'a'"),
        ("status = '1'", "status = '1.0'"),
        ("status in ('a', 'b')", "status in ('a, b')"),
        ("status in ('a', 'b')", "status in ('a'', ''b')"),
        ("imported is not true", "not imported"),
        ("status = 'a' and (age = 1 or imported)", "status = 'a' and age = 1 or imported"),
        ("age < 1", "age <= 1"),
        ("amount = 1", "amount = 10"),
        ("amount = 1e30", "amount = 1e31"),
        ("status like 'a'", "status = 'a'"),
        ("lower(status) = 'a'", "upper(status) = 'a'"),
        ("status = 'a\\'", "status = 'a\\\\'"),
        ("amount = 12345678901234567890123456789012345678901", "amount = 12345678901234567890123456789012345678902"),
    ],
)
def test_different_questions_stay_different(one, other):
    assert compiled(one) != compiled(other)
    assert key(compiled(one)) != key(compiled(other))
    assert text(compiled(one)) != text(compiled(other))


@pytest.mark.parametrize(
    ("sql", "position"),
    [
        ("onset = 'today'", 9),
        ("seen > 'now'", 8),
        ("seen > '2015-09-01'", 8),
        ("noted > '2015-09-01 12:00+08'", 9),
        ("onset = '2015-09-31'", 9),
        ("onset = '2015-09-01 12:00'", 9),
        ("onset = DATE '2015-09-01 12:00'", 14),
        ("status = DATE '2015-09-01'", 15),
        ("seen > DATE '2015-09-01'", 13),
        ("onset = TIMESTAMP '2015-09-01'", 19),
        ("age = 1.5", 7),
        ("age = 'x'", 7),
        ("age = true", 1),
        ("age = 9223372036854775808", 7),
        ("amount = 'NaN'", 10),
        ("amount = 1e2000", 10),
        ("status = 1", 10),
        ("imported = 'maybe'", 12),
        ("imported = 1", 12),
        ("serotype = 'DENV-9'", 12),
        ("token = 'xyz'", 9),
        ("stay = '[today,)'", 8),
        ("photo is null and photo = '(1,2)'", 27),
        ("age like '1'", 1),
        ("upper(age) = 'A'", 7),
        ("lower(status) = 1", 17),
        ("token < 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11' and address = photo", 52),
    ],
)
def test_literals_that_could_change_or_lose_meaning_are_refused(sql, position):
    with pytest.raises(DeclarationRefused) as caught:
        compiled(sql)
    assert caught.value.position == position, caught.value.message


def test_nesting_and_length_have_limits():
    assert compiled("(" * 20 + "imported" + ")" * 20) == compiled("imported")
    for sql in [
        "(" * 21 + "imported" + ")" * 21,
        "not " * 21 + "imported",
        "age = " + "-" * 30 + "1",
        "(" * 5000,
        "not " * 2400 + "imported",
    ]:
        with pytest.raises(DeclarationRefused):
            compiled(sql)
    assert isinstance(compiled(" and ".join(f"age <> {n}" for n in range(550))), In)
    assert isinstance(compiled(" or ".join(f"(age <> {n} and imported)" for n in range(270))), Or)
    with pytest.raises(DeclarationRefused, match="longer than"):
        compiled("status = '" + "x" * 10_000 + "'")


def test_columns_and_literals_of_a_predicate():
    predicate = compiled("status in ('a', 'b') and lower(county) = 'x' and id > 5")
    assert columns_of(predicate) == {1, 2, 3}
    assert literals(predicate) == (("5", "pg_catalog.int8"), ("a", "pg_catalog.text"), ("b", "pg_catalog.text"), ("x", "pg_catalog.text"))
    assert columns_of(None) == frozenset()
    assert literals(None) == ()


def test_a_rename_keeps_the_stored_question():
    predicate = compiled("status = 'a' and imported")
    renamed = [column if column.name != "status" else type(column)(**{**column.__dict__, "name": "state"}) for column in COLUMNS]
    again = from_json(to_json(predicate), renamed)
    assert text(again) == "imported AND state = 'a'"
    assert key(again) == key(predicate)
    with pytest.raises(InternalError):
        from_json(to_json(predicate), COLUMNS[4:])


def test_rendered_text_leaves_no_name_to_a_search_path():
    predicate = compiled(
        "status in ('a', 'b') and lower(county) like 'x\\_%' and (id > 5 or imported is not true) and onset <> '2015-09-01'"
    )
    assert render(predicate, "new", "c") == (
        "(((c.key_1 OPERATOR(pg_catalog.>) '5'::pg_catalog.int8) OR (c.new_5 IS NOT TRUE))"
        " AND (pg_catalog.lower(CASE WHEN pg_catalog.octet_length(c.new_3::pg_catalog.text) OPERATOR(pg_catalog.<=) 1000000"
        " THEN c.new_3 END::pg_catalog.text) OPERATOR(pg_catalog.~~)  E'x\\\\_%'::pg_catalog.text)"
        " AND (c.new_6 OPERATOR(pg_catalog.<>) '2015-09-01'::pg_catalog.date)"
        " AND (c.new_2 OPERATOR(pg_catalog.=) ANY (ARRAY['a'::pg_catalog.text, 'b'::pg_catalog.text])))"
    )
    assert render(compiled("imported"), "image") == "image_5"


def test_missing_operators_are_derived():
    assert render(compiled("token <> 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"), "old").startswith("(NOT (old_13 OPERATOR(pg_catalog.=) ")
    assert render(compiled("address >= '10.0.0.1'"), "old") == "(NOT (old_14 OPERATOR(pg_catalog.<) '10.0.0.1'::pg_catalog.inet))"
    assert render(compiled("address > '10.0.0.1'"), "old") == "('10.0.0.1'::pg_catalog.inet OPERATOR(pg_catalog.<) old_14)"
    assert render(compiled("address <= '10.0.0.1'"), "old") == "(NOT ('10.0.0.1'::pg_catalog.inet OPERATOR(pg_catalog.<) old_14))"


def test_rendering_is_for_bound_predicates_and_known_images():
    with pytest.raises(InternalError):
        render(predicate_of("status = 'a'"), "new")
    for image, alias in [("log", None), ("new", "a; drop")]:
        with pytest.raises(InternalError):
            render(compiled("imported"), image, alias)


def test_strings_read_the_same_under_every_setting():
    assert quote_text("it's") == "'it''s'"
    assert quote_text("a\\'") == " E'a\\\\'''"


# --- three-valued meaning -------------------------------------------------------------------------------------------------------------

NAMES = ("imported", "vaccinated", "age", "status")
DOMAIN = {"imported": (None, True, False), "vaccinated": (None, True, False), "age": (None, 1, 2, 3), "status": (None, "a", "b", "c")}
COMPARE = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}

atoms = st.one_of(
    st.sampled_from(
        ["imported", "vaccinated", "imported = vaccinated", "imported is null", "imported <> true", "vaccinated in (true, false)"]
    ),
    st.builds("age {} {}".format, st.sampled_from(sorted(COMPARE)), st.integers(1, 3)),
    st.builds("status {} '{}'".format, st.sampled_from(sorted(COMPARE)), st.sampled_from("abc")),
    st.builds("status {}in ('{}', '{}')".format, st.sampled_from(["", "not "]), st.sampled_from("abc"), st.sampled_from("abc")),
    st.builds("age {}between {} and {}".format, st.sampled_from(["", "not "]), st.integers(1, 3), st.integers(1, 3)),
    st.builds("{} is {}null".format, st.sampled_from(NAMES), st.sampled_from(["", "not "])),
)
predicates = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.builds("not ({})".format, inner),
        st.builds("({}) is {}{}".format, inner, st.sampled_from(["", "not "]), st.sampled_from(["true", "false"])),
        st.builds("({}) and ({})".format, inner, inner),
        st.builds("({}) or ({})".format, inner, inner),
    ),
    max_leaves=8,
)


def truth(node, row):
    """SQL's three-valued value of a bound predicate: True, False or None."""
    return TRUTH[type(node)](node, row)


def negation(node, row):
    inner = truth(node.predicate, row)
    return None if inner is None else not inner


def junction(node, row):
    values = [truth(part, row) for part in node.parts]
    deciding = isinstance(node, Or)
    return deciding if deciding in values else None if None in values else not deciding


def membership(node, row):
    value = row[node.value.name]
    return None if value is None else (value in [constant(one) for one in node.literals]) != node.negated


def comparison(node, row):
    left, right = (row[side.name] if isinstance(side, ColumnRef) else constant(side) for side in (node.left, node.right))
    return None if left is None or right is None else COMPARE[node.operator](left, right)


TRUTH = {
    ColumnRef: lambda node, row: row[node.name],
    Not: negation,
    And: junction,
    Or: junction,
    IsTruth: lambda node, row: (truth(node.predicate, row) is node.truth) != node.negated,
    IsNull: lambda node, row: (row[node.value.name] is None) != node.negated,
    In: membership,
    Compare: comparison,
}


def constant(literal):
    return {"number": int, "boolean": lambda word: word == "true"}.get(literal.form, str)(literal.text)


ROWS = [dict(zip(NAMES, values, strict=True)) for values in itertools.product(*(DOMAIN[name] for name in NAMES))]


@given(predicates)
def test_canonical_form_keeps_the_answer_in_three_valued_logic(sql):
    plain = _bind(predicate_of(sql), by_name(COLUMNS))
    form = canonical(plain)
    assert [row for row in ROWS if truth(plain, row) is True] == [row for row in ROWS if truth(form, row) is True]


@given(predicates)
def test_canonical_form_is_its_own_and_survives_text_and_json(sql):
    form = compiled(sql)
    assert canonical(form) == form
    assert compiled(text(form)) == form
    assert from_json(to_json(form), COLUMNS) == form


WORDS = re.findall(
    r"\S+",
    """
    select from where group by and or not in is null true false like between as current_timestamp unknown cases status county age imported
    count(*) count ( ) , . * = <> < <= > >= - ; lower upper now() tumble hop interval date timestamp dp_time 'a' '2015-09-01' 1 1.5 1e9
    "user" "" "a""b" ' " -- /* */ :: ~ + / % || $1 @> [ ] { } # ! ? : == <=> {{ }} {% $$ $$a$$ E'a' U&'x' x'1f' N'a' 0x1f 1_000
    exists any all case when end cast collate distinct order limit union with join for filter over at time zone escape rollup
    grouping sets within lateral values array row symmetric ilike similar isnull
    """,
)
STRANGE = [
    "'14 days'",
    "\\",
    "\n",
    "\t",
    "\r",
    "\x00",
    "\ud800",
    "\u202e",
    "\u7e23\u5e02",
    "\xe9",
    "\u0131",
    "\u0661",
    "\xa0",
    "\u200b",
    "\ufeff",
]
TOKENS = st.sampled_from(WORDS + STRANGE)
SOUP = st.lists(TOKENS, max_size=25).map(" ".join) | st.lists(TOKENS, max_size=12).map("".join)


def position_of_refusal(attempt, sql):
    """Where an attempt is refused; None if it is not. Any other error fails the test."""
    try:
        attempt(sql)
    except DbextError as refusal:
        return getattr(refusal, "position", None)
    return None


@given(
    st.one_of(
        st.text(max_size=200),
        SOUP,
        st.builds("select count(*) from cases where {}".format, SOUP),
        st.builds("status = 'a' {}".format, SOUP),
    )
)
def test_any_text_compiles_or_is_refused(sql):
    from dbext.query.compiler import compile_declaration, resolve
    from dbext.query.groups import compile_groups

    for attempt in (compiled, lambda one: resolve(compile_declaration(one), COLUMNS), lambda one: compile_groups(one, 1)):
        position = position_of_refusal(attempt, sql)
        assert position is None or 1 <= position <= len(sql) + 1
