"""Names of the source's tables as folders."""

import hashlib
import re
from typing import Final

_MOST: Final = 255
"""Of bytes, that file systems take."""
_TAKEN: Final = re.compile(r"(.*__changes|binlog_relay)_*", re.DOTALL)
"""What Iceberg's namespaces of other tables may be called."""
_ENCODED: Final = re.compile(r"@[0-9a-f]{4}")
"""What names have that were told as folders are."""


def namespace(kind: str, schema: str) -> str:
    """Iceberg's: SCHEMA for current tables, SCHEMA__changes for changes. A schema that is called as one of others gets a _ more.

    pyiceberg takes ` shop` for `shop`, and has no part without a letter between dots: such names are told as folders are.
    """
    if _ENCODED.search(schema) or any(not one or one != one.strip() for one in schema.split(".")):
        schema = folder_name(schema)
    if kind != "current":
        return f"{schema}__{kind}"
    return f"{schema}_" if _TAKEN.fullmatch(schema) else schema


def folder_name(name: str) -> str:
    """A schema's or table's name as a folder: as MySQL calls its files, `a b` is a@0020b. URLs would decode %20 once too often."""
    found = "".join(one if one.isascii() and (one.isalnum() or one in "_-$") else f"@{ord(one):04x}" for one in name)
    # Of one that is too long the beginning, and what tells it from others that begin so.
    return found if len(found) <= _MOST else f"{found[: _MOST - 33]}@{hashlib.sha256(name.encode()).hexdigest()[:32]}"
