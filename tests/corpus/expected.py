"""What each corpus file holds, written down by hand.

A letter an event: i Ignore, c self Contained, s Start, n iNside, e End; blanks between groups are for the reader. For the
built files they come from what `mariadb-binlog --base64-output=decode-rows` shows, for the recorded ones from the server's
SHOW BINLOG EVENTS beside them (recorded/NAME.listing), and in both from the rules' tables; never from the code under test.
"""

from typing import Final

# Files of built/ that are read to their end without a violation.
BUILT: Final = {
    # Start_v3, BEGIN, insert; cut short inside the transaction
    "mysql40-cut": "c sn",
    # Start_v3, 2 DDL, User_var + Query, Rand + Query, Intvar + Query, Create_file Append_block Exec_load
    "mysql41-load-data": "c c c se se se sne",
    # three DDL, three row statements of a MyISAM table without BEGIN, BEGIN .. Xid, User_var, Rand, Intvar, LOAD DATA, Stop
    "mysql51-beta": "i c c c se se se snne se se se sne c",
    "mysql51-telco": "i c c c se se se snne se se se sne c",
    # DDL, two row statements without BEGIN, Stop
    "mysql51-telco-rows": "i c se se c",
    # BEGIN, two Table_map, Write Write Update Delete, COMMIT; Rotate
    "mysql51-partial-update": "i snnnnnne c",
    "mysql51-full-write": "i snnnnne c",
    # Format_description, artificial Rotate, the source's Format_description, BEGIN, seven statements, Xid
    "mysql51-relay-log": "i i i snnnnnnne",
    # an Incident of number 66: its decoder names it, its boundary is plain
    "mysql51-incident": "i c c",
    # three statements without BEGIN
    "mysql51-google": "i c c c",
    # DDL, three transactions of one, two and one statement, Stop
    "mariadb55": "i c sne snne sne c",
    # Previous_gtids, Anonymous_gtid BEGIN Intvar Query Xid, Stop
    "mysql57-anonymous": "i c snnne c",
}

# Recordings with Transaction_payloads: SHOW BINLOG EVENTS lists what is in these too, all at the payload's end.
WITH_PAYLOADS: Final = {"mysql97-compressed", "mysql97-partial-json"}

# mariadb100-long by its counts: 1,381 Gtid events, 1,340 of them with Xid and 41 standalone with one Query each;
# 2,487 Table_map, 2,488 rows events and 13 other Queries inside; Gtid_list, Stop; Format_description, checkpoint.
MARIADB_100_LONG: Final = {"i": 2, "c": 2, "s": 1381, "e": 1381, "n": 2487 + 2488 + 13}

# Files that end in a named error: what comes before it, the error, its offset.
BROKEN: Final = {
    "encrypted/mariadb": ("i", "binlog_encrypted", 256),
    "built/mysql51-google-checksum": ("", "format_description_unsupported", 4),
    "built/mysql51-google-group-id": ("", "format_description_unsupported", 4),
}

# Read to their end, with violations: (offset, from, to) of each.
VIOLATIONS: Final = {
    # three rows events without table map; the broken extra data is their decoder's business
    "mariadb106-broken-extra-data": ("i nnn", [(256, 0, 4)]),
}

# Files whose positions are not those of this file, so that strict reading names the first that jumps.
JUMPS: Final = {"mysql51-relay-log": 148}

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
    # DDL; 1, 2 and 1 row statements; a Transaction_payload; a row statement; DDL; a statement; a partial update; Rotate
    "mysql97-partial-json": "i c se snnne snnnnne snnne se snnne se snne snnne c",
    # Gtid_list, checkpoint, DDL, two groups Gtid Annotate Table_map Write COMMIT, DDL; still being written
    "mariadb-sequence": "i c i se snnne snnne se",
    # Gtid_list, two checkpoints, DDL, two transactions of one group commit, Rotate
    "mariadb-group-commit": "i c i i se snnne snnne c",
    # Gtid_list, checkpoint, DDL, two statements between Gtid and COMMIT, Stop
    "mariadb-stopped": "i c i se sne sne c",
}
