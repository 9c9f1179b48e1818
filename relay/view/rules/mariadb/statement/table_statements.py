"""CREATE TABLE and ALTER TABLE are rewritten for MySQL."""

from collections.abc import Callable
from typing import Final

from protocol.errors import ErrorCode
from protocol.sql.engines import becomes_innodb, engine_of
from protocol.sql.lexer import TokenKind, UnsupportedSyntax
from protocol.sql.tables.ddl_statement import KeyPart, WrittenKey
from protocol.sql.tables.source_table import Column, Table, TableName
from protocol.sql.tables.table_actions import PARTITION_VERBS
from protocol.sql.tables.table_options import QUERIES
from relay.schema_history.table_agreement import type_parts
from relay.view.rules.mariadb.differences.conversions import conversion_differs
from relay.view.rules.mariadb.differences.differing_functions import differing_function, unsafe_function
from relay.view.rules.mariadb.differences.fractions_of_seconds import ColumnDigits, loses_fractions
from relay.view.rules.mariadb.differences.stored_order import IsSame, order_differs, partitions_differ
from relay.view.rules.mariadb.statement.collate_clauses import CharsetClauses
from relay.view.rules.mariadb.statement.column_rewriting import GEOMETRIES, ColumnRewriting, DefinedColumn
from relay.view.rules.mariadb.statement.editable_statement import EditableStatement
from relay.view.rules.mariadb.statement.expression_words import read_expressions
from relay.view.rules.mariadb.statement.key_rewriting import (
    MOST_KEY_BYTES,
    accept_if,
    add_prefixes,
    is_left_out,
    name_in_schema,
    read_key,
)
from relay.view.rules.mariadb.statement.known_tables import TablesAtSource
from relay.view.rules.mariadb.statement.option_rewriting import OptionRewriting
from relay.view.stops import definition_stops

_BYTES_BECOME: Final = frozenset(("UUID", "INET4", "INET6"))
_ROWS_OF_PARTITIONS: Final = frozenset(("DROP", "TRUNCATE", "EXCHANGE"))
"""The operations on all rows of a partition."""
_BYTES_OF: Final = {"utf8mb4": 4, "utf32": 4, "utf16": 4, "utf16le": 4, "utf8mb3": 3, "ucs2": 2}
"""The bytes of a character; at most 2 in other sets, and 1 in those that occur in long keys."""
ROW_START: Final = "row_start"
ROW_END: Final = "row_end"


class TableElements:
    """Columns and keys that a statement defines, each with its words, and the edits that are possible when all of it is read."""

    def __init__(self, words: EditableStatement, name: TableName, known: TablesAtSource) -> None:
        self.words = words
        self.name = name
        words.table_schema = name[0]
        self.known = known
        self.columns: dict[str, DefinedColumn] = {}
        self.keys: list[tuple[WrittenKey, int, int]] = []
        self._rewritings: list[ColumnRewriting] = []
        self.left_out: set[int] = set()
        """The first words of elements that are removed."""

    def read(self) -> WrittenKey | DefinedColumn:
        """Read a column or a key."""
        words, first = self.words, self.words.at
        key = read_key(words, self.name)
        if key is not None:
            self.keys.append((key, first, words.at))
            return key
        return self.read_column(words.name())

    def read_column(self, name: str) -> DefinedColumn:
        """Read a column after its name."""
        rewriting = ColumnRewriting(self.words, name)
        column = rewriting.read()
        self._rewritings.append(rewriting)
        self.columns[name.lower()] = column
        return column

    def finish(self, table_charset: str, table: Table | None, *, engine: str) -> None:
        """Finish when the table's options are known. `table` is the altered one. `engine` is in upper case, "": not known."""
        self.words.expect_known()
        forgets_references = becomes_innodb(engine)
        self._check_vectors(engine)
        for rewriting in self._rewritings:
            rewriting.finish(table_charset)
        for key, first, _stop in self.keys:
            if key.kind == "UNIQUE" and self._is_too_long(key, table_charset, table):
                self._leave_out(first, f"the UNIQUE key {key.name or key.parts[0].name}, over texts of any length")
            elif key.kind == "":
                add_prefixes(self.words, key.parts, self._long_columns(key, table_charset, table))
            elif key.kind == "VECTOR":
                self._leave_out(first, f"the VECTOR key {key.name or key.parts[0].name}")
            elif key.kind == "PERIOD":
                self.left_out.add(first)
            elif key.kind == "FOREIGN":
                self._check_parent(key, forgets_references)
        for column in self.columns.values():
            if "UNIQUE" in column.attributes and column.is_blob:
                self.words.cut_part(column.attributes["UNIQUE"])
                self.words.reports.append(f"the UNIQUE key {column.name}, over texts of any length")
            if "REFERENCES" in column.attributes and forgets_references:
                raise UnsupportedSyntax("a foreign key that the source forgets, because of its table's engine")
        self._check_expressions()
        self._check_fractions(table)

    def _check_fractions(self, table: Table | None) -> None:
        """Check for generated columns that cut fractions of seconds."""
        for column in self.columns.values():
            if column.generated is None:
                continue
            made = ColumnDigits(column.type, column.digits)
            lost = loses_fractions(self.words, *column.generated, made, lambda name: self._digits_of(name, table))
            if lost:
                what = f"fractions of seconds of {lost} (it rounds, the source cuts)"
                raise definition_stops.generated_column_differs(
                    self.words.context.target_title, self.words.query, what, column.name
                )

    def _digits_of(self, name: str, table: Table | None) -> ColumnDigits | None:
        column = self.columns.get(name.lower())
        if column is not None:
            return ColumnDigits(column.type, column.digits)
        old = next(
            (one for one in (table.columns if table is not None else ()) if one.name.lower() == name.lower()), None
        )
        if old is None:
            return None
        kind, argument, _ = type_parts(old.type)
        return ColumnDigits(kind.upper(), int(argument) if argument.isdecimal() else 0)

    def _check_vectors(self, engine: str) -> None:
        """Check columns that are BLOBs to MySQL."""
        vectors = [column.name for column in self.columns.values() if column.type == "VECTOR"]
        if vectors and _is(engine, "memory") and self.words.context.target >= (9, 0):
            what = f"the VECTOR column {vectors[0]} in a table of the engine MEMORY"
            raise definition_stops.clause_unknown(
                self.words.context.target_title, self.words.query, what, ErrorCode.ER_TABLE_CANT_HANDLE_BLOB
            )

    def _long_columns(self, key: WrittenKey, table_charset: str, table: Table | None) -> set[str]:
        """Return the columns of a key that are longer than a key may be."""
        old = old_blobs(table)
        long = {
            name.lower()
            for name, _prefix, _stop in key.parts
            if name.lower() in old and name.lower() not in self.columns
        }
        for name, _prefix, stop in key.parts:
            column = self.columns.get(name.lower())
            if column is None or column.type in GEOMETRIES:
                continue
            if column.is_blob or self._bytes((KeyPart(name, None, stop),), table_charset) > MOST_KEY_BYTES:
                long.add(name.lower())
        return long

    def _leave_out(self, first: int, what: str) -> None:
        self.left_out.add(first)
        self.words.reports.append(what)

    def _is_too_long(self, key: WrittenKey, table_charset: str, table: Table | None) -> bool:
        """Return whether MariaDB stores a UNIQUE key as a hash, which MySQL cannot."""
        old = {column.name.lower(): column for column in table.columns} if table is not None else {}
        for name, prefix, _stop in key.parts:
            column = self.columns.get(name.lower())
            if column is not None:
                if column.is_blob and prefix is None:
                    return True
            elif name.lower() not in old:
                return False  # a replica refuses a text of any length (1170)
            elif old[name.lower()].type.partition("(")[0].endswith(("text", "blob")) and prefix is None:
                return True
        return self._bytes(key.parts, table_charset) > MOST_KEY_BYTES

    def _bytes(self, parts: tuple[KeyPart, ...], table_charset: str) -> int:
        """Return the bytes of a key over columns that the statement defines, as far as they are VARCHAR: others are short."""
        total = 0
        for name, prefix, _stop in parts:
            column = self.columns.get(name.lower())
            if column is not None and column.type.startswith("VARCHAR"):
                total += (prefix or column.length) * _BYTES_OF.get(column.charset or table_charset, 1)
        return total

    def _check_parent(self, key: WrittenKey, forgets: bool) -> None:
        words = self.words
        if forgets:
            raise UnsupportedSyntax("a foreign key that the source forgets, because of its table's engine")
        if key.references is None:
            return
        parent = key.references.parent
        if self.known.is_versioned(parent):
            raise definition_stops.clause_unknown(
                words.context.target_title,
                words.query,
                "a foreign key to a table with system versioning",
                ErrorCode.ER_FK_NO_UNIQUE_INDEX_PARENT,
            )
        table = self.known.table(parent)
        columns = tuple(words.text_of(token).lower() for token in key.references.columns)
        if table is None or not columns or parent == self.name:
            return
        if not any(one.unique and tuple(map(str.lower, one.columns)) == columns for _name, one in table.keys):
            raise definition_stops.clause_unknown(
                words.context.target_title,
                words.query,
                f"a foreign key to columns of {'.'.join(parent)} that are not unique",
                ErrorCode.ER_FK_NO_UNIQUE_INDEX_PARENT,
            )

    def _check_expressions(self) -> None:
        """Check for types that become bytes in a CHECK or a generated column, which must not compute with them."""
        of_bytes = {name for name, column in self.columns.items() if column.type in _BYTES_BECOME}
        if not of_bytes:
            return
        words, passed = self.words, 0
        for index in range(words.end):
            if words.at_word(index) in ("CHECK", "AS") and words.at_word(index + 1) == "(":
                closed = words.brackets.closing(index + 1)
                looked_at, passed = range(max(index + 2, passed), closed), max(passed, closed)
                for at in looked_at:
                    if words.tokens[at].text.lower() in of_bytes:
                        raise definition_stops.definition_differs(
                            words.context.target_title,
                            words.query,
                            f"an expression over the column {words.tokens[at].text} (UUID or INET)",
                        )


def old_blobs(table: Table | None) -> set[str]:
    """Return the names, in lower case, of a table's columns that have no greatest length in keys."""
    return {
        column.name.lower()
        for column in (table.columns if table is not None else ())
        if column.type.partition("(")[0].endswith(("text", "blob"))
    }


class CreateTableRewriting:
    """CREATE TABLE from after its name on. `versioned` and `sequence` are known after `read`."""

    def __init__(self, words: EditableStatement, name: TableName, known: TablesAtSource, *, temporary: bool) -> None:
        self._words = words
        self._name = name
        self._known = known
        self._temporary = temporary
        self.versioned = False
        self.sequence = False

    def read(self) -> None:
        """Rewrite all of it. Raises: UnsupportedSyntax, Untranslatable."""
        words = self._words
        if words.accept("LIKE") or (words.word() == "(" and words.word(1) == "LIKE"):
            bracket = words.accept("(", "LIKE")
            parent = words.table_name()
            if bracket:
                words.expect(")")
            self.versioned = self._known.is_versioned(parent)
            self.sequence = self._known.is_sequence(parent)
            words.expect_end()
            return
        elements = TableElements(words, self._name, self._known)
        ranges: list[tuple[int, int]] = []
        closed = words.at - 1
        if words.word() == "(" and words.word(1) not in QUERIES and words.word(1) != "(":
            words.take()
            while True:
                first = words.at
                elements.read()
                ranges.append((first, words.at))
                if words.accept(")"):
                    break
                words.expect(",")
            closed = words.at - 1
        rewriting = OptionRewriting(words)
        rewriting.options.last = closed
        while rewriting.accept():
            words.accept(",")
        if words.word() == "PARTITION" and words.word(1) == "BY":
            rewriting.partitions(before_query=True)
        options = rewriting.options
        words.expect_known()
        if options.sequence:
            self.sequence = True
            return
        selects = self._query()
        words.expect_end()
        rewriting.finish()
        elements.finish(options.charset, None, engine=options.engine)
        self.versioned = options.versioned
        if any(column.row for column in elements.columns.values()) != any(
            key.kind == "PERIOD" for key, _, _ in elements.keys
        ):
            raise UnsupportedSyntax("a period for the system time without its columns")
        if self.versioned:
            if selects or not ranges:
                raise UnsupportedSyntax("a table with system versioning from a query")
            self._versioning(elements, closed)
        elif any(column.row for column in elements.columns.values()):
            raise UnsupportedSyntax("columns of system versioning without it")
        leave_out(words, ranges, elements.left_out)
        if words.context.rows_follow and not selects and not options.starts_transaction and not self._temporary:
            if options.engine and not becomes_innodb(options.engine) and not _is(options.engine, "innodb"):
                raise definition_stops.clause_unknown(
                    words.context.target_title,
                    words.query,
                    f"CREATE … SELECT of the engine {options.engine} in one transaction",
                    ErrorCode.ER_NOT_ALLOWED_WITH_START_TRANSACTION,
                )
            words.after(options.last, " START TRANSACTION")

    def _query(self) -> bool:
        """Rewrite AS SELECT and what follows."""
        words, first = self._words, self._words.at
        words.accept("IGNORE") or words.accept("REPLACE")
        words.accept("AS")
        if words.word() not in QUERIES and words.word() != "(":
            words.at = first
            return False
        read_expressions(words, words.at, words.end)
        words.at = words.end
        return True

    def _versioning(self, elements: TableElements, closed: int) -> None:
        """Add two columns, and the end of a row's life to each key that is unique: history rows share all other values."""
        words = self._words
        start = next((column for column in elements.columns.values() if column.row == "START"), None)
        end = next((column for column in elements.columns.values() if column.row == "END"), None)
        for column in (start, end):
            if column is not None and not column.type.startswith("TIMESTAMP"):
                raise definition_stops.clause_unknown(
                    words.context.target_title, words.query, "system versioning by transactions"
                )
            if column is not None and "NOT NULL" not in column.attributes:
                words.replace(column.type_stop, column.type_stop, " NOT NULL")
        ending = end.name if end is not None else ROW_END
        made = ""
        if start is None and end is None:
            made = "".join(f", `{name}` timestamp(6) NOT NULL INVISIBLE" for name in (ROW_START, ROW_END))
        for column in elements.columns.values():
            if column.type == "SERIAL":
                raise UnsupportedSyntax("a SERIAL column of a table with system versioning")
            for kind in ("PRIMARY KEY", "UNIQUE"):
                place = column.attributes.get(kind)
                if place is None or column.is_blob:
                    continue
                if kind == "PRIMARY KEY" and "NOT NULL" not in column.attributes:
                    words.replace(place.start, place.stop, "NOT NULL")
                else:
                    words.cut_part(place)
                name = column.name.replace("`", "``")
                own = f" `{name}`" if kind == "UNIQUE" else ""
                made += f", {kind.removesuffix(' KEY')} KEY{own} (`{name}`, `{ending}`)"
        for key, _first, _stop in elements.keys:
            if key.kind in ("PRIMARY", "UNIQUE") and ending.lower() not in [part.name.lower() for part in key.parts]:
                words.replace(key.closed, key.closed, f", `{ending}`")
        if made:
            words.before(closed, made)


def leave_out(words: EditableStatement, ranges: list[tuple[int, int]], firsts: set[int]) -> bool:
    """Cut members of a list with their commas; return whether any is left.

    Raises: UnsupportedSyntax where a list in brackets would be empty.
    """
    kept = False
    for first, stop in ranges:
        if first not in firsts:
            kept = True
        elif kept:
            words.cut(first - 1, stop)
        else:
            words.cut(first, stop + (words.at_word(stop) == ","))
    return kept


class AlterTableRewriting:
    """ALTER TABLE from after its name on."""

    def __init__(self, words: EditableStatement, name: TableName, known: TablesAtSource) -> None:
        self._words = words
        self._name = name
        self._known = known
        self._table = known.table(name)
        self._elements = TableElements(words, name, known)
        self._added: set[str] = set()
        words.alters = True

    def read(self) -> bool:
        """Rewrite all of it; return False if it did nothing, so that nothing is left. Raises: UnsupportedSyntax, Untranslatable."""
        words = self._words
        if self._known.is_versioned(self._name):
            raise definition_stops.definition_differs(
                words.context.target_title, words.query, "changes of a table with system versioning"
            )
        rewriting = OptionRewriting(words)
        ranges: list[tuple[int, int]] = []
        gone: set[int] = set()
        while words.word() in ("WAIT", "NOWAIT"):
            self._wait()
        while not words.ended:
            first = words.at
            if words.word() == "PARTITION" and words.word(1) == "BY":
                rewriting.partitions(before_query=False)
                break
            kept = self._action(rewriting)
            while not words.ended and words.word() != "," and rewriting.accept():
                pass
            ranges.append((first, words.at))
            if not kept:
                gone.add(first)
            if (
                words.accept(",")
                or words.ended
                or words.word() == "PARTITION"
                or words.accept("REMOVE", "PARTITIONING")
            ):
                continue
            raise UnsupportedSyntax(f"{words.peek().text} in ALTER TABLE")
        table = self._table
        rewriting.finish(table.engine if table else "", _charset(table))
        engine = rewriting.options.engine or (table.engine.upper() if table else "")
        self._elements.finish(rewriting.options.charset or _charset(table), table, engine=engine)
        for first, stop in ranges:
            if any(first <= at < stop for at in self._elements.left_out):
                gone.add(first)
        if not ranges or rewriting.options.partitioned:
            leave_out(words, ranges, gone)
            return True
        return leave_out(words, ranges, gone)

    def _wait(self) -> None:
        words, at = self._words, self._words.at
        if words.take().upper == "WAIT":
            words.take()
        words.cut(at, words.at)

    def _action(self, rewriting: OptionRewriting) -> bool:
        """Rewrite one action between commas; return False if it is removed."""
        words, word, following = self._words, self._words.word(), self._words.word(1)
        if word == "ADD":
            return self._add()
        if word in ("CHANGE", "MODIFY"):
            return self._change(word)
        if word == "DROP":
            return self._drop()
        if word == "RENAME":
            return self._rename()
        if word == "ALTER":
            return self._alter()
        if word == "CONVERT":
            words.take()
            if not words.accept("TO"):
                raise definition_stops.clause_unknown(words.context.target_title, words.query, "CONVERT of partitions")
            clauses = CharsetClauses(words)
            while clauses.accept():
                pass
            clauses.done()
        elif word in ("ALGORITHM", "LOCK"):
            words.take()
            words.accept("=")
            return words.take().upper in ("COPY", "DEFAULT", "EXCLUSIVE")
        elif word == "ORDER" and following == "BY":
            words.at += 2
            while True:
                words.name()
                words.accept("ASC") or words.accept("DESC")
                if words.word() != ",":
                    break
                words.take()
        elif word in ("ENABLE", "DISABLE") and following == "KEYS":
            words.at += 2
        elif word == "FORCE":
            words.take()
        elif word == "REMOVE" and following == "PARTITIONING":
            words.at += 2
        elif word in PARTITION_VERBS and following == "PARTITION":
            self._partition_action(rewriting)
        elif not rewriting.accept():
            raise UnsupportedSyntax(f"{words.peek().text} in ALTER TABLE")
        return True

    def _partition_action(self, rewriting: OptionRewriting) -> None:
        words = self._words
        verb = words.word() if words.word() != "PARTITION" else "DROP"
        if verb in _ROWS_OF_PARTITIONS:
            self._check_place(f"{verb} PARTITION", partitions_differ)
        for index in range(words.at, words.end):
            if words.at_word(index) == "IF" and words.at_word(index + 1) in ("EXISTS", "NOT"):
                raise definition_stops.condition_unknown(words.query, self._name, "IF [NOT] EXISTS of a partition")
        partitioned = rewriting.options.partitioned
        rewriting.partitions(before_query=False)
        rewriting.options.partitioned = partitioned

    def _check_place(self, clause: str, why: Callable[[Table, IsSame], str]) -> None:
        """Check a clause whose effect on rows depends on their place."""
        table, words = self._table, self._words
        if table is None:
            if not self._known.is_known_plain(self._name):
                raise definition_stops.order_unknown(words.query, self._name, clause)
            return
        differs = why(table, self._is_same)
        if differs:
            raise definition_stops.rows_not_in_order(words.query, clause, differs)

    def _is_same(self, column: Column) -> bool:
        context = self._words.context
        return context.collations.is_same_named(column.collation, column.charset, context.defaults)

    def _check_added(self, column: DefinedColumn) -> None:
        """Check the value of a new column in existing rows."""
        words = self._words
        if "AUTO_INCREMENT" in column.attributes:
            self._check_place("ADD of an AUTO_INCREMENT column", order_differs)
        if column.default is not None:
            unsafe = unsafe_function(words, *column.default)
            if unsafe:
                what = f"the default {unsafe}() for rows that are there"
                raise definition_stops.clause_unknown(
                    words.context.target_title, words.query, what, ErrorCode.ER_BINLOG_UNSAFE_SYSTEM_FUNCTION
                )
            differing = differing_function(words, *column.default)
            if differing:
                what = f"{differing} in the default of {column.name}"
                raise definition_stops.definition_differs(words.context.target_title, words.query, what)

    def _has_column(self, name: str, needed: str) -> bool:
        if self._table is None:
            raise definition_stops.condition_unknown(self._words.query, self._name, needed)
        return any(column.name.lower() == name.lower() for column in self._table.columns)

    def _has_key(self, name: str, needed: str, *, foreign: bool = False) -> bool:
        table = self._table
        if table is None or (foreign and table.foreign_keys is None):
            raise definition_stops.condition_unknown(self._words.query, self._name, needed)
        if foreign:
            return any(one.lower() == name.lower() for one, _key in table.foreign_keys or ())
        return any(one.lower() == name.lower() for one, _key in table.keys)

    def _is_left_out(self, name: str) -> bool:
        """Return whether the replica does not have that key of the table."""
        table = self._table
        return table is not None and any(
            one.lower() == name.lower() and is_left_out(key, table) for one, key in table.keys
        )

    def _add(self) -> bool:
        words = self._words
        words.take()
        if words.word() == "PARTITION":
            self._partition_action(OptionRewriting(words))
            return True
        if words.word() == "SYSTEM" and words.word(1) == "VERSIONING":
            raise definition_stops.definition_differs(words.context.target_title, words.query, "ADD SYSTEM VERSIONING")
        if words.word() == "PERIOD" and words.word(1) == "FOR":
            raise definition_stops.clause_unknown(words.context.target_title, words.query, "PERIOD FOR")
        is_column = words.accept("COLUMN")
        exists = accept_if(words, "NOT")
        if words.word() == "(":
            if exists is not None:
                raise UnsupportedSyntax("IF NOT EXISTS of several columns in brackets")
            words.take()
            ranges = []
            while True:
                first = words.at
                added = self._elements.read()
                if isinstance(added, DefinedColumn):
                    self._check_added(added)
                ranges.append((first, words.at))
                if words.accept(")"):
                    return True
                words.expect(",")
        if is_column or exists is not None:
            made: WrittenKey | DefinedColumn = self._elements.read_column(words.name())
        else:
            made = self._elements.read()
        if isinstance(made, WrittenKey):
            return self._added_key(made)
        if exists is None:
            self._check_added(made)
            return True
        words.cut(*exists)
        there = self._has_column(made.name, "ADD COLUMN IF NOT EXISTS") or made.name.lower() in self._added
        self._added.add(made.name.lower())
        if not there:
            self._check_added(made)
        return not there

    def _added_key(self, key: WrittenKey) -> bool:
        if key.exists is None:
            return True
        needed = "IF NOT EXISTS of a key"
        if not key.name or key.kind == "CHECK":
            raise definition_stops.condition_unknown(self._words.query, self._name, needed)
        self._words.cut_part(key.exists)
        return not self._has_key(key.name, needed, foreign=key.kind == "FOREIGN")

    def _change(self, verb: str) -> bool:
        words = self._words
        words.take()
        words.accept("COLUMN")
        exists = accept_if(words)
        old = words.name()
        column = self._elements.read_column(words.name() if verb == "CHANGE" else old)
        self._check_conversion(old, column)
        if exists is None:
            return True
        words.cut(*exists)
        return self._has_column(old, f"{verb} COLUMN IF EXISTS")

    def _check_conversion(self, old: str, column: DefinedColumn) -> None:
        """Check for different conversions of existing values: UUID and INET are bytes at the replica."""
        table, words = self._table, self._words
        was = next((one for one in (table.columns if table else ()) if one.name.lower() == old.lower()), None)
        differs = conversion_differs(was, column.type, words.context.sql_mode) if was is not None else ""
        if differs:
            what = f"the conversion of {old} to {column.type} ({differs})"
            raise definition_stops.definition_differs(words.context.target_title, words.query, what)
        before = was.type.upper() if was is not None else ""
        if before == column.type or not {before, column.type} & _BYTES_BECOME:
            return
        raise definition_stops.definition_differs(
            words.context.target_title, words.query, f"the conversion of {old} from or to {column.type}"
        )

    def _drop(self) -> bool:
        words = self._words
        words.take()
        word = words.word()
        if word == "PARTITION":
            self._partition_action(OptionRewriting(words))
            return True
        if word in ("SYSTEM", "PERIOD") and words.word(1) in ("VERSIONING", "FOR"):
            raise definition_stops.definition_differs(
                words.context.target_title, words.query, "DROP of system versioning"
            )
        if word == "PRIMARY" and words.word(1) == "KEY":
            words.at += 2
            return True
        if word in ("INDEX", "KEY", "CONSTRAINT", "CHECK") and words.peek(1).kind in (TokenKind.WORD, TokenKind.NAME):
            words.take()
            exists = accept_if(words)
            name = words.name()
            if word in ("CONSTRAINT", "CHECK"):
                name_in_schema(words, words.at - 1, self._name[1])
            if exists is not None:
                words.cut(*exists)
                there = self._has_key(name, f"DROP {word} IF EXISTS")
                if not there and word in ("CONSTRAINT", "CHECK"):
                    there = self._has_key(name, f"DROP {word} IF EXISTS", foreign=True)
                    if not there:  # it may be a CHECK, of which nothing is known
                        raise definition_stops.condition_unknown(words.query, self._name, f"DROP {word} IF EXISTS")
                if not there:
                    return False
            return not self._is_left_out(name)
        if word == "FOREIGN" and words.word(1) == "KEY":
            words.at += 2
            exists = accept_if(words)
            name = words.name()
            if exists is None:
                return True
            words.cut(*exists)
            return self._has_key(name, "DROP FOREIGN KEY IF EXISTS", foreign=True)
        words.accept("COLUMN")
        exists = accept_if(words)
        name = words.name()
        words.accept("RESTRICT") or words.accept("CASCADE")
        if exists is None:
            return True
        words.cut(*exists)
        return self._has_column(name, "DROP COLUMN IF EXISTS")

    def _rename(self) -> bool:
        words = self._words
        words.take()
        kind = words.word()
        if kind not in ("COLUMN", "INDEX", "KEY"):
            words.accept("TO") or words.accept("AS") or words.accept("=")
            words.table_name()
            return True
        words.take()
        exists = accept_if(words)
        old = words.name()
        words.expect("TO")
        words.name()
        if exists is not None:
            words.cut(*exists)
            needed = f"RENAME {kind} IF EXISTS"
            if not (self._has_column(old, needed) if kind == "COLUMN" else self._has_key(old, needed)):
                return False
        return kind == "COLUMN" or not self._is_left_out(old)

    def _alter(self) -> bool:
        words = self._words
        words.take()
        kind = words.word()
        if kind in ("INDEX", "KEY"):
            words.take()
            if kind == "KEY":
                words.put(words.at - 1, "INDEX")
            exists = accept_if(words)
            name = words.name()
            at = words.at
            if not (words.accept("VISIBLE") or words.accept("INVISIBLE")):
                visible = "VISIBLE" if words.accept("NOT") else "INVISIBLE"
                words.expect("IGNORED")
                words.cut(at, words.at - 1)
                words.put(words.at - 1, visible)
            if exists is not None:
                words.cut(*exists)
                if not self._has_key(name, "ALTER INDEX IF EXISTS"):
                    return False
            return not self._is_left_out(name)
        words.accept("COLUMN")
        exists = accept_if(words)
        name = words.name()
        if words.accept("DROP"):
            words.expect("DEFAULT")
        else:
            words.expect("SET", "DEFAULT")
            start = words.at
            if words.word() == "(":
                words.skip_brackets()
                read_expressions(words, start, words.at)
            else:
                self._set_default(name, start)
        if exists is None:
            return True
        words.cut(*exists)
        return self._has_column(name, "ALTER COLUMN IF EXISTS")

    def _set_default(self, name: str, start: int) -> None:
        words = self._words
        if words.word() in ("+", "-"):
            words.take()
        token = words.take()
        literal = token.kind in (TokenKind.STRING, TokenKind.NUMBER) or token.upper in ("NULL", "TRUE", "FALSE")
        if literal and token.upper != "NULL":
            column = (
                None
                if self._table is None
                else next((one for one in self._table.columns if one.name.lower() == name.lower()), None)
            )
            if column is None:
                return  # a replica refuses a literal of a BLOB (1101), and accepts any other
            if column.type.upper() in _BYTES_BECOME:
                raise UnsupportedSyntax(f"the default of the column {name} of type {column.type}")
            literal = not column.type.partition("(")[0].endswith(("text", "blob"))
        if not literal:
            if words.word() == "(":
                words.skip_brackets()
            read_expressions(words, start, words.at)
            # a literal in brackets is one all the same here (1101)
            words.before(start, "(" if words.tokens[start].kind is TokenKind.WORD else "(concat(")
            words.after(words.at - 1, ")" if words.tokens[start].kind is TokenKind.WORD else "))")


def _charset(table: Table | None) -> str:
    if table is None or not table.charset:
        return ""
    return "utf8mb3" if table.charset == "utf8" else table.charset


def _is(engine: str, name: str) -> bool:
    known = engine_of(engine)
    return known is not None and known.name == name
