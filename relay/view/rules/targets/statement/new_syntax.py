"""Words and functions of statements that are newer than a target's version, which would stop at them."""

from collections.abc import Iterator
from typing import Final

from protocol.errors import ErrorCode
from protocol.sql.lexer import TokenKind
from protocol.sql.server_functions import SERVER_FUNCTIONS
from relay.view.rules.targets.known.target import NewClause, Target
from relay.view.rules.targets.statement.source_statement import SourceStatement
from relay.view.stops import statement_stops

# Words that a statement begins with.
_BEGINNINGS: Final[tuple[NewClause, ...]] = (
    (("ALTER", "INSTANCE"), (5, 7), "ALTER INSTANCE"),
    (("CREATE", "TABLESPACE"), (5, 7), "tablespaces of InnoDB"),
    (("DROP", "TABLESPACE"), (5, 7), "tablespaces of InnoDB"),
    (("CREATE", "UNDO"), (8, 0), "tablespaces for undo"),
    (("ALTER", "UNDO"), (8, 0), "tablespaces for undo"),
    (("DROP", "UNDO"), (8, 0), "tablespaces for undo"),
    (("ALTER", "TABLESPACE"), (8, 0), "tablespaces that are altered"),
    (("CREATE", "RESOURCE"), (8, 0), "resource groups"),
    (("ALTER", "RESOURCE"), (8, 0), "resource groups"),
    (("DROP", "RESOURCE"), (8, 0), "resource groups"),
    (("CREATE", "SPATIAL", "REFERENCE"), (8, 0), "definitions of spatial reference systems"),
    (("CREATE", "OR", "REPLACE", "SPATIAL"), (8, 0), "definitions of spatial reference systems"),
    (("DROP", "SPATIAL"), (8, 0), "definitions of spatial reference systems"),
    (("CREATE", "LIBRARY"), (9, 0), "libraries"),
    (("ALTER", "LIBRARY"), (9, 0), "libraries"),
    (("DROP", "LIBRARY"), (9, 0), "libraries"),
)
# Adjacent words that mean nothing else, anywhere.
_PAIRS: Final[tuple[NewClause, ...]] = (
    (("GET", "DIAGNOSTICS"), (5, 6), "GET DIAGNOSTICS"),
    (("GET", "CURRENT", "DIAGNOSTICS"), (5, 6), "GET DIAGNOSTICS"),
    (("GET", "STACKED", "DIAGNOSTICS"), (5, 7), "GET STACKED DIAGNOSTICS"),
    (("EACH", "ROW", "FOLLOWS"), (5, 7), "an order of triggers"),
    (("EACH", "ROW", "PRECEDES"), (5, 7), "an order of triggers"),
    (("-", ">", ">"), (5, 7), "->> for values inside of JSON"),
    (("-", ">"), (5, 7), "-> for values inside of JSON"),
    ((")", "OVER"), (8, 0), "window functions"),
    (("LATERAL", "("), (8, 0), "LATERAL"),
    (("MEMBER", "OF", "("), (8, 0), "MEMBER OF"),
    (("AT", "TIME", "ZONE"), (8, 0), "AT TIME ZONE"),
    (("SKIP", "LOCKED"), (8, 0), "SKIP LOCKED"),
    (("UPDATE", "NOWAIT"), (8, 0), "NOWAIT"),
    (("FOR", "SHARE"), (8, 0), "FOR SHARE"),
    (("VALUES", "ROW", "("), (8, 0), "VALUES ROW"),
    (("INTERSECT",), (8, 0), "INTERSECT"),
    (("EXCEPT",), (8, 0), "EXCEPT"),
    (("PROCEDURE", "IF", "NOT"), (8, 0), "IF NOT EXISTS for programs"),
    (("FUNCTION", "IF", "NOT"), (8, 0), "IF NOT EXISTS for programs"),
    (("TRIGGER", "IF", "NOT"), (8, 0), "IF NOT EXISTS for programs"),
    (("VIEW", "IF", "NOT"), (9, 0), "IF NOT EXISTS for views"),
    (("LANGUAGE", "JAVASCRIPT"), (9, 0), "programs in JavaScript"),
    (("DUALITY", "VIEW"), (9, 0), "duality views"),
)
_CASTS: Final = {
    "JSON": (5, 7), "FLOAT": (8, 0), "DOUBLE": (8, 0), "REAL": (8, 0), "YEAR": (8, 0), "POINT": (8, 0), "LINESTRING": (8, 0),
    "POLYGON": (8, 0), "MULTIPOINT": (8, 0), "MULTILINESTRING": (8, 0), "MULTIPOLYGON": (8, 0), "GEOMETRYCOLLECTION": (8, 0),
    "VECTOR": (9, 0),
}  # fmt: skip
# The words before a name and its columns, where the name may be that of a function.
_BEFORE_NAMES: Final = frozenset((
    ".", "INTO", "TABLE", "EXISTS", "KEY", "INDEX", "UNIQUE", "FULLTEXT", "SPATIAL", "REFERENCES", "CONSTRAINT",
    "FUNCTION", "PROCEDURE", "VIEW", "CALL", "PARTITION", "IGNORE", "REPLACE",
))  # fmt: skip
_BEFORE_TABLE: Final = frozenset((
    "", ".", "CREATE", "ALTER", "DROP", "TRUNCATE", "RENAME", "ANALYZE", "OPTIMIZE", "REPAIR", "CHECK", "CHECKSUM", "FLUSH", "LOCAL",
    "NO_WRITE_TO_BINLOG", "TEMPORARY", "INTO", "ON", "LOCK", "UNLOCK", "IGNORE", "ONLINE", "OFFLINE", "WITH", "IMPORT", "SHOW",
))  # fmt: skip
_WRITES: Final = frozenset(("INSERT", "REPLACE", "UPDATE", "DELETE", "LOAD"))
_BEHIND_TABLE: Final = frozenset(
    ("", ".", ",", "*", ";", "WHERE", "ORDER", "LIMIT", "PARTITION", "USING", "FORCE", "USE")
)


def check_syntax(statement: SourceStatement, text: bytes, source: int, target: Target) -> None:
    """Check for the first that the target does not know. `source` is its version as 90704; a function that it does not have, either, is
    the user's own. Raises: Untranslatable."""
    for since, what, error in _new_to_older(statement):
        if target.version < since and source >= since[0] * 10_000 + since[1] * 100:
            raise statement_stops.syntax_unknown(target.title, text, what, error)


def common_table_at(statement: SourceStatement) -> int | None:
    """Return the index of a WITH that names queries (8.0 and later), not of WITH PARSER, WITH ROLLUP and so on; None: there is none."""
    for index in statement.places("WITH"):
        if statement.word(index + 1) == "RECURSIVE":
            return index
        behind = index + 2
        if statement.word(behind) == "(":
            behind = statement.brackets.closing(behind) + 1
        if statement.text_at(index + 1) and statement.word(behind) == "AS" and statement.word(behind + 1) == "(":
            return index
    return None


def _new_to_older(statement: SourceStatement) -> Iterator[tuple[tuple[int, int], str, int]]:
    """Yield, for each newer thing in it, the first version that has it, its name, and the error of older versions."""
    for words, since, what in _BEGINNINGS:
        if statement.starts(*words):
            yield since, what, ErrorCode.ER_PARSE_ERROR
    for words, since, what in _PAIRS:
        if any(statement.word(index - 1) != "." for index in statement.places(*words)):
            yield since, what, ErrorCode.ER_PARSE_ERROR
    if common_table_at(statement) is not None:
        yield (8, 0), "WITH in front of a query", ErrorCode.ER_PARSE_ERROR
    if any(
        statement.word(index - 1) not in _BEFORE_TABLE or _is_named_before(statement, index)
        for index in statement.places("TABLE")
    ):
        yield (8, 0), "TABLE as a query", ErrorCode.ER_PARSE_ERROR
    yield from _of_writes(statement)
    yield from _casts(statement)
    for index, word in enumerate(statement.words):
        known = SERVER_FUNCTIONS.get(word.upper) if word.kind is TokenKind.WORD else None
        if known is None or known.mysql_since is None or statement.word(index + 1) != "(":
            continue
        if statement.word(index - 1) not in _BEFORE_NAMES and not _is_indexed(statement, index):
            yield known.mysql_since, f"the function {word.upper}", ErrorCode.ER_SP_DOES_NOT_EXIST


def _is_named_before(statement: SourceStatement, index: int) -> bool:
    """Return whether a quoted name, or a literal, and no keyword, precedes it."""
    return index > 0 and statement.words[index - 1].kind not in (TokenKind.WORD, TokenKind.SYMBOL)


def _is_indexed(statement: SourceStatement, index: int) -> bool:
    """Return whether the name is the table of a CREATE INDEX."""
    return (
        statement.word(index - 1) == "ON"
        and statement.word(0) == "CREATE"
        and "INDEX" in (statement.word(1), statement.word(2))
    )


def _of_writes(statement: SourceStatement) -> Iterator[tuple[tuple[int, int], str, int]]:
    first = statement.word(0)
    if first not in _WRITES:
        return
    if statement.has("PARTITION", "("):
        yield (5, 6), "partitions of a table that is written to", ErrorCode.ER_PARSE_ERROR
    if first == "INSERT" and _has_row_alias(statement):
        yield (8, 0), "a name for the rows of an INSERT", ErrorCode.ER_PARSE_ERROR
    if first == "DELETE" and _has_table_alias(statement):
        yield (8, 0), "another name for the table of a DELETE", ErrorCode.ER_PARSE_ERROR


def _has_row_alias(statement: SourceStatement) -> bool:
    depth = 0
    for index in range(len(statement.words)):
        symbol = statement.word(index)
        depth += (symbol == "(") - (symbol == ")")
        if depth:
            continue
        if symbol in ("SELECT", "TABLE", "WITH", "DUPLICATE"):
            return False
        if symbol == "AS":
            return True
    return False


def _has_table_alias(statement: SourceStatement) -> bool:
    start = next(statement.places("FROM"), None)
    if start is None or any(
        statement.word(index) not in ("DELETE", "LOW_PRIORITY", "QUICK", "IGNORE") for index in range(start)
    ):
        return False
    behind = start + 2
    while statement.word(behind) == ".":
        behind += 2
    if behind >= len(statement.words):
        return False
    return statement.words[behind].kind is TokenKind.NAME or statement.word(behind) not in _BEHIND_TABLE


def _casts(statement: SourceStatement) -> Iterator[tuple[tuple[int, int], str, int]]:
    places = [index for index in statement.places("AS") if statement.word(index + 1) in _CASTS]
    for index in places:
        if statement.word(statement.brackets.opening(index) - 1) == "CAST":
            kind = statement.word(index + 1)
            yield _CASTS[kind], f"CAST to {kind}", ErrorCode.ER_PARSE_ERROR
