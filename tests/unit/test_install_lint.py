"""The built install script, read as an attacker would: nothing in it may be steered by a path, an overload, a default or an open right."""

from __future__ import annotations

import re

import pytest

from dbext.control import extension

SCRIPT = extension.assemble("/srv/dbext", "host=/tmp user=postgres")
PINNED = "SET search_path = pg_catalog, pg_temp"
#: What looks like a call in SQL and is not.
WORDS = frozenset(
    re.findall(
        r"\w+",
        "any all array as and by case cast coalesce check values in exists greatest least nullif not or row select some returning set using when "
        "then else distinct filter over within like limit on raise execute perform from where order group having union except intersect table "
        "constraint references key unique default primary call if elsif for foreach loop return numeric exception",
    )
)
_ROUTINE = re.compile(
    r"CREATE (?:FUNCTION|PROCEDURE) (?P<name>[\w.]+)\s*\((?P<arguments>.*?)\)\s*(?P<header>(?:RETURNS|LANGUAGE|,).*?)(?:AS (?P<tag>\$\w*\$)(?P<body>.*?)(?P=tag)|RETURN (?P<atomic>[^;]*));",
    re.DOTALL,
)


def routines(script):
    return [match.groupdict() for match in _ROUTINE.finditer(without_comments(script))]


def without_comments(script):
    return re.sub(r"--[^\n]*", "", script)


def without_texts(sql):
    return re.sub(r"'(?:[^']|'')*'", "''", sql)


def outside_bodies(script):
    return re.sub(r"AS (\$\w*\$).*?\1", "AS ''", script, flags=re.DOTALL)


def unqualified(sql):
    """Names of functions and relations that some path would have to find."""
    plain = without_texts(without_comments(sql))
    calls = {name for name in re.findall(r"(?<![\w.\"])([a-z_]\w*)\s*\(", plain) if name.lower() not in WORDS}
    relations = set(re.findall(r"\b(?:FROM|JOIN|INTO|UPDATE)\s+(?!ARRAY\b|pg_catalog\.|dbext|dp_release\.|\()([a-z_]\w*)(?![\w.(])", plain))
    return calls | relations


def faults(script):
    """Everything that is wrong with an install script, as sentences."""
    found = []
    for one in routines(script):
        name, header, body = one["name"], one["header"], one["body"] or one["atomic"]
        if "SECURITY DEFINER" in header and PINNED not in header:
            found.append(f"{name} runs with its owner's rights under the caller's path")
        if PINNED not in header and "plpython3u" not in header and (names := unqualified(body) - declared(body)):
            found.append(f"{name} leaves {', '.join(sorted(names))} to the caller's path")
        defaults = re.findall(r"\bDEFAULT\s+([^,]+)", one["arguments"])
        if bad := [text for text in defaults if not re.fullmatch(r"NULL|true|false|-?[0-9.]+|'[^']*'(?:::\w+)?", text.strip())]:
            found.append(f"{name} computes a default: {bad[0].strip()}")
    plain = without_texts(without_comments(outside_bodies(script)))
    for pattern, said in (
        (r"\bOR REPLACE\b", "replaces what someone may have put there"),
        (r"\bIF NOT EXISTS\b", "takes what someone may have put there"),
        (r"\bGRANT\b[^;]*\bTO PUBLIC\b", "grants something to everybody"),
        (r"\bWITH GRANT OPTION\b", "hands on rights"),
        (r"\bSET (?:SESSION )?(?:ROLE|AUTHORIZATION)\b", "changes who it is"),
        (r"\bnumeric\b[^\n]*\bCHECK \((?![^\n]*OPERATOR\()", "compares a numeric with whatever operator the path has for its neighbour's type"),
        (r"\bCREATE (?:TEMP|TEMPORARY|UNLOGGED)\b", "makes what does not last"),
    ):
        if re.search(pattern, plain):
            found.append(said)
    if "REVOKE ALL ON ROUTINE %s FROM PUBLIC" not in script:
        found.append("leaves functions executable by PUBLIC")
    return found


def declared(body):
    """Variables and loop targets of a PL/pgSQL body, which FOR ... IN and INTO name like relations."""
    return set(re.findall(r"^\s+(\w+) (?:[\w.]+)(?:\[\])?(?: :=[^;]*)?;", body.partition("BEGIN")[0], re.MULTILINE)) | {"strict"}


def test_the_script_is_read_whole():
    found = [one["name"] for one in routines(SCRIPT)]
    assert len(found) == len(re.findall(r"^CREATE (?:FUNCTION|PROCEDURE) ", SCRIPT, re.MULTILINE))


def test_the_script_has_no_fault():
    assert faults(SCRIPT) == []


WEAK = {
    "a definer without a path": "CREATE FUNCTION dp_new(a text) RETURNS text\nLANGUAGE sql SECURITY DEFINER AS $$ SELECT a $$;",
    "another path": "CREATE FUNCTION dp_new() RETURNS text\nLANGUAGE sql SECURITY DEFINER SET search_path = public AS $$ SELECT 'x' $$;",
    "an unqualified call": "CREATE FUNCTION dp_new() RETURNS text\nLANGUAGE sql AS $$ SELECT format('x') $$;",
    "an unqualified relation": "CREATE FUNCTION dp_new() RETURNS oid\nLANGUAGE sql AS $$ SELECT c.oid FROM pg_class AS c $$;",
    "a computed default": f"CREATE FUNCTION dp_new(a text DEFAULT current_user) RETURNS text\nLANGUAGE sql {PINNED} AS $$ SELECT a $$;",
    "OR REPLACE": "CREATE OR REPLACE VIEW dbext.x AS SELECT 1;",
    "IF NOT EXISTS": "CREATE TABLE IF NOT EXISTS dbext.x ();",
    "an open right": "GRANT SELECT ON dbext.ledger TO PUBLIC;",
    "an operator left to the path": "CREATE TABLE dbext.x (\n    epsilon numeric CHECK (epsilon > 0)\n);",
    "a change of role": "SET ROLE dbext_owner;",
}


@pytest.mark.parametrize("weakness", WEAK)
def test_a_weakened_script_is_caught(weakness):
    assert faults(f"{SCRIPT}\n{WEAK[weakness]}\n") != []


def test_a_script_that_revokes_nothing_is_caught():
    assert faults(SCRIPT.replace("REVOKE ALL ON ROUTINE %s FROM PUBLIC", "")) != []
