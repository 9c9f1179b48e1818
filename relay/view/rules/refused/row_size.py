"""The size of a row that InnoDB of MySQL 9.7 allows for, by the columns of a table: its error 1118 where innodb_strict_mode is ON.

A page has 16 KiB, and a row must fit into half of one with the longest values of its columns that are not stored elsewhere.
Source: dict_index_too_big_for_tree of MySQL's InnoDB, by its name; tried on 9.7.4.
"""

import re
from typing import Final

from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.tables.altered_table import table_of
from protocol.sql.tables.ddl_statement import CreateTable, needs_everything
from protocol.sql.tables.source_table import Column

_PAGE: Final = 8126
_HEAD: Final = 5
_OWN: Final = 6 + 7
"""The bytes of the number of the transaction, and of the pointer to the row before."""
_ROW_ID: Final = 6
_LOCAL: Final = 40
"""The bytes that stay in the row of a value that is stored elsewhere."""
_LOCAL_COMPACT: Final = 768
_BYTES: Final = {
    "tinyint": 1, "smallint": 2, "mediumint": 3, "int": 4, "bigint": 8, "float": 4, "double": 8, "date": 3, "year": 1, "bit": 8,
}  # fmt: skip
_FRACTIONS: Final = {"time": 3, "datetime": 5, "timestamp": 4}
WIDEST: Final = {
    "utf8mb4": 4, "utf8": 3, "utf8mb3": 3, "utf16": 4, "utf16le": 4, "utf32": 4, "ucs2": 2, "gbk": 2, "gb2312": 2, "big5": 2, "sjis": 2,
    "cp932": 2, "euckr": 2, "ujis": 3, "eucjpms": 3, "gb18030": 4,
}  # fmt: skip
"""The most bytes of a character, for character sets with more than one."""
_TYPE: Final = re.compile(r"([a-z]+)(?:\((\d+)(?:,(\d+))?)?")
_DIGITS: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


def is_row_too_large(made: CreateTable) -> bool:
    """Return whether InnoDB refuses a new table; False where its columns are not known."""
    try:
        needs_everything(made)
        table = table_of(made, made.charset.charset or "")
    except UnsupportedSyntax:
        return False
    option = made.written.option("ROW_FORMAT")
    row_format = option.text.upper() if option is not None else "DYNAMIC"
    if row_format == "COMPRESSED" or made.written.option("KEY_BLOCK_SIZE") is not None or made.written.queried:
        return False
    local = _LOCAL_COMPACT if row_format in ("COMPACT", "REDUNDANT") else _LOCAL
    has_key = any(name == "PRIMARY" for name, _key in table.keys)
    size = _HEAD + _OWN + (0 if has_key else _ROW_ID) + (sum(column.nullable for column in table.columns) + 7) // 8
    return size + sum(_column(column, local) for column in table.columns) >= _PAGE


def _column(column: Column, local: int) -> int:
    """Return the most bytes of a column in a row, with those of its length."""
    found = _TYPE.match(column.type)
    if found is None:
        return 0
    name, first, second = found[1], found[2], found[3]
    count = int(first) if first else 1
    wide = WIDEST.get(column.charset, 1)
    if name in _BYTES:
        return (count + 7) // 8 if name == "bit" else _BYTES[name]
    if name in _FRACTIONS:
        return _FRACTIONS[name] + (int(first or 0) + 1) // 2
    if name == "decimal":
        scale = int(second or 0)
        whole = int(first or 10) - scale
        return whole // 9 * 4 + _DIGITS[whole % 9] + scale // 9 * 4 + _DIGITS[scale % 9]
    if name == "enum":
        return 1 if column.type.count("','") < 255 else 2
    if name == "set":
        return (column.type.count("','") + 8) // 8
    if name == "binary" or (name == "char" and wide == 1):
        return count
    longest = count * wide if name in ("char", "varchar", "varbinary") else 1 << 16
    if longest >= local:
        return local + 1
    return longest + (1 if longest < 256 else 2)
