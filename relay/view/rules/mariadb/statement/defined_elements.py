"""Columns and keys that a CREATE TABLE or ALTER TABLE defines are rewritten for MySQL."""

from typing import Final

from protocol.errors import ErrorCode
from protocol.sql.engines import becomes_innodb, engine_of
from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.tables.ddl_statement import KeyPart, WrittenKey
from protocol.sql.tables.source_table import Table, TableName
from relay.schema_history.table_agreement import type_parts
from relay.view.rules.mariadb.differences.fractions_of_seconds import ColumnDigits, loses_fractions
from relay.view.rules.mariadb.statement.altered_table import BYTES_BECOME
from relay.view.rules.mariadb.statement.column_rewriting import GEOMETRIES, ColumnRewriting, DefinedColumn
from relay.view.rules.mariadb.statement.editable_statement import EditableStatement
from relay.view.rules.mariadb.statement.key_rewriting import MOST_KEY_BYTES, add_prefixes, read_key
from relay.view.rules.mariadb.statement.known_tables import TablesAtSource
from relay.view.stops import definition_stops

_BYTES_OF: Final = {"utf8mb4": 4, "utf32": 4, "utf16": 4, "utf16le": 4, "utf8mb3": 3, "ucs2": 2}


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
        if vectors and is_engine(engine, "memory") and self.words.context.target >= (9, 0):
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
        of_bytes = {name for name, column in self.columns.items() if column.type in BYTES_BECOME}
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


def is_engine(engine: str, name: str) -> bool:
    """Return whether a known engine of that name is this one."""
    known = engine_of(engine)
    return known is not None and known.name == name
