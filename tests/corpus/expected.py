"""What each corpus file holds, written down by hand.

A letter an event: i Ignore, c self Contained, s Start, n iNside, e End; blanks between groups are for the reader. For the
foreign files they come from what `mysqlbinlog --base64-output=decode-rows` shows, for the recorded ones from the server's
SHOW BINLOG EVENTS beside them (recorded/NAME.listing), and in both from the rules' tables; never from the code under test.
"""

from typing import Final

# Files of ../shared/corpus that are read to their end without a violation.
FOREIGN: Final = {
    # Start_v3, 2 DDL, User_var + Query, Rand + Query, Intvar + Query, Create_file Append_block Exec_load
    "binlog_old_version_4_1.000001": "c c c se se se sne",
    # Start_v3, BEGIN, insert; cut short inside the transaction
    "trunc_binlog.000001": "c sn",
    # three DDL, three row statements of a MyISAM table without BEGIN, BEGIN .. Xid, User_var, Rand, Intvar, LOAD DATA, Stop
    "ver_5_1_17.001": "i c c c se se se snne se se se sne c",
    "ver_5_1-telco.001": "i c c c se se se snne se se se sne c",
    # DDL, two row statements without BEGIN, Stop
    "bug32407.001": "i c se se c",
    # BEGIN, two Table_map, Write Write Update Delete, COMMIT; Rotate
    "update-partial-row.binlog": "i snnnnnne c",
    "write-full-row.binlog": "i snnnnne c",
    # a relay log: Format_description, artificial Rotate, the source's Format_description, BEGIN, seven statements, Xid
    "binlog_savepoint.000001": "i i i snnnnnnne",
    # an Incident of number 66: its decoder names it, its boundary is plain
    "bug40482-bin.000001": "i c c",
    "mdev-4645-binlog_none.binlog": "i c c c",
    "mariadb-5.5-binlog.000001": "i c sne snne sne c",
    # Gtid_list, checkpoint, DDL, two groups Gtid Annotate Table_map Write COMMIT, DDL
    "master-bin-seq_10.3.36.000001": "i c i se snnne snnne se",
    "mdev29078-mysql-bin.000001": "i c i se sne sne c",
    # Previous_gtids, Anonymous_gtid BEGIN Intvar Query Xid, Stop
    "mysql-5.7.11-stm-temporal-round-binlog.000001": "i c snnne c",
    # DDL; 1, 2 and 1 row statements; a Transaction_payload; a row statement; DDL; a statement; a partial update; Rotate
    "mdev35643_mysql_80_binlog.000001": "i c se snnne snnnnne snnne se snnne se snne snnne c",
}

# mdev6020-mysql-bin.000001 by its counts: 1,381 Gtid events, 1,340 of them with Xid and 41 standalone with one Query each;
# 2,487 Table_map, 2,488 rows events and 13 other Queries inside; Gtid_list, Stop; Format_description, checkpoint.
MDEV6020: Final = {"i": 2, "c": 2, "s": 1381, "e": 1381, "n": 2487 + 2488 + 13}

# Files that end in a named error: what comes before it, the error, its offset.
FOREIGN_BROKEN: Final = {
    "binlog_before_20574.bin": ("i", "binlog_encrypted", 256),
    "mdev-4645-binlog_checksum.binlog": ("", "format_description_unsupported", 4),
    "mdev-4645-binlog_group_id.binlog": ("", "format_description_unsupported", 4),
}

# Read to their end, with violations: (offset, from, to) of each.
FOREIGN_VIOLATIONS: Final = {
    # three rows events without table map; the broken extra data is their decoder's business
    "invalid_row_v2_tag.001": ("i nnn", [(256, 0, 4)]),
}

# Files whose positions are not those of this file, so that strict reading names the first that jumps.
FOREIGN_JUMPS: Final = {"binlog_savepoint.000001": 150}

_SMALL_GTID = "se snnne snnnne se"
# MariaDB 10.11 and 11.8 write the same events; 11.8 with end_log_pos 0 inside of transactions.
_MARIADB = (
    "i c i i se se"
    " snne snne snnne"
    " snnne snnne"
    " snnnnnnne"
    " snnnnnne snnnne"
    " snnnne se"
    " snnne"  # one phase: as any transaction
    " snnnne se"  # Gtid Annotate Table_map Write XA END XA_prepare; XA COMMIT standalone
    " snnnne se c"
)
RECORDED: Final = {
    "mysql56": (
        "i c c"
        " snne snne snnne"  # Intvar Query; Query COMMIT; Intvar User_var Query
        " snnne snnne"  # Rows_query Table_map Write
        " snnnnnnne"  # two statements around SAVEPOINT; the one that was rolled back is not there
        " snnnnnne snnnne"  # SAVEPOINT, ROLLBACK TO; both engines with ROLLBACK
        " snnnne c"  # CREATE TABLE .. SELECT; DROP
        " snnne snnne c"  # XA as BEGIN .. COMMIT; nothing of the one rolled back
    ),
    "mysql56-gtid": f"i c {_SMALL_GTID} c",
    "mysql56-no-checksum": "i c snne snnne c c",
    "mysql97-anonymous": (
        "i c se se"
        " snnne snnne snnnne"
        " snnnne snnnne"
        " snnnnnnnne"
        " snnnnnnne snnnnne"
        " snnnnne se"
        " snnnnne"  # XA START Rows_query Table_map Write XA END, XA_prepare with one phase
        " snnnnne se"  # two phases: the prepared part, XA COMMIT
        " snnnnne se c"  # XA ROLLBACK
    ),
    "mysql97-gtid": "i c se snnne snnnnne snnnne snnnne se snnnne se se c",
    "mysql97-compressed": "i c se se se se c",
    "mariadb": _MARIADB,
    "mariadb118": _MARIADB,
    # row events compressed where they are long enough, then statements
    "mariadb-compressed": "i c i i se snnne snnnnnne se se snne snnne se c",
}
