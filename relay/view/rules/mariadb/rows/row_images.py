"""Row events of MariaDB as MySQL's of version 2, with the values of some columns converted."""

from collections.abc import Callable, Sequence
from typing import Final

from protocol.binlog.compression import TooLarge, unpack_column, unpack_compressed, unpacked_column_bytes
from protocol.binlog.event_type import EventType
from protocol.binlog.fields import Fields
from protocol.errors import Malformed, Truncated
from protocol.sql.tables.source_table import TableName
from relay.view.rules.mariadb.rows.column_rule import Change, ColumnRule
from relay.view.rules.mariadb.rows.json_document import NotJson, binary_json
from relay.view.rules.mariadb.rows.old_temporal import new_datetime, new_time, new_timestamp
from relay.view.stops import definition_stops, transaction_stops
from relay.view.stops.stop_reason import named

MOST_BYTES: Final = 64 << 20
"""The most bytes of a row event that is converted: it is in memory."""
_FIXED_BYTES: Final = 8
"""The size of table id and flags."""
_NO_EXTRA: Final = b"\x02\x00"
"""The length of the extra head in version 2, which includes its own two bytes."""
_FLOAT_BYTES: Final = 4
_OF_VERSION_2: Final[dict[int, int]] = {
    EventType.WRITE_ROWS_V1: EventType.WRITE_ROWS,
    EventType.UPDATE_ROWS_V1: EventType.UPDATE_ROWS,
    EventType.DELETE_ROWS_V1: EventType.DELETE_ROWS,
    EventType.WRITE_ROWS: EventType.WRITE_ROWS,
    EventType.UPDATE_ROWS: EventType.UPDATE_ROWS,
    EventType.DELETE_ROWS: EventType.DELETE_ROWS,
    EventType.WRITE_ROWS_COMPRESSED_V1: EventType.WRITE_ROWS,
    EventType.UPDATE_ROWS_COMPRESSED_V1: EventType.UPDATE_ROWS,
    EventType.DELETE_ROWS_COMPRESSED_V1: EventType.DELETE_ROWS,
    EventType.WRITE_ROWS_COMPRESSED: EventType.WRITE_ROWS,
    EventType.UPDATE_ROWS_COMPRESSED: EventType.UPDATE_ROWS,
    EventType.DELETE_ROWS_COMPRESSED: EventType.DELETE_ROWS,
}
_VERSION_2: Final = frozenset(
    (
        EventType.WRITE_ROWS, EventType.UPDATE_ROWS, EventType.DELETE_ROWS, EventType.WRITE_ROWS_COMPRESSED,
        EventType.UPDATE_ROWS_COMPRESSED, EventType.DELETE_ROWS_COMPRESSED,
    )
)  # fmt: skip
_FIRST_COMPRESSED: Final = EventType.WRITE_ROWS_COMPRESSED_V1

ROW_EVENTS: Final = frozenset(_OF_VERSION_2)
"""The types of row events that MariaDB writes."""


def rows_for_mysql(
    name: TableName, event_type: int, body: bytes, rules: Sequence[ColumnRule], *, same: bool
) -> tuple[int, bytes]:
    """Return type and body of a row event of the table as MySQL reads it; `body` is without checksum. `same`: no value changes.

    Layout: table id u48 | flags u16 | in version 2 a length u16 that counts itself, extra data | number of columns packed | the columns
    of the first image, a bit each | of an update: those of the second | rows: NULL, a bit for each existing column, values.
    Raises: Untranslatable.
    """
    try:
        return _OF_VERSION_2[event_type], _made(name, event_type, body, rules, same)
    except (Malformed, Truncated) as error:
        raise transaction_stops.malformed(f"a row event of {named(name)} is damaged: {error}") from error


def _made(name: TableName, event_type: int, body: bytes, rules: Sequence[ColumnRule], same: bool) -> bytes:
    fields = Fields(body)
    fixed = fields.take(_FIXED_BYTES)
    if event_type in _VERSION_2:
        extra = fields.u16()
        if extra < len(_NO_EXTRA):
            raise Malformed(f"extra row data of {extra} bytes; its length field alone takes {len(_NO_EXTRA)}")
        fields.skip(extra - len(_NO_EXTRA))
    width_at = fields.offset
    width = fields.lenenc_int()
    if width != len(rules):
        raise Malformed(f"{width} columns, where the Table_map has {len(rules)}")
    images = [fields.take((width + 7) // 8)]
    if _OF_VERSION_2[event_type] == EventType.UPDATE_ROWS:
        images.append(fields.take((width + 7) // 8))
    head = fixed + _NO_EXTRA + body[width_at : fields.offset]
    if event_type < _FIRST_COMPRESSED:
        data, start = body, fields.offset
    else:
        data, start = _unpacked(name, fields.rest()), 0
    if same:
        return head + (data if start == 0 else data[start:])
    plans = [[(number, rule) for number, rule in enumerate(rules, 1) if _bit(image, number - 1)] for image in images]
    return _Rows(name, data, start).made(head, plans)


def _unpacked(name: TableName, packed: bytes) -> bytes:
    try:
        return unpack_compressed(packed, MOST_BYTES)
    except TooLarge:
        raise transaction_stops.row_event_too_large(name, MOST_BYTES) from None


def _bit(bits: bytes, at: int) -> bool:
    return bool(bits[at >> 3] >> (at & 7) & 1)


_Plan = list[tuple[int, ColumnRule]]
"""The columns that an image contains: each with its number, from 1."""


class _Rows:
    """Converts the rows at data[start:]; unchanged parts are copied in runs."""

    def __init__(self, name: TableName, data: bytes, start: int) -> None:
        self._name = name
        self._data = data
        self._at = start
        self._kept = start
        """The offset of the first byte that is not copied yet."""
        self._made: list[bytes | memoryview] = []
        self._size = 0
        self._view = memoryview(data)

    def made(self, head: bytes, plans: Sequence[_Plan]) -> bytes:
        """Return `head` with the rows after it; each has an image by each plan. Raises: Malformed, Truncated; Untranslatable."""
        self._put(head)
        while self._at < len(self._data):
            before = self._at
            for plan in plans:
                self._image(plan)
            if self._at == before:
                raise Malformed(f"{len(self._data) - before} bytes of rows without columns")
        self._keep(self._at)
        return b"".join(self._made)

    def _image(self, plan: _Plan) -> None:
        data = self._data
        nulls = self._at
        self._at += (len(plan) + 7) // 8
        self._check(self._at)
        for place, (number, rule) in enumerate(plan):
            if data[nulls + (place >> 3)] >> (place & 7) & 1:
                continue
            start = self._at + rule.prefix
            self._check(start)
            stop = start + (int.from_bytes(data[self._at : start], "little") if rule.prefix else rule.size)
            self._check(stop)
            if rule.change:
                self._keep(self._at)
                value = self._changed(number, rule, data[start:stop])
                if rule.new_prefix:
                    self._put(len(value).to_bytes(rule.new_prefix, "little"))
                self._put(value)
                self._kept = stop
            self._at = stop

    def _changed(self, number: int, rule: ColumnRule, value: bytes) -> bytes:
        made = _CHANGES[rule.change](self, number, rule, value)
        if rule.new_prefix and len(made) > rule.most:
            raise Malformed(f"a value of {len(made)} bytes in column {number}, which has at most {rule.most}")
        return made

    def _time(self, number: int, rule: ColumnRule, value: bytes) -> bytes:
        return new_time(value, rule.digits)

    def _datetime(self, number: int, rule: ColumnRule, value: bytes) -> bytes:
        return new_datetime(value, rule.digits)

    def _timestamp(self, number: int, rule: ColumnRule, value: bytes) -> bytes:
        return new_timestamp(value, rule.digits)

    def _unpack(self, number: int, rule: ColumnRule, value: bytes) -> bytes:
        size = unpacked_column_bytes(value)
        if size > rule.most:
            raise Malformed(f"a compressed value of {size} bytes in column {number}, which has at most {rule.most}")
        if size > MOST_BYTES - self._size:
            raise transaction_stops.row_event_too_large(self._name, MOST_BYTES)
        return unpack_column(value, size)

    def _vector(self, number: int, rule: ColumnRule, value: bytes) -> bytes:
        if len(value) % _FLOAT_BYTES:
            raise Malformed(f"a VECTOR of {len(value)} bytes in column {number}")
        return value

    def _json(self, number: int, rule: ColumnRule, value: bytes) -> bytes:
        try:
            return binary_json(value)
        except NotJson as error:
            raise definition_stops.json_refused(self._name, number, str(error), error.error) from error

    def _check(self, stop: int) -> None:
        if stop > len(self._data):
            raise Truncated(f"a row that ends {stop - len(self._data)} bytes behind its event")

    def _keep(self, stop: int) -> None:
        """Copy what is not copied yet, up to `stop`."""
        if stop > self._kept:
            self._put(self._view[self._kept : stop])
            self._kept = stop

    def _put(self, piece: bytes | memoryview) -> None:
        self._size += len(piece)
        if self._size > MOST_BYTES:
            raise transaction_stops.row_event_too_large(self._name, MOST_BYTES)
        self._made.append(piece)


_CHANGES: Final[dict[Change, Callable[[_Rows, int, ColumnRule, bytes], bytes]]] = {
    Change.OLD_TIME: _Rows._time,
    Change.OLD_DATETIME: _Rows._datetime,
    Change.OLD_TIMESTAMP: _Rows._timestamp,
    Change.UNPACK: _Rows._unpack,
    Change.VECTOR: _Rows._vector,
    Change.JSON: _Rows._json,
}
