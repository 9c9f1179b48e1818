"""The modes of sql_mode and their bits, as a Query event has them: those of MySQL 4.0 to 9.7 and MariaDB to 11.8.

Sources: sql_class.h and sys_vars.cc of both, by their names; each bit below 2^32 is the same on both, but for 2^4.
"""

from typing import Final

REAL_AS_FLOAT: Final = 1 << 0
PIPES_AS_CONCAT: Final = 1 << 1
ANSI_QUOTES: Final = 1 << 2
IGNORE_SPACE: Final = 1 << 3
ONLY_FULL_GROUP_BY: Final = 1 << 5
NO_UNSIGNED_SUBTRACTION: Final = 1 << 6
NO_DIR_IN_CREATE: Final = 1 << 7
POSTGRESQL: Final = 1 << 8
ORACLE: Final = 1 << 9
MSSQL: Final = 1 << 10
DB2: Final = 1 << 11
MAXDB: Final = 1 << 12
NO_KEY_OPTIONS: Final = 1 << 13
NO_TABLE_OPTIONS: Final = 1 << 14
NO_FIELD_OPTIONS: Final = 1 << 15
MYSQL323: Final = 1 << 16
MYSQL40: Final = 1 << 17
ANSI: Final = 1 << 18
NO_AUTO_VALUE_ON_ZERO: Final = 1 << 19
NO_BACKSLASH_ESCAPES: Final = 1 << 20
STRICT_TRANS_TABLES: Final = 1 << 21
STRICT_ALL_TABLES: Final = 1 << 22
NO_ZERO_IN_DATE: Final = 1 << 23
NO_ZERO_DATE: Final = 1 << 24
ALLOW_INVALID_DATES: Final = 1 << 25
ERROR_FOR_DIVISION_BY_ZERO: Final = 1 << 26
TRADITIONAL: Final = 1 << 27
NO_AUTO_CREATE_USER: Final = 1 << 28
HIGH_NOT_PRECEDENCE: Final = 1 << 29
NO_ENGINE_SUBSTITUTION: Final = 1 << 30
PAD_CHAR_TO_FULL_LENGTH: Final = 1 << 31
TIME_TRUNCATE_FRACTIONAL: Final = 1 << 32
"""A bit of MySQL since 8.0; MariaDB's next bits are its own."""
EMPTY_STRING_IS_NULL: Final = 1 << 32
SIMULTANEOUS_ASSIGNMENT: Final = 1 << 33
TIME_ROUND_FRACTIONAL: Final = 1 << 34
"""The last three are MariaDB's, since 10.3."""

STRICT: Final = STRICT_TRANS_TABLES | STRICT_ALL_TABLES
IN_BOTH: Final = (1 << 32) - 1
"""The bits that mean the same on both."""
OF_MARIADB: Final = (1 << 35) - 1
GONE_MODES: Final = {
    "POSTGRESQL": POSTGRESQL, "ORACLE": ORACLE, "MSSQL": MSSQL, "DB2": DB2, "MAXDB": MAXDB, "NO_KEY_OPTIONS": NO_KEY_OPTIONS,
    "NO_TABLE_OPTIONS": NO_TABLE_OPTIONS, "NO_FIELD_OPTIONS": NO_FIELD_OPTIONS, "MYSQL323": MYSQL323, "MYSQL40": MYSQL40,
    "NO_AUTO_CREATE_USER": NO_AUTO_CREATE_USER,
}  # fmt: skip
"""The modes, by name, that no MySQL since 8.0.11 has."""
OTHER_GRAMMARS: Final = POSTGRESQL | ORACLE | MSSQL | DB2 | MAXDB | NO_KEY_OPTIONS
"""Modes that may change a definition's meaning or printed form; MariaDB has a grammar of its own for ORACLE alone."""
MODE_NAMES: Final = frozenset((
    *GONE_MODES, "ALLOW_INVALID_DATES", "ANSI", "ANSI_QUOTES", "EMPTY_STRING_IS_NULL", "ERROR_FOR_DIVISION_BY_ZERO",
    "HIGH_NOT_PRECEDENCE", "IGNORE_BAD_TABLE_OPTIONS", "IGNORE_SPACE", "INVALID_DATES", "NOT_USED", "NO_AUTO_VALUE_ON_ZERO",
    "NO_BACKSLASH_ESCAPES", "NO_DIR_IN_CREATE", "NO_ENGINE_SUBSTITUTION", "NO_UNSIGNED_SUBTRACTION", "NO_ZERO_DATE", "NO_ZERO_IN_DATE",
    "ONLY_FULL_GROUP_BY", "PAD_CHAR_TO_FULL_LENGTH", "PIPES_AS_CONCAT", "REAL_AS_FLOAT", "SIMULTANEOUS_ASSIGNMENT",
    "STRICT_ALL_TABLES", "STRICT_TRANS_TABLES", "TIME_ROUND_FRACTIONAL", "TIME_TRUNCATE_FRACTIONAL", "TRADITIONAL",
))  # fmt: skip
"""The modes that a client may name in SET sql_mode, of any version of both."""
