"""Prepared statements: a text with question marks, and later values for them, which are written into the text.

Nothing is read before the values are there, so a statement's errors and columns are reported when it is executed: clients take both
from there. Source: MySQL 9.x reference, "COM_STMT_PREPARE", "COM_STMT_EXECUTE".
"""

import math
import struct
from dataclasses import dataclass
from typing import Final

from protocol.charsets import TextEncoding
from protocol.columns.codes import column_codes as codes
from protocol.errors import ErrorCode, Malformed, StatementRefused
from protocol.packets import eof_payload
from protocol.resultset import AnswerColumn, column_payload
from protocol.statements.expression.tokens import check_size, placeholders
from protocol.statements.session.facts import SourceFacts
from protocol.wire import Cursor

MOST_STATEMENTS: Final = 64
"""The most statements of one connection. A text has at most 64 KiB."""
_PLACE_BYTES: Final = 104
"""The memory of a question mark: its place in the text, and the type of its last value."""
_MOST_LITERAL_CHARACTERS: Final = 65536
_UNSIGNED: Final = 0x80
_PARAMETER: Final = AnswerColumn("?", length=21845)
_INTEGERS: Final = {
    codes.FIELD_TINY: "b", codes.FIELD_SHORT: "h", codes.FIELD_LONG: "i", codes.FIELD_LONGLONG: "q", codes.FIELD_INT24: "i",
    codes.FIELD_YEAR: "h",
}  # fmt: skip
_REALS: Final = {codes.FIELD_FLOAT: "<f", codes.FIELD_DOUBLE: "<d"}
_MOMENTS: Final = (codes.FIELD_TIMESTAMP, codes.FIELD_DATE, codes.FIELD_DATETIME)


@dataclass(slots=True)
class _Prepared:
    """A statement. `places` are those of its question marks; `types` are type and flag of the values that came last."""

    text: str
    places: tuple[int, ...]
    types: tuple[tuple[int, int], ...] = ()
    has_long_data: bool = False

    @property
    def held_bytes(self) -> int:
        """The bytes that it takes in memory."""
        return self.text.__sizeof__() + len(self.places) * _PLACE_BYTES


class PreparedStatements:
    """The prepared statements of one connection."""

    def __init__(self) -> None:
        self._statements: dict[int, _Prepared] = {}
        self._last_id = 0
        self.held_bytes = 0
        """The bytes that they take in memory."""

    def prepare(self, text: str, facts: SourceFacts, encoding: TextEncoding, status: int) -> list[bytes]:
        """Keep a statement, and return the payloads of the answer. Raises: StatementRefused (1064, 1461)."""
        if len(self._statements) >= MOST_STATEMENTS:
            raise StatementRefused(
                ErrorCode.ER_MAX_PREPARED_STMT_COUNT_REACHED,
                f"Can't create more than max_prepared_stmt_count statements (current value: {MOST_STATEMENTS}): "
                "binlog-relay keeps so many for one connection",
            )
        places = placeholders(text, facts)
        self._last_id += 1
        statement = self._statements[self._last_id] = _Prepared(text, places)
        self.held_bytes += statement.held_bytes
        payloads = [struct.pack("<BIHHBH", 0, self._last_id, 0, len(places), 0, 0)]
        if places:
            payloads += [column_payload(_PARAMETER, encoding)] * len(places)
            payloads.append(eof_payload(status))
        return payloads

    def execute(self, body: bytes, encoding: TextEncoding) -> str:
        """Return the text of COM_STMT_EXECUTE's statement with its values. Raises: StatementRefused (1243, 1295, 1210)."""
        statement = self._statement(body, "COM_STMT_EXECUTE")
        check_size(body)
        if statement.has_long_data:
            raise StatementRefused(
                ErrorCode.ER_UNSUPPORTED_PS,
                "This command is not supported in the prepared statement protocol yet: "
                "binlog-relay takes values with COM_STMT_EXECUTE only",
            )
        try:
            values = _values(statement, body, encoding)
        except Malformed as error:
            raise StatementRefused(
                ErrorCode.ER_WRONG_ARGUMENTS, f"Incorrect arguments to COM_STMT_EXECUTE: {error}"
            ) from None
        parts: list[str] = []
        begin = 0
        for place, value in zip(statement.places, values, strict=True):
            # The spaces keep a minus apart from an operator before it.
            parts += [statement.text[begin:place], " ", value, " "]
            begin = place + 1
        return "".join((*parts, statement.text[begin:]))

    def reset(self, body: bytes) -> None:
        """Answer COM_STMT_RESET by forgetting long values. Raises: StatementRefused (1243)."""
        self._statement(body, "COM_STMT_RESET").has_long_data = False

    def take_long_data(self, body: bytes) -> None:
        """Take COM_STMT_SEND_LONG_DATA, which has no answer: errors are reported when the statement is executed."""
        statement = self._statements.get(int.from_bytes(body[:4], "little"))
        if statement is not None:
            statement.has_long_data = True

    def close(self, body: bytes) -> None:
        """Carry out COM_STMT_CLOSE; a statement that was never prepared is ignored."""
        statement = self._statements.pop(int.from_bytes(body[:4], "little"), None)
        if statement is not None:
            self.held_bytes -= statement.held_bytes

    def forget(self) -> None:
        """Forget all statements: the connection is reset."""
        self._statements.clear()
        self.held_bytes = 0

    def _statement(self, body: bytes, command: str) -> _Prepared:
        number = int.from_bytes(body[:4], "little")
        statement = self._statements.get(number)
        if statement is None:
            text = f"Unknown prepared statement handler ({number}) given to {command}"
            raise StatementRefused(ErrorCode.ER_UNKNOWN_STMT_HANDLER, text)
        return statement


def _values(statement: _Prepared, body: bytes, encoding: TextEncoding) -> list[str]:
    """Return the values of an execution as texts.

    Layout: statement u32 | cursor flags u8 | iterations u32 | NULL bits | whether types follow u8 | types u16 each | values.
    Raises: Malformed.
    """
    count = len(statement.places)
    cursor = Cursor(body)
    cursor.skip(9)
    if not count:
        return []
    nulls = int.from_bytes(cursor.take((count + 7) // 8), "little")
    if cursor.uint(1):
        statement.types = tuple((cursor.uint(1), cursor.uint(1)) for _ in range(count))
    if len(statement.types) != count:
        raise Malformed("the types of the values are missing")
    values = []
    for number, (kind, flag) in enumerate(statement.types):
        is_null = nulls >> number & 1 or kind == codes.FIELD_NULL
        values.append("NULL" if is_null else _literal(cursor, kind, bool(flag & _UNSIGNED), encoding))
    return values


def _literal(cursor: Cursor, kind: int, is_unsigned: bool, encoding: TextEncoding) -> str:
    """Return a value as it is written in a statement."""
    if kind in _INTEGERS:
        code = _INTEGERS[kind].upper() if is_unsigned else _INTEGERS[kind]
        layout = "<" + code
        return str(struct.unpack(layout, cursor.take(struct.calcsize(layout)))[0])
    if kind in _REALS:
        value = struct.unpack(_REALS[kind], cursor.take(struct.calcsize(_REALS[kind])))[0]
        if not math.isfinite(value):
            raise Malformed("a number that is none")
        # Clients of languages with one kind of number send all numbers like this.
        return str(int(value)) if value.is_integer() and abs(value) < 1 << 53 else repr(value)
    if kind in _MOMENTS or kind == codes.FIELD_TIME:
        return f"'{_time(cursor) if kind == codes.FIELD_TIME else _moment(cursor)}'"
    text = encoding.decode(cursor.lenenc_bytes())
    if len(text) > _MOST_LITERAL_CHARACTERS:
        raise Malformed(f"a text of {len(text)} characters")
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def _moment(cursor: Cursor) -> str:
    size = cursor.uint(1)
    parts = cursor.take(size).ljust(11, b"\0")
    year, month, day, hour, minute, second, microseconds = struct.unpack("<HBBBBBI", parts[:11])
    shown = f"{year:04d}-{month:02d}-{day:02d}"
    if size > 4:
        shown += f" {hour:02d}:{minute:02d}:{second:02d}"
    return shown + (f".{microseconds:06d}" if size > 7 else "")


def _time(cursor: Cursor) -> str:
    size = cursor.uint(1)
    negative, days, hours, minutes, seconds = struct.unpack("<BIBBB", cursor.take(size).ljust(12, b"\0")[:8])
    return f"{'-' if negative else ''}{days * 24 + hours:02d}:{minutes:02d}:{seconds:02d}"
