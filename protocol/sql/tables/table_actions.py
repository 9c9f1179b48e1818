"""Actions of ALTER TABLE."""

from typing import Final

from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.tables.altered_parts import AlteredPart, read_altered_key, read_dropped, read_renamed
from protocol.sql.tables.ddl_reader import DdlReader
from protocol.sql.tables.ddl_statement import (
    Action,
    AddColumn,
    AlterTable,
    ChangeColumn,
    CharsetOption,
    Clause,
    ColumnDefinition,
    DropCheck,
    DropColumn,
    DropForeignKey,
    DropKey,
    Element,
    ElementList,
    RenameColumn,
    RenameKey,
    RowAction,
    SetCharset,
    SetDefault,
    SetEngine,
)
from protocol.sql.tables.table_elements import Defined, read_column, read_element, read_list
from protocol.sql.tables.table_options import charset_option, engine_option, option_follows, partitions, plain_option

PARTITION_VERBS: Final = frozenset(
    ("TRUNCATE", "EXCHANGE", "COALESCE", "REORGANIZE", "ANALYZE", "CHECK", "OPTIMIZE", "REBUILD", "REPAIR")
)
"""Actions of ALTER TABLE on existing partitions, besides ADD and DROP, by the word before PARTITION."""

_OF_ALL_ROWS: Final = frozenset(("DROP", "TRUNCATE", "EXCHANGE", "DISCARD", "IMPORT"))


def read_actions(reader: DdlReader, made: AlterTable) -> None:
    """Read all that follows the table's name. Raises: UnsupportedSyntax for a bracket without an end."""
    reader.attempt(lambda: _wait(reader))
    actions = _Actions(reader, made)
    while not reader.ended:
        actions.read()


def alter_options(reader: DdlReader) -> None:
    """Read ALGORITHM, LOCK, WAIT and their like, where they may be alone. Raises: UnsupportedSyntax."""
    while reader.word() in ("ALGORITHM", "LOCK", "WAIT", "NOWAIT"):
        if reader.word() in ("WAIT", "NOWAIT"):
            _wait(reader)
        else:
            _with_value(reader)
            reader.accept(",")


def _wait(reader: DdlReader) -> None:
    """Read WAIT n and NOWAIT of MariaDB."""
    while reader.word() in ("WAIT", "NOWAIT"):
        if reader.take().upper == "WAIT":
            reader.number()


def _with_value(reader: DdlReader) -> None:
    reader.take()
    reader.accept("=")
    reader.take()


class _Actions:
    def __init__(self, reader: DdlReader, made: AlterTable) -> None:
        self._reader = reader
        self._made = made
        self._listed: ElementList | None = None

    def read(self) -> None:
        """Read an action, with the comma after it."""
        reader, start = self._reader, self._reader.start_of_next()
        self._listed = None
        known = is_read = self._attempt()
        while not reader.ended and reader.word() != ",":
            if reader.word() == "PARTITION" and reader.word(1) == "BY":
                self._partition_by()
            elif not reader.accept("REMOVE", "PARTITIONING") and not (
                option_follows(reader) and (known or reader.word(1) == "=") and self._attempt()
            ):
                known = False
                reader.pass_over(f"{reader.text()} after the end of what is known")
        if not is_read:
            reader.written.elements.append(Element(start, reader.stop_of_last()))
        reader.written.actions.append(Action(start, reader.stop_of_last(), self._listed))
        reader.accept(",")

    def _attempt(self) -> bool:
        clauses = self._made.clauses
        count = len(clauses)
        known = self._reader.attempt(self._clause)
        if not known:
            del clauses[count:]
        return known

    def _partitions(self, verb: str) -> None:
        """Read from PARTITION on, to the end of the statement."""
        reader, other = self._reader, None
        if verb == "EXCHANGE":
            reader.expect("PARTITION")
            reader.name()
            reader.expect("WITH", "TABLE")
            other = reader.table_name()
        if verb in _OF_ALL_ROWS:
            reader.written.row_actions.append(RowAction(verb, other))
        partitions(reader, before_query=False)

    def _partition_by(self) -> None:
        self._reader.written.partitioned = True
        partitions(self._reader, before_query=False)

    def _clause(self) -> None:
        reader = self._reader
        clauses, word = self._made.clauses, reader.word()
        if reader.accept("ADD"):
            self._add(clauses)
        elif word in ("CHANGE", "MODIFY"):
            reader.take()
            reader.accept("COLUMN")
            exists = reader.accept("IF", "EXISTS")
            old = reader.column_name()
            new = reader.column_name() if word == "CHANGE" else old

            def take(defined: Defined) -> None:
                clauses.append(ChangeColumn(old, defined, exists) if isinstance(defined, ColumnDefinition) else defined)

            read_column(reader, new, take)
        elif reader.accept("DROP"):
            self._drop_clause(clauses)
        elif reader.accept("RENAME"):
            self._rename_clause()
        elif reader.accept("ALTER"):
            self._alter_clause(clauses)
        elif reader.accept("CONVERT", "TO"):
            option = CharsetOption()
            if not charset_option(reader, option):
                raise UnsupportedSyntax("what is converted to")
            charset_option(reader, option)
            clauses.append(SetCharset(option, converts=True))
        elif reader.accept("ORDER", "BY"):
            while not reader.ended:  # more columns may follow it, but nothing else that is known
                reader.column_name()
                reader.accept("ASC") or reader.accept("DESC")
                if not reader.ended:
                    reader.expect(",")
        else:
            self._option_clause(clauses)

    def _option_clause(self, clauses: list[Clause]) -> None:
        reader = self._reader
        word = reader.word()
        option = CharsetOption()
        if charset_option(reader, option):
            while charset_option(reader, option):
                pass
            clauses.append(SetCharset(option))
        elif reader.accept("ENABLE", "KEYS") or reader.accept("DISABLE", "KEYS"):
            return
        elif (word in ("DISCARD", "IMPORT") and reader.word(1) == "TABLESPACE") or (
            word in ("WITH", "WITHOUT") and reader.word(1) == "VALIDATION"
        ):
            reader.take()
            reader.take()
            if word in _OF_ALL_ROWS:
                reader.written.row_actions.append(RowAction(word))
        elif word in ("ALGORITHM", "LOCK"):
            _with_value(reader)
        elif word == "PARTITION" and reader.word(1) == "BY":
            self._partition_by()
        elif word in PARTITION_VERBS and reader.word(1) == "PARTITION":
            reader.take()
            self._partitions(word)
        elif (engine := engine_option(reader)) is not None:
            clauses.append(SetEngine(engine))
        elif not plain_option(reader) and not reader.accept("FORCE") and not reader.accept("REMOVE", "PARTITIONING"):
            raise UnsupportedSyntax(f"{word or reader.text()} in ALTER TABLE")

    def _add(self, clauses: list[Clause]) -> None:
        reader = self._reader
        if reader.word() == "PARTITION":
            self._partitions("ADD")
            return
        if reader.word() == "SYSTEM":
            raise UnsupportedSyntax("system versioning")
        is_column = reader.accept("COLUMN")
        exists = reader.accept("IF", "NOT", "EXISTS")

        def take(defined: Defined) -> None:
            clauses.append(AddColumn(defined, exists) if isinstance(defined, ColumnDefinition) else defined)

        if reader.word() == "(":
            self._listed = read_list(reader, take)
        else:
            read_element(reader, take, is_column=is_column)

    def _drop_clause(self, clauses: list[Clause]) -> None:
        reader = self._reader
        word = reader.word()
        if word == "PARTITION":
            self._partitions("DROP")
        elif word == "SYSTEM" or (word == "PERIOD" and reader.word(1) == "FOR"):
            raise UnsupportedSyntax("system versioning")
        else:
            clauses.append(_drop_of(read_dropped(reader)))

    def _rename_clause(self) -> None:
        reader, made = self._reader, self._made
        if reader.word() in ("COLUMN", "INDEX", "KEY"):
            part = read_renamed(reader)
            exists = part.exists is not None
            made.clauses.append(
                RenameKey(part.name, part.new) if part.is_key else RenameColumn(part.name, part.new, exists)
            )
        else:
            reader.accept("TO") or reader.accept("AS") or reader.accept("=")
            made.rename = reader.table_name()

    def _alter_clause(self, clauses: list[Clause]) -> None:
        reader = self._reader
        if reader.word() in ("INDEX", "KEY", "CHECK", "CONSTRAINT"):
            read_altered_key(reader)
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
                raise UnsupportedSyntax(f"SET {reader.text()}")


def _drop_of(part: AlteredPart) -> Clause:
    if part.kind == "COLUMN":
        return DropColumn(part.name, part.exists is not None)
    if part.kind == "FOREIGN":
        return DropForeignKey(part.name)
    if part.kind == "CHECK":
        return DropCheck(part.name)
    return DropKey(part.name or "PRIMARY", or_constraint=part.kind == "CONSTRAINT")
