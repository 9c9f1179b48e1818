"""Values, queries and programs: words in them that MySQL does not know, names to quote, collations."""

import re
from collections.abc import Callable
from typing import Final

from protocol.errors import ErrorCode
from protocol.sql.lexer import TokenKind, UnsupportedSyntax
from protocol.sql.server_functions import MYSQL_KEYWORDS, SEQUENCE_FUNCTIONS, SERVER_FUNCTIONS, WINDOW_FUNCTIONS
from protocol.sql.server_words import ONLY_MYSQLS
from relay.view.rules.mariadb.differences.differing_functions import is_called
from relay.view.rules.mariadb.statement.collate_clauses import replace_collation
from relay.view.rules.mariadb.statement.editable_statement import EditableStatement
from relay.view.stops import statement_stops

_SEQUENCE_TABLE: Final = re.compile(r"seq_\d+_to_\d+(?:_step_\d+)?", re.IGNORECASE)
_KEYWORD_AFTER: Final = {
    "FUNCTION": frozenset(("CREATE", "DROP", "ALTER", "SHOW", "AGGREGATE", "EXISTS")),
    "OPTION": frozenset(("CHECK", "GRANT", "ADMIN")),
    "DATABASE": frozenset(("CREATE", "DROP", "ALTER", "SHOW")),
    "SCHEMA": frozenset(("CREATE", "DROP", "ALTER", "SHOW")),
    "ROW": frozenset(("EACH", "CURRENT", "FIRST", "NEXT")),
}
"""The words after which a word is a keyword."""
_MISSING_CASTS: Final = frozenset(("UUID", "INET4", "INET6", "VARCHAR", "VARCHAR2", "INTERVAL", "XMLTYPE"))
_SET_OPERATIONS: Final = frozenset(("UNION", "EXCEPT", "INTERSECT", "ALL", "DISTINCT", "AS"))


def read_expressions(words: EditableStatement, first: int, stop: int, *, is_program: bool = False) -> None:
    """Rewrite the words [first, stop) for MySQL. `is_program`: they are run later, so that a missing function matters only then, and is
    reported. Raises: Untranslatable."""
    duplicate = False
    for index in range(first, stop):
        token = words.tokens[index]
        if token.kind is TokenKind.NAME or token.kind is TokenKind.WORD:
            _check_sequence_table(words, index)
        if token.kind is not TokenKind.WORD or words.at_word(index - 1) in (".", "@"):
            continue
        if words.at_word(index + 1) == ".":
            words.quote(index)
            continue
        word = token.upper
        duplicate = duplicate or word == "DUPLICATE"
        if word in ONLY_MYSQLS and not _is_keyword(words, index):
            words.quote(index)
        if is_called(words, index):
            if word in SEQUENCE_FUNCTIONS:
                raise statement_stops.syntax_unknown(
                    words.context.target_title, words.query, f"sequences ({token.text})"
                )
            _check_function(words, index, is_program)
        if word in ("VALUES", "VALUE"):
            _values(words, index, duplicate)
        elif word in _RULES:
            _RULES[word](words, index)


def _check_function(words: EditableStatement, index: int, is_program: bool) -> None:
    token = words.tokens[index]
    known = SERVER_FUNCTIONS.get(token.upper)
    if known is None or known.mariadb_since is None or known.in_mysql(words.context.target):
        return
    if token.upper in MYSQL_KEYWORDS:
        _stop(words, f"the function {token.text}")
    if not is_program:
        _stop(words, f"the function {token.text}", ErrorCode.ER_SP_DOES_NOT_EXIST)
    words.reports.append(f"the function {token.text}, which {words.context.target_title} does not have")


def _stop(words: EditableStatement, what: str, error: int = ErrorCode.ER_PARSE_ERROR) -> None:
    raise statement_stops.syntax_unknown(words.context.target_title, words.query, what, error)


def _check_sequence_table(words: EditableStatement, index: int) -> None:
    name = words.tokens[index].text
    before = words.at_word(index - 1)
    if _SEQUENCE_TABLE.fullmatch(name) and before in ("FROM", "JOIN", ",", "."):
        _stop(words, f"the table {name}, which MariaDB makes up", ErrorCode.ER_NO_SUCH_TABLE)


def _is_keyword(words: EditableStatement, index: int) -> bool:
    """Return whether a word that MySQL has reserved is no name here, but has the meaning that it has in MySQL too."""
    word, before, following = words.at_word(index), words.at_word(index - 1), words.at_word(index + 1)
    if before in _KEYWORD_AFTER.get(word, ()):
        return True
    if word in WINDOW_FUNCTIONS:
        return following == "(" and words.at_word(words.brackets.closing(index + 1) + 1) == "OVER"
    if word in ("DATABASE", "SCHEMA"):
        return following == "(" and words.at_word(index + 2) == ")"
    if word == "ROW":
        return is_called(words, index)
    if word == "JSON_TABLE":
        return following == "("
    if word == "GET":
        return following in ("DIAGNOSTICS", "CURRENT", "STACKED")
    if word == "WINDOW":
        return words.at_word(index + 2) == "AS" and words.at_word(index + 3) == "("
    return False


def _values(words: EditableStatement, index: int, duplicate: bool) -> None:
    if words.at_word(index + 1) != "(":
        return
    if duplicate:
        if words.at_word(index) == "VALUE":
            words.put(index, "VALUES")
        return
    before = words.at_word(index - 1)
    if index == 0 or before in _SET_OPERATIONS or (before == "(" and words.at_word(index) == "VALUES"):
        _stop(words, "VALUES as a query without ROW")


def _next_value(words: EditableStatement, index: int) -> None:
    if words.at_word(index + 1) == "VALUE" and words.at_word(index + 2) == "FOR":
        _stop(words, "sequences (VALUE FOR)")


def _behind_for(words: EditableStatement, index: int) -> None:
    following = words.at_word(index + 1)
    if following in ("SYSTEM_TIME", "PORTION"):
        _stop(words, f"FOR {following}")
    if words.at_word(index + 2) == "IN" and following not in ("UPDATE", "SHARE"):
        _stop(words, "FOR … IN loops")


def _group_concat(words: EditableStatement, index: int) -> None:
    if words.at_word(index + 1) != "(":
        return
    if words.brackets.holds(index + 1, "LIMIT"):
        _stop(words, "LIMIT in GROUP_CONCAT")


def _as(words: EditableStatement, index: int) -> None:
    following = words.at_word(index + 1)
    if following not in _MISSING_CASTS and following not in ("INT", "INTEGER"):
        return
    if words.at_word(words.brackets.opening(index) - 1) != "CAST":
        return
    if following in _MISSING_CASTS:
        _stop(words, f"CAST to {following}")
    words.put(index + 1, "SIGNED")


def _collate(words: EditableStatement, index: int) -> None:
    value = index + 1 + (words.at_word(index + 1) == "=")
    token = words.tokens[value]
    if token.kind in (TokenKind.WORD, TokenKind.NAME, TokenKind.STRING):
        replace_collation(words, value, "")


def _charset_of_value(words: EditableStatement, index: int) -> None:
    """Check CONVERT(… USING x), CAST(… CHARACTER SET x): the set's default collation decides which texts are equal."""
    if words.at_word(index) == "USING":
        value = index + 1
        if words.tokens[value].kind not in (TokenKind.WORD, TokenKind.NAME) or words.at_word(value + 1) != ")":
            return
    elif words.at_word(index + 1) == "SET" and words.at_word(0) != "LOAD":
        value = index + 2
    else:
        return
    if words.at_word(value) == "(" or words.at_word(value) == "=":
        return
    charset = words.text_of(words.tokens[value]).lower()
    charset = "utf8mb3" if charset == "utf8" else charset
    of_mysql = {"utf8mb4": ("utf8mb4_general_ci", "utf8mb4_0900_ai_ci")}.get(charset, (f"{charset}_general_ci",))
    if charset not in ("utf8mb3", "utf8mb4", "ucs2", "utf16", "utf32"):
        return
    if words.context.collations.default_of(charset, words.context.defaults) not in of_mysql:
        raise statement_stops.statement_differs(
            words.context.target_title, words.query, f"the character set {charset} of a value without a collation"
        )


def _limit(words: EditableStatement, index: int) -> None:
    if words.at_word(index + 1) == "ROWS" or words.at_word(index + 2) == "ROWS":
        _stop(words, "LIMIT … ROWS EXAMINED")


def _fetch(words: EditableStatement, index: int) -> None:
    if words.at_word(index + 1) in ("FIRST", "NEXT") and words.at_word(index + 3) != "INTO":
        _stop(words, "FETCH FIRST … ROWS")


def _followed(what: str, *following: str) -> Callable[[EditableStatement, int], None]:
    def rule(words: EditableStatement, index: int) -> None:
        if all(words.at_word(index + 1 + number) == word for number, word in enumerate(following)):
            _stop(words, what)

    return rule


def _returning(words: EditableStatement, index: int) -> None:
    raise UnsupportedSyntax("RETURNING stands where it is not known")


def _update_wait(words: EditableStatement, index: int) -> None:
    if words.tokens[index + 1].kind is TokenKind.NUMBER and words.at_word(index - 1) in ("UPDATE", "MODE"):
        _stop(words, "FOR UPDATE WAIT")


_RULES: Final[dict[str, Callable[[EditableStatement, int], None]]] = {
    "NEXT": _next_value,
    "PREVIOUS": _next_value,
    "FOR": _behind_for,
    "GROUP_CONCAT": _group_concat,
    "JSON_ARRAYAGG": _group_concat,
    "AS": _as,
    "COLLATE": _collate,
    "USING": _charset_of_value,
    "CHARACTER": _charset_of_value,
    "CHAR": _charset_of_value,
    "LIMIT": _limit,
    "FETCH": _fetch,
    "WAIT": _update_wait,
    "RETURNING": _returning,
    "EXECUTE": _followed("EXECUTE IMMEDIATE", "IMMEDIATE"),
    "BEGIN": _followed("BEGIN NOT ATOMIC", "NOT", "ATOMIC"),
    "TYPE": _followed("TYPE OF", "OF"),
    "PROCEDURE": _followed("PROCEDURE ANALYSE", "ANALYSE"),
    "DELETE": _followed("DELETE HISTORY", "HISTORY"),
    "WITHOUT": _followed("WITHOUT OVERLAPS", "OVERLAPS"),
}
