"""Finds in the words of a statement what newer servers of MySQL refuse. Views and the audit `readiness` look by the same functions."""

from collections.abc import Container, Iterable, Iterator
from typing import Final

from protocol.sql.lexer import TokenKind
from protocol.sql.server_functions import SERVER_FUNCTIONS
from protocol.sql.server_variables import REMOVED_SYSTEM_TABLES, REMOVED_VARIABLES
from protocol.sql.sql_words import SqlWords
from protocol.sql.tables.ddl_statement import AlterTable
from protocol.sql.tables.source_table import TableName

Version = tuple[int, ...]
OLDEST: Final = (5, 5)
NEWEST: Final = (9, 7)
"""The versions between which everything here is refused, for those who do not know the servers."""
_OBJECTS: Final = frozenset(
    ("TABLE", "VIEW", "TRIGGER", "PROCEDURE", "FUNCTION", "EVENT", "INDEX", "DATABASE", "SCHEMA", "SERVER")
)
_PROGRAMS: Final = frozenset(("TRIGGER", "PROCEDURE", "FUNCTION", "EVENT"))
_BEFORE_FUNCTION: Final = frozenset(("CREATE", "DROP", "ALTER", "SHOW", "AGGREGATE"))
_BEFORE_A_TABLE_OR_KEY: Final = frozenset((
    "INTO", "TABLE", "KEY", "INDEX", "FROM", "JOIN", "UPDATE", "REFERENCES", "CONSTRAINT", "UNIQUE", "FULLTEXT", "SPATIAL", "PRIMARY",
    "EXISTS", "PROCEDURE", "FUNCTION", "CALL", "IGNORE", "REPLACE", "INSERT", "DELAYED", "LOW_PRIORITY", "HIGH_PRIORITY", ".", "VIEW",
    "@", "PARTITION", "TRUNCATE", "USING",
))  # fmt: skip
"""The words before a name that a bracket with columns may follow."""
_ENDS_GROUPS: Final = frozenset(("HAVING", "ORDER", "LIMIT", "UNION", "FOR", "INTO", "PROCEDURE", "LOCK", ";", "WITH"))
_REMOVED_STATEMENTS: Final[tuple[tuple[tuple[str, ...], tuple[int, int]], ...]] = (
    (("ALTER", "IGNORE", "TABLE"), (5, 7)), (("ALTER", "ONLINE", "TABLE"), (5, 7)), (("ALTER", "OFFLINE", "TABLE"), (5, 7)),
    (("RESET", "QUERY", "CACHE"), (8, 0)), (("SHOW", "INNODB", "STATUS"), (5, 6)),
    (("SHOW", "AUTHORS"), (5, 7)), (("SHOW", "CONTRIBUTORS"), (5, 7)), (("SET", "OPTION"), (5, 6)), (("SET", "ONE_SHOT"), (5, 7)),
    (("RESET", "MASTER"), (8, 4)), (("RESET", "SLAVE"), (8, 4)), (("SHOW", "MASTER", "STATUS"), (8, 4)),
    (("SHOW", "MASTER", "LOGS"), (8, 4)), (("SHOW", "SLAVE", "STATUS"), (8, 4)), (("SHOW", "SLAVE", "HOSTS"), (8, 4)),
    (("PURGE", "MASTER", "LOGS"), (8, 4)), (("START", "SLAVE"), (8, 4)), (("STOP", "SLAVE"), (8, 4)),
    (("CHANGE", "MASTER", "TO"), (8, 4)), (("FLUSH", "QUERY", "CACHE"), (8, 0)), (("FLUSH", "HOSTS"), (8, 4)),
    (("FLUSH", "DES_KEY_FILE"), (8, 0)), (("RENAME", "DATABASE"), (5, 1)), (("RENAME", "SCHEMA"), (5, 1)),
    (("UPGRADE", "DATA", "DIRECTORY", "NAME"), (8, 0)),
)  # fmt: skip
_FLUSH_OPTIONS: Final[tuple[tuple[tuple[str, ...], tuple[int, int]], ...]] = (
    (("QUERY", "CACHE"), (8, 0)), (("DES_KEY_FILE",), (8, 0)), (("HOSTS",), (8, 4)),
)  # fmt: skip


def object_at(words: SqlWords) -> int:
    """Return the index of the kind of object in a CREATE, ALTER or DROP, such as TABLE; -1: it is another statement."""
    if words.word(0) not in ("CREATE", "ALTER", "DROP"):
        return -1
    index = 1
    while index < len(words.words) and words.word(index) not in _OBJECTS:
        index += 2 if words.word(index) == "DEFINER" and words.word(index + 1) == "=" else 1
    return index if index < len(words.words) else -1


def is_program(words: SqlWords) -> bool:
    """Return whether it creates a trigger, a routine or an event, whose body is a statement."""
    at = object_at(words)
    return words.word(0) == "CREATE" and at > 0 and words.word(at) in _PROGRAMS


def names_among(words: SqlWords, reserved: Container[str]) -> Iterator[int]:
    """Yield where the statement has words among `reserved` as names without quotation marks. After a dot or @ any word is a name."""
    kind_at = -2
    for index, token in enumerate(words.words):
        word = token.upper
        if token.kind is not TokenKind.WORD or word not in reserved or words.word(index - 1) in (".", "@"):
            continue
        if kind_at == -2:
            kind_at = object_at(words)
        if not _is_keyword(words, index, kind_at):
            yield index


def _is_keyword(words: SqlWords, index: int, kind_at: int) -> bool:
    """Return whether an old server reads the word as a keyword."""
    word, before, behind = words.word(index), words.word(index - 1), words.word(index + 1)
    if word == "FUNCTION":
        of_grant = words.word(0) in ("GRANT", "REVOKE") and before == "ON"
        return index == kind_at or before in _BEFORE_FUNCTION or of_grant
    if word == "ROW":
        of_index = before == "ON" and words.word(0) == "CREATE" and "INDEX" in (words.word(1), words.word(2))
        return before == "EACH" or (behind == "(" and before not in _BEFORE_A_TABLE_OR_KEY and not of_index)
    if word == "ROWS":
        is_counted = index > 0 and words.words[index - 1].kind is TokenKind.NUMBER
        return behind == "IDENTIFIED" or is_counted
    if word == "CUBE":
        return before == "WITH"
    return False


def removed_calls(words: SqlWords, source: Version, target: Version) -> Iterator[int]:
    """Yield where it calls a function that a server of version `source` has and one of `target` does not."""
    defines = words.word(0) in ("CREATE", "ALTER") and not is_program(words)
    makes_index = words.word(0) == "CREATE" and "INDEX" in (words.word(1), words.word(2))
    for index in words.places("("):
        name = index - 1
        if name < 0 or words.words[name].kind is not TokenKind.WORD:
            continue
        known = SERVER_FUNCTIONS.get(words.word(name))
        if (
            known is None
            or known.mysql_until is None
            or known.in_mysql((target[0], target[1]))
            or not known.in_mysql((source[0], source[1]))
        ):
            continue
        before = words.word(name - 1)
        if before in _BEFORE_A_TABLE_OR_KEY or (makes_index and before == "ON"):
            continue
        if defines and before in ("(", ",") and _is_prefix(words, index):
            continue
        yield name


def _is_prefix(words: SqlWords, index: int) -> bool:
    """Return whether these brackets have the length of a prefix, as a key's `KEY (x(8))`."""
    if index + 3 >= len(words.words) or words.words[index + 1].kind is not TokenKind.NUMBER:
        return False
    return words.word(index + 2) == ")" and words.word(index + 3) in (",", ")", "ASC", "DESC")


def group_orders(words: SqlWords) -> Iterator[int]:
    """Yield where GROUP BY has ASC or DESC."""
    for start in words.places("GROUP", "BY"):
        depth = 0
        for index in range(start + 2, len(words.words)):
            word = words.word(index)
            depth += (word == "(") - (word == ")")
            if depth < 0 or (not depth and word in _ENDS_GROUPS):
                break
            if not depth and word in ("ASC", "DESC"):
                yield index


def null_escapes(words: SqlWords) -> Iterator[int]:
    """Yield where \\N is written for NULL."""
    for index in words.places("\\", "N"):
        if words.words[index].stop == words.words[index + 1].start:
            yield index


def removed_statement(words: SqlWords, source: Version, target: Version) -> str:
    """Return a statement, of a program or by itself, that a server of version `target` does not have; "": there is none."""
    for pair, until in _REMOVED_STATEMENTS:
        if target[:2] >= until > source[:2] and words.has(*pair):
            return " ".join(pair)
    for index in words.places("GRANT"):
        if target[:2] >= (8, 0) > source[:2] and _grants_by_password(words, index):
            return "GRANT with IDENTIFIED"
    name = _removed_variable(words) if target[:2] >= (8, 0) > source[:2] else ""
    return f"the variable {name}" if name else ""


def _removed_variable(words: SqlWords) -> str:
    """Return a variable that the target does not have, of SET or as @@name; "": there is none."""
    for index, token in enumerate(words.words):
        if token.kind is TokenKind.VARIABLE and token.text.startswith("@@"):
            name = token.text.lower().lstrip("@").rpartition(".")[2].strip("` ")
            if name in REMOVED_VARIABLES:
                return name
        elif token.upper == "SET":
            at = index + 1 + (words.word(index + 1) in ("SESSION", "LOCAL", "GLOBAL"))
            name = words.name(at)
            # A variable of the program may have such a name, too: only those that it does not declare.
            if (
                name in REMOVED_VARIABLES
                and words.word(at + 1) in ("=", ":=")
                and not words.has("DECLARE", name.upper())
            ):
                return name
    return ""


def removed_system_table(tables: Iterable[TableName]) -> str:
    """Return a table of the schema mysql that newer servers do not have; "": there is none."""
    return next(
        (table for schema, table in tables if schema.lower() == "mysql" and table.lower() in REMOVED_SYSTEM_TABLES), ""
    )


def _grants_by_password(words: SqlWords, start: int) -> bool:
    for index in range(start, len(words.words)):
        if words.word(index) == ";":
            return False
        if words.word(index) == "IDENTIFIED":
            return True
    return False


def flush_options(words: SqlWords) -> list[tuple[int, int]]:
    """Return the options of a FLUSH, as ranges of words."""
    start = 1 + (words.word(1) in ("LOCAL", "NO_WRITE_TO_BINLOG"))
    options = []
    for index in range(start, len(words.words) + 1):
        if index == len(words.words) or words.word(index) in (",", ";"):
            if index > start:
                options.append((start, index))
            start = index + 1
    return options


def is_removed_flush(words: SqlWords, option: tuple[int, int], target: Version) -> bool:
    """Return whether a server of version `target` does not have the option of FLUSH."""
    text = tuple(words.word(index) for index in range(*option))
    return any(text == names and target[:2] >= until for names, until in _FLUSH_OPTIONS)


def may_lose_rows(words: SqlWords, made: AlterTable) -> bool:
    """Return whether IGNORE of an ALTER TABLE may matter: for duplicates of a new key, and values of columns that are redefined."""
    if any(key.kind in ("PRIMARY", "UNIQUE") for key in made.written.keys) or made.written.unknown:
        return True
    return any(words.has(word) for word in ("UNIQUE", "PRIMARY", "MODIFY", "CHANGE", "CONVERT", "FOREIGN", "PARTITION"))
