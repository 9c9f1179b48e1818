"""A column's definition is rewritten where MySQL does not read it: its type, and the attributes after it."""

from dataclasses import dataclass, field
from typing import Final

from protocol.errors import ErrorCode
from protocol.sql.lexer import TokenKind, UnsupportedSyntax
from protocol.sql.server_functions import NOW_FUNCTIONS, SEQUENCE_FUNCTIONS
from protocol.sql.tables.column_types import TYPE, column_definition
from protocol.sql.tables.ddl_statement import Attribute
from relay.view.rules.mariadb.differences.differing_functions import differing_function
from relay.view.rules.mariadb.statement.collate_clauses import CharsetClauses
from relay.view.rules.mariadb.statement.editable_statement import EditableStatement
from relay.view.rules.mariadb.statement.expression_words import read_expressions
from relay.view.stops import definition_stops

GEOMETRIES: Final = frozenset(
    ("GEOMETRY", "POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON", "GEOMETRYCOLLECTION",
     "GEOMCOLLECTION")
)  # fmt: skip
_NOW_TYPES: Final = frozenset(("DATETIME", "TIMESTAMP"))
_NATIONAL: Final = frozenset(("NATIONAL", "NCHAR", "NVARCHAR"))
_OF_MARIADB: Final = {"UUID": "BINARY(16)", "INET6": "BINARY(16)", "INET4": "BINARY(4)"}
_KEPT: Final = frozenset(
    ("NULL", "NOT NULL", "AUTO_INCREMENT", "INVISIBLE", "COMMENT", "ON UPDATE", "PRIMARY KEY", "UNIQUE", "BYTE", "FIRST", "AFTER")
)  # fmt: skip
_CUT: Final = frozenset(("COMPRESSED", "WITHOUT", "REF_SYSTEM_ID"))
"""The attributes that are removed: MariaDB ignores REF_SYSTEM_ID, and MySQL's SRID refuses other values."""
_WITHOUT_BRACKETS: Final = NOW_FUNCTIONS | {"CURRENT_USER", "CURRENT_DATE", "CURRENT_TIME", "CURDATE"}
_MOST_DIGITS_AFTER_POINT: Final = 30
JSON_TEXT: Final = "longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"


@dataclass
class DefinedColumn:
    """A column as the source defines it. `type` is the first word of its type, in upper case. `is_blob`: it has no length in keys.

    `length` is that of a CHAR or VARCHAR in characters. `digits` are those of a time's fraction. `charset` is "" where none is named.
    `type_stop` is the end of its type in the text. `attributes` are all that follow it, by name. `row` is START or END, of system
    versioning. `generated` and `default` are [first, stop) of the words of the expression; None: there is none.
    """

    name: str
    type: str = ""
    is_blob: bool = False
    length: int = 0
    digits: int = 0
    charset: str = ""
    type_stop: int = 0
    attributes: dict[str, Attribute] = field(default_factory=dict)
    row: str = ""
    generated: tuple[int, int] | None = None
    default: tuple[int, int] | None = None


class ColumnRewriting:
    """Reads a column's definition after its name, and edits what MySQL does not read."""

    def __init__(self, words: EditableStatement, name: str) -> None:
        self._words = words
        self.column = DefinedColumn(name)
        self._clauses = CharsetClauses(words)

    def read(self) -> DefinedColumn:
        """Return the column; the words after it come next. Raises: UnsupportedSyntax, Untranslatable."""
        words, column, first = self._words, self.column, len(self._words.written.attributes)
        kind, _, rest = column_definition(words, column.name, words.alters).column.type.partition("(")
        words.expect_known()
        argument = rest.partition(")")[0]
        column.is_blob = kind.endswith(("text", "blob")) or kind.upper() in GEOMETRIES
        number = int(argument) if argument.isdecimal() else 0
        for one in words.written.attributes[first:]:
            column.attributes[one.name] = one
            if one.name == TYPE:
                self._type(one, argument)
            else:
                self._attribute(one)
        column.length = column.digits = number
        column.charset = self._clauses.charset
        return column

    def finish(self, table_charset: str) -> None:
        """Finish when the table's character set is known; "": it is not."""
        if self.column.type == "JSON" and self._clauses.is_said:
            raise UnsupportedSyntax("a character set of a JSON column")
        self._clauses.done(table_charset, self._words.index_at(self.column.type_stop) - 1)

    def _type(self, written: Attribute, argument: str) -> None:
        words, column, first = self._words, self.column, self._words.index_at(written.start)
        word = column.type = words.at_word(first)
        column.type_stop = written.stop
        scale = argument.partition(",")[2]
        if word == "YEAR" and argument == "2":
            raise definition_stops.clause_unknown(
                words.context.target_title, words.query, "YEAR(2)", ErrorCode.ER_INVALID_YEAR_COLUMN_LENGTH
            )
        if (
            word in ("DECIMAL", "DEC", "NUMERIC", "FIXED")
            and scale
            and not (scale.isdigit() and int(scale) <= _MOST_DIGITS_AFTER_POINT)
        ):
            raise definition_stops.clause_unknown(
                words.context.target_title,
                words.query,
                f"more than {_MOST_DIGITS_AFTER_POINT} digits behind the point",
                ErrorCode.ER_TOO_BIG_SCALE,
            )
        if word in _OF_MARIADB:
            words.put(first, _OF_MARIADB[word])
        elif word == "JSON" and words.context.json == "longtext":
            words.put(first, JSON_TEXT)
        elif word == "VECTOR":
            if not argument:
                raise UnsupportedSyntax("a VECTOR without its dimension")
            if words.context.target < (9, 0):
                words.put(first, "VARBINARY")
                words.put(first + 2, str(4 * int(argument)))
        elif word in _NATIONAL:
            self._clauses.mean("utf8mb3", words.index_at(written.stop) - 1)

    def _attribute(self, one: Attribute) -> None:
        words, column, name = self._words, self.column, one.name
        if name in ("CHARACTER SET", "COLLATE"):
            self._clauses.add(one)
        elif name in ("ASCII", "UNICODE"):
            self._clauses.mean("latin1" if name == "ASCII" else "ucs2", words.index_at(one.start))
        elif name == "BINARY":
            self._clauses.take_binary()
        elif name == "DEFAULT":
            self._default(one)
        elif name == "AS":
            self._generated(one)
        elif name == "CHECK":
            read_expressions(words, words.index_at(one.value), words.index_at(one.stop))
        elif name == "REFERENCES":
            if words.context.target < (9, 0):
                raise definition_stops.clause_ignored(
                    words.context.target_title,
                    words.query,
                    "REFERENCES behind a column",
                    "so that rows may come in which the source refuses",
                )
        elif name in _CUT:
            words.cut_part(one)
        elif name == "WITH":
            raise UnsupportedSyntax("system versioning of single columns")
        elif name not in _KEPT:
            raise UnsupportedSyntax(f"{name} in the definition of the column {column.name}")

    def _generated(self, one: Attribute) -> None:
        words, opened = self._words, self._words.index_at(one.value)
        if words.at_word(opened) == "ROW":
            self.column.row = words.at_word(opened + 1)
            words.cut_part(one)
            return
        stop = words.brackets.closing(opened) + 1
        read_expressions(words, opened, stop)
        self.column.generated = (opened, stop)
        differing = differing_function(words, opened, stop)
        if differing:
            raise definition_stops.generated_column_differs(
                words.context.target_title, words.query, differing, self.column.name
            )
        if words.at_word(stop) == "PERSISTENT":
            words.put(stop, "STORED")

    def _default(self, one: Attribute) -> None:
        words, column = self._words, self.column
        start, stop = words.index_at(one.value), words.index_at(one.stop)
        said = [words.at_word(index) for index in range(start, stop)]
        if "VALUE" in said or not SEQUENCE_FUNCTIONS.isdisjoint(said):
            words.cut_part(one)
            words.reports.append(f"the default of {column.name}, which is of a sequence")
            return
        kinds = [words.tokens[index].kind for index in range(start, min(start + 2, stop))]
        is_literal = TokenKind.STRING in kinds[:2] or TokenKind.NUMBER in kinds or said[0] in ("NULL", "TRUE", "FALSE")
        if not is_literal or said[0] == "(":
            column.default = (start, stop)
            if len(said) == 1 and said[0] not in _WITHOUT_BRACKETS:
                raise UnsupportedSyntax(f"the default {words.tokens[start].text}")
            read_expressions(words, start, stop)
        if said[0] in ("NULL", "("):
            return
        if column.type in _OF_MARIADB:
            self._converted_default(start, stop)
            return
        is_time = said[0] in NOW_FUNCTIONS and column.type in _NOW_TYPES
        if (not is_literal and not is_time) or column.is_blob or column.type == "VECTOR":
            words.before(start, "(")
            words.after(stop - 1, ")")

    def _converted_default(self, start: int, stop: int) -> None:
        """Rewrite a value of a type that becomes bytes."""
        words, kind = self._words, self.column.type
        text = words.tokens[start]
        if kind == "UUID" and text.upper == "UUID":
            words.before(start, "(uuid_to_bin(")
        elif text.kind is TokenKind.STRING and stop == start + 1 and (kind != "INET6" or ":" in text.text):
            words.before(start, "(uuid_to_bin(" if kind == "UUID" else "(inet6_aton(")
        else:
            raise UnsupportedSyntax(f"the default of the column {self.column.name} of type {kind}")
        words.after(stop - 1, "))")
