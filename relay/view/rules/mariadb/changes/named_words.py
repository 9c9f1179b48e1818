"""The names in a statement or a program, as far as they matter for whether replicas do the same."""

from collections.abc import Iterable
from typing import Final

from protocol.sql.lexer import SqlToken, TokenKind, is_name
from protocol.sql.statements.named_tables import table_places
from protocol.sql.tables.source_table import TableName
from relay.source_tables.programs import NamedWords
from relay.view.rules.mariadb.changes.computed_values import reads_what_it_changes
from relay.view.rules.mariadb.differences.differing_functions import differing_function
from relay.view.rules.mariadb.statement.editable_statement import EditableStatement

_VERBS: Final = frozenset(("INSERT", "REPLACE", "UPDATE", "DELETE", "LOAD"))
_WHOLE_ROWS: Final = frozenset(("DISTINCT", "DISTINCTROW", "UNION", "EXCEPT", "INTERSECT", "MINUS"))
_COMPARES: Final = frozenset((
    "WHERE", "ON", "HAVING", "CASE", "IF", "STRCMP", "DISTINCT", "GROUP", "ORDER", "UNION", "LIKE", "IN", "GREATEST", "LEAST", "NULLIF",
    "FIELD", "FIND_IN_SET", "LOCATE", "INSTR", "REPLACE", "MIN", "MAX",
))  # fmt: skip
_ENDS_ASSIGNMENTS: Final = frozenset(("WHERE", "ORDER", "LIMIT", "RETURNING", "SELECT", "FROM"))
_BUILT_IN: Final = frozenset(("information_schema", "performance_schema"))


def named_words(
    words: EditableStatement, first: int, stop: int, schema: str, *, is_program: bool = False, is_view: bool = False
) -> NamedWords:
    """Return the names in the words [first, stop). `schema` is that of names without one. `is_program`: a body, or a view's query
    (`is_view`), which no `StatementJudge` reads.
    """
    at_word, tokens = words.at_word, words.tokens
    upper = {tokens[index].upper for index in range(first, stop) if tokens[index].kind is TokenKind.WORD}
    differs = differing_function(words, first, stop, is_judged=words.context.is_judged and not is_view) or _collate(
        words, first, stop
    )
    if not differs and reads_what_it_changes(words, first, stop):
        differs = "an UPDATE of several tables that reads columns which it changes"
    skipped = set() if is_program else _targets(words, first, stop)
    common = {
        tokens[index].text.lower()
        for index in range(first, stop - 2)
        if at_word(index + 1) == "AS" and at_word(index + 2) == "(" and at_word(index - 1) in ("WITH", "RECURSIVE", ",")
    }
    has_star = any(
        at_word(index) == "*" and at_word(index - 1) in ("SELECT", ".", ",", "DISTINCT", "ALL")
        for index in range(first, stop)
    )
    return NamedWords(
        frozenset(_qualified(words, index, schema) for index in range(first, stop) if is_name(tokens[index])),
        frozenset(_tables(words, first, stop, schema, common)),
        frozenset(tokens[index].text.lower() for index in range(first, stop) if index not in skipped and is_name(tokens[index])),
        "NATURAL" in upper or (has_star and (is_program or bool(upper & _WHOLE_ROWS))),
        bool(upper & {"IGNORE", "DUPLICATE"}) or _replaces(words, first, stop),
        bool(upper & _COMPARES) and any(_is_value(tokens[index]) for index in range(first, stop)),
        frozenset(upper & _VERBS),
        differs,
    )  # fmt: skip


def _collate(words: EditableStatement, first: int, stop: int) -> str:
    context = words.context
    for index in range(first, stop - 1):
        if words.at_word(index) == "COLLATE" and words.tokens[index].kind is TokenKind.WORD:
            token = words.tokens[index + 1 + (words.at_word(index + 1) == "=")]
            if context.collations.is_alike(words.text_of(token), "", context.defaults) is False:
                return f"comparisons by COLLATE {token.text}"
    return ""


def _replaces(words: EditableStatement, first: int, stop: int) -> bool:
    """Return whether there is a REPLACE that is not the function."""
    return any(words.at_word(index) == "REPLACE" and words.at_word(index + 1) != "(" for index in range(first, stop))


def _is_value(token: SqlToken) -> bool:
    return token.kind is TokenKind.STRING or token.upper == "@"


def _qualified(words: EditableStatement, index: int, schema: str) -> TableName:
    before = words.tokens[index - 2] if words.at_word(index - 1) == "." and index > 1 else None
    return (words.text_of(before) if before is not None and is_name(before) else schema), words.text_of(
        words.tokens[index]
    )


def _targets(words: EditableStatement, first: int, stop: int) -> set[int]:
    """Return the places of names of columns that are written and not read: of INSERT (a, b), and SET a = …"""
    found: set[int] = set()
    at = first
    if words.at_word(at) in ("INSERT", "REPLACE"):
        while at < stop and words.at_word(at) not in ("(", "SET", "VALUES", "VALUE", "SELECT", "WITH"):
            at += 1
        if words.at_word(at) == "(" and words.at_word(at + 1) not in ("SELECT", "WITH", "VALUES"):
            found.update(range(at, words.brackets.closing(at)))
    depth, assigns = 0, False
    for index in range(first, stop):
        word = words.at_word(index)
        depth += {"(": 1, ")": -1}.get(word, 0)
        if word == "SET" or (word == "UPDATE" and words.at_word(index - 1) == "KEY"):
            assigns, depth = True, 0
        elif not depth and word in _ENDS_ASSIGNMENTS:
            assigns = False
        elif assigns and not depth and word == "=" and is_name(words.tokens[index - 1]):
            start = index - 1
            while words.at_word(start - 1) == ".":
                start -= 2
            if words.at_word(start - 1) in ("SET", ",", "UPDATE"):
                found.update(range(start, index))
    return found


def _tables(words: EditableStatement, first: int, stop: int, schema: str, common: set[str]) -> Iterable[TableName]:
    """Yield the names at places of tables, except for those of WITH."""
    for _, place in table_places(words.tokens, first, stop):
        name = _qualified(words, place, schema)
        if name[1].lower() not in common and name[0].lower() not in _BUILT_IN:
            yield name
