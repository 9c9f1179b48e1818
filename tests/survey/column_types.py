"""The types of columns to which values are stored and converted."""

from typing import Final

COLUMN_TYPES: Final[dict[str, tuple[str, ...]]] = {
    "TINYINT": ("TINYINT", "TINYINT UNSIGNED"),
    "SMALLINT": ("SMALLINT", "SMALLINT UNSIGNED"),
    "MEDIUMINT": ("MEDIUMINT",),
    "INT": ("INT", "INT UNSIGNED", "INT(5) ZEROFILL"),
    "BIGINT": ("BIGINT", "BIGINT UNSIGNED"),
    "DECIMAL": ("DECIMAL(10,2)", "DECIMAL(65,30)", "DECIMAL(5) UNSIGNED"),
    "FLOAT": ("FLOAT", "FLOAT(7,3)"),
    "DOUBLE": ("DOUBLE", "DOUBLE UNSIGNED"),
    "CHAR": ("CHAR(3) CHARACTER SET utf8mb4", "CHAR(20) CHARACTER SET utf8", "CHAR(20) CHARACTER SET utf8mb4"),
    "CHAR, fewer letters": ("CHAR(3) CHARACTER SET latin1", "CHAR(20) CHARACTER SET utf8"),
    "VARCHAR": ("VARCHAR(3) CHARACTER SET utf8mb4", "VARCHAR(60) CHARACTER SET utf8",
                "VARCHAR(60) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"),
    "VARCHAR, fewer letters": ("VARCHAR(3) CHARACTER SET latin1", "VARCHAR(60) CHARACTER SET utf8"),
    "TEXT": ("TEXT CHARACTER SET utf8mb4", "TINYTEXT CHARACTER SET utf8", "MEDIUMTEXT CHARACTER SET utf8mb4"),
    "TEXT, fewer letters": ("TEXT CHARACTER SET latin1", "TINYTEXT CHARACTER SET utf8"),
    "BINARY": ("BINARY(3)", "BINARY(60)"),
    "VARBINARY": ("VARBINARY(3)", "VARBINARY(60)"),
    "BLOB": ("BLOB", "TINYBLOB"),
    "DATE": ("DATE",),
    "DATETIME": ("DATETIME", "DATETIME(3)"),
    "TIMESTAMP": ("TIMESTAMP NULL DEFAULT NULL", "TIMESTAMP(6) NULL DEFAULT NULL"),
    "TIME": ("TIME", "TIME(3)"),
    "YEAR": ("YEAR",),
    "BIT": ("BIT(1)", "BIT(8)", "BIT(64)"),
    "ENUM": ("ENUM('abc','é','7','') CHARACTER SET utf8",),
    "SET": ("SET('a','b','c','7') CHARACTER SET utf8",),
    "GEOMETRY": ("GEOMETRY", "POINT"),
}  # fmt: skip
"""The types by the name that rows have. `fewer letters`: the character set of the column may lack letters of the value."""


def has_letters(name: str, column_type: str, value: str) -> bool:
    """Return whether a column of this type may be given this value under this name: one with letters that it has."""
    return name.endswith(", fewer letters") or not (value.startswith("utf8mb4") and column_type.endswith(" utf8"))
