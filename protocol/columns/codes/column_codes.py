"""The numbers that the readers of columns share, each defined here and nowhere else.

`column_codes.pxd` has the same names as a C enum; `protocol.kernel.codes` says how the two are used.
"""

from typing import Final

# ---- stops and findings ----

# The results of a reader's `take`; GROW and PLAN are only a walk's: the reader handles them (`resolve`) and walks again.
DONE: Final = 0
FULL: Final = 1
OPEN_ROWS: Final = 2
OPEN_QUERY: Final = 3
OPEN_PAYLOAD: Final = 4
GROW: Final = 5
OPEN_TABLE: Final = 6
PLAN: Final = 7

# The state of a reader's question about packed data in an event: nothing is asked for; OPEN_... is; the answer is there; there is
# none; all of the event is done.
NOTHING_ASKED: Final = 0
ANSWERED: Final = -1
NOT_ANSWERED: Final = -2
EVENT_DONE: Final = -3

# The defect of an event or a row, in the column `finding`; 0: none.
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
VALUE_UNCERTAIN: Final = 14
FINDINGS: Final = {
    CHECKSUM_MISMATCH: "checksum_mismatch",
    BOUNDARY_VIOLATION: "boundary_violation",
    POSITION_CHAIN_BROKEN: "position_chain_broken",
    UNKNOWN_EVENT_TYPE: "unknown_event_type",
    EVENT_MALFORMED: "event_malformed",
    ROWS_UNREADABLE: "rows_unreadable",
    PAYLOAD_UNREADABLE: "payload_unreadable",
    TRANSACTION_UNFINISHED: "transaction_unfinished",
    TABLE_MAP_MISSING: "table_map_missing",
    COLUMN_TYPE_UNKNOWN: "column_type_unknown",
    ROW_MALFORMED: "row_malformed",
    VALUE_MALFORMED: "value_malformed",
    ROW_TOO_LARGE: "row_too_large",
    VALUE_UNCERTAIN: "value_uncertain",
}
"""The name of each finding by its code."""

MICROSECONDS: Final = 1000000  # of a second; 64 bits in C, since seconds are multiplied with it
DAY_SECONDS: Final = 86400
FAR: Final = 4611686018427387904  # later than all times and positions

# ---- tables ----

# A slot of TableMaps, int64s: table id, offset and length of the map's bytes in the arena, offset and length of schema and table,
# number of columns, offset of their widths, number of JSON columns, wanted by a filter, mark.
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
SLOT_FORGOTTEN: Final = -2  # its map cannot be read: what follows the slot is found all the same

# Results in place of a slot, a count or an offset.
NO_ROOM: Final = -2
MAP_MALFORMED: Final = -1
MAP_UNKNOWN_TYPE: Final = -3
VALUE_INVALID: Final = -1
IMAGE_MALFORMED: Final = -3  # the image ends at a wrong place: nothing after it can be read
IMAGE_UNKNOWN_TYPE: Final = -4

WIDTH_UNKNOWN: Final = 9
MOST_COLUMNS: Final = 4096  # every server's limit
MOST_SLOTS: Final = 4096
MOST_MAP_BYTES: Final = 4194304
LONGEST_NAME: Final = 255  # 64 characters of 3 bytes are the servers' limit

# ---- transactions ----

GTID_TEXT_ROOM: Final = 160  # a uuid, a tag of 32 characters and a number of 20 digits fit

# The events that closed a transaction: numbers of CLOSERS.
CLOSED_BY_NOTHING: Final = 0
CLOSED_BY_XID: Final = 1
CLOSED_BY_COMMIT: Final = 2
CLOSED_BY_ROLLBACK: Final = 3
CLOSED_BY_XA_PREPARE: Final = 4
CLOSED_BY_XA_COMMIT: Final = 5
CLOSED_BY_XA_ROLLBACK: Final = 6
CLOSED_BY_STATEMENT: Final = 7

# The contents of a transaction, as bits; and as numbers of KINDS.
HAS_DDL: Final = 1
HAS_ROWS: Final = 2
HAS_STATEMENTS: Final = 4
KIND_NONE: Final = 0
KIND_DDL: Final = 1
KIND_ROWS: Final = 2
KIND_STATEMENTS: Final = 3
KIND_MIXED: Final = 4
TABLE_NUMBERS: Final = 4  # of a table in a transaction's list: offset and length of its schema and of its name

# ---- statements ----

# The values before a statement that its replay needs; the first two are the kinds of Intvar.
SEED_LAST_INSERT_ID: Final = 1
SEED_INSERT_ID: Final = 2
SEED_RAND: Final = 4
SEED_USER_VARIABLE: Final = 8

# Bits of sql_mode.
ANSI_QUOTES: Final = 4
NO_BACKSLASH_ESCAPES: Final = 1048576

LONGEST_STATUS: Final = 65536
STATEMENT_BYTES: Final = 4194304  # a batch of statements ends when its texts are larger
DIGEST_DEPTH: Final = 64  # groups of parentheses whose beginning is remembered; deeper ones are copied as they are

# ---- rows ----

# The operations on a row: numbers of OPERATIONS.
OPERATION_INSERT: Final = 1
OPERATION_UPDATE: Final = 2
OPERATION_DELETE: Final = 3
PARTIAL_JSON_UPDATES: Final = 1  # an option of a partial update's row

# The types of columns in a Table_map.
# Source: MySQL 9.7 `include/field_types.h`; MariaDB 11.8 `include/mysql/server/private/field.h` (140, 141).
FIELD_DECIMAL: Final = 0  # as MySQL 4.1 stored it
FIELD_TINY: Final = 1
FIELD_SHORT: Final = 2
FIELD_LONG: Final = 3
FIELD_FLOAT: Final = 4
FIELD_DOUBLE: Final = 5
FIELD_NULL: Final = 6
FIELD_TIMESTAMP: Final = 7
FIELD_LONGLONG: Final = 8
FIELD_INT24: Final = 9
FIELD_DATE: Final = 10
FIELD_TIME: Final = 11
FIELD_DATETIME: Final = 12
FIELD_YEAR: Final = 13
FIELD_NEWDATE: Final = 14
FIELD_VARCHAR: Final = 15
FIELD_BIT: Final = 16
FIELD_TIMESTAMP2: Final = 17
FIELD_DATETIME2: Final = 18
FIELD_TIME2: Final = 19
FIELD_TYPED_ARRAY: Final = 20
FIELD_BLOB_COMPRESSED: Final = 140
FIELD_VARCHAR_COMPRESSED: Final = 141
FIELD_VECTOR: Final = 242
FIELD_JSON: Final = 245
FIELD_NEWDECIMAL: Final = 246
FIELD_ENUM: Final = 247
FIELD_SET: Final = 248
FIELD_TINY_BLOB: Final = 249
FIELD_MEDIUM_BLOB: Final = 250
FIELD_LONG_BLOB: Final = 251
FIELD_BLOB: Final = 252
FIELD_VAR_STRING: Final = 253
FIELD_STRING: Final = 254
FIELD_GEOMETRY: Final = 255

# How a column's values are read.
TYPE_UNKNOWN: Final = 0  # of unknown length
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

# A column in a plan: how its values are read, then these.
COLUMN_NUMBERS: Final = 14
AT_SIZE: Final = 1  # bytes; 0: after a length
AT_PREFIX: Final = 2  # bytes of the length
AT_ARGUMENT: Final = 3  # digits of a fraction, precision, bytes from which trailing zeros were cut
AT_SCALE: Final = 4
AT_UNSIGNED: Final = 5
AT_MODE: Final = 6  # of its characters
AT_NAME: Final = 7  # where it is in the arena
AT_NAME_LENGTH: Final = 8  # with quotation marks and colon
AT_TEXT: Final = 9  # the first of its texts
AT_TEXT_COUNT: Final = 10
AT_JSON: Final = 11  # 1 if partial updates count it
AT_UNCERTAIN: Final = 12  # 1 if its sign or its character set is unknown
AT_FORM: Final = 13  # of its values that are written alone

# The form of a value that is written alone: numbers of FORMS.
FORM_OTHER: Final = 0  # as in JSON, of any type
FORM_NUMBER: Final = 1
FORM_TEXT: Final = 2  # the inside of a JSON string, with its escapes
FORM_BYTES: Final = 3  # as they are
FORM_DOCUMENT: Final = 4  # as in JSON
PLAN_NAMES: Final = 3  # of a plan in a batch: numbers of its schema, its table and its shape

# The origin of the names of a table's columns: numbers of NAMED.
NAMED_BY_BINLOG: Final = 1
NAMED_BY_RECORD: Final = 2
NAMED_BY_DDL: Final = 3
NAMED_BY_NOBODY: Final = 4

# If there are more plans, or bytes of their texts, they are forgotten when no transaction needs them.
MOST_PLANS: Final = 4096
MOST_ARENA: Final = 16777216
LARGEST_IMAGES: Final = 1073741824  # bytes in a batch: Arrow's offsets of 32 bits end soon after

# How a character set's text becomes UTF-8; from CHARSET_CODEC on by one of Python's codecs.
CHARSET_UTF8: Final = 0
CHARSET_BINARY: Final = 1
CHARSET_UTF16: Final = 2
CHARSET_UTF16LE: Final = 3
CHARSET_UTF32: Final = 4
CHARSET_SINGLE_BYTE: Final = 16
CHARSET_CODEC: Final = 128
NO_CHARACTER: Final = 0xFFFD  # U+FFFD in place of an invalid one; in a table: the byte is invalid

# Types of values in MySQL's binary JSON. Source: MySQL 9.7 `json_binary.cc`.
JSON_SMALL_OBJECT: Final = 0
JSON_LARGE_OBJECT: Final = 1
JSON_SMALL_ARRAY: Final = 2
JSON_LARGE_ARRAY: Final = 3
JSON_LITERAL: Final = 4
JSON_INT16: Final = 5
JSON_UINT16: Final = 6
JSON_INT32: Final = 7
JSON_UINT32: Final = 8
JSON_INT64: Final = 9
JSON_UINT64: Final = 10
JSON_DOUBLE: Final = 11
JSON_STRING: Final = 12
JSON_OPAQUE: Final = 15
JSON_NULL: Final = 0  # literals
JSON_TRUE: Final = 1
JSON_FALSE: Final = 2
JSON_DEEPEST: Final = 128  # MySQL's limit is 100
DIFF_REPLACE: Final = 0  # the operations of a partial update at a path
DIFF_INSERT: Final = 1
DIFF_REMOVE: Final = 2

SPARE: Final = 96  # bytes of the longest number, date or time
SPARE_ROUND: Final = 80  # bytes of eight characters with their escapes
