"""Versions of servers as numbers, and the comments of SQL that are for some of them."""

import re
from typing import Final

_VERSION: Final = re.compile(r"(\d{1,9})\.(\d{1,9})(?:\.(\d{1,9}))?")
_ONLY_MYSQLS: Final = range(50_700, 100_000)
"""Versions that only MySQL has. Source: MariaDB 10.11 sql_lex.cc, `lex_one_token`, version comments."""


def version_numbers(server_version: str) -> tuple[int, int, int]:
    """The first three numbers of a version text: (5, 6, 24) for `5.6.24-log`, zeros where there are none."""
    match = _VERSION.match(server_version)
    return (int(match[1]), int(match[2]), int(match[3] or 0)) if match else (0, 0, 0)


def version_id(server_version: str) -> int:
    """The version as comments name it: 50624 for `5.6.24-log`; 0 for a text that is no version of any server."""
    major, minor, patch = version_numbers(server_version)
    return major * 10_000 + minor * 100 + patch if major < 1000 and minor < 100 and patch < 100 else 0


def is_only_mysqls(comment_version: int) -> bool:
    """Whether MariaDB skips what `/*!` and this version begin; it runs the same behind `/*M!`."""
    return comment_version in _ONLY_MYSQLS
