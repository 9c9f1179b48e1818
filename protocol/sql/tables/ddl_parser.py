"""What a statement that defines tables says: all of it, or nothing.

The statements are those that a server has executed, so none is wrong; but servers understand more than is known here, and
what is passed over might be a column. So whatever is not known makes the whole statement NotSure.
"""

import functools
from dataclasses import replace
from typing import Final

from protocol.binlog.schema.collation_names import plain_collation
from protocol.sql.lexer import NotSure, TokenKind, sql_tokens
from protocol.sql.sql_mode import ORACLE, OTHER_GRAMMARS
from protocol.sql.tables.column_types import column_definition
from protocol.sql.tables.ddl_reader import DdlReader
from protocol.sql.tables.ddl_statement import (
    AddColumn,
    AddForeignKey,
    AddKey,
    AlterDatabase,
    AlterTable,
    ChangeColumn,
    CharsetOption,
    Clause,
    ColumnDefinition,
    CreateDatabase,
    CreateTable,
    DropColumn,
    DropDatabase,
    DropForeignKey,
    DropKey,
    DropTables,
    ForeignKeyDefinition,
    KeyDefinition,
    NoTable,
    RenameColumn,
    RenameKey,
    RenameTables,
    SetCharset,
    SetDefault,
    SetEngine,
    Statement,
)
from protocol.sql.tables.server_dialect import UNKNOWN_RULE, DefaultCollations, ServerDialect
from protocol.sql.tables.source_table import ForeignKey, Key, TableName

# A statement is replayed each time that an archive has grown.
_KEPT: Final = 8192
_NO_TABLES: Final = frozenset(
    ("USER", "ROLE", "TRIGGER", "PROCEDURE", "FUNCTION", "EVENT", "VIEW", "SERVER", "TABLESPACE", "LOGFILE", "UNDO",
     "RESOURCE", "SPATIAL", "INSTANCE", "LIBRARY")
)  # fmt: skip
_KEY_WORDS: Final = frozenset(("INDEX", "KEY"))
# Table options with a value of one token.
_OPTIONS: Final = frozenset(
    ("AUTO_INCREMENT", "AUTOEXTEND_SIZE", "AVG_ROW_LENGTH", "CHECKSUM", "TABLE_CHECKSUM", "COMMENT", "COMPRESSION", "CONNECTION",
     "DELAY_KEY_WRITE", "ENCRYPTION", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE", "SECONDARY_ENGINE", "INSERT_METHOD",
     "KEY_BLOCK_SIZE", "MAX_ROWS", "MIN_ROWS", "PACK_KEYS", "PASSWORD", "ROW_FORMAT", "STATS_AUTO_RECALC", "STATS_PERSISTENT",
     "STATS_SAMPLE_PAGES", "TABLESPACE", "PAGE_CHECKSUM", "TRANSACTIONAL", "PAGE_COMPRESSED", "PAGE_COMPRESSION_LEVEL", "ENCRYPTED",
     "ENCRYPTION_KEY_ID", "IETF_QUOTES")
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
    """What a CREATE, ALTER, DROP or RENAME says. `schema`: the default database; `collations`, `explicit_timestamps`: what the
    statement's event tells.

    Raises: NotSure.
    """
    dialect = ServerDialect(server_version, collations, explicit_timestamps)
    mariadb = dialect.mariadb
    if sql_mode & (ORACLE if mariadb else OTHER_GRAMMARS):
        raise NotSure("a sql_mode with another grammar")
    if mariadb and sql_mode & OTHER_GRAMMARS & ~ORACLE:
        raise NotSure("a sql_mode with another grammar")
    reader = DdlReader(sql_tokens(text, sql_mode, server_version), text, schema, sql_mode, dialect)
    return _Parser(reader).statement()


class _Parser:
    def __init__(self, reader: DdlReader) -> None:
        self._reader = reader

    def statement(self) -> Statement:
        reader = self._reader
        verb = reader.take().upper
        if verb == "CREATE":
            made = self._create()
        elif verb == "ALTER":
            made = self._alter()
        elif verb == "DROP":
            made = self._drop()
        elif verb == "RENAME":
            made = self._rename()
        else:
            raise NotSure(verb)
        if not isinstance(made, NoTable):
            reader.end()
        return made

    # ---- CREATE ----

    def _create(self) -> Statement:
        reader = self._reader
        or_replace = reader.accept("OR", "REPLACE")
        temporary = reader.accept("TEMPORARY")
        if reader.accept("TABLE"):
            return self._create_table(or_replace, temporary)
        if reader.accept("DATABASE") or reader.accept("SCHEMA"):
            exists = reader.accept("IF", "NOT", "EXISTS")
            return CreateDatabase(reader.name(), self._database_options(), or_replace, exists)
        if self._is_no_table():
            return NoTable()
        reader.accept("ONLINE") or reader.accept("OFFLINE")
        unique = reader.accept("UNIQUE")
        of_parts = unique or not (reader.accept("FULLTEXT") or reader.accept("SPATIAL"))
        reader.expect("INDEX")
        exists = reader.accept("IF", "NOT", "EXISTS")
        name = reader.name()
        self._index_type()
        reader.expect("ON")
        table = reader.table_name()
        key = AddKey(KeyDefinition(name, self._key(unique, of_parts)), exists)
        self._key_options()
        self._alter_options()
        return AlterTable(table, clauses=[key])

    def _key(self, unique: bool, of_parts: bool = True) -> Key:
        """A key's columns, in brackets. `of_parts`: whether prefixes mean anything in it."""
        parts = self._reader.key_parts()
        prefixes = tuple(prefix for _name, prefix in parts) if of_parts else None
        return Key(tuple(name for name, _prefix in parts), unique, prefixes, False)

    def _is_no_table(self) -> bool:
        """Whether it is about something that has no columns. DEFINER and its like may come first."""
        reader = self._reader
        if reader.word() in _NO_TABLES and (reader.word() != "SPATIAL" or reader.word(1) == "REFERENCE"):
            return True
        return reader.word() in ("DEFINER", "AGGREGATE", "ALGORITHM", "SQL")

    def _create_table(self, or_replace: bool, temporary: bool) -> CreateTable:
        reader = self._reader
        made = CreateTable(("", ""), temporary, or_replace, reader.accept("IF", "NOT", "EXISTS"))
        made.name = reader.table_name()
        if reader.accept("LIKE"):
            made.like = reader.table_name()
            return made
        if reader.word() == "(" and reader.word(1) == "LIKE":
            reader.take()
            reader.take()
            made.like = reader.table_name()
            reader.expect(")")
            return made
        reader.table_schema = made.name[0]
        reader.expect("(")
        while True:
            self._element(made)
            if reader.accept(")"):
                break
            reader.expect(",")
        while not reader.ended:
            if not self._table_option(made):
                self._behind_options()
                break
            reader.accept(",")
        return made

    def _element(self, made: CreateTable) -> None:
        """A column or a key."""
        key = self._key_element()
        if isinstance(key, AddKey | AddForeignKey):
            made.keys.append(key.definition)
        elif key is None:
            name = self._reader.column_name()
            column = column_definition(self._reader, name, alters=False)
            made.columns.append(column)
            made.keys += [clause.definition for clause in self._foreign_key_of(column)]

    def _key_element(self) -> AddKey | AddForeignKey | bool | None:
        """A key; True: something else that is no column; None: a column comes."""
        reader = self._reader
        word = reader.word()
        name = ""
        if word == "CONSTRAINT":
            reader.take()
            if reader.word() not in ("PRIMARY", "UNIQUE", "FOREIGN", "CHECK"):
                name = reader.name()
            word = reader.word()
        if word == "CHECK":
            reader.take()
            reader.skip_brackets()
            reader.accept("NOT")
            reader.accept("ENFORCED")
            return True
        if word == "PRIMARY":
            reader.take()
            reader.expect("KEY")
            self._index_type()
            if reader.word() != "(":
                reader.name()  # servers take a name and forget it
                self._index_type()
            key = self._key(True)
            self._key_options()
            return AddKey(KeyDefinition("PRIMARY", key))
        if word == "FOREIGN":
            reader.take()
            reader.expect("KEY")
            exists = reader.accept("IF", "NOT", "EXISTS")
            if exists:
                raise NotSure("a foreign key that may be there")
            index = reader.name() if reader.word() != "(" else ""
            columns = reader.key_columns()
            target = reader.references()
            called = name or (index if reader.dialect.foreign_keys_are_called_as_their_indexes else "")
            return self._add_foreign_key(called, name or index, replace(target, columns=columns))
        if word in ("UNIQUE", "FULLTEXT", "SPATIAL") or word in _KEY_WORDS:
            unique = word == "UNIQUE"
            reader.take()
            if word not in _KEY_WORDS:
                reader.accept("KEY") or reader.accept("INDEX")
            exists = reader.accept("IF", "NOT", "EXISTS")
            self._index_type()
            if reader.word() != "(":
                name = reader.name()
                self._index_type()
            key = self._key(unique, word not in ("FULLTEXT", "SPATIAL"))
            self._key_options()
            return AddKey(KeyDefinition(name, key), exists)
        if word == "PERIOD" and reader.word(1) == "FOR":
            raise NotSure("a period")
        if (name or word == "") and name:
            raise NotSure("a constraint of another kind")
        return None

    def _foreign_key_of(self, column: ColumnDefinition) -> list[AddForeignKey]:
        """The foreign key that a column's own definition makes, if its server takes it for one."""
        counts = self._reader.dialect.has_foreign_keys_of_columns
        if column.references is None or counts is False:
            return []
        key = replace(column.references, columns=(column.column.name,))
        return [self._add_foreign_key("", "", key, counts is True)]

    def _add_foreign_key(self, name: str, index: str, key: ForeignKey, certain: bool = True) -> AddForeignKey:
        certain = certain and UNKNOWN_RULE not in (key.on_delete, key.on_update)
        return AddForeignKey(ForeignKeyDefinition(name, index, key, certain))

    def _index_type(self) -> None:
        if self._reader.accept("USING") or self._reader.accept("TYPE"):
            self._reader.take()

    def _key_options(self) -> None:
        reader = self._reader
        while True:
            if reader.accept("USING") or reader.accept("TYPE"):
                reader.take()
            elif reader.accept("KEY_BLOCK_SIZE"):
                reader.accept("=")
                reader.number()
            elif reader.accept("COMMENT"):
                reader.string()
            elif reader.accept("WITH", "PARSER"):
                reader.take()
            elif not (
                reader.accept("VISIBLE")
                or reader.accept("INVISIBLE")
                or reader.accept("IGNORED")
                or reader.accept("NOT", "IGNORED")
            ):
                return

    # ---- options ----

    def _database_options(self) -> CharsetOption:
        reader = self._reader
        option = CharsetOption()
        while not reader.ended:
            if self._charset_option(option):
                continue
            if reader.accept("COMMENT") or reader.accept("ENCRYPTION") or reader.accept("DEFAULT", "ENCRYPTION"):
                reader.accept("=")
                reader.string()
            elif reader.accept("READ", "ONLY"):
                reader.accept("=")
                reader.take()
            else:
                raise NotSure(f"{reader.text()} of a database")
        return option

    def _charset_option(self, option: CharsetOption) -> bool:
        """[DEFAULT] CHARACTER SET or COLLATE; False: it is something else."""
        reader = self._reader
        ahead = 1 if reader.word() == "DEFAULT" else 0
        word = reader.word(ahead)
        if word not in ("CHARACTER", "CHARSET", "COLLATE") and not (word == "CHAR" and reader.word(ahead + 1) == "SET"):
            return False
        for _ in range(ahead + 1):
            reader.take()
        if word in ("CHARACTER", "CHAR"):
            reader.expect("SET")
        reader.accept("=")
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
            self._charset_of_option(option, reader.charset())
        return True

    def _charset_of_option(self, option: CharsetOption, charset: str) -> None:
        outlasts = self._reader.dialect.collation_outlasts_charset
        option.default = False
        if option.collated and outlasts is not False:
            option.collation = option.collation if outlasts and option.charset == charset else ""
        else:
            option.collation, option.collated = self._reader.dialect.default_collation(charset), False
        option.charset = charset

    def _table_option(self, made: CreateTable) -> bool:
        """One option of a table; False: none comes."""
        reader = self._reader
        if self._charset_option(made.charset):
            return True
        word = reader.word()
        if word in ("ENGINE", "TYPE"):
            reader.take()
            reader.accept("=")
            made.engine = reader.name_or_string()
            return True
        return self._plain_option()

    def _plain_option(self) -> bool:
        reader = self._reader
        word = reader.word()
        if word in _OPTIONS:
            reader.take()
            reader.accept("=")
            if reader.kind is TokenKind.STRING:
                reader.string()
            else:
                reader.take()
            return True
        if word in ("DATA", "INDEX") and reader.word(1) == "DIRECTORY":
            reader.take()
            reader.take()
            reader.accept("=")
            reader.string()
            return True
        if word == "UNION" and (reader.word(1) == "(" or reader.word(1) == "="):
            reader.take()
            reader.accept("=")
            reader.skip_brackets()
            return True
        if word == "STORAGE" and reader.word(1) in ("DISK", "MEMORY"):
            reader.take()
            reader.take()
            return True
        return word == "START" and reader.accept("START", "TRANSACTION")

    def _behind_options(self) -> None:
        """PARTITION BY, which is the rest. Raises: NotSure for anything else: SELECT gives columns that nobody names."""
        reader = self._reader
        reader.expect("PARTITION", "BY")
        while not reader.ended:
            word = reader.word()
            within = reader.word(1) if word == "(" else word
            if within in ("SELECT", "WITH", "VALUES", "TABLE") or (word == "(" and within == "("):
                raise NotSure("SELECT behind partitions")
            if word == "(":
                reader.skip_brackets()
            else:
                reader.take()

    # ---- ALTER ----

    def _alter(self) -> Statement:
        reader = self._reader
        reader.accept("ONLINE") or reader.accept("OFFLINE")
        reader.accept("IGNORE")
        if reader.accept("DATABASE") or reader.accept("SCHEMA"):
            option = CharsetOption()
            if reader.word() in ("CHARACTER", "CHARSET", "COLLATE", "DEFAULT"):
                name = reader.schema
            else:
                name = reader.name()
            if reader.word() == "UPGRADE":
                raise NotSure("a database that is renamed")
            option = self._database_options()
            if not name:
                raise NotSure("a database without a name")
            return AlterDatabase(name, option)
        if not reader.accept("TABLE"):
            if self._is_no_table():
                return NoTable()
            raise NotSure(reader.text())
        exists = reader.accept("IF", "EXISTS")
        made = AlterTable(reader.table_name(), exists)
        reader.table_schema, reader.alters = made.name[0], True
        self._alter_options()
        while not reader.ended:
            self._clause(made)
            if not reader.accept(","):
                if reader.word() == "PARTITION" and reader.word(1) == "BY":
                    self._behind_options()
                elif reader.accept("REMOVE", "PARTITIONING"):
                    pass
                elif not self._next_option():
                    break
        return made

    def _next_option(self) -> bool:
        """Whether another table option follows: these may stand side by side without a comma."""
        word = self._reader.word()
        return (
            word in _OPTIONS
            or word in ("ENGINE", "TYPE", "CHARACTER", "CHARSET", "COLLATE", "DEFAULT", "DATA", "INDEX", "UNION")
        ) and not self._reader.ended

    def _alter_options(self) -> None:
        """ALGORITHM, LOCK, WAIT and their like, where they may stand alone."""
        reader = self._reader
        while True:
            if reader.word() in ("ALGORITHM", "LOCK"):
                reader.take()
                reader.accept("=")
                reader.take()
                reader.accept(",")
            elif reader.accept("WAIT"):
                reader.number()
            elif not reader.accept("NOWAIT"):
                return

    def _clause(self, made: AlterTable) -> None:
        reader = self._reader
        word = reader.word()
        if word == "ADD":
            reader.take()
            self._add(made.clauses)
        elif word in ("CHANGE", "MODIFY"):
            reader.take()
            reader.accept("COLUMN")
            exists = reader.accept("IF", "EXISTS")
            old = reader.column_name()
            new = reader.column_name() if word == "CHANGE" else old
            column = column_definition(reader, new, alters=True)
            made.clauses += [ChangeColumn(old, column, exists), *self._foreign_key_of(column)]
        elif word == "DROP":
            reader.take()
            self._drop_clause(made.clauses)
        elif word == "RENAME":
            reader.take()
            self._rename_clause(made)
        elif word == "ALTER":
            reader.take()
            self._alter_clause(made.clauses)
        elif word == "CONVERT":
            reader.take()
            reader.expect("TO")
            option = CharsetOption()
            if not self._charset_option(option):
                raise NotSure("what is converted to")
            self._charset_option(option)
            made.clauses.append(SetCharset(option, converts=True))
        elif word == "ORDER":
            reader.take()
            reader.expect("BY")
            while not reader.ended:  # it may be followed by more columns, and by nothing else that is known
                reader.column_name()
                reader.accept("ASC") or reader.accept("DESC")
                if not reader.ended:
                    reader.expect(",")
        else:
            self._option_clause(made.clauses)

    def _option_clause(self, clauses: list[Clause]) -> None:
        reader = self._reader
        word = reader.word()
        option = CharsetOption()
        if self._charset_option(option):
            while self._charset_option(option):
                pass
            clauses.append(SetCharset(option))
        elif word in ("ENGINE", "TYPE"):
            reader.take()
            reader.accept("=")
            clauses.append(SetEngine(reader.name_or_string()))
        elif word in ("ENABLE", "DISABLE"):
            reader.take()
            reader.expect("KEYS")
        elif (word in ("DISCARD", "IMPORT") and reader.word(1) == "TABLESPACE") or (
            word in ("WITH", "WITHOUT") and reader.word(1) == "VALIDATION"
        ):
            reader.take()
            reader.take()
        elif word in ("ALGORITHM", "LOCK"):
            reader.take()
            reader.accept("=")
            reader.take()
        elif word == "PARTITION" and reader.word(1) == "BY":
            self._behind_options()
        elif word in (
            "TRUNCATE",
            "EXCHANGE",
            "COALESCE",
            "REORGANIZE",
            "ANALYZE",
            "CHECK",
            "OPTIMIZE",
            "REBUILD",
            "REPAIR",
        ) and (reader.word(1) == "PARTITION"):
            self._rest_of_partitions()
        elif word == "REMOVE":
            reader.take()
            reader.expect("PARTITIONING")
        elif not self._plain_option() and not reader.accept("FORCE"):
            raise NotSure(f"{word or reader.text()} in ALTER TABLE")

    def _rest_of_partitions(self) -> None:
        """What is done with partitions changes no column, and stands alone."""
        while not self._reader.ended:
            self._reader.take()

    def _add(self, clauses: list[Clause]) -> None:
        reader = self._reader
        if reader.word() == "PARTITION":
            self._rest_of_partitions()
            return
        if reader.word() == "SYSTEM":
            raise NotSure("system versioning")
        column = reader.accept("COLUMN")
        exists = reader.accept("IF", "NOT", "EXISTS")
        if reader.word() == "(":
            reader.take()
            while True:
                self._added(clauses, False, exists)
                if reader.accept(")"):
                    return
                reader.expect(",")
        self._added(clauses, column, exists)

    def _added(self, clauses: list[Clause], column: bool, exists: bool) -> None:
        reader = self._reader
        key = None if column else self._key_element()
        if isinstance(key, AddKey | AddForeignKey):
            clauses.append(key)
        elif key is None:
            name = reader.column_name()
            definition = column_definition(reader, name, alters=True)
            clauses += [AddColumn(definition, exists), *self._foreign_key_of(definition)]

    def _drop_clause(self, clauses: list[Clause]) -> None:
        reader = self._reader
        word = reader.word()
        if word == "PARTITION":
            self._rest_of_partitions()
        elif word == "SYSTEM" or (word == "PERIOD" and reader.word(1) == "FOR"):
            raise NotSure("system versioning")
        elif word == "PRIMARY":
            reader.take()
            reader.expect("KEY")
            clauses.append(DropKey("PRIMARY"))
        elif word in _KEY_WORDS:
            reader.take()
            reader.accept("IF", "EXISTS")
            clauses.append(DropKey(reader.name()))
        elif word == "FOREIGN":
            reader.take()
            reader.expect("KEY")
            reader.accept("IF", "EXISTS")
            clauses.append(DropForeignKey(reader.name()))
        elif word in ("CONSTRAINT", "CHECK"):
            reader.take()
            reader.accept("IF", "EXISTS")
            clauses.append(DropKey(reader.name(), or_constraint=True))
        else:
            reader.accept("COLUMN")
            exists = reader.accept("IF", "EXISTS")
            clauses.append(DropColumn(reader.column_name(), exists))
            reader.accept("RESTRICT") or reader.accept("CASCADE")

    def _rename_clause(self, made: AlterTable) -> None:
        reader = self._reader
        if reader.word() == "COLUMN":
            reader.take()
            exists = reader.accept("IF", "EXISTS")
            old = reader.column_name()
            reader.expect("TO")
            made.clauses.append(RenameColumn(old, reader.column_name(), exists))
        elif reader.word() in _KEY_WORDS:
            reader.take()
            reader.accept("IF", "EXISTS")
            old = reader.name()
            reader.expect("TO")
            made.clauses.append(RenameKey(old, reader.name()))
        else:
            reader.accept("TO") or reader.accept("AS") or reader.accept("=")
            made.rename = reader.table_name()

    def _alter_clause(self, clauses: list[Clause]) -> None:
        reader = self._reader
        if reader.word() in ("INDEX", "KEY", "CHECK", "CONSTRAINT"):
            reader.take()
            reader.accept("IF", "EXISTS")
            reader.name()
            reader.accept("NOT")
            if reader.take().upper not in ("VISIBLE", "INVISIBLE", "IGNORED", "ENFORCED"):
                raise NotSure("what becomes of an index")
            return
        reader.accept("COLUMN")
        exists = reader.accept("IF", "EXISTS")
        name = reader.column_name()
        if reader.accept("DROP"):
            reader.expect("DEFAULT")
            clauses.append(SetDefault(name, None, exists))
        else:
            reader.expect("SET")
            if reader.accept("DEFAULT"):
                clauses.append(SetDefault(name, reader.value(), exists))
            elif not (reader.accept("VISIBLE") or reader.accept("INVISIBLE")):
                raise NotSure(f"SET {reader.text()}")

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
            self._alter_options()
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
        self._alter_options()
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
            self._alter_options()
            reader.expect("TO")
            pairs.append((old, reader.table_name()))
            if not reader.accept(","):
                return RenameTables(tuple(pairs), exists)
