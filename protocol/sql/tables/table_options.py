"""Options of tables and databases, and PARTITION BY."""

from typing import Final

from protocol.binlog.schema.collation_names import plain_collation
from protocol.sql.lexer import TokenKind, UnsupportedSyntax
from protocol.sql.tables.ddl_reader import DdlReader
from protocol.sql.tables.ddl_statement import CharsetOption, TableOption

QUERIES: Final = frozenset(("SELECT", "WITH", "VALUES", "TABLE"))
"""First words of queries."""
# Table options with a value of one token.
_OPTIONS: Final = frozenset(
    ("AUTO_INCREMENT", "AUTOEXTEND_SIZE", "AVG_ROW_LENGTH", "CHECKSUM", "TABLE_CHECKSUM", "COMMENT", "COMPRESSION", "CONNECTION",
     "DELAY_KEY_WRITE", "ENCRYPTION", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE", "SECONDARY_ENGINE", "INSERT_METHOD",
     "KEY_BLOCK_SIZE", "MAX_ROWS", "MIN_ROWS", "PACK_KEYS", "PASSWORD", "ROW_FORMAT", "STATS_AUTO_RECALC", "STATS_PERSISTENT",
     "STATS_SAMPLE_PAGES", "TABLESPACE", "PAGE_CHECKSUM", "TRANSACTIONAL", "PAGE_COMPRESSED", "PAGE_COMPRESSION_LEVEL", "ENCRYPTED",
     "ENCRYPTION_KEY_ID", "IETF_QUOTES")
)  # fmt: skip
_OTHERS: Final = frozenset(
    ("ENGINE", "TYPE", "CHARACTER", "CHARSET", "COLLATE", "DEFAULT", "DATA", "INDEX", "UNION")
)  # fmt: skip
_BEFORE_COLUMNS: Final = frozenset(("HASH", "RANGE", "LIST", "KEY", "COLUMNS"))
"""Words of PARTITION BY before the bracket of an expression or of columns."""
_ENGINES: Final = (TokenKind.WORD, TokenKind.NAME, TokenKind.STRING)


def database_options(reader: DdlReader) -> CharsetOption:
    """Read the options of CREATE DATABASE and ALTER DATABASE. Raises: UnsupportedSyntax."""
    option = CharsetOption()
    while not reader.ended:
        if charset_option(reader, option):
            continue
        if reader.accept("COMMENT") or reader.accept("ENCRYPTION") or reader.accept("DEFAULT", "ENCRYPTION"):
            reader.accept("=")
            reader.string()
        elif reader.accept("READ", "ONLY"):
            reader.accept("=")
            reader.take()
        else:
            raise UnsupportedSyntax(f"{reader.text()} of a database")
    return option


def charset_option(reader: DdlReader, option: CharsetOption) -> bool:
    """Read [DEFAULT] CHARACTER SET or COLLATE; False: it is something else. Raises: UnsupportedSyntax."""
    ahead = 1 if reader.word() == "DEFAULT" else 0
    word = reader.word(ahead)
    if word not in ("CHARACTER", "CHARSET", "COLLATE") and not (word == "CHAR" and reader.word(ahead + 1) == "SET"):
        return False
    start = reader.start_of_next()
    for _ in range(ahead + 1):
        reader.take()
    if word in ("CHARACTER", "CHAR"):
        reader.expect("SET")
    reader.accept("=")
    value = reader.peek()
    if reader.accept("DEFAULT"):
        option.charset, option.default, option.collation, option.collated = None, True, "", False
    elif word == "COLLATE":
        collation = plain_collation(reader.name_or_string())
        charset = reader.charset_of_collation(collation)
        option.collated = True
        if charset is not None:
            option.charset, option.default, option.collation = charset, False, collation
        else:
            option.collation = f"{option.charset}_{collation}" if option.charset and collation != "default" else ""
    else:
        _set_charset(reader, option, reader.charset())
    _written(reader, "COLLATE" if word == "COLLATE" else "CHARACTER SET", start, value.start, value.text)
    return True


def _set_charset(reader: DdlReader, option: CharsetOption, charset: str) -> None:
    outlasts = reader.dialect.collation_outlasts_charset
    option.default = False
    if option.collated and outlasts is not False:
        option.collation = option.collation if outlasts and option.charset == charset else ""
    else:
        option.collation, option.collated = reader.dialect.default_collation(charset), False
    option.charset = charset


def engine_option(reader: DdlReader) -> str | None:
    """Read ENGINE [=] name, or TYPE; None: it is something else. Raises: UnsupportedSyntax."""
    word, start = reader.word(), reader.start_of_next()
    if word not in ("ENGINE", "TYPE"):
        return None
    reader.take()
    reader.accept("=")
    return _written(reader, word, start, reader.start_of_next(), reader.name_or_string())


def plain_option(reader: DdlReader) -> bool:
    """Read an option that does not concern columns; False: it is something else. Raises: UnsupportedSyntax."""
    word, start = reader.word(), reader.start_of_next()
    if word in _OPTIONS:
        reader.take()
        reader.accept("=")
        value = reader.peek()
        if reader.kind is TokenKind.STRING:
            reader.string()
        else:
            reader.take()
        _written(reader, word, start, value.start, value.text)
        return True
    if word in ("DATA", "INDEX") and reader.word(1) == "DIRECTORY":
        reader.take()
        reader.take()
        reader.accept("=")
        _written(reader, f"{word} DIRECTORY", start, reader.start_of_next(), reader.string())
        return True
    if word == "UNION" and (reader.word(1) == "(" or reader.word(1) == "="):
        reader.take()
        reader.accept("=")
        value = reader.peek()
        reader.skip_brackets()
        _written(reader, word, start, value.start, "")
        return True
    if word == "STORAGE" and reader.word(1) in ("DISK", "MEMORY"):
        reader.take()
        _written(reader, word, start, reader.start_of_next(), reader.take().upper)
        return True
    if reader.accept("WITH", "SYSTEM", "VERSIONING"):
        _written(reader, "WITH SYSTEM VERSIONING", start, start, "")
        reader.note_read(start, "system versioning", "WITH", "SYSTEM", "VERSIONING")
        return True
    if word == "SEQUENCE":
        reader.take()
        reader.accept("=")
        value = reader.take()
        _written(reader, word, start, value.start, value.upper)
        reader.note_read(start, "SEQUENCE in place of an option", word)
        return True
    if reader.accept("START", "TRANSACTION"):
        _written(reader, "START TRANSACTION", start, start, "")
        return True
    return False


def option_follows(reader: DdlReader) -> bool:
    """Return True if another option of the table follows: these may be side by side without a comma."""
    return reader.word() in _OPTIONS | _OTHERS and not reader.ended


def partitions(reader: DdlReader, *, before_query: bool) -> None:
    """Read the partitions at the end of a statement, with the engines in it; `before_query`: up to a query. Raises: UnsupportedSyntax
    for a bracket without an end.
    """
    depth, before = 0, ""
    while not reader.ended:
        word, start = reader.word(), reader.start_of_next()
        if before_query and not depth and before not in _BEFORE_COLUMNS and (word == "AS" or begins_query(reader)):
            return
        reader.take()
        before = word
        depth += {"(": 1, ")": -1}.get(word, 0)
        if word == "ENGINE":
            reader.accept("=")
            if reader.kind not in _ENGINES:
                raise UnsupportedSyntax(f"the engine {reader.text()}")
            _written(reader, word, start, reader.start_of_next(), reader.name_or_string(), of_partition=True)
        elif word in ("DATA", "INDEX") and reader.accept("DIRECTORY"):
            _partition_option(reader, f"{word} DIRECTORY", start)
        elif word in ("TABLESPACE", "NODEGROUP") and reader.word(-2) != "." and not reader.ended:
            _partition_option(reader, word, start)
        elif word == "SYSTEM_TIME" or (word == "DEFAULT" and reader.word(-3) == "PARTITION"):
            _written(reader, word, start, start, "", of_partition=True)
    if depth:
        raise UnsupportedSyntax("a statement that ends early")


def _partition_option(reader: DdlReader, name: str, start: int) -> None:
    reader.accept("=")
    value = reader.take()
    _written(reader, name, start, value.start, value.text, of_partition=True)


def begins_query(reader: DdlReader) -> bool:
    """Return True if SELECT or another query follows, in brackets too."""
    word, within = reader.word(), reader.word(1)
    if word == "WITH" and within == "SYSTEM" and reader.word(2) == "VERSIONING":
        return False
    return word in QUERIES or (word == "(" and (within in QUERIES or within == "("))


def _written(reader: DdlReader, name: str, start: int, value: int, text: str, *, of_partition: bool = False) -> str:
    """Note an option that ends before the next word."""
    reader.written.options.append(TableOption(name, start, value, reader.stop_of_last(), text, of_partition))
    return text
