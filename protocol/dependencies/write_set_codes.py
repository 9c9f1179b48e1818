"""Numbers of the write sets' compiled part, for C in write_set_codes.pxd; a test compares the two."""

from typing import Final

# ---- a table's plan: int64s; see `WriteSets.add_plan` ----

PLAN_SERIAL: Final = 1  # flag: nothing may run beside a group with rows of it
PLAN_CASCADES_DELETE: Final = 2  # flag: deleting a row deletes or changes rows that are not in the binlog
PLAN_FLAGS: Final = 0
PLAN_NAMELESS: Final = 1  # number of the rows that no key distinguishes
PLAN_KEYS: Final = 2
PLAN_TABLE: Final = 3  # under which the table is counted: 0 to MOST_TOLD_TABLES
PLAN_HEAD: Final = 4

# ---- a key in it ----

KEY_NUMBER: Final = 0  # distinguishes it from all other keys
KEY_CLASS: Final = 1  # for values that are not comparable: with all values of the key
KEY_FLAGS: Final = 2
KEY_PARTS: Final = 3
KEY_HEAD: Final = 4
KEY_NAMES_ROW: Final = 1  # flag: unique, so that its value identifies the row
KEY_READS: Final = 2  # flag: a foreign key's columns: the value is another row's
KEY_CASCADES_UPDATE: Final = 4  # flag: changing the value changes rows that are not in the binlog

# ---- a part of a key: column, form, prefix in characters or bytes (0: the whole value) ----

PART_COLUMN: Final = 0
PART_FORM: Final = 1
PART_PREFIX: Final = 2
PART_SIZE: Final = 3

FORM_RAW: Final = 0  # the bytes as they are
FORM_BINARY: Final = 1  # the bytes without zeros at the end
FORM_EXACT: Final = 2  # characters that are equal only if their bytes are, without spaces at the end
FORM_FOLDED: Final = 3  # in ASCII: without regard to case and spaces at the end; otherwise not comparable
FORM_REAL: Final = 4  # a float or double: there are two zeros
FORM_DECIMAL: Final = 5  # there are two zeros here too
FORM_NONE: Final = 6  # not comparable

# ---- the results of `take_map` ----

SET_TAKEN: Final = 0
SET_PLAN: Final = 1  # the Table_map's table has no plan yet

# ---- the causes that make a group a barrier ----

SERIAL_NOT: Final = 0
SERIAL_TABLE: Final = 1  # PLAN_SERIAL; `serial_slot`
SERIAL_CASCADE: Final = 2
SERIAL_VALUE: Final = 3  # rows whose content is unknown
SERIAL_LARGE: Final = 4  # more keys than are kept for a group
SERIAL_MALFORMED: Final = 5  # its rows cannot be walked
SERIAL_OTHER: Final = 6  # a statement, or other changes that are not rows

# ---- the causes that make another group wait for the one before it ----

SERIAL_KEYLESS: Final = 7  # rows that no key distinguishes
SERIAL_COMPARED: Final = 8  # values that are not comparable here
SERIAL_ROWS: Final = 9  # the same rows, according to their keys
SERIAL_HISTORY: Final = 10  # earlier knowledge is forgotten
SERIAL_SOURCE: Final = 11  # its rows were not read
SERIAL_CAUSES: Final = 12

MOST_GROUP_KEYS: Final = 8192
MOST_TABLE_KEYS: Final = 256
MOST_TOLD_TABLES: Final = 255  # are counted one by one; the others together, under this
NOT_TOLD: Final = -1
MOST_NUMBER: Final = 0x3FFFFFFFFFFFFFFF  # the largest number of a group that is accepted
MOST_PLAN_NUMBERS: Final = 1048576
WRITE_SET_MIX: Final = 0x2545F4914F6CDD1D

# ---- the history: number, the last group that wrote it, the last that wrote or read it ----

HISTORY_SIZE: Final = 3
HISTORY_WRITER: Final = 1
HISTORY_ANY: Final = 2

# ---- a row's image ----

VALUE_NULL: Final = -1
VALUE_ABSENT: Final = -2
ROW_NEW: Final = 0
ROW_OLD: Final = 1
ROW_BEFORE: Final = 2
ROW_AFTER: Final = 3
STATE_KNOWN: Final = 0
STATE_NULL: Final = 1
STATE_UNKNOWN: Final = 2
