"""The parser of statements that define tables or databases.

The statements are those that a server has executed, so none is wrong; but servers understand more than is known here, and a skipped
part might be a column. So an unknown part is an Unknown in the tree, and each caller says which parts it needs.
"""

import functools
from collections.abc import Callable
from typing import Final

from protocol.sql.byte_text import SOMETIMES_BLANK
from protocol.sql.lexer import SqlToken, TokenKind, UnsupportedSyntax, sql_tokens
from protocol.sql.sql_mode import OTHER_GRAMMARS
from protocol.sql.tables.ddl_reader import DdlReader
from protocol.sql.tables.ddl_statement import (
    AddKey,
    AlterDatabase,
    AlterTable,
    ColumnDefinition,
    CreateDatabase,
    CreateTable,
    DropDatabase,
    DropKey,
    DropTables,
    KeyDefinition,
    NoTable,
    RenameTables,
    Statement,
    TableDefinition,
    needs_everything,
)
from protocol.sql.tables.server_dialect import DefaultCollations, ServerDialect
from protocol.sql.tables.source_table import TableName
from protocol.sql.tables.table_actions import alter_options, read_actions
from protocol.sql.tables.table_elements import Defined, index_type, key_options, read_key, read_list
from protocol.sql.tables.table_options import (
    QUERIES,
    begins_query,
    charset_option,
    database_options,
    engine_option,
    partitions,
    plain_option,
)

# A statement is replayed each time that an archive has grown.
_KEPT: Final = 8192
_OTHER_GRAMMAR: Final = "a sql_mode with another grammar"
_NO_TABLES: Final = frozenset(
    ("USER", "ROLE", "TRIGGER", "PROCEDURE", "FUNCTION", "EVENT", "VIEW", "SERVER", "TABLESPACE", "LOGFILE", "UNDO",
     "RESOURCE", "SPATIAL", "INSTANCE", "LIBRARY")
)  # fmt: skip


@functools.lru_cache(maxsize=_KEPT)
def parse_ddl(
    text: str,
    schema: str,
    sql_mode: int,
    server_version: str,
    collations: DefaultCollations = (),
    explicit_timestamps: bool | None = None,
) -> Statement:
    """Read a CREATE, ALTER, DROP or RENAME without unknown parts.

    `schema` is the default database; `collations`, `explicit_timestamps` are the event's. Raises: UnsupportedSyntax.
    """
    dialect = ServerDialect(server_version, collations, explicit_timestamps)
    tokens = sql_tokens(text, sql_mode, server_version)
    if SOMETIMES_BLANK in text and any(one.kind is TokenKind.WORD and SOMETIMES_BLANK in one.text for one in tokens):
        raise UnsupportedSyntax("U+00A0 in a word: for clients of some character sets it is a blank")
    reader = DdlReader(tokens, text, schema, sql_mode, dialect)
    if sql_mode & OTHER_GRAMMARS:
        raise UnsupportedSyntax(_OTHER_GRAMMAR)
    made = _Parser(reader).statement()
    if isinstance(made, TableDefinition):
        needs_everything(made)
    return made


def read_table_definition(
    tokens: list[SqlToken],
    text: str,
    schema: str,
    sql_mode: int,
    server_version: str,
    name_of: Callable[[SqlToken], str],
) -> TableDefinition | None:
    """Read a CREATE TABLE or ALTER TABLE as far as it is known; None: the statement is another one.

    `name_of` reads the text of a name, and may raise UnsupportedSyntax. Raises: UnsupportedSyntax if the table is not known.
    """
    reader = DdlReader(tokens, text, schema, sql_mode, ServerDialect(server_version), name_of)
    if sql_mode & OTHER_GRAMMARS:
        reader.note(0, _OTHER_GRAMMAR)
    return _Parser(reader).table_definition()


def read_statement(
    tokens: list[SqlToken],
    text: str,
    schema: str,
    sql_mode: int,
    server_version: str,
    name_of: Callable[[SqlToken], str],
) -> Statement:
    """Read a statement that defines tables or databases, like `read_table_definition`. Raises: UnsupportedSyntax."""
    return _Parser(DdlReader(tokens, text, schema, sql_mode, ServerDialect(server_version), name_of)).statement()


class _Parser:
    def __init__(self, reader: DdlReader) -> None:
        self._reader = reader

    def statement(self) -> Statement:
        made = self.table_definition()
        if made is not None:
            return made
        reader = self._reader
        verb = reader.take().upper
        if verb == "CREATE":
            other = self._create()
        elif verb == "ALTER":
            other = self._alter()
        elif verb == "DROP":
            other = self._drop()
        elif verb == "RENAME":
            other = self._rename()
        else:
            raise UnsupportedSyntax(verb)
        if not isinstance(other, NoTable):
            reader.expect_end()
        return other

    def table_definition(self) -> TableDefinition | None:
        """Read CREATE TABLE or ALTER TABLE. None: it is another statement, and the cursor is before its first word."""
        reader, start = self._reader, self._reader.at
        if reader.accept("CREATE"):
            or_replace = reader.accept("OR", "REPLACE")
            temporary = reader.accept("TEMPORARY")
            if reader.accept("TABLE"):
                return self._create_table(or_replace, temporary)
        elif reader.accept("ALTER"):
            reader.accept("ONLINE") or reader.accept("OFFLINE")
            ignores = reader.accept("IGNORE")
            if reader.accept("TABLE"):
                exists = reader.accept("IF", "EXISTS")
                made = AlterTable(reader.table_name(), exists, ignores=ignores, written=reader.written)
                reader.table_schema, reader.alters = made.name[0], True
                read_actions(reader, made)
                return made
        reader.at = start
        return None

    # ---- CREATE ----

    def _create_table(self, or_replace: bool, temporary: bool) -> CreateTable:
        reader = self._reader
        exists = reader.accept("IF", "NOT", "EXISTS")
        made = CreateTable(reader.table_name(), temporary, or_replace, exists, written=reader.written)
        reader.table_schema = made.name[0]
        if reader.accept("LIKE"):
            made.like = reader.table_name()
            self._rest()
            return made
        if reader.accept("(", "LIKE"):
            made.like = reader.table_name()
            reader.attempt(lambda: reader.expect(")"))
            self._rest()
            return made
        if reader.word() == "(" and reader.word(1) not in QUERIES and reader.word(1) != "(":
            reader.written.listed = read_list(reader, functools.partial(_take, made))
        else:
            reader.note(reader.at, f"{reader.text()} in place of columns")
        while not reader.ended:
            if reader.word() == "PARTITION" and reader.word(1) == "BY" and not reader.written.partitioned:
                reader.written.partitioned = True
                partitions(reader, before_query=True)
            elif begins_query(reader):
                reader.written.queried = True
                start, reader.at = reader.at, len(reader.tokens) - 1
                reader.note(start, "a query gives it columns")
            elif reader.word() in (",", ")"):
                reader.pass_over(f"{reader.text()} in place of an option")
            elif reader.attempt(lambda: self._table_option(made)):
                reader.accept(",")
            elif reader.accept("="):
                reader.pass_over("an option's value")
        return made

    def _table_option(self, made: CreateTable) -> None:
        reader = self._reader
        if charset_option(reader, made.charset):
            return
        engine = engine_option(reader)
        if engine is not None:
            made.engine = engine
        elif not plain_option(reader):
            raise UnsupportedSyntax(f"{reader.text()} in place of an option")

    def _rest(self) -> None:
        """Note everything that follows as unknown."""
        while not self._reader.ended:
            self._reader.pass_over(f"{self._reader.text()} after the end of what is known")

    def _create(self) -> Statement:
        reader = self._reader
        or_replace = reader.accept("OR", "REPLACE")
        reader.accept("TEMPORARY")
        if reader.accept("DATABASE") or reader.accept("SCHEMA"):
            exists = reader.accept("IF", "NOT", "EXISTS")
            return CreateDatabase(reader.name(), database_options(reader), or_replace, exists)
        if self._is_no_table():
            return NoTable()
        reader.accept("ONLINE") or reader.accept("OFFLINE")
        unique = reader.accept("UNIQUE")
        has_prefixes = unique or not (reader.accept("FULLTEXT") or reader.accept("SPATIAL"))
        reader.expect("INDEX")
        exists = reader.accept("IF", "NOT", "EXISTS")
        name = reader.name()
        index_type(reader)
        reader.expect("ON")
        table = reader.table_name()
        key = AddKey(KeyDefinition(name, read_key(reader, unique, has_prefixes)), exists)
        key_options(reader)
        alter_options(reader)
        return AlterTable(table, clauses=[key])

    def _is_no_table(self) -> bool:
        """Return whether it is about an object that has no columns. DEFINER and its like may come first."""
        reader = self._reader
        if reader.word() in _NO_TABLES and (reader.word() != "SPATIAL" or reader.word(1) == "REFERENCE"):
            return True
        return reader.word() in ("DEFINER", "AGGREGATE", "ALGORITHM", "SQL")

    # ---- ALTER ----

    def _alter(self) -> Statement:
        reader = self._reader
        reader.accept("ONLINE") or reader.accept("OFFLINE")
        reader.accept("IGNORE")
        if reader.accept("DATABASE") or reader.accept("SCHEMA"):
            if reader.word() in ("CHARACTER", "CHARSET", "COLLATE", "DEFAULT"):
                name = reader.schema
            else:
                name = reader.name()
            if reader.word() == "UPGRADE":
                raise UnsupportedSyntax("a database that is renamed")
            option = database_options(reader)
            if not name:
                raise UnsupportedSyntax("a database without a name")
            return AlterDatabase(name, option)
        if self._is_no_table():
            return NoTable()
        raise UnsupportedSyntax(reader.text())

    # ---- DROP, RENAME ----

    def _drop(self) -> Statement:
        reader = self._reader
        temporary = reader.accept("TEMPORARY")
        if reader.accept("TABLE") or reader.accept("TABLES"):
            exists = reader.accept("IF", "EXISTS")
            names = [reader.table_name()]
            while reader.accept(","):
                names.append(reader.table_name())
            reader.accept("RESTRICT") or reader.accept("CASCADE")
            alter_options(reader)
            return DropTables(tuple(names), temporary, exists)
        if reader.accept("DATABASE") or reader.accept("SCHEMA"):
            reader.accept("IF", "EXISTS")
            return DropDatabase(reader.name())
        if self._is_no_table():
            return NoTable()
        reader.accept("ONLINE") or reader.accept("OFFLINE")
        reader.expect("INDEX")
        reader.accept("IF", "EXISTS")
        name = reader.name()
        reader.expect("ON")
        table = reader.table_name()
        alter_options(reader)
        return AlterTable(table, clauses=[DropKey("PRIMARY" if name.upper() == "PRIMARY" else name)])

    def _rename(self) -> Statement:
        reader = self._reader
        if reader.word() == "USER":
            return NoTable()
        reader.accept("TABLE") or reader.accept("TABLES")
        exists = reader.accept("IF", "EXISTS")
        pairs: list[tuple[TableName, TableName]] = []
        while True:
            old = reader.table_name()
            alter_options(reader)
            reader.expect("TO")
            pairs.append((old, reader.table_name()))
            if not reader.accept(","):
                return RenameTables(tuple(pairs), exists)


def _take(made: CreateTable, defined: Defined) -> None:
    if isinstance(defined, ColumnDefinition):
        made.columns.append(defined)
    else:
        made.keys.append(defined.definition)
