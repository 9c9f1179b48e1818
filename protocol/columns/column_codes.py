"""The numbers that the readers of columns share, each defined here and nowhere else.

`column_codes.pxd` has the same names as a C enum; `protocol.kernel.codes` says how the two are used.
"""

from typing import Final

# ---- stops and findings ----

# What a reader's `take` returns; GROW and PLAN only what a walk returns: the reader sees to it (`resolve`) and walks again.
DONE: Final = 0
FULL: Final = 1
OPEN_ROWS: Final = 2
OPEN_QUERY: Final = 3
OPEN_PAYLOAD: Final = 4
GROW: Final = 5
OPEN_TABLE: Final = 6
PLAN: Final = 7

# What is wrong with an event or a row, in the column `finding`; 0: nothing.
CHECKSUM_MISMATCH: Final = 1
BOUNDARY_VIOLATION: Final = 2
POSITION_CHAIN_BROKEN: Final = 3
UNKNOWN_EVENT_TYPE: Final = 4
EVENT_MALFORMED: Final = 5
ROWS_UNREADABLE: Final = 6
PAYLOAD_UNREADABLE: Final = 7
TRANSACTION_UNFINISHED: Final = 8
TABLE_MAP_MISSING: Final = 9
COLUMN_TYPE_UNKNOWN: Final = 10
ROW_MALFORMED: Final = 11
VALUE_MALFORMED: Final = 12
ROW_TOO_LARGE: Final = 13

MICROSECONDS: Final = 1000000  # of a second

# ---- tables ----

# A slot of TableMaps, int64s: table id, offset and length of the map's bytes in the arena, offset and length of schema and
# table, number of columns, offset of their widths, number of JSON columns, whether a filter wants it, mark.
SLOT_SIZE: Final = 12
SLOT_RAW: Final = 1
SLOT_RAW_LENGTH: Final = 2
SLOT_SCHEMA: Final = 3
SLOT_SCHEMA_LENGTH: Final = 4
SLOT_TABLE: Final = 5
SLOT_TABLE_LENGTH: Final = 6
SLOT_COLUMNS: Final = 7
SLOT_WIDTHS: Final = 8
SLOT_JSON: Final = 9
SLOT_WANTED: Final = 10
SLOT_MARK: Final = 11
SLOT_FREE: Final = -1  # in place of a table id
SLOT_FORGOTTEN: Final = -2  # its map cannot be read: what is behind the slot is found all the same

# What is returned in place of a slot, a count or an offset.
NO_ROOM: Final = -2
MAP_MALFORMED: Final = -1
MAP_UNKNOWN_TYPE: Final = -3
VALUE_INVALID: Final = -1
IMAGE_MALFORMED: Final = -3  # the image ends where it may not: nothing behind it can be read
IMAGE_UNKNOWN_TYPE: Final = -4

WIDTH_UNKNOWN: Final = 9
MOST_COLUMNS: Final = 4096  # every server's limit
MOST_SLOTS: Final = 4096
MOST_MAP_BYTES: Final = 4194304
LONGEST_NAME: Final = 255  # 64 characters of 3 bytes are the servers' limit

# ---- transactions ----

# What closed a transaction: numbers of CLOSERS.
CLOSED_BY_NOTHING: Final = 0
CLOSED_BY_XID: Final = 1
CLOSED_BY_COMMIT: Final = 2
CLOSED_BY_ROLLBACK: Final = 3
CLOSED_BY_XA_PREPARE: Final = 4
CLOSED_BY_XA_COMMIT: Final = 5
CLOSED_BY_XA_ROLLBACK: Final = 6
CLOSED_BY_STATEMENT: Final = 7

HAS_DDL: Final = 1
HAS_ROWS: Final = 2
HAS_STATEMENTS: Final = 4

# ---- statements ----

# What came before a statement that its replay needs.
SEED_LAST_INSERT_ID: Final = 1
SEED_INSERT_ID: Final = 2
SEED_RAND: Final = 4
SEED_USER_VARIABLE: Final = 8

# Bits of sql_mode.
ANSI_QUOTES: Final = 4
NO_BACKSLASH_ESCAPES: Final = 1048576

# ---- rows ----

OPERATION_INSERT: Final = 1
OPERATION_UPDATE: Final = 2
OPERATION_DELETE: Final = 3

# How a column's values are read.
TYPE_UNKNOWN: Final = 0  # nobody knows how long
TYPE_INTEGER: Final = 1
TYPE_FLOAT: Final = 2
TYPE_DOUBLE: Final = 3
TYPE_DECIMAL: Final = 4
TYPE_BIT: Final = 5
TYPE_YEAR: Final = 6
TYPE_DATE: Final = 7
TYPE_OLD_TIME: Final = 8
TYPE_OLD_DATETIME: Final = 9
TYPE_OLD_TIMESTAMP: Final = 10
TYPE_TIME: Final = 11
TYPE_DATETIME: Final = 12
TYPE_TIMESTAMP: Final = 13
TYPE_ENUM: Final = 14
TYPE_SET: Final = 15
TYPE_TEXT: Final = 16
TYPE_JSON: Final = 17
TYPE_GEOMETRY: Final = 18
TYPE_VECTOR: Final = 19
TYPE_COMPRESSED: Final = 20
TYPE_NOTHING: Final = 21  # the type of NULL
TYPE_MISFIT: Final = 22  # arguments that the type cannot have: its bytes are shown
TYPE_UUID: Final = 23
TYPE_INET4: Final = 24
TYPE_INET6: Final = 25

# A column in a plan: its type, then these.
COLUMN_NUMBERS: Final = 12
AT_SIZE: Final = 1
AT_PREFIX: Final = 2
AT_ARGUMENT: Final = 3
AT_SCALE: Final = 4
AT_UNSIGNED: Final = 5
AT_MODE: Final = 6
AT_NAME: Final = 7
AT_NAME_LENGTH: Final = 8
AT_TEXT: Final = 9
AT_TEXT_COUNT: Final = 10
AT_JSON: Final = 11

# How a character set's text becomes UTF-8; from CHARSET_CODEC on: by one of Python's codecs.
CHARSET_UTF8: Final = 0
CHARSET_BINARY: Final = 1
CHARSET_UTF16: Final = 2
CHARSET_UTF16LE: Final = 3
CHARSET_UTF32: Final = 4
CHARSET_SINGLE_BYTE: Final = 16
CHARSET_CODEC: Final = 128

SPARE: Final = 96  # bytes that the longest number, date or time takes
