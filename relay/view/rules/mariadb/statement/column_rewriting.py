"""A column's definition: its type, and what follows it."""

from dataclasses import dataclass, field
from typing import Final

from protocol.errors import ErrorCode
from protocol.sql.lexer import TokenKind, UnsupportedSyntax
from protocol.sql.server_functions import NOW_FUNCTIONS, SEQUENCE_FUNCTIONS
from protocol.sql.tables.references_clause import read_references
from protocol.sql.tables.source_table import TableName
from relay.view.rules.mariadb.differences.differing_functions import differing_function
from relay.view.rules.mariadb.statement.collate_clauses import CharsetClauses
from relay.view.rules.mariadb.statement.editable_statement import EditableStatement
from relay.view.rules.mariadb.statement.expression_words import read_expressions
from relay.view.stops import definition_stops

# fmt: off
_NUMBERS: Final = frozenset((
    "TINYINT", "SMALLINT", "MEDIUMINT", "MIDDLEINT", "INT", "INTEGER", "BIGINT", "INT1", "INT2", "INT3", "INT4", "INT8", "BOOL",
    "BOOLEAN",
    "FLOAT", "FLOAT4", "FLOAT8", "DOUBLE", "REAL", "DECIMAL", "DEC", "NUMERIC", "FIXED", "BIT", "SERIAL",
))
_DECIMALS: Final = frozenset(("DECIMAL", "DEC", "NUMERIC", "FIXED"))
_TIMES: Final = frozenset(("DATE", "TIME", "DATETIME", "TIMESTAMP", "YEAR"))
_NOW_TYPES: Final = frozenset(("DATETIME", "TIMESTAMP"))
_BYTES: Final = frozenset(("BINARY", "VARBINARY"))
_BLOBS: Final = frozenset(("TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB"))
_TEXTS: Final = frozenset(("TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT"))
GEOMETRIES: Final = frozenset((
    "GEOMETRY", "POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON", "GEOMETRYCOLLECTION",
    "GEOMCOLLECTION",
))
_OF_MARIADB: Final = {"UUID": "BINARY(16)", "INET6": "BINARY(16)", "INET4": "BINARY(4)"}
_OPERATORS: Final = frozenset("+-*/%|&^<>=!:~")
_INTRODUCED: Final = frozenset(("N", "B", "X", "DATE", "TIME", "TIMESTAMP"))
# fmt: on
_MOST_DIGITS_BEHIND_POINT: Final = 30
JSON_TEXT: Final = "longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"


@dataclass
class DefinedColumn:
    """A column as the source defines it. name: as it is called. type: in upper case, the first word. is_blob: it has no length in keys.
    length: characters of a CHAR or VARCHAR. digits: behind the second, of a time.

    charset: "" where nothing names it. primary, unique: [first, stop) of these words; None: they are not there. row: START or END, of
    system versioning. last: the place of its last word. generated, default: [first, stop) of the expression; None: there is none.
    auto_increment: whether it numbers the rows.
    """

    name: str
    type: str
    is_blob: bool = False
    length: int = 0
    digits: int = 0
    charset: str = ""
    primary: tuple[int, int] | None = None
    unique: tuple[int, int] | None = None
    generated: tuple[int, int] | None = None
    default: tuple[int, int] | None = None
    auto_increment: bool = False
    not_null: bool = False
    row: str = ""
    first: int = 0
    last: int = 0
    parents: list[TableName] = field(default_factory=list)


class ColumnRewriting:
    """Reads one, and edits what MySQL does not read. `table_charset`: of what names no character set, "" for not known."""

    def __init__(self, words: EditableStatement, name: str, first: int, schema: str) -> None:
        self._words = words
        self._schema = schema
        self.column = DefinedColumn(name, "", first=first)
        self._clauses = CharsetClauses(words)
        self._type_ends = 0
        self._is_text = False

    def read(self) -> DefinedColumn:
        """The column; the words behind it come next. Raises: UnsupportedSyntax, Untranslatable."""
        self._type()
        self._type_ends = self._words.at - 1
        while self._attribute():
            pass
        self.column.charset = self._clauses.charset
        self.column.last = self._words.at - 1
        return self.column

    def finish(self, table_charset: str) -> None:
        """When the table's character set is known."""
        if self.column.type == "JSON" and self._clauses.is_said:
            raise UnsupportedSyntax("a character set of a JSON column")
        self._clauses.done(table_charset, self._type_ends)

    # ---- the type ----

    def _type(self) -> None:
        words = self._words
        if words.kind is not TokenKind.WORD:
            raise UnsupportedSyntax(f"{words.peek().text} in place of a type")
        word = words.word()
        column = self.column
        column.type = word
        if word in _NUMBERS:
            words.take()
            if word == "DOUBLE":
                words.accept("PRECISION")
            self._digits(word)
            if word == "SERIAL":
                column.unique, column.not_null = (words.at, words.at), True
            words.accept_any("UNSIGNED", "SIGNED", "ZEROFILL")
        elif word in _TIMES:
            words.take()
            digits = self._brackets()
            if word == "YEAR" and digits == "2":
                raise definition_stops.clause_unknown(
                    words.context.target_title, words.query, "YEAR(2)", ErrorCode.ER_INVALID_YEAR_COLUMN_LENGTH
                )
            if word != "YEAR":
                column.digits = int(digits or 0)
            words.accept_any("UNSIGNED", "ZEROFILL")
        elif word in _BYTES:
            words.take()
            self._brackets()
        elif word in _BLOBS:
            words.take()
            self._brackets()
            column.is_blob = True
        elif word in _TEXTS:
            words.take()
            self._brackets()
            column.is_blob = self._is_text = True
        elif word in GEOMETRIES:
            words.take()
            column.is_blob = True
        elif word in _OF_MARIADB:
            words.take()
            words.put(words.at - 1, _OF_MARIADB[word])
        elif word == "JSON":
            words.take()
            column.is_blob = True
            if words.context.json == "longtext":
                words.put(words.at - 1, JSON_TEXT)
        elif word == "VECTOR":
            words.take()
            self._vector()
        elif word in ("ENUM", "SET"):
            words.take()
            words.skip_brackets()
            self._is_text = True
        else:
            self._characters(word)

    def _characters(self, word: str) -> None:
        words = self._words
        self._is_text = True
        if words.accept("LONG"):
            self.column.is_blob = True
            if words.accept("VARBINARY"):
                self._is_text = False
            elif words.word() in ("CHAR", "CHARACTER") and words.word(1) == "VARYING":
                words.accept_any("CHAR", "CHARACTER", "VARYING")
            else:
                words.accept_any("VARCHAR", "VARCHARACTER")
            return
        national = words.accept("NATIONAL") or word in ("NCHAR", "NVARCHAR")
        word = words.word()
        if word not in ("CHAR", "CHARACTER", "NCHAR", "VARCHAR", "VARCHARACTER", "NVARCHAR"):
            raise UnsupportedSyntax(f"the type {words.peek().text} of the column {self.column.name}")
        words.take()
        if word in ("CHAR", "CHARACTER", "NCHAR"):
            words.accept("VARYING") or words.accept("VARCHAR") or words.accept("VARCHARACTER")
        self.column.length = int(self._brackets() or 0)
        if national:
            self._clauses.take_national()

    def _brackets(self) -> str:
        words = self._words
        if words.word() != "(":
            return ""
        if words.peek(1).kind is not TokenKind.NUMBER or words.word(2) != ")":
            raise UnsupportedSyntax(f"what stands in brackets behind the type of the column {self.column.name}")
        words.at += 3
        return words.tokens[words.at - 2].text

    def _digits(self, word: str) -> None:
        words = self._words
        if words.word() != "(":
            return
        if words.word(2) == "," and words.word(4) == ")":
            scale = words.peek(3).text
            if word in _DECIMALS and (not scale.isdigit() or int(scale) > _MOST_DIGITS_BEHIND_POINT):
                raise definition_stops.clause_unknown(
                    words.context.target_title,
                    words.query,
                    f"more than {_MOST_DIGITS_BEHIND_POINT} digits behind the point",
                    ErrorCode.ER_TOO_BIG_SCALE,
                )
            words.at += 5
        else:
            self._brackets()

    def _vector(self) -> None:
        words = self._words
        at = words.at - 1
        dimension = self._brackets()
        if not dimension:
            raise UnsupportedSyntax("a VECTOR without its dimension")
        if words.context.target < (9, 0):
            words.put(at, "VARBINARY")
            words.put(at + 2, str(4 * int(dimension)))

    # ---- what follows ----

    def _attribute(self) -> bool:
        words, column = self._words, self.column
        word, at = words.word(), words.at
        if words.ended or word in (",", ")", "FIRST", "AFTER") or (word == "PARTITION" and words.word(1) == "BY"):
            return False
        if self._of_charset(word) or self._of_value(word):
            return True
        if word == "NOT" and words.word(1) == "NULL":
            words.at += 2
            column.not_null = True
        elif word in ("NULL", "AUTO_INCREMENT", "INVISIBLE"):
            words.take()
            column.auto_increment = column.auto_increment or word == "AUTO_INCREMENT"
        elif word == "UNIQUE":
            words.take()
            words.accept("KEY")
            column.unique = (at, words.at)
        elif word in ("PRIMARY", "KEY"):
            words.take()
            if word == "PRIMARY":
                words.expect("KEY")
            column.primary = (at, words.at)
        elif word == "COMMENT":
            words.take()
            words.accept("=")
            if words.take().kind is not TokenKind.STRING:
                raise UnsupportedSyntax("a COMMENT without a string")
            while words.kind is TokenKind.STRING:
                words.take()
        elif word == "REFERENCES":
            if words.context.target < (9, 0):
                raise definition_stops.clause_ignored(
                    words.context.target_title,
                    words.query,
                    "REFERENCES behind a column",
                    "so that rows may come in which the source refuses",
                )
            column.parents.append(read_references(words, self._schema).parent)
        elif word in ("CONSTRAINT", "CHECK"):
            self._check()
        elif word == "COMPRESSED":
            words.take()
            if words.accept("="):
                words.take()
            words.cut(at, words.at)
        elif word == "REF_SYSTEM_ID":  # MariaDB does nothing about it; MySQL's SRID refuses other values
            words.take()
            words.accept("=")
            words.take()
            words.cut(at, words.at)
        elif word in ("WITH", "WITHOUT") and words.word(1) == "SYSTEM" and words.word(2) == "VERSIONING":
            words.at += 3
            words.cut(at, words.at)
            if word == "WITH":
                raise UnsupportedSyntax("system versioning of single columns")
        else:
            raise UnsupportedSyntax(f"{words.peek().text} in the definition of the column {column.name}")
        return True

    def _check(self) -> None:
        words = self._words
        if words.accept("CONSTRAINT") and words.word() != "CHECK":
            words.name()
        words.expect("CHECK")
        opened = words.at
        words.skip_brackets()
        read_expressions(words, opened, words.at)

    def _of_charset(self, word: str) -> bool:
        words = self._words
        if word in ("CHARACTER", "CHARSET", "CHAR", "COLLATE") and self._clauses.accept():
            return True
        if not self._is_text or word not in ("ASCII", "UNICODE", "BYTE", "BINARY"):
            return False
        words.take()
        if word in ("ASCII", "UNICODE"):
            self._clauses.take_unicode("latin1" if word == "ASCII" else "ucs2")
        elif word == "BINARY":
            self._clauses.take_binary()
        return True

    def _of_value(self, word: str) -> bool:
        words = self._words
        if word == "DEFAULT":
            self._default()
        elif word == "ON" and words.word(1) == "UPDATE":
            words.at += 2
            if words.word() not in NOW_FUNCTIONS:
                raise UnsupportedSyntax("ON UPDATE of another value than the time")
            words.take()
            if words.word() == "(":
                words.skip_brackets()
        elif word in ("GENERATED", "AS"):
            self._generated()
        else:
            return False
        return True

    def _generated(self) -> None:
        words, at = self._words, self._words.at
        if words.accept("GENERATED"):
            words.expect("ALWAYS")
        words.expect("AS")
        if words.accept("ROW"):
            self.column.row = words.take().upper
            if self.column.row not in ("START", "END"):
                raise UnsupportedSyntax("ROW without START or END")
            words.cut(at, words.at)
            return
        opened = words.at
        words.skip_brackets()
        read_expressions(words, opened, words.at)
        self.column.generated = (opened, words.at)
        differing = differing_function(words, opened, words.at)
        if differing:
            raise definition_stops.generated_column_differs(
                words.context.target_title, words.query, differing, self.column.name
            )
        if words.accept("PERSISTENT"):
            words.put(words.at - 1, "STORED")
        else:
            words.accept_any("VIRTUAL", "STORED")

    def _default(self) -> None:
        words, at = self._words, self._words.at
        words.take()
        start = words.at
        is_expression, is_null = self._value(start)
        stop = words.at
        if words.word() in _OPERATORS:
            raise UnsupportedSyntax(f"an expression without brackets as the default of the column {self.column.name}")
        if any(
            words.at_word(index) in SEQUENCE_FUNCTIONS or words.at_word(index) == "VALUE"
            for index in range(start, stop)
        ):
            words.cut(at, stop)
            words.reports.append(f"the default of {self.column.name}, which is of a sequence")
            return
        if is_expression:
            self.column.default = (start, stop)
            read_expressions(words, start, stop)
        if is_null or words.at_word(start) == "(":
            return
        if self.column.type in _OF_MARIADB:
            self._converted_default(start, stop)
            return
        blob = self.column.is_blob or self.column.type == "VECTOR"
        if (is_expression and not self._is_time(start)) or blob:
            words.before(start, "(")
            words.after(stop - 1, ")")

    def _is_time(self, start: int) -> bool:
        return self._words.at_word(start) in NOW_FUNCTIONS and self.column.type in _NOW_TYPES

    def _converted_default(self, start: int, stop: int) -> None:
        """A value of a type that becomes bytes."""
        words, kind = self._words, self.column.type
        text = words.tokens[start]
        if kind == "UUID" and text.upper == "UUID":
            words.before(start, "(uuid_to_bin(")
        elif text.kind is TokenKind.STRING and stop == start + 1 and (kind != "INET6" or ":" in text.text):
            words.before(start, "(uuid_to_bin(" if kind == "UUID" else "(inet6_aton(")
        else:
            raise UnsupportedSyntax(f"the default of the column {self.column.name} of type {kind}")
        words.after(stop - 1, "))")

    def _value(self, start: int) -> tuple[bool, bool]:
        """Takes a default; whether it is no literal, and whether it is NULL."""
        words = self._words
        if words.word() == "(":
            words.skip_brackets()
            return True, False
        if words.word() in ("+", "-"):
            words.take()
            if words.take().kind is not TokenKind.NUMBER:
                raise UnsupportedSyntax("a sign without a number")
            return False, False
        if words.kind is TokenKind.STRING:
            while words.kind is TokenKind.STRING:
                words.take()
            return False, False
        if words.kind is TokenKind.NUMBER or words.word() in ("NULL", "TRUE", "FALSE"):
            return False, words.take().upper == "NULL"
        if words.word() in ("NEXT", "PREVIOUS") and words.word(1) == "VALUE":
            words.at += 2
            words.expect("FOR")
            words.table_name()
            return True, False
        introduces = words.word() in _INTRODUCED or words.word().startswith("_")
        if introduces and words.peek(1).kind in (TokenKind.STRING, TokenKind.NUMBER):
            words.at += 2
            return False, False
        if words.kind in (TokenKind.WORD, TokenKind.NAME) and words.word() not in ("CASE", "BINARY", "EXISTS"):
            words.take()
            while words.accept("."):
                words.take()
            if words.word() == "(":
                words.skip_brackets()
            elif words.at_word(words.at - 1) not in NOW_FUNCTIONS | {
                "CURRENT_USER",
                "CURRENT_DATE",
                "CURRENT_TIME",
                "CURDATE",
            }:
                raise UnsupportedSyntax(f"the default {words.tokens[start].text}")
            return True, False
        raise UnsupportedSyntax(f"the default {words.peek().text}")
