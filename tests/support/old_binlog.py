"""Binlogs of servers that are no longer available: their layouts, and the bodies of their events.

Layouts are those of the MySQL Internals Manual, chapter "The Binary Log" (pages START_EVENT_V3, FORMAT_DESCRIPTION_EVENT and those of
the other events), the page "Binlog Event" of MySQL's source documentation, and the pages on the replication protocol of the MariaDB
documentation. The values that a version writes in a field that these leave open are documented here.
"""

import struct
from dataclasses import dataclass, field
from typing import Final

from protocol.binlog.event_type import EventType
from tests.support.event_stream import format_body, query_body, raw_event

MAGIC: Final = b"\xfebin"
INT, CHAR, VARCHAR = 3, 254, 15  # types of columns

# Post-header lengths of types 1 to 14, the same since 5.0. The 15th is that of the format description itself.
_FIRST: Final = bytes([56, 13, 0, 8, 0, 18, 0, 4, 4, 4, 4, 18, 0, 0])
# Xid, Begin_load_query, Execute_load_query, Table_map
_LOAD_AND_MAP: Final = bytes([0, 4, 26, 8])

# Status variables that each Query of 5.1 and 5.5 carries: flags2, sql_mode, catalog, character sets.
_STATUS: Final = b"\0\0\x40\0\0\x01" + bytes(8) + b"\x06\x03std\x04" + struct.pack("<HHH", 8, 8, 8)


def _lengths(*behind: int) -> bytes:
    """Return post-header lengths of all types: the common ones, then `behind` from type 20 on."""
    count = len(_FIRST) + 1 + len(_LOAD_AND_MAP) + len(behind)
    return _FIRST + bytes([57 + count]) + _LOAD_AND_MAP + bytes(behind)


def _mariadb_lengths(count: int, mysql: tuple[int, ...], own: dict[int, int]) -> bytes:
    """Return the same of a MariaDB server that knows `count` types: `mysql` from type 20 on, `own` by type."""
    behind = [own.get(kind, 0) for kind in range(20, count + 1)]
    behind[: len(mysql)] = mysql
    return _lengths(*behind)


@dataclass(frozen=True, slots=True)
class ServerLayout:
    """The layout of one version.

    `lengths` are post-header lengths, type 1 first; empty for a server of 4.x, whose files begin with Start_v3. `checksum` is the
    algorithm as the format description says it, None for servers without. `status` are status variables of a Query. `extra_header` are
    bytes that a dialect puts after the 19 of each header except the format description's.
    """

    version: str
    lengths: bytes = b""
    checksum: int | None = None
    status: bytes = b""
    extra_header: int = 0


# 4.0 and 4.1: binlog version 3. Positions in headers are those of the event's start, or its transaction's.
MYSQL_40: Final = ServerLayout("4.0.27-log")
MYSQL_41: Final = ServerLayout("4.1.22-log")
# 5.1 before 5.1.18, and the telco versions made from it: 22 types, row events are 20 to 22.
_PRE_GA: Final = _lengths(8, 8, 8)
MYSQL_51_BETA: Final = ServerLayout("5.1.16-beta-log", _PRE_GA, status=_STATUS)
MYSQL_51_TELCO: Final = ServerLayout("5.1.15-ndb-6.1.23-log", _PRE_GA, status=_STATUS)
# 5.1 as it was released: 26 types, row events are 23 to 25, types 20 to 22 have no length.
_MYSQL_51_TYPES: Final = (0, 0, 0, 8, 8, 8, 2)
MYSQL_51: Final = ServerLayout("5.1.73-log", _lengths(*_MYSQL_51_TYPES), status=_STATUS)
MYSQL_51_NDB: Final = ServerLayout("5.1.39-ndb-7.0.9-log", _lengths(*_MYSQL_51_TYPES), status=_STATUS)
# Google's patches of 5.1 for checksums and group ids: 4 and 8 more bytes in each header.
MYSQL_51_GOOGLE: Final = ServerLayout("5.1.52-google-log", _lengths(*_MYSQL_51_TYPES), status=_STATUS)
MYSQL_51_GOOGLE_CHECKSUM: Final = ServerLayout(
    "5.1.52-google-log", _lengths(*_MYSQL_51_TYPES), status=_STATUS, extra_header=4
)
MYSQL_51_GOOGLE_GROUP_ID: Final = ServerLayout(
    "5.1.52-google-log", _lengths(*_MYSQL_51_TYPES), status=_STATUS, extra_header=8
)
# 5.7: 38 types; CRC32 is the default.
_STATUS_57: Final = (
    b"\0\0\0\0\0" b"\x01" + struct.pack("<Q", 0x55A00000) + b"\x06\x03std"
    b"\x04" + struct.pack("<HHH", 33, 33, 8) + b"\x0c\x01shop\0"
)  # fmt: skip
MYSQL_57: Final = ServerLayout(
    "5.7.44-log",
    _lengths(*_MYSQL_51_TYPES, 0, 0, 0, 10, 10, 10, 42, 42, 0, 18, 52, 0),
    checksum=1,
    status=_STATUS_57,
)
# MariaDB 5.5 lists 160 types (the last is Annotate_rows), 10.0 163 (the last is Gtid_list), 10.2 and later 171.
_STATUS_MARIADB: Final = b"\0\0\0\0\0\x01" + bytes(8) + b"\x06\x03std\x04" + struct.pack("<HHH", 33, 33, 8)
MARIADB_55: Final = ServerLayout(
    "5.5.68-MariaDB", _mariadb_lengths(160, _MYSQL_51_TYPES, {}), checksum=0, status=_STATUS_MARIADB
)
_V2_ROWS: Final = {30: 10, 31: 10, 32: 10}
MARIADB_100: Final = ServerLayout(
    "10.0.38-MariaDB",
    _mariadb_lengths(163, _MYSQL_51_TYPES, {**_V2_ROWS, 161: 4, 162: 19, 163: 4}),
    checksum=0,
    status=_STATUS_MARIADB,
)
MARIADB_106: Final = ServerLayout(
    "10.6.22-MariaDB-log",
    _mariadb_lengths(
        171,
        _MYSQL_51_TYPES,
        {**_V2_ROWS, 39: 10, 40: 10, 41: 10, 161: 4, 162: 19, 163: 4, 165: 13, **dict.fromkeys((166, 167, 168), 8)}
        | dict.fromkeys((169, 170, 171), 10),
    ),
    checksum=0,
    status=_STATUS_MARIADB,
)


@dataclass
class OldBinlog:
    """A file in the making, event by event; its header exists from the start.

    `server_id` is that of the server whose file this is. `created` (s), in the format description, is 0 in relay logs and files after a
    rotation (None: the time of the first event). `timestamp` (s since the epoch) is that of the next event; the caller advances it.
    `head_position` is what the header of the format description says instead of its end.
    """

    layout: ServerLayout
    server_id: int = 1
    timestamp: int = 1_200_000_000
    created: int | None = None
    head_flags: int = 0
    head_position: int | None = None
    data: bytearray = field(default_factory=lambda: bytearray(MAGIC))

    def __post_init__(self) -> None:
        self.head(flags=self.head_flags, log_pos=self.head_position)

    @property
    def offset(self) -> int:
        """The offset at which the next event begins."""
        return len(self.data)

    def head(self, *, flags: int = 0, log_pos: int | None = None, server_id: int | None = None) -> "OldBinlog":
        """Append Start_v3 or a format description; a relay log has two."""
        created = self.timestamp if self.created is None else self.created
        kind, layout = EventType.FORMAT_DESCRIPTION, self.layout
        if layout.lengths:
            body = format_body(
                layout.version, layout.lengths, layout.checksum, created=created, header_length=19 + layout.extra_header
            )
        else:
            kind, body = EventType.START_V3, struct.pack("<H50sI", 3, layout.version.encode(), created)
            log_pos = self.offset
        self.data += raw_event(
            kind,
            body,
            offset=self.offset,
            checksum=layout.checksum is not None,
            flags=flags,
            timestamp=self.timestamp,
            server_id=self.server_id if server_id is None else server_id,
            log_pos=log_pos,
        )
        return self

    def event(
        self, kind: int, body: bytes = b"", *, flags: int = 0, log_pos: int | None = None, extra: bytes = b""
    ) -> "OldBinlog":
        """Append an event. `log_pos` is what its header says if that is not its end, or in 4.x its start."""
        assert len(extra) == self.layout.extra_header
        if log_pos is None and not self.layout.lengths:
            log_pos = self.offset
        self.data += raw_event(
            kind,
            extra + body,
            offset=self.offset,
            checksum=self.layout.checksum == 1,
            flags=flags,
            timestamp=self.timestamp,
            server_id=self.server_id,
            log_pos=log_pos,
        )
        return self

    def query(
        self, text: str, schema: bytes = b"shop", *, flags: int = 0, log_pos: int | None = None, extra: bytes = b""
    ) -> "OldBinlog":
        """Append a statement."""
        body = query_body(text, schema, self.layout.status, 13 if self.layout.lengths else 11)
        return self.event(EventType.QUERY, body, flags=flags, log_pos=log_pos, extra=extra)

    def xid(self, number: int) -> "OldBinlog":
        """Append the commit of a transaction."""
        return self.event(EventType.XID, struct.pack("<Q", number))

    def stop(self) -> "OldBinlog":
        """Append the end that a shutdown writes."""
        return self.event(EventType.STOP)

    def rotate(self, name: bytes, *, flags: int = 0, log_pos: int | None = None) -> "OldBinlog":
        """Append the end that FLUSH LOGS writes."""
        return self.event(EventType.ROTATE, struct.pack("<Q", 4) + name, flags=flags, log_pos=log_pos)


# ---- bodies ----------------------------------------------------------------------------------------------------------


def intvar_body(which: int, value: int) -> bytes:
    """Return the body; `which` is 1 for LAST_INSERT_ID, 2 for INSERT_ID."""
    return struct.pack("<BQ", which, value)


def rand_body(first: int, second: int) -> bytes:
    """Return both seeds of RAND()."""
    return struct.pack("<QQ", first, second)


def user_var_body(name: bytes, value: int) -> bytes:
    """Return a user variable that holds an integer: type 2, character set 63 (binary)."""
    return struct.pack("<I", len(name)) + name + struct.pack("<BBIIq", 0, 2, 63, 8, value)


def create_file_body(file_id: int, table: bytes, schema: bytes, column: bytes, file: bytes, block: bytes) -> bytes:
    """Return LOAD DATA of 4.x: Load's post-header, the file id, five delimiters, flags, one column, the names, the first block."""
    head = struct.pack("<IIIBBI", 1, 0, 0, len(table), len(schema), 1) + struct.pack("<I", file_id)
    delimiters = b"".join(bytes([len(text)]) + text for text in (b"\t", b"", b"\n", b"", b"\\"))
    names = bytes([len(column)]) + b"".join(name + b"\0" for name in (column, table, schema, file))
    return head + delimiters + b"\0" + names + block


def block_body(file_id: int, block: bytes) -> bytes:
    """Return Begin_load_query and Append_block; without a block Exec_load and Delete_file."""
    return struct.pack("<I", file_id) + block


def execute_load_query_body(text: str, file_id: int, status: bytes, schema: bytes = b"shop") -> bytes:
    """Return Query's post-header, the file id, where the file's name begins and ends in the text, and the treatment of duplicates."""
    query = query_body(text, schema, status)
    return query[:13] + struct.pack("<IIIB", file_id, text.index(" INFILE"), text.index(" TABLE"), 0) + query[13:]


def table_map_body(
    table_id: int,
    table: bytes,
    types: bytes,
    schema: bytes = b"shop",
    *,
    flags: int = 1,
    metadata: bytes | None = b"",
    nullable: bytes = b"",
) -> bytes:
    """Return a table's columns. `metadata` is None before 5.1.18, which has neither it nor `nullable`, a bitmap."""
    body = struct.pack("<IHH", table_id, 0, flags)
    body += bytes([len(schema)]) + schema + b"\0" + bytes([len(table)]) + table + b"\0" + bytes([len(types)]) + types
    return body if metadata is None else body + bytes([len(metadata)]) + metadata + nullable


def rows_body(
    table_id: int, width: int, bitmaps: bytes, *rows: bytes, last: bool = True, extra: bytes | None = None
) -> bytes:
    """Return rows of a table. `bitmaps` are those of the present columns, two for an update. `extra` is for V2 only, after its
    length."""
    head = struct.pack("<IHH", table_id, 0, int(last))
    if extra is not None:
        head += struct.pack("<H", len(extra) + 2) + extra
    return head + bytes([width]) + bitmaps + b"".join(rows)


def integers(nulls: int, *values: int) -> bytes:
    """Return a row image of INT columns: one byte that marks the NULLs, unused bits set, and the other values."""
    return bytes([nulls]) + struct.pack(f"<{len(values)}i", *values)


def labelled(nulls: int, number: int, label: bytes) -> bytes:
    """Return a row image of an INT and a short CHAR."""
    return integers(nulls, number) + bytes([len(label)]) + label


def anonymous_gtid_body(last_committed: int, sequence_number: int) -> bytes:
    """Return Anonymous_gtid as of 5.7: flags, no uuid and no number, then the two of the logical clock."""
    return b"\x01" + bytes(24) + struct.pack("<Bqq", 2, last_committed, sequence_number)


def mariadb_gtid_body(number: int, *, standalone: bool = False, commit_id: int | None = None) -> bytes:
    """Return MariaDB's Gtid as of 10.0: number, domain 0, flags; then the id of the group commit, or zeros."""
    if commit_id is not None:
        return struct.pack("<QIBQ", number, 0, 2, commit_id)
    return struct.pack("<QIB6x", number, 0, int(standalone))
