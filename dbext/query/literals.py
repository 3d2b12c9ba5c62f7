"""Normal forms of literals by column type: equal values get equal text, so that a question spelled another way is the same question.

A literal must mean the same for ever and in every session: words that read the clock ('today'), time stamps whose zone is a session
setting, and text that an input function would silently cut are refused. What is left to PostgreSQL is the range of numbers.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import replace
from decimal import Decimal

from dbext.errors import DeclarationRefused
from dbext.query.column import Column
from dbext.query.predicate import Literal
from dbext.query.refusal import refused

TEXT_TYPE = "pg_catalog.text"

_INTEGER_LIMIT = 2**63
_EXPONENT_LIMIT = 1000
_PLAIN_DIGITS = 60
_NUMBER = re.compile(r"\s*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]{1,4})?\s*", re.ASCII | re.IGNORECASE)
_DATE = re.compile(r"\s*([0-9]{4}-[0-9]{2}-[0-9]{2})\s*", re.ASCII)
_TIMESTAMP = re.compile(
    r"\s*(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"([ T](?P<clock>[0-9]{2}:[0-9]{2})((?P<seconds>:[0-9]{2})(\.(?P<fraction>[0-9]{1,6}))?)?)?"
    r"\s*(?P<zone>Z|[+-](0[0-9]|1[0-5])(:?[0-5][0-9])?)?\s*",
    re.ASCII | re.IGNORECASE,
)
_UUID = re.compile(r"\{?([0-9a-f]{8})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{12})\}?", re.ASCII | re.IGNORECASE)
_TYPED_FOR = {"date": ("date", "timestamp"), "timestamp": ("timestamp",), "timestamptz": ("timestamptz",)}
_TRUE = frozenset({"true", "t", "yes", "y", "on", "1"})
_FALSE = frozenset({"false", "f", "no", "n", "off", "0"})


def normalise(literal: Literal, column: Column) -> Literal:
    """The literal as a value of the column's type, in normal form and with its cast; DeclarationRefused if it cannot be one."""
    if not column.takes_literals:
        raise refused(
            f"column {column.name} of type {column.type_name} cannot be compared with a literal",
            literal.offset,
            "Its text could change meaning with a setting or the clock; only IS NULL and IS NOT NULL are possible here.",
        )
    text, form = _NORMAL_FORMS[column.base](_untyped(literal, column), column)
    return replace(literal, text=text, form=form, cast=column.literal_type)


def is_day(text: str) -> bool:
    """Whether a timestamp literal names a day without a time of day."""
    return _DATE.fullmatch(text) is not None


def timestamp_of(text: str) -> tuple[dt.datetime, str | None] | None:
    """A timestamp literal of ISO form as local time and offset (None if it has none); None if it is no time of the calendar."""
    match = _TIMESTAMP.fullmatch(text)
    if not match:
        return None
    clock = (match["clock"] or "00:00") + (match["seconds"] or ":00")
    fraction = dt.timedelta(microseconds=int((match["fraction"] or "0").ljust(6, "0")))
    try:
        return dt.datetime.fromisoformat(f"{match['date']} {clock}") + fraction, match["zone"]  # local: the zone is kept apart
    except ValueError:
        return None


def normalise_text(literal: Literal, what: str) -> Literal:
    """A literal compared with text that is not a column itself: the result of lower() or upper(), or a LIKE pattern."""
    if literal.form != "string":
        raise refused(f"{what} is text: write it in quotes", literal.offset)
    return replace(literal, cast=TEXT_TYPE)


def _text(literal: Literal, column: Column) -> tuple[str, str]:
    if literal.form != "string":
        raise _mismatch(literal, column, "text: write the value in quotes")
    return literal.text, "string"


def _boolean(literal: Literal, column: Column) -> tuple[str, str]:
    word = literal.text.strip().lower()
    if literal.form == "number" or word not in _TRUE | _FALSE:
        raise _mismatch(literal, column, "booleans: write true or false")
    return ("true" if word in _TRUE else "false"), "boolean"


def _integer(literal: Literal, column: Column) -> tuple[str, str]:
    number = _decimal(literal, column)
    if literal.form == "string" and not re.fullmatch(r"\s*[+-]?[0-9]+\s*", literal.text, re.ASCII):
        raise _mismatch(literal, column, "whole numbers")
    if number != number.to_integral_value() or abs(number) >= _INTEGER_LIMIT:
        raise _mismatch(literal, column, "whole numbers of at most 64 bits")
    return str(int(number)), "number"


def _number(literal: Literal, column: Column) -> tuple[str, str]:
    return _plain(_decimal(literal, column)), "number"


def _decimal(literal: Literal, column: Column) -> Decimal:
    if literal.form == "boolean" or not _NUMBER.fullmatch(literal.text):
        raise _mismatch(literal, column, "numbers: write a finite decimal number")
    number = Decimal(literal.text.strip())
    if number and abs(number.adjusted()) > _EXPONENT_LIMIT:
        raise _mismatch(literal, column, "numbers of at most 1000 digits before or after the point")
    return number


def _plain(number: Decimal) -> str:
    """Digits without exponent where that is short; never rounds."""
    sign, digits, exponent = number.as_tuple()
    significant = "".join(map(str, digits)).lstrip("0")
    trimmed = significant.rstrip("0")
    if not trimmed:
        return "0"
    exponent += len(significant) - len(trimmed)
    minus = "-" if sign else ""
    if len(trimmed) + abs(exponent) > _PLAIN_DIGITS:
        return f"{minus}{trimmed}E{exponent:+d}" if exponent else minus + trimmed
    return minus + format(Decimal((0, tuple(map(int, trimmed)), exponent)), "f")


def _date(literal: Literal, column: Column) -> tuple[str, str]:
    if infinite := _infinite(literal):
        return infinite
    match = _DATE.fullmatch(literal.text) if literal.form == "string" else None
    if not match:
        raise _mismatch(literal, column, "dates: write '2015-09-01'")
    if timestamp_of(match[1]) is None:
        raise _mismatch(literal, column, "days of the calendar")
    return match[1], "string"


def _timestamp(literal: Literal, column: Column) -> tuple[str, str]:
    if infinite := _infinite(literal):
        return infinite
    moment, zone = _moment(literal, column, "times without a zone: write '2015-09-01 12:00'")
    if zone:
        raise _mismatch(literal, column, "times without a zone: leave the offset out")
    return _moment_text(moment), "string"


def _timestamptz(literal: Literal, column: Column) -> tuple[str, str]:
    if infinite := _infinite(literal):
        return infinite
    moment, zone = _moment(literal, column, "instants: write '2015-09-01 12:00+08'")
    if not zone:
        raise _mismatch(literal, column, "instants: without an offset, as in '2015-09-01 12:00+08', it would depend on a session setting")
    try:
        return _moment_text(moment - _offset(zone)) + "+00", "string"
    except OverflowError:
        raise _mismatch(literal, column, "instants of the years 1 to 9999") from None


def _infinite(literal: Literal) -> tuple[str, str] | None:
    word = literal.text.strip().lower()
    return (word, "string") if literal.form == "string" and word in ("infinity", "-infinity") else None


def _moment(literal: Literal, column: Column, expected: str) -> tuple[dt.datetime, str | None]:
    moment = timestamp_of(literal.text) if literal.form == "string" else None
    if moment is None:
        raise _mismatch(literal, column, expected)
    return moment


def _untyped(literal: Literal, column: Column) -> Literal:
    """DATE '...' and TIMESTAMP '...' as plain strings, where the column's type reads them to the same value."""
    if literal.form not in _TYPED_FOR:
        return literal
    if column.base not in _TYPED_FOR[literal.form] or (literal.form == "date" and not is_day(literal.text)):
        raise refused(
            f"a {literal.form} literal does not fit column {column.name} of type {column.type_name}",
            literal.offset,
            "Write the string alone.",
        )
    return replace(literal, form="string")


def _offset(zone: str) -> dt.timedelta:
    if zone.upper() == "Z":
        return dt.timedelta(0)
    minutes = int(zone[1:3]) * 60 + int(zone[3:].lstrip(":") or 0)
    return dt.timedelta(minutes=-minutes if zone[0] == "-" else minutes)


def _moment_text(moment: dt.datetime) -> str:
    text = moment.isoformat(sep=" ")
    return text.rstrip("0") if moment.microsecond else text


def _uuid(literal: Literal, column: Column) -> tuple[str, str]:
    match = _UUID.fullmatch(literal.text.strip()) if literal.form == "string" else None
    if not match:
        raise _mismatch(literal, column, "UUIDs: write 32 hexadecimal digits in quotes")
    return "-".join(match.groups()).lower(), "string"


def _enum(literal: Literal, column: Column) -> tuple[str, str]:
    if literal.form != "string" or literal.text not in column.enum_labels:
        raise _mismatch(literal, column, f"labels of {column.type_name}, and this is not one of them")
    return literal.text, "string"


def _mismatch(literal: Literal, column: Column, holds: str) -> DeclarationRefused:
    return refused(f"column {column.name} holds {holds}", literal.offset)


_NORMAL_FORMS = {
    "text": _text,
    "bool": _boolean,
    "integer": _integer,
    "numeric": _number,
    "float": _number,
    "date": _date,
    "timestamp": _timestamp,
    "timestamptz": _timestamptz,
    "uuid": _uuid,
    "enum": _enum,
    "other": _text,
}
