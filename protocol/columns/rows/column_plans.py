# cython: boundscheck=False, initializedcheck=False, cdivision=True
"""How the values of each table's columns are read: made once for a Table_map, in Python, used for every row, in C.

A plan is a row of C_COLUMN numbers for each column. Texts (names, those of ENUM and SET) stand in one arena, as JSON.
"""

import json

import cython

from protocol.binlog.schema.column_charsets import decode_text
from protocol.columns.text.charset_text import BINARY

# What a column's value is.
UNKNOWN = 0  # nobody knows how long
INTEGER = 1
FLOAT = 2
DOUBLE = 3
DECIMAL = 4
BIT = 5
YEAR = 6
DATE = 7
OLD_TIME = 8
OLD_DATETIME = 9
OLD_TIMESTAMP = 10
TIME = 11
DATETIME = 12
TIMESTAMP = 13
ENUM = 14
SET = 15
TEXT = 16
JSON = 17
GEOMETRY = 18
VECTOR = 19
COMPRESSED = 20
NOTHING = 21  # the type of NULL
MISFIT = 22  # arguments that the type cannot have: its bytes are shown
UUID = 23
INET4 = 24
INET6 = 25

# Numbers of a column: kind, bytes (0: behind a length), bytes of the length, argument (digits of a fraction, precision,
# bytes that trailing zeros were cut from), scale, unsigned, mode of its characters, where its name is in the arena, the
# name's length with quotation marks and colon, first of its texts, count of them, whether partial updates count it.
COLUMN = 12
C_COLUMN = cython.declare(cython.int, 12)

_FIXED = {
    1: INTEGER, 2: INTEGER, 3: INTEGER, 8: INTEGER, 9: INTEGER, 4: FLOAT, 5: DOUBLE, 6: NOTHING, 7: OLD_TIMESTAMP, 10: DATE,
    11: OLD_TIME, 12: OLD_DATETIME, 13: YEAR, 14: DATE, 15: TEXT, 16: BIT, 17: TIMESTAMP, 18: DATETIME, 19: TIME, 140: COMPRESSED,
    141: COMPRESSED, 242: VECTOR, 245: JSON, 246: DECIMAL, 247: ENUM, 248: SET, 249: TEXT, 250: TEXT, 251: TEXT, 252: TEXT,
    253: TEXT, 254: TEXT, 255: GEOMETRY,
}  # fmt: skip
_NATIVE = {"uuid": (UUID, 16), "inet4": (INET4, 4), "inet6": (INET6, 16)}


class ColumnPlans:
    """Plans by number, from 1; 0 is none. Memory grows with the number of different Table_maps, until `reset`."""

    def __init__(self, charsets):
        self.charsets = charsets
        self.reset()

    def reset(self):
        """Forgets all plans."""
        self.count = 0
        self.column_count = 0
        self.text_count = 0
        self.arena_used = 0
        self.plans = memoryview(bytearray(8 * 2 * 16)).cast("q")
        self.columns = memoryview(bytearray(8 * 12 * 64)).cast("q")
        self.texts = memoryview(bytearray(8 * 2 * 64)).cast("q")
        self.arena = memoryview(bytearray(4096))

    def first(self, plan):
        """Where the plan's first number is."""
        return self.plans[plan * 2]

    def width(self, plan):
        """How many columns it has."""
        return self.plans[plan * 2 + 1]

    def add(self, columns, widths, described):
        """Makes a plan. `columns`: TableColumn; `widths`: TableMaps' four bytes a column; `described`: DescribedColumn, as
        many, or None. Returns its number.
        """
        rows = []
        for i, column in enumerate(columns):
            rows += self._row(i, column, widths[i * 4 : i * 4 + 3], described[i] if described is not None else None)
        self.columns = _put_numbers(self.columns, self.column_count * COLUMN, rows)
        self.count += 1
        self.plans = _put_numbers(self.plans, self.count * 2, [self.column_count * COLUMN, len(columns)])
        self.column_count += len(columns)
        return self.count

    def _row(self, i, column, width, described):
        kind = _FIXED.get(column.type, UNKNOWN) if width[0] <= 4 else UNKNOWN
        prefix = width[0]
        size = width[1] | width[2] << 8 if prefix == 0 else 0
        name, charset, unsigned, texts = column.name, column.charset, column.unsigned, column.texts
        if texts is not None:
            texts = [decode_text(text, charset) for text in texts]
        if described is not None and name is not None and name != described.name:
            described = None  # another version of the table
        if described is not None:
            name = described.name if name is None else name
            unsigned = described.unsigned if unsigned is None else unsigned
            if texts is None and described.texts:
                texts = [text.decode("utf-8", "replace") for text in described.texts]
        mode = self.charsets.mode_of(charset)
        if described is not None and charset is None:
            mode = (
                BINARY
                if described.charset is None and kind in (TEXT, COMPRESSED)
                else self.charsets.mode_of(described.charset)
            )
        if kind in (OLD_TIME, OLD_DATETIME, OLD_TIMESTAMP) and described is not None and described.native.endswith(")"):
            kind = UNKNOWN  # MariaDB 5.3's: as the old type, but longer by what no binlog tells
        argument, scale = column.arguments
        if kind == FLOAT and size == 8:
            kind = DOUBLE
        if (
            (kind == DECIMAL and not 1 <= argument <= 65)
            or (kind in (TIME, DATETIME, TIMESTAMP) and argument > 6)
            or (kind in (FLOAT, DOUBLE) and size != (4 if kind == FLOAT else 8))
            or (kind in (BIT, SET) and not 1 <= size <= 8)
            or (kind == ENUM and not 1 <= size <= 2)
        ):
            kind = MISFIT
        if kind == TEXT:
            # CHAR and BINARY: trailing zeros of a BINARY are not stored
            argument = scale if column.type == 254 and mode == BINARY else 0
            native = described.native if described is not None else ""
            if native == "vector" and mode == BINARY:
                kind = VECTOR
            elif native in _NATIVE and _NATIVE[native][1] == argument:
                kind = _NATIVE[native][0]
        key = self._text(("@" + str(i + 1) if name is None else name.decode("utf-8", "replace")), '"%s":')
        first_text = self.text_count
        pairs = []
        for text in texts or ():
            pairs += self._text(text, "%s")
        self.texts = _put_numbers(self.texts, first_text * 2, pairs)
        self.text_count += len(pairs) // 2
        return [
            kind,
            size,
            prefix,
            argument,
            scale,
            bool(unsigned),
            mode,
            *key,
            first_text,
            len(pairs) // 2,
            column.type == 245,
        ]

    def _text(self, text, form):
        """Offset and length of the JSON text in the arena."""
        data = (form % json.dumps(text, ensure_ascii=False)[1:-1]).encode("utf-8", "replace")
        at = self.arena_used
        end = at + len(data)
        if end + 64 > len(self.arena):
            arena = bytearray(end * 2 + 64)
            arena[:at] = self.arena[:at]
            self.arena = memoryview(arena)
        for i, byte in enumerate(data):
            self.arena[at + i] = byte
        self.arena_used = end
        return [at, len(data)]


def _put_numbers(numbers, at, values):
    """Puts i64 values at numbers[at:], in a larger array where they do not fit."""
    if at + len(values) > len(numbers):
        known = bytes(numbers)
        data = bytearray((at + len(values)) * 2 * 8)
        data[: len(known)] = known
        numbers = memoryview(data).cast("q")
    for i, value in enumerate(values):
        numbers[at + i] = value
    return numbers
