"""Keys that are longer than the target's engines allow: MariaDB shortens one that is not unique, with a note, in every sql_mode.

MySQL does so without a strict mode alone (1071): the key is written with the prefix that it gets. Source: MariaDB 10.11.19 and MySQL
9.7.4, asked for keys of MyISAM and InnoDB.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from protocol.sql.tables.ddl_statement import KeyPart, WrittenKey
from protocol.sql.tables.source_table import Column, Table
from relay.view.rules.refused.row_size import WIDEST

_LIMIT: Final = 3072
_MYISAM_LIMIT: Final = 1000
_SMALL_LIMIT: Final = 767
_TYPE: Final = re.compile(r"([a-z]+)(?:\((\d+))?")
_TEXTS: Final = frozenset(("char", "varchar", "tinytext", "text", "mediumtext", "longtext"))
_BLOBS: Final = frozenset(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"))


def shortened_parts(
    key: WrittenKey, columns: Mapping[str, Column], engine: str, row_format: str
) -> Iterator[tuple[KeyPart, int]]:
    """Yield the parts of a key that the target refuses, each with the characters, or bytes, that it takes. `columns` are by names in
    lower case; a column whose character set is not known is left as it is."""
    if key.kind:
        return
    for part in key.parts:
        most = longest_part(columns.get(part.name.lower()), part.prefix, engine, row_format)
        if most is not None:
            yield part, most


def longest_part(column: Column | None, prefix: int | None, engine: str, row_format: str) -> int | None:
    """Return the most characters, or bytes, of a column that the target takes in a key, where the key has more; None: it does not, or
    that is not known."""
    limit = _MYISAM_LIMIT if engine.lower() == "myisam" else _LIMIT
    if limit == _LIMIT and row_format in ("COMPACT", "REDUNDANT"):
        limit = _SMALL_LIMIT
    found = _TYPE.match(column.type) if column is not None else None
    if column is None or found is None or found[1] not in _TEXTS | _BLOBS:
        return None
    wide = WIDEST.get(column.charset, 1) if found[1] in _TEXTS else 1
    if found[1] in _TEXTS and column.charset in ("", "?"):
        return None
    length = prefix if prefix is not None else int(found[2] or 0)
    return limit // wide if length * wide > limit else None


def lengthened_key(before: Table, after: Table, engine: str) -> str:
    """Return the name of a plain key that is longer than the target takes after a change of its columns; an empty text if none is."""
    old, new = ({one.name.lower(): one for one in table.columns} for table in (before, after))
    was = dict(before.keys)
    for name, key in after.keys:
        if key.unique or was.get(name) != key:
            continue
        for column, prefix in key.parts or ():
            too_long = [longest_part(some.get(column.lower()), prefix, engine, "") for some in (old, new)]
            if too_long[0] is None and too_long[1] is not None:
                return name
    return ""
