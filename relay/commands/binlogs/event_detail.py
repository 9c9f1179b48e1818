"""The description column of `events`, fast: shortcuts for the types that fill a binlog, `describe_event` for the rest.

A shortcut reads at fixed offsets and keeps texts that come again (BEGIN, a table's row events); whatever looks unusual goes to the
readable decoders, so both say the same. `relay.commands.binlogs.events_command` has the measurements.
"""

import struct
from collections.abc import Callable
from typing import Final
from uuid import UUID

from protocol.binlog.description import describe_event
from protocol.binlog.event_type import EventType
from protocol.binlog.format_description import FormatDescription, decode_format_description
from protocol.binlog.header import decode_header
from protocol.binlog.layout import HEADER_SIZE
from protocol.binlog.mariadb_gtid import COMPLETED_XA, GROUP_COMMIT_ID, PREPARED_XA, MariadbGtid
from protocol.binlog.query import query_post
from protocol.binlog.rows_event import ROWS_EVENTS
from protocol.binlog.statement_text import one_line
from protocol.binlog.table_map import decode_table_map
from protocol.errors import Malformed
from protocol.kernel.codes import QUERY_POST

# Enough for every server's working set of tables and statements; with a file crafted to fill memory the texts are dropped at this size.
_CACHE_LIMIT: Final = 4096
_CACHED_TEXT_BYTES: Final = 64
_TABLE_MAP_KEY_END: Final = HEADER_SIZE + 512

_u64: Final = struct.Struct("<Q").unpack_from
_u32: Final = struct.Struct("<I").unpack_from
_mariadb_gtid_at: Final = struct.Struct("<QIB").unpack_from
_mysql_gtid_at: Final = struct.Struct("<16sqBqq").unpack_from
_NOT_PLAIN_GTID: Final = GROUP_COMMIT_ID | PREPARED_XA | COMPLETED_XA

Describer = Callable[[bytes, int, int], str]
"""Describes an event: (data, offset of the event's header, offset after its body) -> description."""


class EventDetail:
    """Describes the events of one file, in order: it follows Format_description and Table_map events."""

    def __init__(self) -> None:
        self._format: FormatDescription | None = None
        self._shortcuts: dict[int, Describer] = {}
        self._query_text: dict[bytes, str] = {}
        self._table_text: dict[bytes, str] = {}
        self._table_name: dict[bytes, str] = {}
        self._rows_text: dict[bytes, str] = {}
        self._uuid_text: dict[bytes, str] = {}
        self.unreadable = 0
        """Events whose body could not be decoded."""

    def begin_file(self) -> None:
        """Forget the format and the tables of the previous file."""
        self._format = None
        self._shortcuts = {}
        self._forget_tables()

    def describer(self, event_type: int) -> Describer:
        """Return the describer of events of this type from here to the next Format_description.

        It takes the body without its checksum, Format_description's with it. A body that cannot be read is described as such.
        """
        return self._shortcuts.get(event_type, self._slow)

    def _slow(self, data: bytes, at: int, stop: int) -> str:
        try:
            header = decode_header(data, at)
            body = data[at + HEADER_SIZE : stop]
            if header.type == EventType.FORMAT_DESCRIPTION:
                self._learn(decode_format_description(body))
            if self._format is None:
                return ""
            return describe_event(header, body, self._format)
        except Malformed as error:
            self.unreadable += 1
            return f"unreadable: {error}"

    def _learn(self, format: FormatDescription) -> None:
        self._format = format
        self._forget_tables()
        self._shortcuts = {
            EventType.XID: self._xid,
            EventType.MARIADB_GTID: self._mariadb_gtid,
            EventType.GTID: self._mysql_gtid,
            EventType.ANONYMOUS_GTID: self._mysql_gtid,
            EventType.ANNOTATE_ROWS: self._annotate_rows,
        }
        if query_post(EventType.QUERY, format.post_header_length(EventType.QUERY)) == QUERY_POST:
            self._shortcuts[EventType.QUERY] = self._query
        if format.post_header_length(EventType.TABLE_MAP) == 8:
            self._shortcuts[EventType.TABLE_MAP] = self._table_map
            self._shortcuts |= dict.fromkeys(
                [code for code in ROWS_EVENTS if code >= EventType.WRITE_ROWS_V1], self._rows
            )

    def _forget_tables(self) -> None:
        self._table_text.clear()
        self._table_name.clear()
        self._rows_text.clear()

    def _query(self, data: bytes, at: int, stop: int) -> str:
        if stop - at < 32 or data[at + 28] or data[at + 29]:  # error code: rare, left to the decoder
            return self._slow(data, at, stop)
        schema_at = at + 32 + (data[at + 30] | data[at + 31] << 8)
        if stop - schema_at <= _CACHED_TEXT_BYTES:
            key = data[at + 27 : at + 28] + data[schema_at:stop]
            text = self._query_text.get(key)
            if text is None:
                text = self._slow(data, at, stop)
                if not text.startswith("unreadable"):
                    _keep(self._query_text, key, text)
            return text
        text_at = schema_at + data[at + 27] + 1
        if text_at > stop or data[text_at - 1]:
            return self._slow(data, at, stop)
        schema = data[schema_at : text_at - 1]
        line = one_line(data[text_at:stop])
        return f"[{one_line(schema)}] {line}" if schema else line

    def _xid(self, data: bytes, at: int, stop: int) -> str:
        if stop - at < 27:
            return self._slow(data, at, stop)
        return f"xid {_u64(data, at + 19)[0]}"

    def _mariadb_gtid(self, data: bytes, at: int, stop: int) -> str:
        if stop - at < 32:
            return self._slow(data, at, stop)
        sequence, domain, flags = _mariadb_gtid_at(data, at + 19)
        if flags & _NOT_PLAIN_GTID:
            return self._slow(data, at, stop)
        return f"{domain}-{_u32(data, at + 5)[0]}-{sequence}{_MARIADB_FLAGS[flags]}"

    def _mysql_gtid(self, data: bytes, at: int, stop: int) -> str:
        if stop - at < 61 or data[at + 44] != 2:
            return self._slow(data, at, stop)
        uuid, gno, _, last_committed, sequence = _mysql_gtid_at(data, at + 20)
        clock = f"last_committed={last_committed} sequence_number={sequence}"
        if data[at + 4] == EventType.ANONYMOUS_GTID:
            return clock
        text = self._uuid_text.get(uuid)
        if text is None:
            text = str(UUID(bytes=uuid))
            _keep(self._uuid_text, uuid, text)
        return f"{text}:{gno} {clock}"

    def _annotate_rows(self, data: bytes, at: int, stop: int) -> str:
        return one_line(data[at + HEADER_SIZE : stop])

    def _table_map(self, data: bytes, at: int, stop: int) -> str:
        end = at + _TABLE_MAP_KEY_END  # without min(), a call for every Table_map
        body = data[at + HEADER_SIZE : stop if stop < end else end]
        text = self._table_text.get(body)
        if text is None:
            text = self._slow(data, at, stop)
            if self._format is not None and not text.startswith("unreadable"):
                if len(self._table_name) >= _CACHE_LIMIT:
                    self._forget_tables()
                table = decode_table_map(body)
                name = f"{one_line(table.schema.encode())}.{one_line(table.table.encode())}"
                if self._table_name.get(body[:6]) != name:
                    # A table id that is used again, after a restart or an overflow, means another table now: the texts
                    # kept under it, its old Table_map's among them, are wrong from here on.
                    self._rows_text.clear()
                    self._table_text.clear()
                    self._table_name[body[:6]] = name
                _keep(self._table_text, body, text)
        return text

    def _rows(self, data: bytes, at: int, stop: int) -> str:
        key = data[at + 19 : at + 27]
        text = self._rows_text.get(key)
        if text is None or stop - at < 28:
            text = self._slow(data, at, stop)
            if text.startswith("unreadable"):
                return text
            name = self._table_name.get(key[:6])
            if name is not None:
                text = f"{name} ({text})"
            _keep(self._rows_text, key, text)
        return text


def _keep(cache: dict[bytes, str], key: bytes, text: str) -> None:
    if len(cache) >= _CACHE_LIMIT:
        cache.clear()
    cache[key] = text


def _flags_text(flags: int) -> str:
    names = MariadbGtid(0, 0, flags).flag_names
    return " " + " ".join(names) if names else ""


_MARIADB_FLAGS: Final = [_flags_text(flags) for flags in range(256)]
