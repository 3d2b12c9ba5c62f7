"""Questions and their remembered answers: what was answered once is never drawn again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from dbext.database.session import Session
from dbext.database.statements import statements
from dbext.privacy.charge import Charge

SQL = statements("questions")


@dataclass(frozen=True)
class Question:
    """The canonical question: window (start, end] in ticks (None: from the beginning), measure, predicate key ('' for none), and term.

    `term` says what is summed, as JSON with its bounds: with others it is another question. '' is a count.
    """

    table_id: int
    start: int | None
    end: int
    measure: str
    predicate: str
    term: str = ""


@dataclass(frozen=True)
class Answer:
    """A stored answer: noisy count, or sum in steps of its grid, the epsilon that was charged for it, and its noise as JSON."""

    question_id: int
    value: int
    epsilon: str
    noise: dict[str, Any]


def remembered(session: Session, question: Question, epsilon: str, noise: str | None = None) -> Answer | None:
    """Return the best stored answer that cost at least `epsilon`, if there is one; of the kind of noise that is asked for, if one is."""
    rows = session.fetch(SQL["remembered"], *_canonical(question), epsilon, noise)
    if not rows:
        return None
    row = rows[0]
    return Answer(row["question_id"], row["answer"], row["epsilon"], json.loads(row["noise"]))


def remember(session: Session, question: Question, epsilon: str, value: int, charge: Charge, asked_by: str) -> Answer:
    """Store an answer with what was charged for it."""
    noise = charge.noise.to_json()
    (row,) = session.fetch(SQL["remember"], *_canonical(question), epsilon, value, noise, charge.pure, asked_by)
    return Answer(row["question_id"], value, epsilon, noise)


def _canonical(question: Question) -> tuple[object, ...]:
    return question.table_id, question.start, question.end, question.measure, question.predicate, question.term
