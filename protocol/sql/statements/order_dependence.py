"""What a statement does otherwise where tables give their rows in another order, as its words tell it."""

import re
from dataclasses import dataclass
from typing import Final

from protocol.sql.lexer import LINE_COMMENT, SqlToken, TokenKind, UnsupportedSyntax
from protocol.sql.server_functions import AGGREGATE_FUNCTIONS, TIME_UNITS
from protocol.sql.sql_mode import NO_BACKSLASH_ESCAPES, ONLY_FULL_GROUP_BY
from protocol.sql.statements.named_tables import is_simple, skip_common_tables
from protocol.sql.statements.statement import SqlStatement
from protocol.sql.statements.statement_words import StatementWords

# A word may stand right behind the version of a comment for servers: /*!50000LIMIT 1*/.
_PERHAPS: Final = re.compile(
    r"(?<![A-Za-z_$])(?:(?:LIMIT|SELECT|AGAINST|TABLE)(?![\w$])|UPDATE\b[^'\"]{0,200}?\bIGNORE\b)|:=", re.IGNORECASE
)
_COMMENTS: Final = rf"/\*(?!!|M!)(?>(?:[^*]++|\*(?!/))*)(?:\*/|\Z)|{LINE_COMMENT}|`(?>(?:[^`]++|``)*)`"
_PASSED: Final = {
    True: re.compile(rf"""'(?>(?:[^']++|'')*)'|"(?>(?:[^"]++|"")*)"|{_COMMENTS}"""),
    False: re.compile(rf"""'(?>(?:[^'\\]++|\\.|'')*)'|"(?>(?:[^"\\]++|\\.|"")*)"|{_COMMENTS}""", re.DOTALL),
}
"""Strings, quoted names and comments; by whether a backslash is only that."""
_INSERTS: Final = ("INSERT", "REPLACE")
# What reads or changes rows; a definition but CREATE TABLE … SELECT does not.
_CHANGES: Final = (*_INSERTS, "UPDATE", "DELETE", "WITH", "SELECT", "DO", "CALL", "LOAD")
_QUERIES: Final = ("SELECT", "WITH")
_BEHIND_ORDER: Final = ("LIMIT", ")", ";", "FOR", "UNION", "ON", "LOCK", "PROCEDURE", "ASC", "DESC", "SEPARATOR")
_BEHIND_ITEMS: Final = ("FROM", "UNION", "INTO", "LIMIT", "ORDER", "WHERE", ";")
_BEHIND_GROUPS: Final = ("HAVING", "ORDER", "LIMIT", "UNION", "FOR", "LOCK", "INTO", "PROCEDURE", "WITH", "ON", ";")
_NO_COLUMN: Final = frozenset((
    "NULL", "TRUE", "FALSE", "DEFAULT", "DISTINCT", "DISTINCTROW", "ALL", "STRAIGHT_JOIN", "HIGH_PRIORITY", "SQL_SMALL_RESULT",
    "SQL_BIG_RESULT", "SQL_BUFFER_RESULT", "SQL_NO_CACHE", "SQL_CACHE", "SQL_CALC_FOUND_ROWS", "CASE", "WHEN", "THEN", "ELSE", "END",
    "AND", "OR", "XOR", "NOT", "IS", "IN", "LIKE", "BETWEEN", "DIV", "MOD", "AS", "BINARY", "COLLATE", "INTERVAL", "REGEXP", "RLIKE",
    "CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "CURRENT_USER", "LOCALTIME", "UTC_DATE", "UTC_TIMESTAMP", "FROM", "FOR",
    "USING", "BOTH", "LEADING", "TRAILING", "ESCAPE", "ROW", "EXISTS", "ANY", "SOME",
))  # fmt: skip
_BEFORE_UNIT: Final = 4
_BEFORE_NO_COLUMN: Final = ("@", "AS", "COLLATE", "USING", "SET", "CHARSET")
"""In front of variables, types, collations and character sets."""
_MOST_READ: Final = 1_000_000
"""Words that are gone over for the queries of one statement, which may stand in each other."""


def may_depend_on_order(query: SqlStatement) -> bool:
    """Whether a closer look is needed: the words for it may stand in it, outside of strings, or it changes several tables at once."""
    text = query.text
    if _PERHAPS.search(text):
        passed = _PASSED[bool(query.sql_mode & NO_BACKSLASH_ESCAPES)]
        if _PERHAPS.search(passed.sub(" ", text)):
            return True
    return query.kind.verb in ("UPDATE", "WITH", "") and not is_simple(query)


def verb_of(query: SqlStatement) -> str:
    """Its first word, behind brackets and the queries that WITH names; what is long need not be read for it.

    Raises: UnsupportedSyntax.
    """
    if query.kind.verb not in ("", "WITH"):
        return query.kind.verb
    words = StatementWords(query)
    while words.accept("("):
        pass
    skip_common_tables(words)
    return words.word()


def searches_text(query: SqlStatement) -> bool:
    """Whether it has MATCH … AGAINST. Raises: UnsupportedSyntax."""
    return any(token.kind is TokenKind.WORD and token.upper == "AGAINST" for token in query.tokens)


def order_counts(query: SqlStatement, *, makes_numbers: bool) -> bool:
    """Whether the statement does other things with rows in another order. makes_numbers: it gives out AUTO_INCREMENT values.

    Raises: UnsupportedSyntax.
    """
    tokens = query.tokens
    verb = verb_of(query)
    words = [token.upper for token in tokens if token.kind is TokenKind.WORD]
    if verb == "CREATE":
        if "TABLE" not in words[:3] or not any(word in _QUERIES for word in words[2:]):
            return False
    elif verb not in _CHANGES:
        return False
    # The lines of a file come in one order only.
    blocks = _blocks(tokens)[verb == "LOAD" :]
    if any(block.mixes or (block.picks and not block.ordered) for block in blocks):
        return True
    if not query.sql_mode & ONLY_FULL_GROUP_BY and _takes_any_of_groups(tokens):
        return True
    if verb == "UPDATE" and "IGNORE" in words[1:3]:
        return not blocks[0].ordered  # which of two rows gets a value that only one may have
    if verb in _INSERTS and "TABLE" in words and "SELECT" not in words:  # TABLE t is SELECT * FROM t
        two = verb == "REPLACE" or "IGNORE" in words[1:3] or "DUPLICATE" in words
        return (makes_numbers or two) and not blocks[0].ordered
    feeds = next((block for block in blocks if block.selects), None)
    if feeds is None or feeds.ordered or verb not in (*_INSERTS, "CREATE"):
        return False
    return makes_numbers or _one_of_two_stays(tokens, verb, words)


def program_hangs_on_order(tokens: list[SqlToken]) -> bool:
    """The same of the statement of a trigger, as far as its queries tell it; where that cannot be told, too."""
    part: list[SqlToken] = []
    for token in tokens:
        part.append(token)
        if token.upper == ";" or token.kind is TokenKind.END:
            try:
                blocks = _blocks(part)
                words = {one.upper for one in part}
                assigns_only = "SELECT" not in words and "UPDATE" not in words and "LIMIT" not in words
                picks = any(block.mixes or (block.picks and not block.ordered) for block in blocks)
                if (picks and not assigns_only) or (
                    "CURSOR" in words and not all(one.ordered for one in blocks if one.selects)
                ):
                    return True
            except UnsupportedSyntax:
                return True
            part = []
    return False


def values_of_update(query: SqlStatement) -> frozenset[str] | None:
    """The names of the tables, in lower case and as they are called there, whose columns an UPDATE of several gives to others.

    None: there are columns of which it does not tell the table. Raises: UnsupportedSyntax.
    """
    tokens = query.tokens
    at = next((number for number, token in enumerate(tokens) if token.upper == "SET"), len(tokens))
    found: set[str] = set()
    is_value, depth = False, 0
    while at < len(tokens) - 1:
        token = tokens[at]
        if not depth and token.upper in ("WHERE", "ORDER", "LIMIT"):
            break
        depth += {"(": 1, ")": -1}.get(token.upper, 0)
        if not depth and token.upper == ",":
            is_value = False
        elif token.upper == "=" and not is_value:
            is_value = True
        elif is_value and _is_column(tokens, at):
            if tokens[at + 1].upper != ".":
                return None
            # With a schema in front the name of the table is the last but one.
            if at + 3 < len(tokens) and tokens[at + 3].upper == ".":
                at += 2
                token = tokens[at]
            found.add(token.text.lower())
            at += 2
        at += 1
    return frozenset(found)


def _is_column(tokens: list[SqlToken], at: int) -> bool:
    """Whether it is the name of a column or of its table, and none of a function."""
    token = tokens[at]
    calls = at + 1 < len(tokens) and tokens[at + 1].upper == "("
    if token.kind is TokenKind.NAME:
        return not calls
    if token.kind is not TokenKind.WORD or calls or token.upper in _NO_COLUMN:
        return False
    before = tokens[at - 1].upper if at else ""
    if before in _BEFORE_NO_COLUMN:
        return False
    if token.upper not in TIME_UNITS:
        return True
    # INTERVAL 1 DAY, TIMESTAMPDIFF(DAY, …), EXTRACT(DAY FROM …)
    near = tokens[max(0, at - _BEFORE_UNIT) : at]
    behind = tokens[at + 1].upper if at + 1 < len(tokens) else ""
    is_first = before == "(" and behind in (",", "FROM")
    return not (is_first or any(one.upper == "INTERVAL" for one in near))


def _takes_any_of_groups(tokens: list[SqlToken]) -> bool:
    """Whether a query with groups gives a column that may not be the same in all rows of one: that of the row that comes first.

    Raises: UnsupportedSyntax.
    """
    left = _MOST_READ
    for number, token in enumerate(tokens):
        if token.kind is TokenKind.WORD and token.upper == "SELECT":
            items, behind = _list(tokens, number + 1, _BEHIND_ITEMS)
            groups, end = _groups(tokens, behind)
            left -= end - number
            if left < 0:
                raise UnsupportedSyntax("too many queries in it")
            if _takes_any(items, groups):
                return True
    return False


def _takes_any(items: list[list[SqlToken]], groups: list[list[SqlToken]] | None) -> bool:
    if groups is None and not any(_calls_aggregate(item, number) for item in items for number in range(len(item))):
        return False
    named = {token.text.lower() for item in groups or () for token in item}
    places = {int(item[0].text) for item in groups or () if len(item) == 1 and item[0].text.isdecimal()}
    for place, item in enumerate(items, 1):
        if place in places:
            continue
        columns, alias = _columns(item)
        if alias not in named and not columns <= named:
            return True
    return False


def _groups(tokens: list[SqlToken], at: int) -> tuple[list[list[SqlToken]] | None, int]:
    """What stands behind GROUP BY of the query whose rest begins at `at`, None: it has none; up to where was looked."""
    depth = 0
    while at < len(tokens) - 1:
        word = tokens[at].upper
        depth += {"(": 1, ")": -1}.get(word, 0)
        if depth < 0 or (not depth and word in ("UNION", ";")):
            break
        if not depth and word == "GROUP" and tokens[at + 1].upper == "BY":
            return _list(tokens, at + 2, _BEHIND_GROUPS)
        at += 1
    return None, at


def _list(tokens: list[SqlToken], at: int, stops: tuple[str, ...]) -> tuple[list[list[SqlToken]], int]:
    """What stands between commas from `at` on, up to one of the words or a bracket that closes, and where that is."""
    items: list[list[SqlToken]] = [[]]
    depth = 0
    while tokens[at].kind is not TokenKind.END:
        word = tokens[at].upper
        if not depth and (word in stops or word == ")"):
            break
        depth += {"(": 1, ")": -1}.get(word, 0)
        if not depth and word == ",":
            items.append([])
        else:
            items[-1].append(tokens[at])
        at += 1
    return items, at


def _calls_aggregate(item: list[SqlToken], number: int) -> bool:
    return item[number].upper in AGGREGATE_FUNCTIONS and number + 1 < len(item) and item[number + 1].upper == "("


def _columns(item: list[SqlToken]) -> tuple[set[str], str]:
    """The columns of an item of a query that stand outside of aggregates and of other queries, `*` for all; and its other name."""
    found: set[str] = set()
    alias = ""
    last = len(item) - 1
    number = 0
    while number <= last:
        token = item[number]
        following = item[number + 1].upper if number < last else ""
        opens = token.upper == "(" and following in _QUERIES
        if opens or _calls_aggregate(item, number):
            number = _closed(item, number if opens else number + 1) + 1
            continue
        before = item[number - 1] if number else None
        if token.upper == "*" and (before is None or before.upper == "."):
            found.add("*")
        elif number == last and before is not None and before.upper != "." and _ends_value(before):
            alias = token.text.lower()
        elif _is_column(item, number) and following != ".":
            found.add(token.text.lower())
        number += 1
    return found, alias


def _ends_value(token: SqlToken) -> bool:
    is_value = token.kind in (TokenKind.NAME, TokenKind.STRING, TokenKind.NUMBER) or token.upper in (")", "AS", "END")
    return is_value or (token.kind is TokenKind.WORD and token.upper not in _NO_COLUMN)


def _closed(item: list[SqlToken], at: int) -> int:
    depth = 0
    for number in range(at, len(item)):
        depth += {"(": 1, ")": -1}.get(item[number].upper, 0)
        if not depth:
            return number
    return len(item)


@dataclass
class _Block:
    """A query in a statement, or the statement itself without those. picks: what it gives hangs on the order of its rows; mixes:
    whatever its ORDER BY says."""

    selects: bool = False
    picks: bool = False
    mixes: bool = False
    ordered: bool = False


def _one_of_two_stays(tokens: list[SqlToken], verb: str, words: list[str]) -> bool:
    """Whether rows of a query take each other's place where they have the same key."""
    if verb == "CREATE":
        for number, token in enumerate(tokens):
            if token.kind is TokenKind.WORD and token.upper in ("IGNORE", "REPLACE"):
                following = (one.upper for one in tokens[number + 1 :] if one.upper not in ("AS", "("))
                if next(following, "") in _QUERIES:
                    return True
        return False
    before_query = words[: words.index("SELECT")]
    if "VALUES" in before_query or "VALUE" in before_query or "SET" in before_query:
        return False  # a query that gives one value
    return verb == "REPLACE" or "IGNORE" in words[1:3] or "DUPLICATE" in words


def _blocks(tokens: list[SqlToken]) -> list[_Block]:
    """The statement, then the queries in it, each where it begins. Raises: UnsupportedSyntax."""
    found = [_Block()]
    inside = [(found[0], True)]
    """At each depth of brackets: of which query it is, and whether all of that is there."""
    for number, token in enumerate(tokens):
        word = token.upper if token.kind in (TokenKind.WORD, TokenKind.SYMBOL) else ""
        following = tokens[min(number + 1, len(tokens) - 1)]
        block, is_all = inside[-1]
        if word == "(":
            is_query = following.kind is TokenKind.WORD and following.upper in _QUERIES
            if is_query:
                found.append(_Block())
            inside.append((found[-1] if is_query else block, is_query))
        elif word == ")":
            if len(inside) == 1:
                raise UnsupportedSyntax("a bracket that nothing opens")
            inside.pop()
        elif word == "SELECT":
            if block is found[0] or block.selects:
                # INSERT … SELECT, or behind UNION: with what comes behind it.
                block = _Block()
                inside[-1] = (block, True)
                found.append(block)
            block.selects = True
        elif word == "LIMIT" or (word == ":" and following.upper == "=" and following.start == token.stop):
            block.picks = True
        elif word == "GROUP_CONCAT" and following.upper == "(":
            block.mixes = block.mixes or not _is_ordered_within(tokens, number + 1)
        elif word == "ORDER" and following.upper == "BY" and is_all:
            block.ordered = _orders(tokens, number + 2, selects=block.selects)
    return found


def _is_ordered_within(tokens: list[SqlToken], opened: int) -> bool:
    """Whether ORDER BY stands in these brackets."""
    depth = 0
    for number in range(opened, len(tokens)):
        word = tokens[number].upper
        depth += {"(": 1, ")": -1}.get(word, 0)
        if not depth:
            return False
        if depth == 1 and word == "ORDER" and tokens[number + 1].upper == "BY":
            return _orders(tokens, number + 2, selects=False)
    raise UnsupportedSyntax("a bracket that does not end")


def _orders(tokens: list[SqlToken], at: int, *, selects: bool) -> bool:
    """Whether what stands behind ORDER BY is more than NULL or another constant, or chance. selects: a number stands for a column."""
    first, behind = tokens[min(at, len(tokens) - 1)], tokens[min(at + 1, len(tokens) - 1)]
    if first.upper == "RAND" and behind.upper == "(":
        return False
    constants = (TokenKind.STRING,) if selects else (TokenKind.STRING, TokenKind.NUMBER)
    is_constant = first.kind in constants or first.upper == "NULL"
    return not (is_constant and (behind.kind is TokenKind.END or behind.upper in _BEHIND_ORDER))
