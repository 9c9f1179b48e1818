"""The words of MySQL's SELECT that are understood, and SQLite's words for them."""

from typing import Final

# Words that mean the same in both.
_SHARED: Final = (
    "SELECT", "DISTINCT", "ALL", "FROM", "WHERE", "GROUP", "BY", "HAVING", "ORDER", "ASC", "DESC", "LIMIT", "OFFSET", "UNION",
    "AS", "ON", "USING", "JOIN", "INNER", "LEFT", "RIGHT", "OUTER", "CROSS", "NATURAL", "AND", "OR", "NOT", "IN", "IS", "NULL",
    "LIKE", "ESCAPE", "BETWEEN", "EXISTS", "CASE", "WHEN", "THEN", "ELSE", "END",
)  # fmt: skip
KEYWORDS: Final[dict[str, str]] = {word: word for word in _SHARED} | {
    "DISTINCTROW": "DISTINCT",
    "STRAIGHT_JOIN": "JOIN",
    "REGEXP": "REGEXP",
    "RLIKE": "REGEXP",
    "DIV": "/",
    "MOD": "%",
    "TRUE": "1",
    "FALSE": "0",
    "BINARY": "",
}
"""SQLite's words by MySQL's."""

REFUSED: Final = frozenset(
    ("INTO", "WITH", "VALUES", "FOR", "LOCK", "PROCEDURE", "WINDOW", "OVER", "XOR", "SOUNDS", "MATCH", "INTERVAL", "SEPARATOR",
     "FORCE", "USE", "IGNORE", "PARTITION", "INTERSECT", "EXCEPT", "LATERAL", "RECURSIVE", "TABLE", "SET")
)  # fmt: skip
"""Words that change what follows in a way that is not known here, or do more than read."""

OPTIONS: Final = frozenset(
    ("SQL_NO_CACHE", "SQL_CACHE", "HIGH_PRIORITY", "SQL_CALC_FOUND_ROWS", "SQL_BUFFER_RESULT", "SQL_SMALL_RESULT",
     "SQL_BIG_RESULT", "ALL")
)  # fmt: skip
"""The words that may follow SELECT and change nothing in the answer."""

# fmt: off
FUNCTIONS_OF_TABLES: Final[dict[str, str]] = {
    "ABS": "abs", "AVG": "avg", "CAST": "CAST", "CEIL": "ceiling", "CEILING": "ceiling", "CHARACTER_LENGTH": "char_length",
    "CHAR_LENGTH": "char_length", "COALESCE": "coalesce", "CONCAT": "concat", "CONCAT_WS": "concat_ws", "CONVERT": "CAST",
    "COUNT": "count", "DATE_ADD": "date_add", "DATE_SUB": "date_sub", "FIND_IN_SET": "find_in_set", "FLOOR": "floor",
    "FROM_UNIXTIME": "from_unixtime", "GREATEST": "greatest", "GROUP_CONCAT": "group_concat", "GTID_SUBSET": "gtid_subset",
    "GTID_SUBTRACT": "gtid_subtract", "HEX": "hex", "IF": "iif", "IFNULL": "ifnull", "INSTR": "instr", "ISNULL": "isnull",
    "LCASE": "lower", "LEAST": "least", "LEFT": "left", "LENGTH": "length", "LOCATE": "locate", "LOWER": "lower",
    "LTRIM": "ltrim", "MAX": "max", "MID": "substr", "MIN": "min", "MOD": "mod", "NULLIF": "nullif", "POSITION": "locate", "POW": "pow",
    "POWER": "pow",
    "REPLACE": "replace", "RIGHT": "right", "ROUND": "round", "RTRIM": "rtrim", "SIGN": "sign", "SUBSTR": "substr",
    "SUBSTRING": "substr", "SUBSTRING_INDEX": "substring_index", "SUM": "sum", "TIMESTAMPDIFF": "timestampdiff",
    "TIME_TO_SEC": "time_to_sec", "TRIM": "trim", "UCASE": "upper", "UNIX_TIMESTAMP": "unix_timestamp", "UPPER": "upper",
}
# fmt: on
"""Functions of values of a row, and of many rows: their name there."""

AGGREGATES: Final = frozenset(("AVG", "COUNT", "GROUP_CONCAT", "MAX", "MIN", "SUM"))

TYPES: Final[dict[str, str]] = {
    "BINARY": "TEXT",
    "CHAR": "TEXT",
    "DATE": "TEXT",
    "DATETIME": "TEXT",
    "DECIMAL": "REAL",
    "DOUBLE": "REAL",
    "FLOAT": "REAL",
    "NCHAR": "TEXT",
    "SIGNED": "INTEGER",
    "TIME": "TEXT",
    "UNSIGNED": "INTEGER",
}
"""The types of CAST."""
