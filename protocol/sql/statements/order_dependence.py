"""Statements whose effects depend on the order in which tables return their rows, according to their words."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from protocol.sql.lexer import LINE_COMMENT, SqlToken, TokenKind, UnsupportedSyntax
from protocol.sql.server_functions import AGGREGATE_FUNCTIONS, TIME_UNITS
from protocol.sql.sql_mode import NO_BACKSLASH_ESCAPES, ONLY_FULL_GROUP_BY
from protocol.sql.statements.named_tables import is_simple, skip_common_tables
from protocol.sql.statements.statement import SqlStatement
from protocol.sql.statements.statement_words import StatementWords

# A word may directly follow the version of a comment for servers: /*!50000LIMIT 1*/.
_PERHAPS: Final = re.compile(
    r"(?<![A-Za-z_$])(?:(?:LIMIT|SELECT|AGAINST|TABLE)(?![\w$])|UPDATE\b[^'\"]{0,200}?\bIGNORE\b)|:=", re.IGNORECASE
)
_COMMENTS: Final = rf"/\*(?!!|M!)(?>(?:[^*]++|\*(?!/))*)(?:\*/|\Z)|{LINE_COMMENT}|`(?>(?:[^`]++|``)*)`"
_PASSED: Final = {
    True: re.compile(rf"""'(?>(?:[^']++|'')*)'|"(?>(?:[^"]++|"")*)"|{_COMMENTS}"""),
    False: re.compile(rf"""'(?>(?:[^'\\]++|\\.|'')*)'|"(?>(?:[^"\\]++|\\.|"")*)"|{_COMMENTS}""", re.DOTALL),
}
"""Strings, quoted names and comments, by whether a backslash is an ordinary character."""
_INSERTS: Final = ("INSERT", "REPLACE")
# The words of statements that read or change rows; a definition other than CREATE TABLE … SELECT does not.
_CHANGES: Final = (*_INSERTS, "UPDATE", "DELETE", "WITH", "SELECT", "DO", "CALL", "LOAD")
_QUERIES: Final = ("SELECT", "WITH")
_AFTER_ORDER: Final = ("LIMIT", ")", ";", "FOR", "UNION", "ON", "LOCK", "PROCEDURE", "ASC", "DESC", "SEPARATOR")
_AFTER_ITEMS: Final = ("FROM", "UNION", "INTO", "LIMIT", "ORDER", "WHERE", ";")
_AFTER_GROUPS: Final = ("HAVING", "ORDER", "LIMIT", "UNION", "FOR", "LOCK", "INTO", "PROCEDURE", "WITH", "ON", ";")
_NO_COLUMN: Final = frozenset((
    "NULL", "TRUE", "FALSE", "DEFAULT", "DISTINCT", "DISTINCTROW", "ALL", "STRAIGHT_JOIN", "HIGH_PRIORITY", "SQL_SMALL_RESULT",
    "SQL_BIG_RESULT", "SQL_BUFFER_RESULT", "SQL_NO_CACHE", "SQL_CACHE", "SQL_CALC_FOUND_ROWS", "CASE", "WHEN", "THEN", "ELSE", "END",
    "AND", "OR", "XOR", "NOT", "IS", "IN", "LIKE", "BETWEEN", "DIV", "MOD", "AS", "BINARY", "COLLATE", "INTERVAL", "REGEXP", "RLIKE",
    "CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "CURRENT_USER", "LOCALTIME", "UTC_DATE", "UTC_TIMESTAMP", "FROM", "FOR",
    "USING", "BOTH", "LEADING", "TRAILING", "ESCAPE", "ROW", "EXISTS", "ANY", "SOME",
))  # fmt: skip
_BEFORE_UNIT: Final = 4
_BEFORE_NO_COLUMN: Final = ("@", "AS", "COLLATE", "USING", "SET", "CHARSET")
"""The words before variables, types, collations and character sets."""
_MOST_READ: Final = 1_000_000
"""The limit of words that are read for the queries of one statement, which may be nested."""


class OrderReason(Enum):
    """The clause of a statement by which its effect depends on the order of rows."""

    LIMIT = "LIMIT without ORDER BY"
    VARIABLE = "a variable that a query assigns with := for each row"
    GROUP_CONCAT = "GROUP_CONCAT without ORDER BY"
    GROUP = "a column of a group that GROUP BY does not name"
    DUPLICATE = "one of two rows with the same key is kept"
    AUTO_INCREMENT = "rows of a query are numbered"


def may_depend_on_order(query: SqlStatement) -> bool:
    """Return whether it must be examined: the words for it may be in it, outside of strings, or it changes several tables at once."""
    text = query.text
    if _PERHAPS.search(text):
        passed = _PASSED[bool(query.sql_mode & NO_BACKSLASH_ESCAPES)]
        if _PERHAPS.search(passed.sub(" ", text)):
            return True
    return query.kind.verb in ("UPDATE", "WITH", "") and not is_simple(query)


def verb_of(query: SqlStatement) -> str:
    """Return its first word, after brackets and the queries that WITH names; a long statement is not read whole.

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
    """Return whether it contains MATCH … AGAINST. Raises: UnsupportedSyntax."""
    return any(token.kind is TokenKind.WORD and token.upper == "AGAINST" for token in query.tokens)


def order_counts(query: SqlStatement, *, makes_numbers: bool) -> bool:
    """Return whether the statement has another effect with rows in another order. `makes_numbers`: it assigns AUTO_INCREMENT values.

    Raises: UnsupportedSyntax.
    """
    return next(order_reasons(query, makes_numbers=makes_numbers), None) is not None


def order_reasons(query: SqlStatement, *, makes_numbers: bool) -> Iterator[OrderReason]:
    """Yield the clauses by which the statement has another effect with rows in another order; one may come more than once.

    Raises: UnsupportedSyntax.
    """
    tokens = query.tokens
    verb = verb_of(query)
    words = [token.upper for token in tokens if token.kind is TokenKind.WORD]
    if not _changes_rows(verb, words):
        return
    blocks = _read_blocks(tokens, verb)
    for block in blocks:
        yield from block.reasons()
    if not query.sql_mode & ONLY_FULL_GROUP_BY and _takes_any_of_groups(tokens):
        yield OrderReason.GROUP
    if verb == "UPDATE" and "IGNORE" in words[1:3]:
        if not blocks[0].ordered:
            yield OrderReason.DUPLICATE  # which of two rows gets a value that only one may have
        return
    if verb in _INSERTS and "TABLE" in words and "SELECT" not in words:  # TABLE t is SELECT * FROM t
        is_ordered = blocks[0].ordered
        keeps_one = verb == "REPLACE" or "IGNORE" in words[1:3] or "DUPLICATE" in words
    else:
        feeds = next((block for block in blocks if block.selects), None)
        is_ordered = feeds is None or feeds.ordered or verb not in (*_INSERTS, "CREATE")
        keeps_one = not is_ordered and _one_of_two_stays(tokens, verb, words)
    if not is_ordered and makes_numbers:
        yield OrderReason.AUTO_INCREMENT
    if not is_ordered and keeps_one:
        yield OrderReason.DUPLICATE


def limits_ordered_rows(query: SqlStatement) -> bool:
    """Return whether a LIMIT in a statement that changes rows follows ORDER BY: rows of the same order may take each other's place.

    Raises: UnsupportedSyntax.
    """
    tokens = query.tokens
    verb = verb_of(query)
    if not _changes_rows(verb, [token.upper for token in tokens if token.kind is TokenKind.WORD]):
        return False
    return any(block.limits and block.ordered for block in _read_blocks(tokens, verb))


def _changes_rows(verb: str, words: list[str]) -> bool:
    """Return whether a statement of these words reads or changes rows: a definition does so only if it is CREATE TABLE … SELECT."""
    if verb == "CREATE":
        return "TABLE" in words[:3] and any(word in _QUERIES for word in words[2:])
    return verb in _CHANGES


def program_hangs_on_order(tokens: list[SqlToken]) -> bool:
    """Return the same for the statement of a trigger, from its queries; True also if that cannot be decided."""
    part: list[SqlToken] = []
    for token in tokens:
        part.append(token)
        if token.upper == ";" or token.kind is TokenKind.END:
            try:
                blocks = _blocks(part)
                words = {one.upper for one in part}
                assigns_only = "SELECT" not in words and "UPDATE" not in words and "LIMIT" not in words
                picks = any(True for block in blocks for _ in block.reasons())
                if (picks and not assigns_only) or (
                    "CURSOR" in words and not all(one.ordered for one in blocks if one.selects)
                ):
                    return True
            except UnsupportedSyntax:
                return True
            part = []
    return False


def values_of_update(query: SqlStatement) -> frozenset[str] | None:
    """Return the tables' names, in lower case and as the statement calls them, whose columns an UPDATE of several assigns to others.

    None: there are columns whose table it does not name. Raises: UnsupportedSyntax.
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
            # After a schema the name of the table is the last but one.
            if at + 3 < len(tokens) and tokens[at + 3].upper == ".":
                at += 2
                token = tokens[at]
            found.add(token.text.lower())
            at += 2
        at += 1
    return frozenset(found)


def _is_column(tokens: list[SqlToken], at: int) -> bool:
    """Return whether it is the name of a column or of its table, and not of a function."""
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
    following = tokens[at + 1].upper if at + 1 < len(tokens) else ""
    is_first = before == "(" and following in (",", "FROM")
    return not (is_first or any(one.upper == "INTERVAL" for one in near))


def _takes_any_of_groups(tokens: list[SqlToken]) -> bool:
    """Return whether a query with groups returns a column that may differ between the rows of one: that of the first row.

    Raises: UnsupportedSyntax.
    """
    left = _MOST_READ
    for number, token in enumerate(tokens):
        if token.kind is TokenKind.WORD and token.upper == "SELECT":
            items, stop = _list(tokens, number + 1, _AFTER_ITEMS)
            groups, end = _groups(tokens, stop)
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
    alone = [item[0].text for item in groups or () if len(item) == 1]
    if "?" in alone:
        return False  # a digest does not contain the number of the item
    places = {int(text) for text in alone if text.isdecimal()}
    for place, item in enumerate(items, 1):
        if place in places:
            continue
        columns, alias = _columns(item)
        if alias not in named and not columns <= named:
            return True
    return False


def _groups(tokens: list[SqlToken], at: int) -> tuple[list[list[SqlToken]] | None, int]:
    """Return the items after GROUP BY of the query whose rest begins at `at`, None: it has none; and where the search ended."""
    depth = 0
    while at < len(tokens) - 1:
        word = tokens[at].upper
        depth += {"(": 1, ")": -1}.get(word, 0)
        if depth < 0 or (not depth and word in ("UNION", ";")):
            break
        if not depth and word == "GROUP" and tokens[at + 1].upper == "BY":
            return _list(tokens, at + 2, _AFTER_GROUPS)
        at += 1
    return None, at


def _list(tokens: list[SqlToken], at: int, stops: tuple[str, ...]) -> tuple[list[list[SqlToken]], int]:
    """Return the items between commas from `at` on, up to one of the words or a closing bracket, and the place of that."""
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
    """Return the columns of a query's item outside of aggregates and of other queries, `*` for all; and its other name."""
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
    """A query in a statement, or the statement itself without those. `mixes`: it contains a GROUP_CONCAT whose values have no order."""

    selects: bool = False
    limits: bool = False
    assigns: bool = False
    mixes: bool = False
    ordered: bool = False

    def reasons(self) -> Iterator[OrderReason]:
        """Yield the clauses by which its result depends on the order of its rows."""
        if self.mixes:
            yield OrderReason.GROUP_CONCAT
        if self.limits and not self.ordered:
            yield OrderReason.LIMIT
        if self.assigns and not self.ordered:
            yield OrderReason.VARIABLE


def _one_of_two_stays(tokens: list[SqlToken], verb: str, words: list[str]) -> bool:
    """Return whether rows of a query replace each other if they have the same key."""
    if verb == "CREATE":
        for number, token in enumerate(tokens):
            if token.kind is TokenKind.WORD and token.upper in ("IGNORE", "REPLACE"):
                following = (one.upper for one in tokens[number + 1 :] if one.upper not in ("AS", "("))
                if next(following, "") in _QUERIES:
                    return True
        return False
    before_query = words[: words.index("SELECT")]
    if "VALUES" in before_query or "VALUE" in before_query or "SET" in before_query:
        return False  # a query that returns one value
    return verb == "REPLACE" or "IGNORE" in words[1:3] or "DUPLICATE" in words


def _read_blocks(tokens: list[SqlToken], verb: str) -> list[_Block]:
    """Return the blocks of a statement whose rows a server returns in its own order. Raises: UnsupportedSyntax."""
    # The lines of a file come in one order only.
    return _blocks(tokens)[verb == "LOAD" :]


def _blocks(tokens: list[SqlToken]) -> list[_Block]:
    """Return the statement, then the queries in it, in the order of their beginnings. Raises: UnsupportedSyntax."""
    found = [_Block()]
    inside = [(found[0], True)]
    """The query at each depth of brackets, and whether all of it is there."""
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
                # INSERT … SELECT, or a query after UNION, with the text after it.
                block = _Block()
                inside[-1] = (block, True)
                found.append(block)
            block.selects = True
        elif word == "LIMIT":
            block.limits = True
        elif word == ":" and following.upper == "=" and following.start == token.stop:
            block.assigns = True
        elif word == "GROUP_CONCAT" and following.upper == "(":
            block.mixes = block.mixes or not _is_ordered_within(tokens, number + 1)
        elif word == "ORDER" and following.upper == "BY" and is_all:
            block.ordered = _orders(tokens, number + 2, selects=block.selects)
    return found


def _is_ordered_within(tokens: list[SqlToken], opened: int) -> bool:
    """Return whether ORDER BY is in these brackets."""
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
    """Return whether ORDER BY has more than NULL, another constant, or a random value. `selects`: a number means a column."""
    first, following = tokens[min(at, len(tokens) - 1)], tokens[min(at + 1, len(tokens) - 1)]
    if first.upper == "RAND" and following.upper == "(":
        return False
    constants = (TokenKind.STRING,) if selects else (TokenKind.STRING, TokenKind.NUMBER)
    is_constant = first.kind in constants or first.upper == "NULL"
    return not (is_constant and (following.kind is TokenKind.END or following.upper in _AFTER_ORDER))
