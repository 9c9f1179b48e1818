"""Makes the built binlogs of this directory again: what servers wrote that cannot be had any more, and what is broken.

    python -m tests.corpus.build

Writes built/NAME.binlog, the same bytes every time. Each function below names the versions whose files it follows; where
their layouts are published is said in tests/support/old_binlog.py, and the page of the MySQL Internals Manual here.
"""

import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from protocol.binlog.event_type import EventType
from tests.support.event_stream import query_body
from tests.support.old_binlog import (
    CHAR,
    INT,
    MARIADB_55,
    MARIADB_100,
    MARIADB_106,
    MYSQL_40,
    MYSQL_41,
    MYSQL_51,
    MYSQL_51_BETA,
    MYSQL_51_GOOGLE,
    MYSQL_51_GOOGLE_CHECKSUM,
    MYSQL_51_GOOGLE_GROUP_ID,
    MYSQL_51_NDB,
    MYSQL_51_TELCO,
    MYSQL_57,
    VARCHAR,
    OldBinlog,
    ServerLayout,
    anonymous_gtid_body,
    block_body,
    create_file_body,
    execute_load_query_body,
    integers,
    intvar_body,
    labelled,
    mariadb_gtid_body,
    rand_body,
    rows_body,
    table_map_body,
    user_var_body,
)

BUILT: Final = Path(__file__).resolve().parent / "built"

# Flags of events, as the page "Binlog Event Flag" of the manual has them.
SUPPRESS_USE: Final = 0x0008
ARTIFICIAL: Final = 0x0020
UPDATE_TABLE_MAP_VERSION: Final = 0x0010  # 5.1 sets it on each change
SMALL_BLOCK: Final = 1024  # bytes of a LOAD DATA's block; a server's is as large as its read_buffer_size


def _lines(size: int) -> bytes:
    """Text for LOAD DATA, one word a line."""
    words = [b"crate", b"barrel", b"pallet", b"sack", b"drum", b"bale", b"hamper", b"chest"]
    text = b"".join(b"%s %d\n" % (words[number % 8], number) for number in range(size // 7 + 1))
    return text[:size]


def mysql40_cut() -> bytes:
    """MySQL 4.0: Start_v3, BEGIN and an insert; the file was cut before its COMMIT.

    Version 3 has positions of starts: an event's, and of all events of a transaction that of its BEGIN. A Query has a
    post-header of 11 bytes and no status variables. Pages: START_EVENT_V3, QUERY_EVENT.
    """
    binlog = OldBinlog(MYSQL_40)
    begin = binlog.offset
    binlog.query("BEGIN", log_pos=begin).query("INSERT INTO crate VALUES (1)", log_pos=begin)
    return bytes(binlog.data)


def mysql41_load_data(block: int = SMALL_BLOCK) -> bytes:
    """MySQL 4.1: what a statement needs before it (User_var, Rand, Intvar), and LOAD DATA as of before 5.0.

    Its file goes ahead in Create_file and Append_block, and Exec_load loads it. There is no Stop: the server was killed.
    Pages: USER_VAR_EVENT, RAND_EVENT, INTVAR_EVENT, LOAD_EVENT and those behind it.
    """
    binlog = OldBinlog(MYSQL_41)
    binlog.query("CREATE TABLE crate (id INT, label CHAR(40)) ENGINE = MyISAM")
    binlog.query("CREATE TABLE cargo (name CHAR(30))")
    binlog.event(EventType.USER_VAR, user_var_body(b"next", 12))
    binlog.query("INSERT INTO crate VALUES (@next, 'twelfth')")
    binlog.event(EventType.RAND, rand_body(711_002_345, 90_876_123))
    binlog.query("INSERT INTO crate VALUES (RAND() * 500, 'by chance')")
    binlog.event(EventType.INTVAR, intvar_body(1, 0))
    binlog.query("INSERT INTO crate VALUES (LAST_INSERT_ID(), 'last')")
    text = _lines(block + block // 7)
    binlog.event(EventType.CREATE_FILE, create_file_body(2, b"cargo", b"shop", b"name", b"cargo.txt", text[:block]))
    binlog.event(EventType.APPEND_BLOCK, block_body(2, text[block:]))
    binlog.event(EventType.EXEC_LOAD, block_body(2, b""))
    return bytes(binlog.data)


def _pre_ga(layout: ServerLayout, block: int, timestamp: int) -> bytes:
    """Everything that 5.1 wrote before row events got the codes that they have now.

    Row events 20 to 22, of autocommitted changes without BEGIN; a table map without metadata; a row's first bit is no
    column's. Positions inside a transaction are those of its cache, counted from behind its BEGIN. LOAD DATA as since 5.0:
    Begin_load_query, Append_block, Execute_load_query. Pages: TABLE_MAP_EVENT, ROWS_EVENT, EXECUTE_LOAD_QUERY_EVENT.
    """
    binlog = OldBinlog(layout, timestamp=timestamp)
    flags = UPDATE_TABLE_MAP_VERSION
    binlog.query("CREATE TABLE crate (id INT, label CHAR(40)) ENGINE = MyISAM", flags=flags)
    binlog.query("CREATE TABLE parcel (id INT, label CHAR(40)) ENGINE = InnoDB", flags=flags)
    binlog.query("CREATE TABLE cargo (name CHAR(30))", flags=flags)
    crate = table_map_body(21, b"crate", bytes([INT, CHAR]), flags=0, metadata=None)
    oak, elm = labelled(0xF9, 7, b"oak"), labelled(0xF9, 8, b"elm")
    for kind, images in (
        (EventType.PRE_GA_WRITE_ROWS, [oak, elm]),
        (EventType.PRE_GA_UPDATE_ROWS, [oak, labelled(0xF9, 9, b"oak"), elm, labelled(0xF9, 10, b"elm")]),
        (EventType.PRE_GA_DELETE_ROWS, [labelled(0xF9, 10, b"elm")]),
    ):
        binlog.event(EventType.TABLE_MAP, crate)
        binlog.event(kind, rows_body(21, 2, b"\xff", *images), flags=flags)
    cache = binlog.query("BEGIN").offset
    for text in ("INSERT INTO parcel VALUES (3, 'within')", "INSERT INTO crate VALUES (3, 'before the Xid')"):
        size = 19 + len(query_body(text, b"shop", layout.status))
        binlog.query(text, flags=flags, log_pos=binlog.offset + size - cache)
    binlog.xid(31)
    binlog.event(EventType.USER_VAR, user_var_body(b"next", 12))
    binlog.query("INSERT INTO crate VALUES (@next, 'twelfth')", flags=flags)
    binlog.event(EventType.RAND, rand_body(711_002_345, 90_876_123))
    binlog.query("INSERT INTO crate VALUES (RAND() * 500, 'by chance')", flags=flags)
    binlog.event(EventType.INTVAR, intvar_body(1, 0))
    binlog.query("INSERT INTO crate VALUES (LAST_INSERT_ID(), 'last')", flags=flags)
    cargo = _lines(block + block // 7)
    binlog.event(EventType.BEGIN_LOAD_QUERY, block_body(4, cargo[:block]))
    binlog.event(EventType.APPEND_BLOCK, block_body(4, cargo[block:]))
    load = execute_load_query_body("LOAD DATA INFILE 'cargo.txt' INTO TABLE cargo", 4, layout.status)
    binlog.event(EventType.EXECUTE_LOAD_QUERY, load, flags=flags)
    return bytes(binlog.stop().data)


def mysql51_beta(block: int = SMALL_BLOCK) -> bytes:
    """The betas of MySQL 5.1 up to 5.1.17: see `_pre_ga`."""
    return _pre_ga(MYSQL_51_BETA, block, 1_172_000_000)


def mysql51_telco(block: int = SMALL_BLOCK) -> bytes:
    """MySQL 5.1 for telecommunications with NDB 6.1, which kept those codes after 5.1.18: see `_pre_ga`."""
    return _pre_ga(MYSQL_51_TELCO, block, 1_190_000_000)


def mysql51_telco_rows() -> bytes:
    """The same server: two row statements of one column, each its own group, and nothing else."""
    binlog = OldBinlog(MYSQL_51_TELCO)
    binlog.query("CREATE TABLE tally (n INT) ENGINE = MyISAM", flags=UPDATE_TABLE_MAP_VERSION)
    for number in (40, 41):
        binlog.event(EventType.TABLE_MAP, table_map_body(19, b"tally", bytes([INT]), flags=0, metadata=None))
        rows = rows_body(19, 1, b"\xff", integers(0xFD, number))
        binlog.event(EventType.PRE_GA_WRITE_ROWS, rows, flags=UPDATE_TABLE_MAP_VERSION)
    return bytes(binlog.stop().data)


def _ndb(server_id: int) -> OldBinlog:
    """MySQL 5.1 with NDB: a transaction's tables come first, one of them the server's own, and only its last event ends it.

    5.1 as released: row events 23 to 25, a table map with metadata. Pages: TABLE_MAP_EVENT, ROWS_EVENT.
    """
    binlog = OldBinlog(MYSQL_51_NDB, server_id=server_id)
    binlog.query("BEGIN", b"", flags=SUPPRESS_USE)
    binlog.event(EventType.TABLE_MAP, table_map_body(33, b"stock", bytes([INT, INT, INT]), flags=0, nullable=b"\x06"))
    # server_id, epoch, log_name, start_pos, end_pos
    types, metadata = bytes([INT, 8, VARCHAR, 8, 8]), b"\xff\0"
    applied = table_map_body(31, b"ndb_apply_status", types, b"mysql", flags=0, metadata=metadata, nullable=b"\0")
    binlog.event(EventType.TABLE_MAP, applied)
    row = b"\xe0" + server_id.to_bytes(4, "little") + (77).to_bytes(8, "little") + b"\0" + bytes(16)
    return binlog.event(EventType.WRITE_ROWS_V1, rows_body(31, 5, b"\x1f", row, last=False))


def mysql51_partial_update() -> bytes:
    """NDB's usual way of an update: only the key and what changed, with a bitmap of columns for each image."""
    binlog = _ndb(3)
    rows = [integers(0xF8, number, number * 2, number * 3) for number in (5, 6, 7, 8)]
    binlog.event(EventType.WRITE_ROWS_V1, rows_body(33, 3, b"\xff", *rows, last=False))
    binlog.event(
        EventType.UPDATE_ROWS_V1,
        rows_body(33, 3, b"\x05\x05", integers(0xFC, 8, 24), integers(0xFC, 8, 99), last=False),
    )
    binlog.event(EventType.DELETE_ROWS_V1, rows_body(33, 3, b"\x01", integers(0xFE, 6)), flags=UPDATE_TABLE_MAP_VERSION)
    binlog.query("COMMIT", b"", flags=SUPPRESS_USE)
    return bytes(binlog.rotate(b"shop-bin.000008").data)


def mysql51_full_write() -> bytes:
    """The same with ndb_log_update_as_write: an update is a write of the whole row."""
    binlog = _ndb(2)
    rows = [integers(0xF8, number, number * 2, number * 3) for number in (5, 6, 7, 8)] + [integers(0xF8, 8, 16, 99)]
    binlog.event(EventType.WRITE_ROWS_V1, rows_body(33, 3, b"\xff", *rows, last=False))
    binlog.event(EventType.DELETE_ROWS_V1, rows_body(33, 3, b"\x01", integers(0xFE, 6)), flags=UPDATE_TABLE_MAP_VERSION)
    binlog.query("COMMIT", b"", flags=SUPPRESS_USE)
    return bytes(binlog.rotate(b"shop-bin.000008").data)


def mysql51_relay_log() -> bytes:
    """MySQL 5.1, a relay log: its own head, the source's artificial Rotate and head, and events with the source's positions.

    They are a transaction with a savepoint, in the user's own spelling, to which it goes back: 5.1 logs both where a table
    without transactions was changed too. Pages: ROTATE_EVENT, QUERY_EVENT.
    """
    binlog = OldBinlog(MYSQL_51, server_id=8, created=0)
    binlog.server_id = 5
    binlog.rotate(b"shop-bin.000004", flags=ARTIFICIAL, log_pos=0)
    at_source = 106  # the end of the source's own head
    binlog.head(log_pos=at_source)
    for number, text in enumerate(
        (
            "BEGIN",
            "INSERT INTO parcel VALUES (20, 'early')",
            "SavePoint Half_Way",
            "INSERT INTO crate VALUES (21, 'stays')",
            "INSERT INTO parcel VALUES (22, 'goes')",
            "Rollback  To Half_Way",
            "INSERT INTO crate VALUES (23, 'stays too')",
            "INSERT INTO parcel VALUES (24, 'late')",
        )
    ):
        at_source += 19 + len(query_body(text, b"shop", binlog.layout.status))
        binlog.query(text, flags=UPDATE_TABLE_MAP_VERSION if number else SUPPRESS_USE, log_pos=at_source)
    binlog.event(EventType.XID, (64).to_bytes(8, "little"), log_pos=at_source + 27)
    return bytes(binlog.data)


def mysql51_incident() -> bytes:
    """MySQL 5.1: an Incident of a kind that there is none of, and no text. Servers refuse it. Page: INCIDENT_EVENT."""
    binlog = OldBinlog(MYSQL_51, created=0)
    binlog.event(EventType.INCIDENT, (66).to_bytes(2, "little") + b"\0")
    return bytes(binlog.rotate(b"shop-bin.000003").data)


def _google(layout: ServerLayout, extras: Iterator[bytes], flags: int = 0) -> bytes:
    binlog = OldBinlog(layout, head_flags=flags)
    for text in (
        "CREATE TABLE shop.tally (n INT)",
        "INSERT INTO shop.tally (n) VALUES (40)",
        "DROP TABLE shop.tally",
    ):
        binlog.query(text, b"", extra=next(extras))
    return bytes(binlog.data)


def mysql51_google() -> bytes:
    """MySQL 5.1 with Google's patches, none of them in use: it differs by its version alone."""
    return _google(MYSQL_51_GOOGLE, iter([b""] * 3))


def mysql51_google_checksum() -> bytes:
    """The same with its own checksums, four bytes behind each header, which the head announces as headers of 23 bytes.

    mariadb-binlog reads such files. What is summed is not published; here it is the number of the event.
    """
    numbers = (zlib.crc32(bytes([number])).to_bytes(4, "little") for number in range(3))
    return _google(MYSQL_51_GOOGLE_CHECKSUM, numbers, flags=0x0100)


def mysql51_google_group_id() -> bytes:
    """The same with group ids, eight bytes behind each header, which the head announces as headers of 27 bytes."""
    return _google(MYSQL_51_GOOGLE_GROUP_ID, (number.to_bytes(8, "little") for number in (11, 12, 13)))


def mariadb55() -> bytes:
    """MariaDB 5.3 and 5.5: a head with a checksum field, 160 types, and transactions as MySQL writes them, without GTIDs.

    Pages of the MariaDB documentation: FORMAT_DESCRIPTION_EVENT, QUERY_EVENT, XID_EVENT.
    """
    binlog = OldBinlog(MARIADB_55)
    binlog.query("CREATE TABLE parcel (id INT PRIMARY KEY, weight INT) ENGINE=InnoDB")
    for number, texts in enumerate((["(1, 10)"], ["(2, 20)", "(3, 40)"], ["(4, 80), (5, 160)"])):
        binlog.timestamp += 10
        binlog.query("BEGIN", flags=SUPPRESS_USE)
        for text in texts:
            binlog.timestamp -= 2  # a statement has the time when it began, BEGIN that of the commit
            binlog.query(f"INSERT INTO parcel VALUES {text}")
        binlog.timestamp += 2 * len(texts)
        binlog.xid(5 + 3 * number)
    return bytes(binlog.stop().data)


def mysql57_anonymous() -> bytes:
    """MySQL 5.7 without GTIDs: Previous_gtids and Anonymous_gtid with a logical clock and nothing behind it; checksums.

    The statement rounds a time to the seconds that its column has. Page "Binlog Event" of the source documentation.
    """
    binlog = OldBinlog(MYSQL_57, timestamp=1_540_000_000)
    binlog.event(EventType.PREVIOUS_GTIDS, bytes(8), flags=0x0080)
    binlog.timestamp += 4
    binlog.event(EventType.ANONYMOUS_GTID, anonymous_gtid_body(0, 1))
    binlog.query("BEGIN", flags=SUPPRESS_USE)
    binlog.event(EventType.INTVAR, intvar_body(2, 9))
    binlog.query("INSERT INTO parcel (sent) VALUES ('2018-10-20 06:07:08.999995')")
    binlog.xid(17)
    return bytes(binlog.stop().data)


def mariadb106_broken_extra_data() -> bytes:
    """MariaDB 10.6 reading V2 row events, whose extra data are broken in three ways; there is no table map either.

    A tag 0 (NDB) has a length and a format behind it: here nothing, a length below its own two bytes, one beyond the event.
    """
    binlog = OldBinlog(MARIADB_106, head_position=0)
    for extra in (b"\0", b"\0\x01\xff", b"\0\xff\0"):
        binlog.event(EventType.WRITE_ROWS, rows_body(9, 0, b"", last=False, extra=extra))
    return bytes(binlog.data)


STORED: Final[dict[str, Callable[[], bytes]]] = {
    "mysql40-cut": mysql40_cut,
    "mysql41-load-data": mysql41_load_data,
    "mysql51-beta": mysql51_beta,
    "mysql51-telco": mysql51_telco,
    "mysql51-telco-rows": mysql51_telco_rows,
    "mysql51-partial-update": mysql51_partial_update,
    "mysql51-full-write": mysql51_full_write,
    "mysql51-relay-log": mysql51_relay_log,
    "mysql51-incident": mysql51_incident,
    "mysql51-google": mysql51_google,
    "mysql51-google-checksum": mysql51_google_checksum,
    "mysql51-google-group-id": mysql51_google_group_id,
    "mariadb55": mariadb55,
    "mysql57-anonymous": mysql57_anonymous,
    "mariadb106-broken-extra-data": mariadb106_broken_extra_data,
}


# ---- too large to be stored -----------------------------------------------------------------------------------------------

LARGE_BLOCK: Final = 128 << 10
LARGE_BLOCKS: Final[dict[str, Callable[[int], bytes]]] = {
    "mysql41-load-data": mysql41_load_data,
    "mysql51-beta": mysql51_beta,
    "mysql51-telco": mysql51_telco,
}
"""Those with LOAD DATA, whose blocks a server with a large read_buffer_size makes as large as LARGE_BLOCK."""


def mariadb100_long() -> bytes:
    """MariaDB 10.0: half a megabyte of 7,754 events in 1,381 groups, as many clients write them; no checksums.

    41 statements that stand alone; 1,340 transactions that end in Xid, most of one statement and some of 19 to 60, 1,236
    of them with the id of their group commit; 13 savepoints; one statement with two row events. Each kind of row event.
    Pages of the MariaDB documentation: GTID_EVENT, GTID_LIST_EVENT, BINLOG_CHECKPOINT_EVENT, ROWS_EVENT_V1.
    """
    binlog = OldBinlog(MARIADB_100, timestamp=1_390_000_000)
    binlog.event(EventType.GTID_LIST, bytes(4) + b"\0\0")
    name = b"shop-bin.000001"
    binlog.event(EventType.BINLOG_CHECKPOINT, len(name).to_bytes(4, "little") + name)
    types, metadata = bytes([INT, CHAR]), b"\xfe\x28"
    kinds = (
        (EventType.WRITE_ROWS_V1, b"\x03", 1),
        (EventType.UPDATE_ROWS_V1, b"\x03\x03", 2),
        (EventType.DELETE_ROWS_V1, b"\x03", 1),
    )
    gtid = statements = long_ones = alone = savepoints = 0

    def standalone(text: str) -> None:
        nonlocal gtid, alone
        gtid += 1
        alone += 1
        binlog.event(EventType.MARIADB_GTID, mariadb_gtid_body(gtid, standalone=True), flags=SUPPRESS_USE)
        binlog.query(text)

    standalone("CREATE DATABASE shop")
    for number in range(1340):
        binlog.timestamp += number % 3 == 0
        if number % 34 == 0:
            standalone(f"CREATE TABLE crate{number} (id INT, label CHAR(40)) ENGINE=InnoDB")
        gtid += 1
        commit_id = None if number < 104 else 1000 + number // 6
        body = mariadb_gtid_body(gtid, commit_id=commit_id)
        binlog.event(EventType.MARIADB_GTID, body, flags=SUPPRESS_USE)
        count = 1
        if number % 40 == 0:
            count = 18 + long_ones + (8 if long_ones == 33 else 0)
            long_ones += 1
        table = b"crate%d" % (number // 34 * 34)
        for each in range(count):
            if count > 1 and each == 9 and savepoints < 13:
                savepoints += 1
                binlog.query("SAVEPOINT half_way", flags=SUPPRESS_USE)
            statements += 1
            kind, bitmaps, images = kinds[statements * statements % 7 % 3]
            table_map = table_map_body(60 + number // 34, table, types, metadata=metadata, nullable=b"\x03")
            binlog.event(EventType.TABLE_MAP, table_map)
            rows = [labelled(0xFC, statements + image, b"label %d" % statements) for image in range(images)]
            if statements == 1000:  # a statement whose rows fill more than one event
                first = rows_body(60 + number // 34, 2, bitmaps, *rows, last=False)
                binlog.event(kind, first)
            binlog.event(kind, rows_body(60 + number // 34, 2, bitmaps, *rows))
        binlog.xid(50 + 2 * number)
    assert alone == 41
    return bytes(binlog.stop().data)


def main() -> None:
    """Writes them all."""
    BUILT.mkdir(exist_ok=True)
    for name, build in STORED.items():
        data = build()
        (BUILT / f"{name}.binlog").write_bytes(data)
        print(name, len(data), "bytes")


if __name__ == "__main__":
    main()
