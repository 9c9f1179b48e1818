"""The tables that a statement writes, and those that it may read, as far as its text shows for certain."""

import functools
import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from protocol.sql.lexer import SqlToken, TokenKind, UnsupportedSyntax, is_name
from protocol.sql.server_functions import SEQUENCE_FUNCTIONS, functions_of
from protocol.sql.sql_mode import ANSI_QUOTES
from protocol.sql.statements.statement import SqlStatement
from protocol.sql.statements.statement_words import StatementWords
from protocol.sql.tables.ddl_parser import parse_ddl
from protocol.sql.tables.ddl_statement import DropTables, RenameTables
from protocol.sql.tables.source_table import TableName
from protocol.sql.tables.token_cursor import TokenCursor

_MODIFIERS: Final = ("LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE", "QUICK", "CONCURRENT", "LOCAL")
# Words before a parenthesis that call nothing.
_NO_CALL: Final = frozenset((
    "VALUES", "VALUE", "IN", "AND", "OR", "NOT", "XOR", "ON", "USING", "AS", "SELECT", "FROM", "WHERE", "HAVING", "BY", "SET", "JOIN",
    "INTO", "EXISTS", "ANY", "ALL", "SOME", "UNION", "DISTINCT", "CASE", "WHEN", "THEN", "ELSE", "BETWEEN", "LIKE", "REGEXP", "RLIKE",
    "DIV", "MOD", "IS", "KEY", "INDEX", "UPDATE", "DEFAULT", "LIMIT", "INTERVAL", "BINARY", "AGAINST", "PARTITION", "ROW", "LINES",
    "FIELDS", "COLUMNS", "BY", "TERMINATED", "WITH", "FORCE", "USE", "IGNORE", "OVER", "RETURN", "PRIMARY", "UNIQUE", "CHECK",
    "DECIMAL", "NUMERIC", "SIGNED", "UNSIGNED", "VARCHAR",
))  # fmt: skip


# The heads of most statements, without comments and unusual names: the rest of them, which may be long, need not be read.
_NAME: Final = rb"(?:`([\w$ -]+)`|([A-Za-z_][\w$]*+))"
_TABLE: Final = _NAME + rb"(?:\." + _NAME + rb")?"
_SIMPLE_HEAD: Final = re.compile(
    rb"\s*(?:(?:INSERT|REPLACE)(?:\s+(?:LOW_PRIORITY|DELAYED|HIGH_PRIORITY|IGNORE))*\s+INTO\s+"
    + _TABLE
    + rb"\s*[(VvSs]|UPDATE\s+"
    + _TABLE
    + rb"\s+SET\s|DELETE\s+FROM\s+"
    + _TABLE
    + rb"(?:\s+(?:WHERE|ORDER|LIMIT)\b|\s*\Z))",
    re.IGNORECASE,
)


# Their values depend on the statement before, or they write.
_NOT_HARMLESS: Final = SEQUENCE_FUNCTIONS | {"ROW_COUNT", "FOUND_ROWS"}


_QUERIES: Final = ("SELECT", "WITH", "VALUES", "TABLE")
_NO_QUERY: Final = (
    "CREATE", "TEMPORARY", "REPLACE", "INTO", "ALTER", "ONLINE", "OFFLINE", "IGNORE", "DROP", "TRUNCATE", "RENAME", "LOCK", "ON", "OF",
    "OPTIMIZE", "ANALYZE", "CHECK", "CHECKSUM", "REPAIR", "FLUSH", "LOCAL", "NO_WRITE_TO_BINLOG", "WITH", "TO",
)  # fmt: skip
"""Words before a TABLE that begins no query."""
_READ: Final = ("FROM", "JOIN", "STRAIGHT_JOIN", "USING", "TABLE")
_FUNCTIONS_TOO: Final = ("INSERT", "REPLACE")
_INTRODUCE: Final = (*_FUNCTIONS_TOO, "INTO", "JOIN", "STRAIGHT_JOIN", "UPDATE")
_BEFORE_NAME: Final = (*_MODIFIERS, "LATERAL", "ONLY")
_NO_TABLES: Final = frozenset((
    *_QUERIES, *_READ, *_INTRODUCE, "SET", "VALUE", "DUAL", "OUTFILE", "DUMPFILE", "NOWAIT", "WAIT", "SKIP", "OF", "DELETE", "INFILE",
    "ON", "WHERE",
))  # fmt: skip
"""The words that may be in the place of a table's name, and are none."""
_ENDS_TABLES: Final = ("WHERE", "SET", "GROUP", "ORDER", "HAVING", "LIMIT", "SELECT", "VALUES", ";")
_FROM_WITHIN: Final = ("EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "MID", "POSITION", "OVERLAY")


class StatementTables(NamedTuple):
    """The tables of a statement. `writes` are those that it names as its own targets, triggers and functions apart. `calls`: it may
    call a stored function, or something else that its text does not show. `words` are all names in it that may be a table's, (schema
    or "", name), quoted or not. `is_temporary_definition`: it creates or drops temporary tables, which nothing undoes; `drops`: it
    drops some.
    """

    writes: tuple[TableName, ...]
    calls: bool
    words: frozenset[tuple[str, str]]
    is_temporary_definition: bool = False
    drops: bool = False


@functools.lru_cache(maxsize=16)
def _no_calls(server_version: str) -> frozenset[str]:
    """Return the words before a bracket that call no stored function: the server's own functions have precedence."""
    return _NO_CALL | (functions_of(server_version) - _NOT_HARMLESS)


def is_simple(query: SqlStatement) -> bool:
    """Return whether its head shows that it changes one table."""
    return _SIMPLE_HEAD.match(query.raw) is not None and not query.sql_mode & ANSI_QUOTES


def written_tables(query: SqlStatement) -> tuple[TableName, ...]:
    """Return the tables that a statement names as its targets.

    Raises: UnsupportedSyntax, also for statements that are not known here.
    """
    simple = _SIMPLE_HEAD.match(query.raw)
    if simple is not None and not query.sql_mode & ANSI_QUOTES:
        names = [found.decode("ascii") for found in simple.groups() if found is not None]
        schema, table = names if len(names) == 2 else (query.schema, names[0])
        return ((schema, table),)
    words = StatementWords(query)
    while words.accept("("):
        pass
    skip_common_tables(words)
    verb = words.word()
    words.take()
    if verb in ("INSERT", "REPLACE"):
        words.accept_any(*_MODIFIERS)
        words.accept("INTO")
        return (words.table_name(),)
    if verb == "LOAD":
        return (_load(words),)
    if verb == "UPDATE":
        return _update(words)
    if verb == "DELETE":
        return _delete(words)
    if verb == "TRUNCATE":
        words.accept("TABLE")
        return (words.table_name(),)
    if verb == "CREATE":
        words.accept("TEMPORARY")
        words.expect("TABLE")
        words.accept("IF", "NOT", "EXISTS")
        return (words.table_name(),)
    if verb == "DROP" and words.accept("TEMPORARY"):
        words.expect("TABLE")
        words.accept("IF", "EXISTS")
        dropped = [words.table_name()]
        while words.accept(","):
            dropped.append(words.table_name())
        return tuple(dropped)
    raise UnsupportedSyntax(f"a {verb} statement" if verb else "a statement of another kind")


def defined_tables(query: SqlStatement) -> tuple[TableName, ...]:
    """Return the tables that a CREATE, ALTER, DROP, RENAME or TRUNCATE TABLE makes, changes or empties, but for temporary ones that it
    drops; none for another statement. Raises: UnsupportedSyntax.
    """
    verb = query.kind.verb
    if verb in ("CREATE", "ALTER"):
        made = query.definition
        return (made.name,) if made is not None else ()
    if verb == "TRUNCATE":
        return written_tables(query)
    if verb in ("DROP", "RENAME"):
        removed = parse_ddl(query.text, query.schema, query.sql_mode, query.server_version)
        if isinstance(removed, DropTables) and not removed.temporary:
            return removed.names
        if isinstance(removed, RenameTables):
            return tuple(name for pair in removed.pairs for name in pair)
    return ()


def perhaps_written_tables(query: SqlStatement) -> tuple[TableName, ...]:
    """Return the tables that a statement may write: all that it joins, if its text does not show which of them.

    Raises: UnsupportedSyntax.
    """
    try:
        return written_tables(query)
    except UnsupportedSyntax:
        words = StatementWords(query)
        skip_common_tables(words)
        if words.word() != "UPDATE":
            raise
        return tuple(name for name in tables_by_alias(query).values() if name is not None)


def tables_by_alias(query: SqlStatement) -> dict[str, TableName | None]:
    """Return an UPDATE's tables, by the names that qualify columns, in lower case; None: a query.

    Raises: UnsupportedSyntax.
    """
    words = StatementWords(query)
    skip_common_tables(words)
    words.expect("UPDATE")
    words.accept_any(*_MODIFIERS)
    return _table_factor_names(words, ("SET",))


def may_write_several(query: SqlStatement) -> bool:
    """Return whether a statement writes, or may write, more than one table. Raises: UnsupportedSyntax."""
    try:
        return len(written_tables(query)) > 1
    except UnsupportedSyntax:
        words = StatementWords(query)
        words.expect("UPDATE")
        words.accept_any(*_MODIFIERS)
        _table_factor_names(words, ("SET",))
        words.expect("SET")
        while not words.ended and words.word() not in ("WHERE", "ORDER", "LIMIT"):
            if words.word() == "(":
                words.skip_brackets()
            elif words.take().upper == ",":
                return True
        return False


def statement_tables(query: SqlStatement) -> StatementTables:
    """Return all facts about tables in a statement's text. Raises: UnsupportedSyntax."""
    writes = written_tables(query)
    tokens = query.tokens
    no_calls = _no_calls(query.server_version)
    words: set[tuple[str, str]] = set()
    calls = False
    for index, token in enumerate(tokens):
        following = tokens[index + 1] if index + 1 < len(tokens) else token
        before = tokens[index - 1] if index else None
        if token.kind not in (TokenKind.WORD, TokenKind.NAME):
            continue
        qualified = before is not None and before.upper == "." and index >= 2
        may_call = qualified or token.kind is TokenKind.NAME or token.upper not in no_calls
        if following.upper == "(" and may_call:
            calls = calls or not _stands_for_table(tokens, index)
        if qualified:
            words.add(
                (
                    query.name(tokens[index - 2]) if tokens[index - 2].kind is not TokenKind.SYMBOL else "",
                    query.name(token),
                )
            )
        words.add(("", query.name(token)))
    upper = tokens[0].upper
    temporary = upper in ("CREATE", "DROP") and tokens[1].upper == "TEMPORARY"
    return StatementTables(writes, calls, frozenset(words), temporary, upper == "DROP")


def table_places(tokens: Sequence[SqlToken], first: int, stop: int) -> Iterator[tuple[str, int]]:
    """Yield (word, place) of each name in the place of a table in the tokens [first, stop), including queries in it.

    The word is the one that introduces it, FROM, JOIN, USING, TABLE of a query, INTO, UPDATE, INSERT, REPLACE …; the place is that of
    its last part. Names of WITH are among them.
    """
    opened: list[tuple[str, bool]] = []
    introduced, expects, calls = "", False, False
    for index in range(first, stop):
        word, kind = tokens[index].upper, tokens[index].kind
        before, following = tokens[index - 1].upper if index else "", tokens[index + 1].upper
        if expects and word == "(" and following not in _QUERIES:
            opened.append((introduced, calls))
            continue
        if expects and kind is TokenKind.WORD and word in _BEFORE_NAME:
            continue
        if expects and is_name(tokens[index]) and word not in _NO_TABLES:
            last = index + 2 if following == "." else index
            if last < stop and is_name(tokens[last]):
                yield introduced, last
            introduced = "" if introduced == "TABLE" else introduced
        expects = False
        if word == "(":
            opened.append((introduced, calls))
            introduced, calls = "", before in _FROM_WITHIN
        elif word == ")":
            introduced, calls = opened.pop() if opened else ("", False)
        elif kind is TokenKind.WORD and before != "." and _introduces(word, before, following, introduced, calls=calls):
            introduced, expects = word, True
        elif word in _ENDS_TABLES or (word == "ON" and following == "DUPLICATE"):
            introduced, calls = "", calls and word not in ("SELECT", ";")
        elif word == "DELETE":
            calls = False
        elif word == ",":
            expects = bool(introduced)


def _introduces(word: str, before: str, following: str, introduced: str, *, calls: bool) -> bool:
    """Return whether a keyword is before a table. `introduced` is the one before it in the same list of tables; `calls`: it is in
    brackets of a function that has a FROM of its own.
    """
    if word == "FROM":
        return not calls
    if word == "USING":
        return bool(introduced) and following != "("
    if word == "TABLE":
        return before not in _NO_QUERY
    if word in _FUNCTIONS_TOO:
        return following != "("
    return word in _INTRODUCE and not (word == "UPDATE" and before in ("KEY", "FOR"))


def read_tables(query: SqlStatement) -> tuple[TableName, ...]:
    """Return the tables after FROM and JOIN, and after TABLE as a query, in inner queries too. Raises: UnsupportedSyntax."""
    words = StatementWords(query)
    found: dict[TableName, None] = {}
    for introduced, place in table_places(words.tokens, 0, len(words.tokens) - 1):
        if introduced in _READ:
            words.at = place - 2 if words.tokens[place - 1].upper == "." else place
            found[words.table_name()] = None
    return tuple(found)


def called_routines(query: SqlStatement) -> list[TableName]:
    """Return (schema, name) of all that a statement may call, except for the server's own functions. Raises: UnsupportedSyntax."""
    tokens = query.tokens
    no_calls = _no_calls(query.server_version)
    found: dict[TableName, None] = {}
    for index, token in enumerate(tokens[:-1]):
        if token.kind not in (TokenKind.WORD, TokenKind.NAME):
            continue
        qualified = index >= 2 and tokens[index - 1].upper == "."
        start = index - 2 if qualified else index
        called = start >= 1 and tokens[start - 1].upper == "CALL" and tokens[index + 1].upper != "."
        if not called:
            if tokens[index + 1].upper != "(" or _stands_for_table(tokens, index):
                continue
            if not qualified and token.kind is TokenKind.WORD and token.upper in no_calls:
                continue
        found[(query.name(tokens[start]) if qualified else query.schema, query.name(token))] = None
    return list(found)


def skip_common_tables(words: TokenCursor) -> None:
    """Skip WITH and the queries that it names, before UPDATE, DELETE or a query (8.0 and later). Raises: UnsupportedSyntax."""
    if not words.accept("WITH"):
        return
    words.accept("RECURSIVE")
    while True:
        words.name()
        if words.word() == "(":
            words.skip_brackets()
        words.expect("AS")
        words.skip_brackets()
        if not words.accept(","):
            return


def _stands_for_table(tokens: list[SqlToken], index: int) -> bool:
    """Return whether the name before a parenthesis is a table with its columns or partitions: INSERT INTO t (a, b)."""
    start = index
    if start >= 2 and tokens[start - 1].upper == ".":
        start -= 2
    before = tokens[start - 1].upper if start else ""
    return before in ("INTO", "INSERT", "REPLACE", "TABLE", "EXISTS", "JOIN", "FROM", "AS", ")", *_MODIFIERS)


def _load(words: StatementWords) -> TableName:
    while not words.ended:
        if words.accept("INTO", "TABLE"):
            return words.table_name()
        words.take()
    raise UnsupportedSyntax("a LOAD DATA without its table")


def _table_factor_names(words: StatementWords, stops: tuple[str, ...]) -> dict[str, TableName | None]:
    """Return the tables of a list with joins, by the names that qualify columns, up to one of the words `stops`; None: a query."""
    found: dict[str, TableName | None] = {}
    expects_table = True
    while not words.ended and words.word() not in stops:
        word = words.word()
        if expects_table:
            name: TableName | None = None
            if word == "(" and words.word(1) in ("SELECT", "WITH", "VALUES", "TABLE"):
                words.skip_brackets()
                alias = ""
            elif word == "(" or word == "LATERAL":
                words.take()
                continue
            else:
                name = words.table_name()
                if words.accept("PARTITION"):
                    words.skip_brackets()
                alias = name[1]
            if words.accept("AS"):
                alias = words.name_or_string()
            elif words.peek().kind is TokenKind.NAME or (
                words.peek().kind is TokenKind.WORD and words.word() not in _AFTER_TABLE and words.word() not in stops
            ):
                alias = words.name()
            if alias.lower() in found:
                raise UnsupportedSyntax("two tables of one name")
            found[alias.lower()] = name
            expects_table = False
        elif word in (",", "JOIN", "STRAIGHT_JOIN"):
            words.take()
            expects_table = True
        elif word == "(":
            words.skip_brackets()
        else:
            words.take()
    return found


_AFTER_TABLE: Final = frozenset((
    "JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "NATURAL", "OUTER", "STRAIGHT_JOIN", "ON", "USING", "USE", "FORCE", "IGNORE", "SET",
    "WHERE", "ORDER", "LIMIT", "PARTITION",
))  # fmt: skip


def _update(words: StatementWords) -> tuple[TableName, ...]:
    words.accept_any(*_MODIFIERS)
    tables = _table_factor_names(words, ("SET",))
    words.expect("SET")
    only = next(iter(tables.values()), None)
    if len(tables) == 1 and only is not None:
        return (only,)
    written: dict[TableName, None] = {}
    while True:
        name = words.name()
        if not words.accept("."):
            raise UnsupportedSyntax("a column whose table it does not name")
        column = words.name()
        if words.accept("."):
            name = column
            words.name()
        table = tables.get(name.lower())
        if table is None:
            raise UnsupportedSyntax(f"a column of {name}")
        written[table] = None
        while not words.ended and words.word() not in (",", "WHERE", "ORDER", "LIMIT"):
            if words.word() == "(":
                words.skip_brackets()
            else:
                words.take()
        if not words.accept(","):
            return tuple(written)


def _delete(words: StatementWords) -> tuple[TableName, ...]:
    words.accept_any(*_MODIFIERS)
    if words.accept("FROM"):
        start = words.at
        first = words.table_name()
        words.accept(".", "*")
        if words.word() not in (",", "USING"):
            return (first,)
        words.at = start
        targets = _targets(words)
        words.expect("USING")
        tables = _table_factor_names(words, ("WHERE",))
    else:
        targets = _targets(words)
        words.expect("FROM")
        tables = _table_factor_names(words, ("WHERE",))
    found = []
    for target in targets:
        name = tables.get(target[1].lower())
        if name is None:
            raise UnsupportedSyntax(f"a target {target[1]} that is none of its tables")
        found.append(name)
    return tuple(dict.fromkeys(found))


def deletes_from_one(query: SqlStatement) -> bool:
    """Return whether a DELETE is certainly from one table, though its name may not be readable."""
    try:
        words = StatementWords(query)
        skip_common_tables(words)
        words.expect("DELETE")
        words.accept_any(*_MODIFIERS)
        words.expect("FROM")
        words.take()
        if words.accept("."):
            words.take()
    except UnsupportedSyntax:
        return False
    return words.word() not in (",", ".", "USING")


def load_replaces(query: SqlStatement) -> bool:
    """Return whether it is LOAD DATA … REPLACE, which replaces rows. Raises: UnsupportedSyntax."""
    words = StatementWords(query)
    while not words.ended and words.word() != "INTO":
        if words.accept("REPLACE"):
            return words.word() == "INTO"
        words.take()
    return False


def _targets(words: StatementWords) -> list[TableName]:
    found = []
    while True:
        name = words.name()
        schema = words.query.schema
        if words.accept("."):
            if words.word() == "*":
                words.take()
            else:
                schema, name = name, words.name()
                words.accept(".", "*")
        found.append((schema, name))
        if not words.accept(","):
            return found
