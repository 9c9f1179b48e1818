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
    Attribute,
    ColumnDefinition,
    Element,
    ElementList,
    ForeignKeyDefinition,
    KeyDefinition,
    KeyPart,
    WrittenKey,
)
from protocol.sql.tables.server_dialect import UNKNOWN_RULE
from protocol.sql.tables.source_table import ForeignKey, Key

KEY_WORDS: Final = frozenset(("INDEX", "KEY"))
Defined = ColumnDefinition | AddKey | AddForeignKey


def read_list(reader: DdlReader, take: Callable[[Defined], None]) -> ElementList:
    """Read columns and keys in brackets. `take` is called with each of those that are known.

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
    """Read a column or a key. `is_column`: COLUMN is before it. Raises: UnsupportedSyntax for a key that is not known."""
    start = reader.start_of_next()
    key = None if is_column else key_element(reader)
    if key is None:
        names: list[str] = []
        reader.attempt(lambda: names.append(reader.column_name()))
        read_column(reader, names[0] if names else "", take)
        return
    if isinstance(key, AddKey | AddForeignKey):
        take(key)
    reader.written.elements.append(Element(start, reader.stop_of_last()))


def read_column(reader: DdlReader, name: str, take: Callable[[Defined], None]) -> None:
    """Read a column's definition after its name, and the foreign key that it makes, if its server takes it for one."""
    type_at = reader.start_of_next()
    column = column_definition(reader, name, alters=reader.alters)
    reader.written.elements.append(Element(type_at, reader.stop_of_last(), type_at))
    take(column)
    counts = reader.dialect.has_foreign_keys_of_columns
    if column.references is not None and counts is not False:
        key = replace(column.references, columns=(name,))
        take(_add_foreign_key("", "", key, counts is True))


def read_key(reader: DdlReader, unique: bool, has_prefixes: bool = True) -> Key:
    """Read a key's columns, in brackets. `has_prefixes`: prefixes have a meaning in it."""
    return _key_of(reader.key_parts(), unique, has_prefixes)


def _key_of(parts: tuple[KeyPart, ...], unique: bool, has_prefixes: bool = True) -> Key:
    prefixes = tuple(part.prefix for part in parts) if has_prefixes else None
    return Key(tuple(part.name for part in parts), unique, prefixes, False)


def index_type(reader: DdlReader) -> None:
    """Read USING BTREE and the like, if it comes next."""
    if reader.accept("USING") or reader.accept("TYPE"):
        reader.take()


def key_options(reader: DdlReader) -> None:
    """Read options after a key's columns."""
    while True:
        word, start = reader.word(), reader.start_of_next()
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
        elif reader.accept("IGNORED"):
            reader.attribute("IGNORED", start)
        elif reader.accept("NOT", "IGNORED"):
            reader.attribute("NOT IGNORED", start)
        elif word in ("CLUSTERING", "M", "DISTANCE"):
            reader.take()
            reader.accept("=")
            reader.take()
            reader.attribute(word, start)
        elif not (reader.accept("VISIBLE") or reader.accept("INVISIBLE")):
            return


def if_not_exists(reader: DdlReader) -> Attribute | None:
    """Read IF NOT EXISTS."""
    return _condition(reader, "NOT")


def if_exists(reader: DdlReader) -> Attribute | None:
    """Read IF EXISTS."""
    return _condition(reader)


def _condition(reader: DdlReader, *no: str) -> Attribute | None:
    start, words = reader.start_of_next(), ("IF", *no, "EXISTS")
    if not reader.accept(*words):
        return None
    stop = reader.stop_of_last()
    return Attribute(" ".join(words), start, stop, stop)


def key_element(reader: DdlReader) -> AddKey | AddForeignKey | bool | None:
    """Read a key; True: another element that is no column; None: a column comes. Raises: UnsupportedSyntax."""
    if reader.kind is not TokenKind.WORD:
        return None
    start, at, name, named, exists = reader.start_of_next(), reader.at, "", -1, None
    if reader.word() == "CONSTRAINT":
        reader.take()
        exists = if_not_exists(reader)
        if reader.word() not in ("PRIMARY", "UNIQUE", "FOREIGN", "CHECK"):
            named, name = reader.start_of_next(), reader.name()
    word, following = reader.word(), reader.word(1)
    keys = reader.written.keys
    if word == "CHECK":
        reader.at = at
        reader.check_clause(of_column=False)
        keys.append(WrittenKey(word, name, named, exists=exists))
        return True
    if word == "FOREIGN":
        return _foreign_key(reader, name, named, exists)
    if word == "PERIOD" and following == "FOR":
        reader.take()
        reader.take()
        keys.append(WrittenKey(word, reader.name(), named))
        reader.skip_brackets()
        reader.note_read(start, "a period", word, "FOR", keys[-1].name.upper())
        return True
    is_vector = word == "VECTOR" and (following in KEY_WORDS or following == "(")
    if word in ("PRIMARY", "UNIQUE", "FULLTEXT", "SPATIAL") or word in KEY_WORDS or is_vector:
        reader.take()
        if word == "PRIMARY":
            reader.expect("KEY")
        elif word not in KEY_WORDS:
            reader.accept("KEY") or reader.accept("INDEX")
        exists = if_not_exists(reader) or exists
        index_type(reader)
        if reader.word() != "(":
            named, name = reader.start_of_next(), reader.name()
            index_type(reader)
        if word == "PRIMARY":
            name = "PRIMARY"  # servers accept a name and forget it
        parts = reader.key_parts()
        kind = "" if word in KEY_WORDS else word
        keys.append(WrittenKey(kind, name, named, parts, reader.stop_of_last() - 1, exists))
        key_options(reader)
        if is_vector:
            reader.note_read(start, "a vector key", word, "KEY", "INDEX")
            return True
        key = _key_of(parts, word in ("PRIMARY", "UNIQUE"), word not in ("FULLTEXT", "SPATIAL"))
        return AddKey(KeyDefinition(name, key), exists is not None)
    if name:
        raise UnsupportedSyntax("a constraint of another kind")
    return None


def _foreign_key(reader: DdlReader, name: str, named: int, exists: Attribute | None) -> AddForeignKey:
    start = reader.start_of_next()
    reader.expect("FOREIGN", "KEY")
    exists = if_not_exists(reader) or exists
    if exists is not None:
        reader.note_read(start, "a foreign key that may be there")
    index = reader.name() if reader.word() != "(" else ""
    columns: list[str] = []
    reader.attempt(lambda: columns.extend(reader.key_columns()))
    key = replace(reader.references(name, of_column=False), columns=tuple(columns))
    said = reader.written.foreign_keys[-1].references
    reader.written.keys.append(WrittenKey("FOREIGN", name or index, named, exists=exists, references=said))
    called = name or (index if reader.dialect.foreign_keys_are_called_as_their_indexes else "")
    return _add_foreign_key(called, name or index, key)


def _add_foreign_key(name: str, index: str, key: ForeignKey, certain: bool = True) -> AddForeignKey:
    certain = certain and UNKNOWN_RULE not in (key.on_delete, key.on_update)
    return AddForeignKey(ForeignKeyDefinition(name, index, key, certain))
