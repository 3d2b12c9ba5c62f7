"""Let only this grammar's keywords and functions through to the parser; turn every other word into a plain, folded, quoted name.

What is a keyword follows PostgreSQL: its reserved words cannot be names, all others can. After this rule the parser can only see
keywords of the grammar, functions of the grammar before a parenthesis, names, strings, numbers and a handful of symbols.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot.tokens import Token, TokenType

from dbext.query.characters import fold
from dbext.query.compile.draft import Draft
from dbext.query.compile.split_tokens import SYMBOLS, WORD
from dbext.query.refusal import refused
from dbext.query.words import AGGREGATES, FIGURES, FUNCTION_HINTS, KEYWORDS, REASONS, TRAILING

_BEFORE_PARENTHESIS = KEYWORDS - {"null", "true", "false"} | {"where", "group by", "select", "from"}
_STATEMENT_ONLY = {
    "now": "An entry would change without a mutation. The window of a declaration moves with now(); a question is given its own.",
    **dict.fromkeys(FIGURES, "A condition is about one entry; figures stand after SELECT."),
    "percentile_disc": "A condition is about one entry; figures stand after SELECT.",
    "width_bucket": "Bins are keys of GROUP BY of a declaration; in a condition, compare the column with the edges.",
    "tumble": "TUMBLE belongs into GROUP BY of a declaration.",
    "hop": "HOP belongs into GROUP BY of a declaration.",
}
_MAIN_CLAUSES = ("select", "from", "where", "group by")


def guard_words(draft: Draft) -> Draft:
    """Replace the tokens by ones that can only mean one thing. Raises DeclarationRefused for every other word or call."""
    words = [draft.raw(token) for token in draft.tokens]
    guarded = tuple(_guard(draft, words, index) for index in range(len(words)))
    if draft.grammar.is_statement:
        _check_clauses(draft, words)
    return replace(draft, tokens=guarded)


def _guard(draft: Draft, words: list[str], index: int) -> Token:
    token, raw = draft.tokens[index], words[index]
    called = words[index + 1 : index + 2] == ["("]
    if raw[0] == '"':
        if called:
            raise refused("functions are called by their plain name", token.start)
        return _token(TokenType.IDENTIFIER, raw[1:-1].replace('""', '"'), token)
    if raw[0] == "'":
        return _token(TokenType.STRING, raw[1:-1].replace("''", "'"), token)
    if raw in SYMBOLS or not WORD.fullmatch(raw.split()[0]):
        return _token(token.token_type, raw, token)
    return _guard_word(draft, words, index, fold(" ".join(raw.split())), called=called)


def _guard_word(draft: Draft, words: list[str], index: int, word: str, *, called: bool) -> Token:
    token, grammar = draft.tokens[index], draft.grammar
    if index and words[index - 1] == ".":
        if called:
            raise refused(
                "functions and operators with a schema are not allowed", token.start, "Only lower(column) and upper(column) can be called."
            )
        return _token(TokenType.IDENTIFIER, word, token)
    if grammar.is_statement and (_is_part_of_figure(words, index, word) or _is_part_of_quantile(words, index, word)):
        return token
    if called and word not in _BEFORE_PARENTHESIS | {"as"}:
        if index and words[index - 1].lower() == "as":
            raise refused("an alias takes no column names", token.start)
        return _function(draft, token, word)
    if word in grammar.keywords or _is_unknown(words, index, word):
        return token
    if word in REASONS:
        raise refused(REASONS[word][0], token.start, REASONS[word][1])
    if word in TRAILING and index and (words[index - 1] == ")" or words[index - 1][0] in "'\"" or _is_name(words[index - 1])):
        raise refused(TRAILING[word][0], token.start, TRAILING[word][1])
    if " " in word:
        message, hint = REASONS.get(word.split(maxsplit=1)[0], (f"{word} is not allowed here", None))
        raise refused(message, token.start, hint)
    return _token(TokenType.IDENTIFIER, word, token)


def _function(draft: Draft, token: Token, word: str) -> Token:
    if word in draft.grammar.functions:
        return token
    if word in _STATEMENT_ONLY:
        raise refused(f"{word}() cannot be used here", token.start, _STATEMENT_ONLY[word])
    if word in AGGREGATES:
        raise refused(f"{word}() {AGGREGATES[word][0]}", token.start, AGGREGATES[word][1])
    reason = TRAILING.get(word) or REASONS.get(word)
    if reason and word not in FUNCTION_HINTS:
        raise refused(reason[0], token.start, reason[1])
    hint = FUNCTION_HINTS.get(
        word, "Only lower(column) and upper(column) can be called: any other could fail, change or run code of its own."
    )
    raise refused(f"the function {word}() is not allowed", token.start, hint)


def _is_part_of_figure(words: list[str], index: int, word: str) -> bool:
    """FILTER between a closing parenthesis and (WHERE, DISTINCT at the beginning of a figure's parentheses: keywords only there."""
    before = [previous.lower() for previous in words[max(0, index - 2) : index]]
    if word == "filter":
        return before[-1:] == [")"] and [following.lower() for following in words[index + 1 : index + 3]] == ["(", "where"]
    return word == "distinct" and len(before) == 2 and before[1] == "(" and before[0] in FIGURES  # noqa: PLR2004 name and parenthesis


def _is_part_of_quantile(words: list[str], index: int, word: str) -> bool:
    """ARRAY before a bracket; WITHIN GROUP (ORDER BY behind a closing parenthesis, and dp_bounds( behind that: keywords only there."""
    around = [" ".join(one.lower().split()) for one in words[max(0, index - 4) : index + 4]]
    place = min(index, 4)
    if word == "array":
        return around[place + 1 : place + 2] == ["["]
    phrase = [")", "within", "group", "(", "order by", "dp_bounds", "("]
    if word not in phrase[1:6] or (word == "dp_bounds" and around[place + 1 : place + 2] != ["("]):
        return False
    length = phrase.index(word)
    return around[max(0, place - length) : place + 1] == phrase[max(0, length - 4) : length + 1]


def _is_unknown(words: list[str], index: int, word: str) -> bool:
    """IS [NOT] UNKNOWN: a keyword only there."""
    before = [previous.lower() for previous in words[max(0, index - 2) : index]]
    return word == "unknown" and (before[-1:] == ["is"] or before == ["is", "not"])


def _is_name(word: str) -> bool:
    return WORD.fullmatch(word) is not None and word.lower() not in KEYWORDS


def _token(kind: TokenType, text: str, token: Token) -> Token:
    return Token(kind, text, token.line, token.col, token.start, token.end)


def _check_clauses(draft: Draft, words: list[str]) -> None:
    """SELECT first; FROM, WHERE and GROUP BY once each and not inside parentheses, but for the WHERE of a FILTER."""
    depth, seen = 0, []
    for index, (token, raw) in enumerate(zip(draft.tokens, words, strict=True)):
        depth += (raw == "(") - (raw == ")")
        word = fold(" ".join(raw.split()))
        if word == "where" and [one.lower() for one in words[max(0, index - 2) : index]] == ["filter", "("]:
            continue
        if word in _MAIN_CLAUSES and token.token_type is not TokenType.IDENTIFIER:
            if depth or word in seen:
                raise refused(REASONS[word][0], token.start, REASONS[word][1])
            seen.append(word)
    if not seen or seen[0] != "select" or draft.tokens[0].token_type is not TokenType.SELECT:
        raise refused("a declaration is one SELECT", draft.tokens[0].start, "Write SELECT count(*) FROM the tracked table.")
