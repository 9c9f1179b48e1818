"""Columns and keys that CREATE TABLE and ALTER TABLE list."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from protocol.sql.lexer import TokenKind, UnsupportedSyntax
from protocol.sql.tables.column_types import column_definition
from protocol.sql.tables.ddl_reader import DdlReader
from protocol.sql.tables.ddl_statement import (
    AddForeignKey,
    AddKey,
    ColumnDefinition,
    Element,
    ElementList,
    ForeignKeyDefinition,
    KeyDefinition,
)
from protocol.sql.tables.server_dialect import UNKNOWN_RULE
from protocol.sql.tables.source_table import ForeignKey, Key

KEY_WORDS: Final = frozenset(("INDEX", "KEY"))
Defined = ColumnDefinition | AddKey | AddForeignKey


def read_list(reader: DdlReader, take: Callable[[Defined], None]) -> ElementList:
    """Columns and keys in brackets. `take`: is called with each of those that are known.

    Raises: UnsupportedSyntax for a list without an end.
    """
    start, elements = reader.start_of_next(), reader.written.elements
    reader.expect("(")
    first = len(elements)
    while True:
        count, begin = len(elements), reader.start_of_next()
        reader.attempt(lambda: read_element(reader, take))
        while reader.word() not in (",", ")") and reader.kind is not TokenKind.END:
            reader.pass_over(f"{reader.text()} in place of ,")
        type_at = elements.pop().type_at if len(elements) > count else -1
        elements.append(Element(begin, reader.stop_of_last(), type_at))
        if reader.accept(")"):
            return ElementList(start, reader.stop_of_last(), tuple(elements[first:]))
        reader.expect(",")


def read_element(reader: DdlReader, take: Callable[[Defined], None], *, is_column: bool = False) -> None:
    """A column or a key. `is_column`: COLUMN is before it. Raises: UnsupportedSyntax for a key that is not known."""
    start = reader.start_of_next()
    key = None if is_column else _key_element(reader)
    if key is None:
        names: list[str] = []
        reader.attempt(lambda: names.append(reader.column_name()))
        read_column(reader, names[0] if names else "", take)
        return
    if isinstance(key, AddKey | AddForeignKey):
        take(key)
    reader.written.elements.append(Element(start, reader.stop_of_last()))


def read_column(reader: DdlReader, name: str, take: Callable[[Defined], None]) -> None:
    """A column's definition after its name, and the foreign key that it makes, if its server takes it for one."""
    type_at = reader.start_of_next()
    column = column_definition(reader, name, alters=reader.alters)
    reader.written.elements.append(Element(type_at, reader.stop_of_last(), type_at))
    take(column)
    counts = reader.dialect.has_foreign_keys_of_columns
    if column.references is not None and counts is not False:
        key = replace(column.references, columns=(name,))
        take(_add_foreign_key("", "", key, counts is True))


def read_key(reader: DdlReader, unique: bool, has_prefixes: bool = True) -> Key:
    """A key's columns, in brackets. `has_prefixes`: prefixes mean something in it."""
    parts = reader.key_parts()
    prefixes = tuple(prefix for _name, prefix in parts) if has_prefixes else None
    return Key(tuple(name for name, _prefix in parts), unique, prefixes, False)


def index_type(reader: DdlReader) -> None:
    """USING BTREE and the like, if it comes next."""
    if reader.accept("USING") or reader.accept("TYPE"):
        reader.take()


def key_options(reader: DdlReader) -> None:
    """Options after a key's columns."""
    while True:
        if reader.accept("USING") or reader.accept("TYPE"):
            reader.take()
        elif reader.accept("KEY_BLOCK_SIZE"):
            reader.accept("=")
            reader.number()
        elif reader.word() in ("COMMENT", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE"):
            reader.take()
            reader.accept("=")
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


def _key_element(reader: DdlReader) -> AddKey | AddForeignKey | bool | None:
    """A key; True: something else that is no column; None: a column comes."""
    start, name = reader.at, ""
    if reader.word() == "CONSTRAINT":
        reader.take()
        if reader.word() not in ("PRIMARY", "UNIQUE", "FOREIGN", "CHECK"):
            name = reader.name()
    word = reader.word()
    if word == "CHECK":
        reader.at = start
        reader.check_clause(of_column=False)
        return True
    if word == "PRIMARY":
        reader.take()
        reader.expect("KEY")
        index_type(reader)
        if reader.word() != "(":
            reader.name()  # servers take a name and forget it
            index_type(reader)
        key = read_key(reader, True)
        key_options(reader)
        return AddKey(KeyDefinition("PRIMARY", key))
    if word == "FOREIGN":
        return _foreign_key(reader, name)
    if word in ("UNIQUE", "FULLTEXT", "SPATIAL") or word in KEY_WORDS:
        unique = word == "UNIQUE"
        reader.take()
        if word not in KEY_WORDS:
            reader.accept("KEY") or reader.accept("INDEX")
        exists = reader.accept("IF", "NOT", "EXISTS")
        index_type(reader)
        if reader.word() != "(":
            name = reader.name()
            index_type(reader)
        key = read_key(reader, unique, word not in ("FULLTEXT", "SPATIAL"))
        key_options(reader)
        return AddKey(KeyDefinition(name, key), exists)
    if word == "PERIOD" and reader.word(1) == "FOR":
        raise UnsupportedSyntax("a period")
    if name:
        raise UnsupportedSyntax("a constraint of another kind")
    return None


def _foreign_key(reader: DdlReader, name: str) -> AddForeignKey:
    start = reader.at
    reader.expect("FOREIGN", "KEY")
    if reader.accept("IF", "NOT", "EXISTS"):
        reader.note(start, "a foreign key that may be there")
    index = reader.name() if reader.word() != "(" else ""
    columns: list[str] = []
    reader.attempt(lambda: columns.extend(reader.key_columns()))
    key = replace(reader.references(name, of_column=False), columns=tuple(columns))
    called = name or (index if reader.dialect.foreign_keys_are_called_as_their_indexes else "")
    return _add_foreign_key(called, name or index, key)


def _add_foreign_key(name: str, index: str, key: ForeignKey, certain: bool = True) -> AddForeignKey:
    certain = certain and UNKNOWN_RULE not in (key.on_delete, key.on_update)
    return AddForeignKey(ForeignKeyDefinition(name, index, key, certain))
