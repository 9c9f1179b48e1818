"""Names of the source's tables as folders."""

import hashlib
import re
from contextlib import suppress
from pathlib import Path
from typing import Final

from relay.disk.file_calls import remove_directory, remove_tree

_MOST: Final = 255
"""The maximum number of bytes in a name that file systems accept."""
_TAKEN: Final = re.compile(r"(.*__changes|binlog_relay)_*", re.DOTALL)
"""The names that Iceberg's namespaces of other tables may have."""
_ENCODED: Final = re.compile(r"@[0-9a-f]{4}")
"""This sequence occurs in names that are encoded as folders are."""


def namespace(kind: str, schema: str) -> str:
    """Return Iceberg's namespace: SCHEMA for current tables, SCHEMA__changes for changes. A schema whose name collides with another's gets an
    additional _.

    pyiceberg takes ` shop` for `shop`, and accepts no part without a letter between dots: such names are encoded as folders are.
    """
    if _ENCODED.search(schema) or any(not one or one != one.strip() for one in schema.split(".")):
        schema = folder_name(schema)
    if kind != "current":
        return f"{schema}__{kind}"
    return f"{schema}_" if _TAKEN.fullmatch(schema) else schema


def folder_name(name: str) -> str:
    """Return a schema's or table's name as a folder, encoded as MySQL encodes its files: `a b` is a@0020b. URLs would decode %20 twice."""
    found = "".join(one if one.isascii() and (one.isalnum() or one in "_-$") else f"@{ord(one):04x}" for one in name)
    # A name that is too long keeps its beginning, and a digest that distinguishes it from others that begin so.
    return found if len(found) <= _MOST else f"{found[: _MOST - 33]}@{hashlib.sha256(name.encode()).hexdigest()[:32]}"


def remove_local(directory: Path) -> None:
    """Remove a directory of a lake, and the one that it is in if that is empty then."""
    if directory.is_dir():
        remove_tree(directory)
        with suppress(OSError):
            remove_directory(directory.parent)
