"""The numbers that the kernel and the columns share with each other and with the rest, each defined here and nowhere else.

`codes.pxd` has the same names as a C enum: a compiled module takes its numbers from there, where they are constants of C, and an
uncompiled one from here. So a user's `.pxd` has `from protocol.kernel.codes cimport QUERY_EVENT`, and its `.py` the same as an import
below `if not cython.compiled:`. A test compares the two texts.
"""

from typing import Final

# ---- events ----

# Type codes, as EventType names them.
# Source: MySQL 9.7 `libs/mysql/binlog/event/binlog_event.h` (1-42), MariaDB 11.8 `sql/log_event.h` (160-171), 12.3 (172).
UNKNOWN_EVENT: Final = 0
START_V3_EVENT: Final = 1
QUERY_EVENT: Final = 2
STOP_EVENT: Final = 3
ROTATE_EVENT: Final = 4
INTVAR_EVENT: Final = 5
LOAD_EVENT: Final = 6
SLAVE_EVENT: Final = 7
CREATE_FILE_EVENT: Final = 8
APPEND_BLOCK_EVENT: Final = 9
EXEC_LOAD_EVENT: Final = 10
DELETE_FILE_EVENT: Final = 11
NEW_LOAD_EVENT: Final = 12
RAND_EVENT: Final = 13
USER_VAR_EVENT: Final = 14
FORMAT_DESCRIPTION_EVENT: Final = 15
XID_EVENT: Final = 16
BEGIN_LOAD_QUERY_EVENT: Final = 17
EXECUTE_LOAD_QUERY_EVENT: Final = 18
TABLE_MAP_EVENT: Final = 19
PRE_GA_WRITE_ROWS_EVENT: Final = 20
PRE_GA_UPDATE_ROWS_EVENT: Final = 21
PRE_GA_DELETE_ROWS_EVENT: Final = 22
WRITE_ROWS_V1_EVENT: Final = 23
UPDATE_ROWS_V1_EVENT: Final = 24
DELETE_ROWS_V1_EVENT: Final = 25
INCIDENT_EVENT: Final = 26
HEARTBEAT_EVENT: Final = 27
IGNORABLE_EVENT: Final = 28
ROWS_QUERY_EVENT: Final = 29
WRITE_ROWS_EVENT: Final = 30
UPDATE_ROWS_EVENT: Final = 31
DELETE_ROWS_EVENT: Final = 32
GTID_EVENT: Final = 33
ANONYMOUS_GTID_EVENT: Final = 34
PREVIOUS_GTIDS_EVENT: Final = 35
TRANSACTION_CONTEXT_EVENT: Final = 36
VIEW_CHANGE_EVENT: Final = 37
XA_PREPARE_EVENT: Final = 38
PARTIAL_UPDATE_ROWS_EVENT: Final = 39
TRANSACTION_PAYLOAD_EVENT: Final = 40
HEARTBEAT_V2_EVENT: Final = 41
GTID_TAGGED_EVENT: Final = 42
ANNOTATE_ROWS_EVENT: Final = 160
BINLOG_CHECKPOINT_EVENT: Final = 161
MARIADB_GTID_EVENT: Final = 162
GTID_LIST_EVENT: Final = 163
START_ENCRYPTION_EVENT: Final = 164
QUERY_COMPRESSED_EVENT: Final = 165
WRITE_ROWS_COMPRESSED_V1_EVENT: Final = 166
UPDATE_ROWS_COMPRESSED_V1_EVENT: Final = 167
DELETE_ROWS_COMPRESSED_V1_EVENT: Final = 168
WRITE_ROWS_COMPRESSED_EVENT: Final = 169
UPDATE_ROWS_COMPRESSED_EVENT: Final = 170
DELETE_ROWS_COMPRESSED_EVENT: Final = 171
PARTIAL_ROW_DATA_EVENT: Final = 172

# The header of an event: timestamp u32 | type u8 | server_id u32 | size u32 | log_pos u32 | flags u16.
EVENT_TYPE_AT: Final = 4
SERVER_ID_AT: Final = 5
EVENT_SIZE_AT: Final = 9
LOG_POS_AT: Final = 13
FLAGS_AT: Final = 17
HEADER_SIZE: Final = 19
CHECKSUM_SIZE: Final = 4  # CRC32, at an event's end

# Flags in an event's header.
FLAG_IN_USE: Final = 0x0001
FLAG_OF_ONE_CONNECTION: Final = 0x0004
FLAG_ARTIFICIAL: Final = 0x0020
FLAG_IGNORABLE: Final = 0x0080

# Parts of events' bodies.
FORMAT_FIXED_SIZE: Final = 57  # of a format description: up to the header length, before the post-header lengths
FORMAT_VERSION_SIZE: Final = 50  # of it and of Start_v3: the server's version
START_V3_SIZE: Final = 56
QUERY_SCHEMA_LENGTH_AT: Final = 8
QUERY_ERROR_AT: Final = 9
QUERY_STATUS_LENGTH_AT: Final = 11
QUERY_POST_3: Final = 11  # post-header of a Query before 5.0, which has no status variables
QUERY_POST: Final = 13
EXECUTE_LOAD_QUERY_POST: Final = 26  # of which the first 13 are a Query's
LOAD_POST: Final = 18
ROWS_STATEMENT_END: Final = 1  # STMT_END_F
GTID_UUID_AT: Final = 1  # flags u8 | uuid 16 | number u64; not every server writes more
GTID_NUMBER_AT: Final = 17
GTID_SIZE: Final = 25
MARIADB_GTID_SIZE: Final = 13  # number u64 | domain u32 | flags u8
MARIADB_GTID_DOMAIN_AT: Final = 8
MARIADB_GTID_FLAGS_AT: Final = 12
MARIADB_STANDALONE: Final = 1
ROTATE_NAME_AT: Final = 8  # after the position, u64

FIRST_EVENT: Final = 4  # the place of a file's first event, after the magic
MAX_EVENT: Final = 1073741824  # bytes: max_allowed_packet's limit on every server
PACKET_HEAD_SIZE: Final = 4  # length u24 | sequence u8
MAX_PAYLOAD: Final = 0xFFFFFF  # bytes of a packet; one of that size is continued by the next
MOST_OTHER_PACKET: Final = 65536  # bytes of a packet without an event, at most
ERR_PACKET: Final = 0xFF  # first byte of an error
EOF_PACKET: Final = 0xFE
SEMI_SYNC_MAGIC: Final = 0xEF

# ---- transactions ----

# Boundary types of WL#4162, as BoundaryType names them, and states of its parser.
NOT_DEFINED: Final = 0
IGNORE: Final = 1
SELF_CONTAINED: Final = 2
START: Final = 3
INSIDE: Final = 4
END: Final = 5
BOUNDARY_SHIFT: Final = 10  # in an event's flags
BOUNDARY_MASK: Final = 0x1C00

# The events that opened a transaction.
OPENED_BY_NOTHING: Final = 0
OPENED_BY_GTID: Final = 1
OPENED_BY_BEGIN: Final = 2
OPENED_BY_MARIADB_TRANSACTION: Final = 3
OPENED_BY_MARIADB_STANDALONE: Final = 4
OPENED_BY_SEED: Final = 5
OPENED_BY_LOAD: Final = 6
OPENED_BY_ROWS: Final = 7

# Kinds of events that the rules treat alike. Those up to K_ROTATE may say how other events are read.
K_UNKNOWN: Final = 0
K_IGNORE: Final = 1
K_SELF: Final = 2
K_ROTATE: Final = 3
K_INCIDENT: Final = 4
K_GTID: Final = 5
K_MARIADB_GTID: Final = 6
K_QUERY: Final = 7
K_QUERY_COMPRESSED: Final = 8
K_EXECUTE_LOAD_QUERY: Final = 9
K_SEED: Final = 10
K_LOAD_OPENS: Final = 11
K_LOAD_WHOLE: Final = 12
K_BLOCK: Final = 13
K_LOAD_CLOSES: Final = 14
K_MAP: Final = 15
K_ROWS: Final = 16
K_ENDS: Final = 17
K_MEMBER: Final = 18
K_GTID_LIST: Final = 19
K_ROW_FRAGMENT: Final = 20

# Kinds of statements.
S_MALFORMED: Final = -1
S_OTHER: Final = 0
S_BEGIN: Final = 1
S_COMMIT: Final = 2
S_ROLLBACK: Final = 3
S_PART: Final = 4  # SAVEPOINT, ROLLBACK TO, XA END: never opens or closes
S_XA_COMMIT: Final = 5
S_XA_ROLLBACK: Final = 6

# The second marker layout: the start and the end of an event.
EDGE_NO_START: Final = 1
EDGE_STATEMENT_START: Final = 2
EDGE_TRANSACTION_START: Final = 3
EDGE_COMMIT: Final = 1
EDGE_ROLLBACK: Final = 2
EDGE_STATEMENT_END: Final = 3

# ---- Ingest ----

# The results of `feed`. From 16 on: an error at `consumed` in the input, `position` in the file.
NEED_MORE: Final = 0
ROTATE: Final = 1
PACKET_ERR: Final = 2
PACKET_EOF: Final = 3
TABLE_FULL: Final = 4
STORED_ROTATE: Final = 5
BAD_CRC: Final = 16
BAD_LENGTH: Final = 17
BAD_SEQUENCE: Final = 18
BAD_POSITION: Final = 19
BAD_PACKET: Final = 20
BAD_FORMAT: Final = 21
NO_FORMAT: Final = 22
ENCRYPTED: Final = 23
BAD_EVENT: Final = 24
NO_SEMI_SYNC: Final = 25

MOST_NOTES: Final = 64  # violations and definitions that are reported at a time

# A row of its table: int64s, and bits of the last one, `info`.
TABLE_ROW: Final = 8
INFO_BOUNDARY: Final = 7
INFO_STAMPED: Final = 8  # marked on arrival
INFO_CHECKSUM: Final = 16
INFO_BAD_CHECKSUM: Final = 32
INFO_VIOLATION: Final = 64
INFO_OPEN: Final = 128  # a transaction is open after it
INFO_INFERRED_SHIFT: Final = 8  # the boundary that was inferred, 3 bits; these and the next with `detailed`
INFO_BAD_POSITION: Final = 2048
INFO_MALFORMED: Final = 4096

INDEX_GAP: Final = 65536  # bytes between entries of the boundary index
ENTRY_SIZE: Final = 24
ENTRY_ROOM: Final = 1020  # entries that are kept until they are taken
MAX_WHOLE: Final = 262144  # bytes: larger events are streamed
INFERENCE_HEAD: Final = 70000  # bytes of a streamed event that the inference may need: status variables reach 64 KiB

# ---- Framer ----

# The treatment of the boundary markers.
KEEP: Final = 0
STRIP: Final = 1
EDGES: Final = 2

MAX_PREFIX: Final = 8  # bytes before an event in its packet

# ---- GTIDs ----

GTID_HEAD: Final = 256  # bytes of a GTID event that contain all that is read of it
KEY_ROW: Final = 64  # bytes of a key in a table
KEY_LENGTH_AT: Final = 63  # in it; before it the key, filled up with zeros
LONGEST_KEY: Final = 48
LONGEST_TAG: Final = 32
UUID_SIZE: Final = 16

# The role of an event for readers of GTIDs.
ROLE_OTHER: Final = 0
ROLE_GTID: Final = 1  # it begins a transaction, with its GTID or without one
ROLE_STATEMENT: Final = 2  # if it is alone, it is a transaction
ROLE_ALONE: Final = 3  # it is in no transaction, whatever its markers say

# Fields of a Gtid_tagged event.
TAGGED_FLAGS: Final = 0
TAGGED_UUID: Final = 1
TAGGED_NUMBER: Final = 2
TAGGED_TAG: Final = 3
TAGGED_LAST_COMMITTED: Final = 4
TAGGED_SEQUENCE_NUMBER: Final = 5
TAGGED_IMMEDIATE_COMMIT: Final = 6
TAGGED_ORIGINAL_COMMIT: Final = 7
TAGGED_TRANSACTION_LENGTH: Final = 8
TAGGED_IMMEDIATE_VERSION: Final = 9
TAGGED_ORIGINAL_VERSION: Final = 10
TAGGED_TICKET: Final = 11

# The causes that stop a walk of GtidScanner.
SCAN_GROW_SOURCES: Final = 1
SCAN_GROW_ROWS: Final = 2
SCAN_CAPTURE: Final = 3
SCAN_BAD_LENGTH: Final = 4
SCAN_BAD_GTID: Final = 5
SCAN_ROW: Final = 5  # int64s of a run

# The causes that stop a walk of GtidSkip, and its refusals.
SKIP_BAD_LENGTH: Final = 1
SKIP_BAD_GTID: Final = 2
REFUSED_ANONYMOUS: Final = 1
REFUSED_GTID: Final = 2

# ---- views ----

# The results of `ViewCopy`. From 16 on: as in `Ingest`.
VIEW_MORE: Final = 0
VIEW_GROUP: Final = 1
VIEW_ROOM: Final = 2
VIEW_LOOK: Final = 3
VIEW_CONTROL: Final = 4
VIEW_CUT: Final = 5
VIEW_STRAY: Final = 6
VIEW_PLAN: Final = 7

# The GTID event for a group that has none, and its fields.
VIEW_KEEP: Final = 0
VIEW_ASSIGN: Final = 1
VIEW_ANONYMOUS: Final = 2
VIEW_BARE: Final = 0
VIEW_CLOCK: Final = 1
VIEW_TIMES: Final = 2

VIEW_MARK: Final = 4  # int64s of a mark: offset in the source, in the view, next number, sequence
VIEW_WATCHED: Final = 8192  # numbers of tables' names, a power of two
VIEW_REPLACE: Final = 1  # with a watched name: REPLACE matters
VIEW_DELETE: Final = 2
FIRST_WITH_TABLE_QUERY: Final = 80019  # TABLE t is SELECT * FROM t
LOAD_MODE_AT: Final = 25  # in an Execute_load_query event, after its header: the treatment of duplicates
LOAD_REPLACES: Final = 2
VIEW_LARGEST_SET: Final = 524288  # bytes of a group whose rows are examined for its waits
VIEW_PART_SHIFT: Final = 22  # of a file: earlier parts are not waited for one by one
VIEW_LONGEST_GTID: Final = 96  # bytes: of such an event, and of an event's head that is changed

# Status variables of a Query event, and results of `place_of_explicit`.
VARIABLE_FLAGS: Final = 0
VARIABLE_SQL_MODE: Final = 1
VARIABLE_CATALOG_WITH_ZERO: Final = 2
VARIABLE_CHARSETS: Final = 4
VARIABLE_TIME_ZONE: Final = 5
VARIABLE_CATALOG: Final = 6
VARIABLE_LC_TIME_NAMES: Final = 7
VARIABLE_SCHEMA_COLLATION: Final = 8
VARIABLE_UPDATED_TABLES: Final = 9
VARIABLE_INVOKER: Final = 11
VARIABLE_UPDATED_SCHEMAS: Final = 12
VARIABLE_MICROSECONDS: Final = 13
VARIABLE_LAST_OF_56: Final = 13
VARIABLE_EXPLICIT_TIMESTAMPS: Final = 16  # explicit_defaults_for_timestamp
VARIABLE_MOST_SCHEMAS: Final = 16  # names of updated schemas; more are not listed
MAX_STATUS: Final = 65535  # bytes: its length is a u16
STATUS_SAID: Final = -1
STATUS_DAMAGED: Final = -2

# ---- too large for an int of C ----

U32_MAX: Final = 0xFFFFFFFF
U64_MAX: Final = 0xFFFFFFFFFFFFFFFF
KEY_HASH: Final = 0x9E3779B97F4A7C15  # multiplier
MAX_GNO: Final = 0x7FFFFFFFFFFFFFFE  # servers refuse 2**63 - 1, their GNO_END
VIEW_RENUMBERS: Final = 0x4000000000000000  # with a mark's sequence
VIEW_UUID_USED: Final = 0x2000000000000000  # the same
VIEW_GTIDS_NAMED: Final = 0x1000000000000000  # the same
MAX_STOP: Final = 0x7FFFFFFFFFFFFFFF  # the end of an interval with MAX_GNO
