# cython: annotation_typing=False, boundscheck=False, initializedcheck=False, cdivision=True
"""The plans for reading the values of each table's columns: made once for a Table_map, in Python, and used for every row, in C.

A plan is made from a Table_map, and from its owner's knowledge of the table.
"""

import json
from array import array
from collections.abc import Sequence

import cython

from protocol.binlog.schema.column_charsets import decode_text
from protocol.binlog.schema.column_description import DescribedColumn, decode_columns
from protocol.binlog.schema.table_columns import TableColumn, described_columns
from protocol.binlog.table_map import decode_table_map
from protocol.columns.tables import TableMaps
from protocol.columns.text.charset_text import CharsetText

if not cython.compiled:
    from protocol.columns.codes.column_codes import *
    from protocol.kernel.pure import bytes_of, longs_of

_TYPES = {
    FIELD_TINY: TYPE_INTEGER,
    FIELD_SHORT: TYPE_INTEGER,
    FIELD_LONG: TYPE_INTEGER,
    FIELD_LONGLONG: TYPE_INTEGER,
    FIELD_INT24: TYPE_INTEGER,
    FIELD_FLOAT: TYPE_FLOAT,
    FIELD_DOUBLE: TYPE_DOUBLE,
    FIELD_NULL: TYPE_NOTHING,
    FIELD_TIMESTAMP: TYPE_OLD_TIMESTAMP,
    FIELD_DATE: TYPE_DATE,
    FIELD_TIME: TYPE_OLD_TIME,
    FIELD_DATETIME: TYPE_OLD_DATETIME,
    FIELD_YEAR: TYPE_YEAR,
    FIELD_NEWDATE: TYPE_DATE,
    FIELD_VARCHAR: TYPE_TEXT,
    FIELD_BIT: TYPE_BIT,
    FIELD_TIMESTAMP2: TYPE_TIMESTAMP,
    FIELD_DATETIME2: TYPE_DATETIME,
    FIELD_TIME2: TYPE_TIME,
    FIELD_BLOB_COMPRESSED: TYPE_COMPRESSED,
    FIELD_VARCHAR_COMPRESSED: TYPE_COMPRESSED,
    FIELD_VECTOR: TYPE_VECTOR,
    FIELD_JSON: TYPE_JSON,
    FIELD_NEWDECIMAL: TYPE_DECIMAL,
    FIELD_ENUM: TYPE_ENUM,
    FIELD_SET: TYPE_SET,
    FIELD_TINY_BLOB: TYPE_TEXT,
    FIELD_MEDIUM_BLOB: TYPE_TEXT,
    FIELD_LONG_BLOB: TYPE_TEXT,
    FIELD_BLOB: TYPE_TEXT,
    FIELD_VAR_STRING: TYPE_TEXT,
    FIELD_STRING: TYPE_TEXT,
    FIELD_GEOMETRY: TYPE_GEOMETRY,
}
_FORMS = {
    TYPE_INTEGER: FORM_NUMBER,
    TYPE_FLOAT: FORM_NUMBER,
    TYPE_DOUBLE: FORM_NUMBER,
    TYPE_BIT: FORM_NUMBER,
    TYPE_YEAR: FORM_NUMBER,
    TYPE_JSON: FORM_DOCUMENT,
    TYPE_GEOMETRY: FORM_DOCUMENT,
    TYPE_VECTOR: FORM_DOCUMENT,
    TYPE_UNKNOWN: FORM_OTHER,
    TYPE_NOTHING: FORM_OTHER,
    TYPE_MISFIT: FORM_OTHER,
}  # all others are texts
_UNKNOWN_CHARSET = "?"  # in a description: it has one, which is unknown
_NATIVE = {"uuid": (TYPE_UUID, 16), "inet4": (TYPE_INET4, 4), "inet6": (TYPE_INET6, 16)}


class ColumnPlans:
    """Plans by number, from 1; 0 is none. Memory grows with the number of different Table_maps, until `reset`.

    A plan is COLUMN_NUMBERS numbers for each column, in `columns` from first[plan] on. Texts (names, those of ENUM and SET) are in
    one arena, as JSON; `texts` contains offset and length of each. `named[plan]` is the origin of the columns' names. Offset and
    length of the plan's own text are in `shapes` from 2 * plan on: a list of each column's name and form, as JSON.
    """

    def __init__(self, charsets: CharsetText) -> None:
        self.charsets = charsets
        self.reset()

    def reset(self) -> None:
        """Forget all plans."""
        self.count = 0
        self.column_count = 0
        self.text_count = 0
        self.arena_used = 0
        self.first_bytes = bytearray(8 * 16)
        self.shape_bytes = bytearray(8 * 2 * 16)
        self.names: list[str] = []
        self.named_bytes = bytearray(16)
        self.column_bytes = bytearray(8 * COLUMN_NUMBERS * 64)
        self.text_bytes = bytearray(8 * 2 * 64)
        self.arena_bytes = bytearray(4096)
        self.first = longs_of(self.first_bytes)
        self.shapes = longs_of(self.shape_bytes)
        self.named = bytes_of(self.named_bytes)
        self.columns = longs_of(self.column_bytes)
        self.texts = longs_of(self.text_bytes)
        self.arena = bytes_of(self.arena_bytes)

    def add(
        self, columns: Sequence[TableColumn], widths: bytes, described: Sequence[DescribedColumn] | None, named_by: int
    ) -> int:
        """Make a plan, and return its number. `widths` are TableMaps' four bytes a column; `described` has as many columns, or is
        None; `named_by` is the origin of the description.
        """
        numbers: list[int] = []
        self.names = []
        for i, column in enumerate(columns):
            numbers += self._row(i, column, widths[i * 4 : i * 4 + 3], described[i] if described is not None else None)
        first = self.column_count * COLUMN_NUMBERS
        self.column_bytes = _put(self.column_bytes, 8 * first, array("q", numbers).tobytes())
        self.columns = longs_of(self.column_bytes)
        self.column_count += len(columns)
        self.count += 1
        self.first_bytes = _put(self.first_bytes, 8 * self.count, array("q", [first]).tobytes())
        self.first = longs_of(self.first_bytes)
        forms = numbers[AT_FORM::COLUMN_NUMBERS]
        shape = self._stored(
            json.dumps([*zip(self.names, forms, strict=True)], ensure_ascii=False).encode("utf-8", "replace")
        )
        self.shape_bytes = _put(self.shape_bytes, 16 * self.count, array("q", shape).tobytes())
        self.shapes = longs_of(self.shape_bytes)
        if all(column.name is not None for column in columns):
            named_by = NAMED_BY_BINLOG
        elif described is None:
            named_by = NAMED_BY_NOBODY
        self.named_bytes = _put(self.named_bytes, self.count, bytes([named_by]))
        self.named = bytes_of(self.named_bytes)
        return self.count

    def _row(self, i: int, column: TableColumn, width: bytes, described: DescribedColumn | None) -> list[int]:
        """Return the numbers of a column, see AT_SIZE and others; `width` is TableMaps' three bytes."""
        kind = _TYPES.get(column.type, TYPE_UNKNOWN) if width[0] <= 4 else TYPE_UNKNOWN
        prefix = width[0]
        size = width[1] | width[2] << 8 if prefix == 0 else 0
        name, charset, unsigned = column.name, column.charset, column.unsigned
        texts = None if column.texts is None else [decode_text(text, charset) for text in column.texts]
        if described is not None and name is not None and name != described.name:
            described = None  # another version of the table
        if described is not None and not described.native:
            described = None  # an unknown one
        if described is not None:
            name = described.name if name is None else name
            unsigned = described.unsigned if unsigned is None else unsigned
            if texts is None and described.texts:
                texts = [text.decode("utf-8", "replace") for text in described.texts]
        mode = self.charsets.mode_of(charset)
        has_charset = charset is not None
        if described is not None and charset is None and described.charset != _UNKNOWN_CHARSET:
            has_charset = True
            mode = (
                CHARSET_BINARY
                if described.charset is None and kind in (TYPE_TEXT, TYPE_COMPRESSED)
                else self.charsets.mode_of(described.charset)
            )
        if kind in (TYPE_OLD_TIME, TYPE_OLD_DATETIME, TYPE_OLD_TIMESTAMP):
            if described is not None and described.native.endswith(")"):
                kind = TYPE_UNKNOWN  # MariaDB 5.3's: like the old type, but longer by a size that is in no binlog
        argument, scale = column.arguments
        if kind == TYPE_FLOAT and size == 8:
            kind = TYPE_DOUBLE
        if (
            (kind == TYPE_DECIMAL and not 1 <= argument <= 65)
            or (kind in (TYPE_TIME, TYPE_DATETIME, TYPE_TIMESTAMP) and argument > 6)
            or (kind in (TYPE_FLOAT, TYPE_DOUBLE) and size != (4 if kind == TYPE_FLOAT else 8))
            or (kind in (TYPE_BIT, TYPE_SET) and not 1 <= size <= 8)
            or (kind == TYPE_ENUM and not 1 <= size <= 2)
        ):
            kind = TYPE_MISFIT
        if kind == TYPE_TEXT:
            # For CHAR and BINARY: trailing zeros of a BINARY are not stored.
            argument = scale if column.type == FIELD_STRING and mode == CHARSET_BINARY else 0
            native = described.native if described is not None else ""
            if native == "vector" and mode == CHARSET_BINARY:
                kind = TYPE_VECTOR
            elif native in _NATIVE and _NATIVE[native][1] == argument:
                kind = _NATIVE[native][0]
        uncertain = (kind == TYPE_INTEGER and unsigned is None) or (
            kind in (TYPE_TEXT, TYPE_COMPRESSED) and not has_charset
        )
        form = FORM_BYTES if kind == TYPE_TEXT and mode == CHARSET_BINARY else _FORMS.get(kind, FORM_TEXT)
        if (kind in (TYPE_ENUM, TYPE_SET) and not texts) or (kind == TYPE_COMPRESSED and mode == CHARSET_BINARY):
            form = FORM_OTHER
        self.names.append("@" + str(i + 1) if name is None else name.decode("utf-8", "replace"))
        key = self._text(self.names[-1], '"%s":')
        first_text = self.text_count
        pairs: list[int] = []
        for text in texts or ():
            pairs += self._text(text, "%s")
        self.text_bytes = _put(self.text_bytes, 16 * first_text, array("q", pairs).tobytes())
        self.texts = longs_of(self.text_bytes)
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
            column.type == FIELD_JSON,
            uncertain,
            form,
        ]

    def _text(self, text: str, form: str) -> list[int]:
        """Return offset and length of the JSON text in the arena."""
        return self._stored((form % json.dumps(text, ensure_ascii=False)[1:-1]).encode("utf-8", "replace"))

    def _stored(self, data: bytes) -> list[int]:
        """Return offset and length in the arena."""
        at = self.arena_used
        self.arena_bytes = _put(self.arena_bytes, at, data)
        self.arena = bytes_of(self.arena_bytes)
        self.arena_used = at + len(data)
        return [at, len(data)]


def _put(buffer: bytearray, at: int, data: bytes) -> bytearray:
    """Return the buffer with `data` at `at`; a larger one, if it does not fit."""
    end = at + len(data)
    if end > len(buffer):
        larger = bytearray(2 * end)
        larger[:at] = memoryview(buffer)[:at]
        buffer = larger
    buffer[at:end] = data
    return buffer


class RowTables:
    """Puts the plan's number into the slot of each Table_map. With `asks`, the owner must describe the table of each new Table_map;
    `asked` is then schema, table, the type codes and their arguments.
    """

    def __init__(self, tables: TableMaps, plans: ColumnPlans, asks: bool) -> None:
        self.tables = tables
        self.plans = plans
        self.asks = asks
        self.asked: tuple[bytes, bytes, bytes, list[tuple[int, int]]] | None = None
        self.malformed = False
        self.mariadb = False
        self.slot = 0
        self.numbers: dict[bytes, int] = {}
        self.columns: list[TableColumn] = []
        self.widths = self.key = b""

    def begin_file(self, mariadb: bool) -> None:
        """Begin another file."""
        self.mariadb = mariadb
        self.forget()

    def forget(self) -> None:
        """Forget all Table_maps and their plans."""
        self.tables.forget()
        self.plans.reset()
        self.numbers = {}

    def are_too_many(self) -> bool:
        """Return whether they should be forgotten when no transaction needs them."""
        return self.plans.count > MOST_PLANS or self.plans.arena_used > MOST_ARENA

    def make_plan(self) -> bool:
        """Make the plan of the Table_map in `slot`; False: `asked` must be answered first. `malformed`: its optional metadata end
        early.
        """
        raw = self.tables.slots[self.slot + SLOT_RAW]
        body = bytes(self.tables.arena[raw : raw + self.tables.slots[self.slot + SLOT_RAW_LENGTH]])
        # A server gives a table another id when its definition changed; the owner's knowledge may then differ.
        key = body if self.asks else body[self.tables.id_size :]
        self.malformed = False
        number = self.numbers.get(key)
        if number is not None:
            self.tables.slots[self.slot + SLOT_MARK] = number
            return True
        known = described_columns(decode_table_map(body, self.tables.id_size), self.mariadb)
        self.malformed = known.optional_malformed
        widths = self.tables.slots[self.slot + SLOT_WIDTHS]
        self.widths = bytes(self.tables.arena[widths : widths + 4 * len(known.columns)])
        self.columns = known.columns
        self.key = key
        if not self.asks:
            self.add_plan(None, NAMED_BY_NOBODY)
            return True
        schema = self.tables.slots[self.slot + SLOT_SCHEMA] - raw
        table = self.tables.slots[self.slot + SLOT_TABLE] - raw
        self.asked = (
            body[schema : schema + self.tables.slots[self.slot + SLOT_SCHEMA_LENGTH]],
            body[table : table + self.tables.slots[self.slot + SLOT_TABLE_LENGTH]],
            bytes([column.type for column in known.columns]),
            [column.arguments for column in known.columns],
        )
        return False

    def describe(self, description: bytes, named_by: int) -> bool:
        """Answer the question. False: the number of columns differs from the Table_map's, so none is used. Raises: Malformed."""
        columns = decode_columns(description)
        fits = len(columns) == len(self.columns)
        self.add_plan(columns if fits else None, named_by)
        return fits

    def add_plan(self, described: Sequence[DescribedColumn] | None, named_by: int) -> None:
        """Make the plan, with the `described` columns or None."""
        number = self.plans.add(self.columns, self.widths, described, named_by)
        self.numbers[self.key] = number
        self.tables.slots[self.slot + SLOT_MARK] = number
        self.asked = None
