"""Statements whose result depends on intermediate values of a server: types of a table that a query creates, columns that an UPDATE of
several tables changes and reads."""

from typing import Final

from protocol.sql.lexer import TokenKind, is_name
from relay.view.rules.mariadb.statement.editable_statement import EditableStatement

_BEFORE_ITEMS: Final = frozenset((
    "ALL", "DISTINCT", "DISTINCTROW", "HIGH_PRIORITY", "STRAIGHT_JOIN", "SQL_SMALL_RESULT", "SQL_BIG_RESULT", "SQL_BUFFER_RESULT",
    "SQL_CACHE", "SQL_NO_CACHE", "SQL_CALC_FOUND_ROWS",
))  # fmt: skip
_BEHIND_ITEMS: Final = frozenset(("FROM", "WHERE", "ORDER", "LIMIT", "HAVING", "GROUP", ";"))
_OF_ITS_COLUMN: Final = frozenset(("COUNT", "MAX", "MIN", "SUM"))
"""The functions whose type is the same on both."""
_SET_OPERATIONS: Final = frozenset(("UNION", "EXCEPT", "INTERSECT", "MINUS"))


def computed_item(words: EditableStatement, first: int, stop: int) -> str:
    """Return what may have another type on MySQL in the query [first, stop) that fills a new table, in words; "": all are of tables."""
    if words.at_word(first) != "SELECT" or any(words.at_word(index) in _SET_OPERATIONS for index in range(first, stop)):
        return "a query of several parts"
    if any(
        words.at_word(index + 1) == "(" and words.at_word(index + 2) in ("SELECT", "WITH", "(")
        for index in range(first, stop)
        if words.at_word(index) in ("FROM", "JOIN")
    ):
        return "a query from another one"
    at = first + 1
    while words.at_word(at) in _BEFORE_ITEMS and words.tokens[at].kind is TokenKind.WORD:
        at += 1
    begin, depth = at, 0
    while True:
        word = words.at_word(at)
        ends = at >= stop or (not depth and word in _BEHIND_ITEMS and words.tokens[at].kind is not TokenKind.NAME)
        if ends or (not depth and word == ","):
            if not _is_column(words, begin, at):
                return " ".join(token.text for token in words.tokens[begin:at])[:60]
            begin = at + 1
        if ends:
            return ""
        depth += {"(": 1, ")": -1}.get(word, 0)
        at += 1


def _is_column(words: EditableStatement, first: int, stop: int) -> bool:
    """Return whether [first, stop) is a column, all of them, a literal that is the same for both, or a function of those."""
    if stop - first >= 2 and is_name(words.tokens[stop - 1]) and words.at_word(stop - 2) != ".":  # with another name
        stop -= 1 + (words.at_word(stop - 2) == "AS")
    if words.at_word(first) in _OF_ITS_COLUMN and words.at_word(first + 1) == "(" and words.at_word(stop - 1) == ")":
        first, stop = first + 2, stop - 1
    if stop == first + 1:
        token = words.tokens[first]
        is_whole = token.kind is TokenKind.NUMBER and token.text.isdecimal()
        return words.at_word(first) == "*" or is_whole or token.kind is TokenKind.STRING or _is_plain_name(words, first)
    return (stop - first) % 2 == 1 and all(
        words.at_word(index) == "."
        if (index - first) % 2
        else is_name(words.tokens[index]) or words.at_word(index) == "*"
        for index in range(first, stop)
    )


def _is_plain_name(words: EditableStatement, index: int) -> bool:
    return is_name(words.tokens[index]) and words.at_word(index) not in ("NULL", "TRUE", "FALSE")


def reads_what_it_changes(words: EditableStatement, first: int, stop: int) -> bool:
    """Return whether the words are an UPDATE of several tables that sets a column from one which it changes as well: one server has
    already changed that, and the other has not."""
    if words.at_word(first) != "UPDATE":
        return False
    begin = next((index for index in range(first, stop) if words.at_word(index) == "SET"), stop)
    if not any(words.at_word(index) in (",", "JOIN", "STRAIGHT_JOIN") for index in range(first, begin)):
        return False
    made: list[tuple[str, set[str]]] = []
    depth, target = 0, ""
    is_target = True
    for index in range(begin + 1, stop):
        word = words.at_word(index)
        if not depth and word in ("WHERE", "ORDER", "LIMIT") and words.tokens[index].kind is TokenKind.WORD:
            break
        depth += {"(": 1, ")": -1}.get(word, 0)
        if not depth and word == ",":
            is_target = True
        elif not depth and word == "=" and is_target:
            is_target = False
            made.append((target, set()))
        elif is_name(words.tokens[index]) and words.at_word(index + 1) != ".":
            name = words.tokens[index].text.lower()
            if is_target:
                target = name
            elif made:
                made[-1][1].add(name)
    return any(
        changed in read for one, (_, read) in enumerate(made) for other, (changed, _) in enumerate(made) if one != other
    )
