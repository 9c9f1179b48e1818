"""Checks that two descriptions of a table, or a table and the types of its rows in the binlog, can both be true."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from protocol.binlog.schema.collation_names import plain_collation
from protocol.columns.codes import column_codes as codes
from protocol.sql.tables.source_table import RESTRICT, UNKNOWN_CHARSET, Column, Table

_TYPE: Final = re.compile(r"([a-z0-9]++)\s*+(?:\((.*)\))?(.*)", re.DOTALL)
_COMMENT: Final = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_SAME: Final = {"geomcollection": "geometrycollection"}
_TEXTS: Final = frozenset(("tinytext", "text", "mediumtext", "longtext"))
_BLOBS: Final = frozenset(("tinyblob", "blob", "mediumblob", "longblob"))
_UTF8: Final = frozenset(("utf8", "utf8mb3"))
_SIZED: Final = frozenset(
    ("char", "varchar", "binary", "varbinary", "bit", "time", "datetime", "timestamp", "enum", "set")
)
# The types of Table_map that a column may have; not in it: any.
_CODES: Final[dict[str, tuple[int, ...]]] = {
    "tinyint": (codes.FIELD_TINY,), "smallint": (codes.FIELD_SHORT,), "mediumint": (codes.FIELD_INT24,),
    "int": (codes.FIELD_LONG,), "bigint": (codes.FIELD_LONGLONG,), "float": (codes.FIELD_FLOAT,),
    "double": (codes.FIELD_DOUBLE,), "decimal": (codes.FIELD_DECIMAL, codes.FIELD_NEWDECIMAL), "bit": (codes.FIELD_BIT,),
    "year": (codes.FIELD_YEAR,), "date": (codes.FIELD_DATE, codes.FIELD_NEWDATE),
    "time": (codes.FIELD_TIME, codes.FIELD_TIME2), "datetime": (codes.FIELD_DATETIME, codes.FIELD_DATETIME2),
    "timestamp": (codes.FIELD_TIMESTAMP, codes.FIELD_TIMESTAMP2),
    "char": (codes.FIELD_STRING, codes.FIELD_VAR_STRING, codes.FIELD_VARCHAR),
    "varchar": (codes.FIELD_VARCHAR, codes.FIELD_VAR_STRING, codes.FIELD_VARCHAR_COMPRESSED),
    "binary": (codes.FIELD_STRING, codes.FIELD_VAR_STRING, codes.FIELD_VARCHAR),
    "varbinary": (codes.FIELD_VARCHAR, codes.FIELD_VAR_STRING, codes.FIELD_VARCHAR_COMPRESSED), "enum": (codes.FIELD_ENUM,),
    "set": (codes.FIELD_SET,), "json": (codes.FIELD_JSON,), "uuid": (codes.FIELD_STRING,), "inet4": (codes.FIELD_STRING,),
    "inet6": (codes.FIELD_STRING,), "vector": (codes.FIELD_VECTOR, codes.FIELD_VARCHAR, codes.FIELD_BLOB),
}  # fmt: skip
_OF_BLOBS: Final = (
    codes.FIELD_TINY_BLOB, codes.FIELD_MEDIUM_BLOB, codes.FIELD_LONG_BLOB, codes.FIELD_BLOB, codes.FIELD_BLOB_COMPRESSED,
)  # fmt: skip
_GEOMETRY: Final = (codes.FIELD_GEOMETRY,)
_GEOMETRIES: Final = frozenset(
    (
        "geometry",
        "point",
        "linestring",
        "polygon",
        "multipoint",
        "multilinestring",
        "multipolygon",
        "geometrycollection",
    )
)
_MOST_BYTES: Final = {
    "utf8mb4": (4,), "utf8": (3, 4), "utf8mb3": (3,), "ucs2": (2,), "utf16": (4,), "utf16le": (4,), "utf32": (4,), "gbk": (2,),
    "sjis": (2,), "big5": (2,), "euckr": (2,), "gb2312": (2,), "cp932": (2,), "ujis": (3,), "eucjpms": (3,), "gb18030": (4,),
}  # fmt: skip


def type_name(word: str) -> str:
    """Return the name of a type, in lower case; MySQL has two names for one: GEOMCOLLECTION and GEOMETRYCOLLECTION."""
    return _SAME.get(word.lower(), word.lower())


def type_parts(column_type: str) -> tuple[str, str, bool]:
    """Return a type's name, the content of its brackets where that matters to values, and whether it is unsigned."""
    match = _TYPE.match(_COMMENT.sub("", column_type.strip()))
    if match is None:
        return column_type.lower(), "", False
    name = type_name(match[1])
    argument = match[2] or ""
    if name in _TEXTS:
        name = "text"
    elif name in _BLOBS:
        name = "blob"
    if name == "decimal":
        argument = argument.replace(" ", "")
    elif name not in _SIZED:
        argument = ""
    return name, argument, "unsigned" in match[3].lower() or "zerofill" in match[3].lower()


def tables_agree(worked_out: Table, asked: Table) -> bool:
    """Return whether both read the same values. What is not known of one agrees with everything."""
    if len(worked_out.columns) != len(asked.columns):
        return False
    return all(_columns_agree(one, other) for one, other in zip(worked_out.columns, asked.columns, strict=True))


def _columns_agree(one: Column, other: Column) -> bool:
    type_of_one, type_of_other = type_parts(one.type), type_parts(other.type)
    if one.type in ("enum", "set"):  # its texts are not known
        type_of_other = (type_of_other[0], "", False)
    if one.name != other.name or type_of_one != type_of_other:
        return False
    return one.charset == UNKNOWN_CHARSET or _charset(one.charset) == _charset(other.charset)


def keys_agree(worked_out: Table, asked: Table) -> bool:
    """Return whether the unique keys, foreign keys and collations of both are equal, as far as both are known."""
    if _unique_keys(worked_out).keys() != _unique_keys(asked).keys():
        return False
    for name, prefixes in _unique_keys(worked_out).items():
        other = _unique_keys(asked)[name]
        if prefixes is not None and other is not None and prefixes != other:
            return False
    foreign, other_foreign = _foreign_keys(worked_out), _foreign_keys(asked)
    if foreign is not None and other_foreign is not None and foreign != other_foreign:
        return False
    return all(
        not one.collation or not other.collation or plain_collation(one.collation) == plain_collation(other.collation)
        for one, other in zip(worked_out.columns, asked.columns, strict=True)
    )


def completed(asked: Table, worked_out: Table) -> Table:
    """Return the answer, completed by the facts that statements define, if these agree with the rest."""
    if not tables_agree(worked_out, asked) or not keys_agree(worked_out, asked):
        return asked
    prefixes = _unique_keys(worked_out)
    keys = tuple(
        (name, replace(key, prefixes=prefixes.get((name, *key.columns))) if key.prefixes is None else key)
        for name, key in asked.keys
    )
    columns = tuple(
        replace(one, collation=one.collation or other.collation)
        for one, other in zip(asked.columns, worked_out.columns, strict=True)
    )
    foreign = asked.foreign_keys if asked.foreign_keys is not None else worked_out.foreign_keys
    return replace(asked, columns=columns, keys=keys, foreign_keys=foreign)


def _unique_keys(table: Table) -> dict[tuple[str, ...], tuple[int | None, ...] | None]:
    return {(name, *key.columns): key.prefixes for name, key in table.keys if key.unique}


def _foreign_keys(table: Table) -> set[tuple[str | tuple[str, ...], ...]] | None:
    """Return the effects of foreign keys, whatever their names and the case of other names."""
    if table.foreign_keys is None:
        return None
    return {
        (
            tuple(column.lower() for column in one.columns),
            one.schema.lower(),
            one.table.lower(),
            tuple(column.lower() for column in one.referenced),
            one.on_delete.replace("NO ACTION", RESTRICT),
            one.on_update.replace("NO ACTION", RESTRICT),
        )
        for _name, one in table.foreign_keys
    }


def without_keys(table: Table) -> Table:
    """Return the table with its keys, foreign keys and collations marked as unknown."""
    keys = tuple((name, replace(key, prefixes=None)) for name, key in table.keys)
    columns = tuple(replace(column, collation="") for column in table.columns)
    return replace(table, columns=columns, keys=keys, foreign_keys=None, collation="")


def _charset(name: str) -> str:
    return "utf8" if name in _UTF8 else name


def columns_fit(columns: Sequence[Column], types: bytes, arguments: Sequence[tuple[int, int]] | None = None) -> bool:
    """Return whether rows of these types, which a Table_map contains, can belong to these columns. `types` may have more at the end.

    `arguments` are those of each type, as in the Table_map; None: they are not compared.
    """
    if not 0 < len(columns) <= len(types):
        return False
    for number, column in enumerate(columns):
        name, argument, _unsigned = type_parts(column.type)
        code = types[number]
        if name in ("text", "blob"):
            fits = code in _OF_BLOBS
        elif name in _GEOMETRIES:
            fits = code in _GEOMETRY
        else:
            fits = code in _CODES.get(name, (code,))
        if not fits or (
            arguments is not None and not _argument_fits(name, argument, column.charset, code, arguments[number])
        ):
            return False
    return True


def _argument_fits(name: str, argument: str, charset: str, code: int, found: tuple[int, int]) -> bool:
    if name == "decimal" and code == codes.FIELD_NEWDECIMAL:
        precision, _, scale = argument.partition(",")
        return (precision, scale or "0") == (str(found[0]), str(found[1]))
    if code in (codes.FIELD_TIMESTAMP2, codes.FIELD_DATETIME2, codes.FIELD_TIME2):
        return int(argument or 0) == found[0]
    if code == codes.FIELD_VARCHAR and name in ("varchar", "varbinary") and argument.isdecimal():
        if charset == UNKNOWN_CHARSET:
            return True
        widths = _MOST_BYTES.get(charset, (1,)) if name == "varchar" else (1,)
        return found[0] in {int(argument) * width for width in widths}
    if code == codes.FIELD_STRING and name in ("char", "binary") and argument.isdecimal():
        if charset == UNKNOWN_CHARSET:
            return True
        widths = _MOST_BYTES.get(charset, (1,)) if name == "char" else (1,)
        return found[1] in {int(argument) * width for width in widths}
    return True
