"""A column's definition in a statement: its type, as SHOW CREATE TABLE would print it, and its attributes."""

from dataclasses import replace
from typing import Final

from protocol.binlog.schema.collation_names import plain_collation
from protocol.binlog.schema.column_charsets import codec_of_charset
from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.sql_mode import REAL_AS_FLOAT
from protocol.sql.tables.ddl_reader import DdlReader
from protocol.sql.tables.ddl_statement import FIRST, ColumnDefinition
from protocol.sql.tables.default_text import default_of_type
from protocol.sql.tables.source_table import (
    UNKNOWN_CHARSET,
    WIDE_CHARSETS,
    CharsetDefault,
    Column,
    ForeignKey,
)

_INTEGERS: Final = {
    "TINYINT": "tinyint", "INT1": "tinyint", "BOOL": "tinyint(1)", "BOOLEAN": "tinyint(1)", "SMALLINT": "smallint",
    "INT2": "smallint", "MEDIUMINT": "mediumint", "MIDDLEINT": "mediumint", "INT3": "mediumint", "INT": "int",
    "INTEGER": "int", "INT4": "int", "BIGINT": "bigint", "INT8": "bigint",
}  # fmt: skip
_FLOATS: Final = {"FLOAT": "float", "FLOAT4": "float", "DOUBLE": "double", "FLOAT8": "double"}
_DECIMALS: Final = frozenset(("DECIMAL", "DEC", "NUMERIC", "FIXED"))
_TEXTS: Final = {"TINYTEXT": "tinytext", "MEDIUMTEXT": "mediumtext", "LONGTEXT": "longtext", "TEXT": "text"}
_BLOBS: Final = {"TINYBLOB": "tinyblob", "MEDIUMBLOB": "mediumblob", "LONGBLOB": "longblob", "BLOB": "blob"}
_PLAIN: Final = frozenset(
    ("DATE", "GEOMETRY", "POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON",
     "GEOMETRYCOLLECTION", "GEOMCOLLECTION")
)  # fmt: skip
_OF_MARIADB: Final = frozenset(("UUID", "INET4", "INET6"))
_BINARY_OF: Final = {
    "char": "binary", "varchar": "varbinary", "tinytext": "tinyblob", "text": "blob", "mediumtext": "mediumblob",
    "longtext": "longblob",
}  # fmt: skip
_BINARY_COLLATION: Final = "_bin"
"""The collation of a column whose character set is its table's, which is not known yet."""
_UNKNOWN_COLLATION: Final = "?"
"""The collation of a column that takes its table's character set and not its collation."""
_CONTROLS: Final = frozenset(map(chr, range(32)))
_NAMES: Final = {
    "CHARACTER": "CHARACTER SET", "CHARSET": "CHARACTER SET", "CHAR": "CHARACTER SET", "NOT": "NOT NULL", "KEY": "PRIMARY KEY",
    "PRIMARY": "PRIMARY KEY", "ON": "ON UPDATE", "GENERATED": "AS", "CONSTRAINT": "CHECK",
}  # fmt: skip
"""Attributes that do not have their first word's name."""
_SKIPPED_WITH_WORD: Final = frozenset(("COLUMN_FORMAT", "STORAGE"))


TYPE: Final = "type"
"""The attribute that is a column's type; its value is what follows the first word."""


def as_binary(column_type: str) -> str:
    """Return the type that a text type becomes with the character set `binary`."""
    name, bracket, rest = column_type.partition("(")
    return _BINARY_OF.get(name, name) + bracket + rest


def column_definition(reader: DdlReader, name: str, alters: bool) -> ColumnDefinition:
    """Read the definition after a column's name. `alters`: FIRST and AFTER may be at its end. Raises: UnsupportedSyntax."""
    return _Definition(reader, name).read(alters)


class _Definition:
    def __init__(self, reader: DdlReader, name: str) -> None:
        self._reader = reader
        self._name = name
        self._type = ""
        self._is_text = False
        self._charset: str | None = None
        self._collation: str | None = None
        self._is_binary = False
        self._references: ForeignKey | None = None
        self._unsigned = self._zerofill = False
        self._nullable = True
        self._says_null = False
        self._default: str | None = None
        self._extra: list[str] = []
        self._primary = self._unique = False
        self._after: str | None = None
        self._value_at = -1

    def read(self, alters: bool) -> ColumnDefinition:
        reader, first = self._reader, self._reader.at
        start = reader.start_of_next()
        if reader.attempt(self._read_type):
            reader.attribute(TYPE, start, reader.tokens[first].stop)
        while not self._ends():
            reader.attempt(lambda: self._attribute(alters))
        kind = self._type
        charset = ""
        if self._is_text:
            charset = self._charset or UNKNOWN_CHARSET
            if self._charset == "binary" and not kind.startswith(("enum", "set")):
                kind, charset = as_binary(kind), ""
        elif self._charset is not None and not self._reader.mariadb:
            reader.note(first, "a character set of what is no text")
        if self._unsigned:
            kind += " unsigned zerofill" if self._zerofill else " unsigned"
        nullable = self._nullable and not self._primary
        collation = self._collation_of(charset) if charset else ""
        column = Column(self._name, kind, charset, collation, nullable, " ".join(self._extra), self._default)
        if kind.startswith("timestamp") and not self._says_null and not column.generated:
            column = replace(column, nullable=nullable and self._reader.dialect.takes_null_in_timestamps)
        return ColumnDefinition(column, self._after, self._primary, self._unique, self._references)

    def _collation_of(self, charset: str) -> str:
        if self._collation is not None:
            return self._collation if charset != UNKNOWN_CHARSET else _UNKNOWN_COLLATION
        if self._is_binary:
            return _BINARY_COLLATION if charset == UNKNOWN_CHARSET else charset + _BINARY_COLLATION
        return "" if charset == UNKNOWN_CHARSET else self._reader.dialect.default_collation(charset)

    # ---- the type ----

    def _read_type(self) -> None:
        reader = self._reader
        word = reader.take().upper
        if word in _INTEGERS:
            self._type = _INTEGERS[word] + (reader.bracket_text() if "(" not in _INTEGERS[word] else "")
            self._signs()
        elif word == "SERIAL":
            self._type, self._unsigned, self._nullable, self._unique = "bigint", True, False, True
            self._extra.append("auto_increment")
        elif word in _FLOATS or word == "REAL":
            if word == "REAL":
                self._type = "float" if reader.sql_mode & REAL_AS_FLOAT else "double"
            else:
                self._type = _FLOATS[word]
            if word == "DOUBLE":
                reader.accept("PRECISION")
            digits = reader.bracket_text()
            if digits and "," not in digits and self._type == "float":
                self._type = "double" if int(digits[1:-1]) > 24 else "float"
            elif digits:
                self._type += digits
            self._signs()
        elif word in _DECIMALS:
            digits = reader.bracket_text() or "(10,0)"
            self._type = "decimal" + (digits if "," in digits else f"{digits[:-1]},0)")
            self._signs()
        elif word == "BIT":
            self._type = "bit" + (reader.bracket_text() or "(1)")
        elif word in ("TIME", "DATETIME", "TIMESTAMP"):
            self._type = word.lower() + reader.bracket_text().replace("(0)", "")
        elif word == "YEAR":
            self._type = "year" + reader.bracket_text()
            self._signs()
            self._unsigned = False
        elif word in _PLAIN:
            self._type = "geometrycollection" if word == "GEOMCOLLECTION" else word.lower()
        elif word == "VECTOR":
            self._type = "vector" + (reader.bracket_text() or ("" if reader.mariadb else "(2048)"))
        elif word in _OF_MARIADB and reader.mariadb:
            self._type = word.lower()
        elif word == "JSON":
            if reader.mariadb:
                self._type, self._is_text, self._charset, self._collation = "longtext", True, "utf8mb4", "utf8mb4_bin"
            else:
                self._type = "json"
        elif word in ("ENUM", "SET"):
            texts = [_quoted(text) for text in reader.strings()]
            self._type = word.lower()
            if len(set(texts)) == len(texts) and _CONTROLS.isdisjoint("".join(texts)):
                # otherwise a server has lost some of them before it wrote the statement
                self._type += f"({','.join(texts)})"
            self._is_text = True
        elif word in ("BINARY", "VARBINARY"):
            self._type = word.lower() + (reader.bracket_text() or ("(1)" if word == "BINARY" else ""))
        elif word in _BLOBS:
            size = reader.bracket_text()
            self._type = _sized(int(size[1:-1]), "blob") if size and word == "BLOB" else _BLOBS[word]
        elif word in _TEXTS:
            size = reader.bracket_text()
            # the bytes of so many characters depend on the character set, which may not be known here
            self._type = _sized(int(size[1:-1]), "text") if size and word == "TEXT" else _TEXTS[word]
            self._is_text = True
        else:
            reader.at -= 1
            self._read_characters()

    def _read_characters(self) -> None:
        reader = self._reader
        national = reader.accept("NATIONAL")
        word = reader.word()
        if word == "LONG" and not national:
            reader.take()
            if reader.accept("VARBINARY"):
                self._type = "mediumblob"
                return
            if reader.accept("CHAR") or reader.accept("CHARACTER"):
                reader.expect("VARYING")
            else:
                reader.accept("VARCHAR") or reader.accept("VARCHARACTER")
            self._type, self._is_text = "mediumtext", True
            return
        national = national or word in ("NCHAR", "NVARCHAR")
        if word in ("CHAR", "CHARACTER", "NCHAR"):
            reader.take()
            varying = reader.accept("VARYING") or reader.accept("VARCHAR") or reader.accept("VARCHARACTER")
        elif word in ("VARCHAR", "VARCHARACTER", "NVARCHAR"):
            reader.take()
            varying = True
        else:
            raise UnsupportedSyntax(f"the type {word or reader.text()} of a column")
        self._is_text = True
        self._type = "varchar" + reader.bracket_text() if varying else "char" + (reader.bracket_text() or "(1)")
        if national:
            self._charset = "utf8"

    def _signs(self) -> None:
        while True:
            if self._reader.accept("ZEROFILL"):
                self._unsigned = self._zerofill = True
            elif self._reader.accept("UNSIGNED"):
                self._unsigned = True
            elif not self._reader.accept("SIGNED"):
                return

    # ---- the attributes ----

    def _ends(self) -> bool:
        """Return True if no attribute follows: PARTITION BY may come after the last action of ALTER TABLE."""
        reader = self._reader
        word = reader.word()
        return word in (",", ")") or reader.ended or (word == "PARTITION" and reader.word(1) == "BY" and reader.alters)

    def _attribute(self, alters: bool) -> None:
        """Reads one. Raises: UnsupportedSyntax."""
        start, word, self._value_at = self._reader.start_of_next(), self._reader.word(), -1
        self._read_attribute(word, alters)
        self._reader.attribute(_NAMES.get(word, word), start, self._value_at)

    def _read_attribute(self, word: str, alters: bool) -> None:
        reader = self._reader
        if self._of_characters(word) or self._of_value(word) or self._of_keys(word):
            return
        if alters and reader.accept("FIRST"):
            self._after = FIRST
        elif alters and reader.accept("AFTER"):
            self._after = reader.name()
        elif (
            reader.accept("COMMENT") or reader.accept("ENGINE_ATTRIBUTE") or reader.accept("SECONDARY_ENGINE_ATTRIBUTE")
        ):
            reader.accept("=")
            reader.string()
        elif reader.accept("INVISIBLE"):
            self._extra.append("INVISIBLE")
        elif reader.accept("SRID") or reader.accept("REF_SYSTEM_ID"):
            reader.accept("=")
            reader.number()
        elif word in _SKIPPED_WITH_WORD:
            reader.take()
            reader.take()
        elif reader.accept("COMPRESSED"):
            if reader.accept("="):
                reader.take()
            self._extra.append("COMPRESSED")
        elif word in ("WITH", "WITHOUT") and reader.word(1) == "SYSTEM" and reader.word(2) == "VERSIONING":
            start = reader.start_of_next()
            reader.accept(word, "SYSTEM", "VERSIONING")
            reader.note_read(start, f"{word} in a column's definition", word, "SYSTEM", "VERSIONING")
        elif not reader.accept("VISIBLE"):
            raise UnsupportedSyntax(f"{word or reader.text()} in a column's definition")

    def _of_characters(self, word: str) -> bool:
        reader = self._reader
        if word in ("CHARACTER", "CHARSET", "CHAR"):
            reader.take()
            if word != "CHARSET":
                reader.expect("SET")
            self._value_at = reader.start_of_next()
            if reader.accept("DEFAULT"):
                self._charset = None
            else:
                self._set_charset(reader.charset())
            if self._collation is not None:
                self._collation = ""  # servers differ in which of the two applies
        elif reader.accept("COLLATE"):
            self._value_at = reader.start_of_next()
            collation = plain_collation(reader.name_or_string())
            charset = reader.charset_of_collation(collation)
            if charset is not None:
                self._collation = collation
                self._set_charset(charset)
            else:
                self._collation = f"{self._charset}_{collation}" if self._charset and collation != "default" else ""
        elif self._is_text and reader.accept("ASCII"):
            self._set_charset("latin1")
        elif self._is_text and reader.accept("UNICODE"):
            self._set_charset("ucs2")
        elif self._is_text and reader.accept("BYTE"):
            self._set_charset("binary")
        elif self._is_text and reader.accept("BINARY"):
            self._is_binary = True
        else:
            return False
        return True

    def _set_charset(self, charset: str) -> None:
        if (self._type.startswith("enum") and charset == "binary") or (
            self._type.startswith("set") and charset == "binary"
        ):
            raise UnsupportedSyntax("an ENUM or SET of bytes")
        self._charset = charset

    def _of_value(self, word: str) -> bool:
        reader = self._reader
        if reader.accept("NOT", "NULL"):
            self._nullable, self._says_null = False, True
        elif reader.accept("NULL"):
            self._nullable, self._says_null = True, True
        elif reader.accept("DEFAULT"):
            self._value_at = reader.start_of_next()
            self._default = default_of_type(self._type, reader.value())
        elif reader.accept("ON", "UPDATE"):
            reader.value()
            self._extra.append("on update CURRENT_TIMESTAMP")
        elif reader.accept("AUTO_INCREMENT"):
            self._extra.append("auto_increment")
        elif reader.accept("SERIAL", "DEFAULT"):
            reader.take()
            self._nullable, self._unique = False, True
            self._extra.append("auto_increment")
        elif word in ("GENERATED", "AS"):
            start = reader.start_of_next()
            if reader.accept("GENERATED"):
                reader.expect("ALWAYS")
            reader.expect("AS")
            self._value_at = reader.start_of_next()
            if reader.accept("ROW", "START") or reader.accept("ROW", "END"):
                reader.note_read(
                    start, "a column of a system-versioned table", "GENERATED", "ALWAYS", "AS", "ROW", "START", "END"
                )
                return True
            reader.skip_brackets()
            stored = reader.accept("STORED") or reader.accept("PERSISTENT")
            if not stored:
                reader.accept("VIRTUAL")
            self._extra.append("STORED GENERATED" if stored else "VIRTUAL GENERATED")
        else:
            return False
        return True

    def _of_keys(self, word: str) -> bool:
        reader = self._reader
        if word in ("PRIMARY", "KEY"):
            reader.take()
            if word == "PRIMARY":
                reader.expect("KEY")
            self._primary = True
        elif word == "UNIQUE":
            reader.take()
            reader.accept("KEY")
            self._unique = True
        elif word == "REFERENCES":
            self._references = reader.references(of_column=True)
        elif word in ("CONSTRAINT", "CHECK"):
            reader.check_clause(of_column=True)
            self._value_at = reader.written.checks[-1].condition
        else:
            return False
        return True


def _quoted(text: str) -> str:
    text = text.rstrip(" ").replace("\\", "\\\\").replace("'", "''")
    return f"'{text}'"


def _sized(size: int, kind: str) -> str:
    """Return the smallest type with room for `size`."""
    for most, prefix in ((255, "tiny"), (65535, ""), (16777215, "medium")):
        if size <= most:
            return prefix + kind
    return "long" + kind


def is_lossy(column: Column) -> bool:
    """Return whether a conversion may have put a question mark, or two, for another character in texts of an ENUM or SET."""
    return "??" in column.type or (codec_of_charset(column.charset) is not None and "?" in column.type)


def with_charset(column: Column, default: CharsetDefault) -> Column:
    """Return a text column that takes its table's character set and collation, with these.

    Texts of an ENUM or SET are omitted if ASCII is not one byte a character: MySQL up to 9.7 converts them twice if another column
    has the same.
    """
    charset, collation = default
    if column.charset == UNKNOWN_CHARSET and not charset:
        column = replace(column, collation="")
    if column.charset == UNKNOWN_CHARSET and charset:
        if charset == "binary" and not column.type.startswith(("enum", "set")):
            return replace(column, type=as_binary(column.type), charset="", collation="")
        if column.collation == _UNKNOWN_COLLATION:
            collation = ""
        elif column.collation:
            collation = charset + column.collation
        column = replace(column, charset=charset, collation=collation)
    if (column.charset in WIDE_CHARSETS or is_lossy(column)) and column.type.startswith(("enum", "set")):
        return replace(column, type=column.type.partition("(")[0])
    return column
