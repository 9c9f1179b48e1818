"""Versions of servers as numbers, and the comments of SQL that are for some of them."""

import re
from typing import Final, NamedTuple

_VERSION: Final = re.compile(r"(\d{1,9})\.(\d{1,9})(?:\.(\d{1,9}))?")
LAST_OF_MYSQL_ONLY: Final = 99_999
_ONLY_MYSQLS: Final = range(50_700, LAST_OF_MYSQL_ONLY + 1)
"""Versions that only MySQL has. Source: MariaDB 10.11 sql_lex.cc, `lex_one_token`, version comments."""

Version = tuple[int, int]
"""A series of releases: (5, 6)."""
EVERY: Final = (0, 0)


class KnownSince(NamedTuple):
    """The series since which servers know a word. EVERY: since before the oldest that was asked; None: no server of that kind knows
    it; `until` is the first series without it. A word that came in the middle of a series counts for all of it.
    """

    mysql_since: Version | None
    mysql_until: Version | None
    mariadb_since: Version | None
    mariadb_until: Version | None = None

    def in_mysql(self, series: Version) -> bool:
        """Return whether MySQL of this series knows it."""
        return _is_between(self.mysql_since, series, self.mysql_until)

    def in_mariadb(self, series: Version) -> bool:
        """Return whether MariaDB of this series knows it."""
        return _is_between(self.mariadb_since, series, self.mariadb_until)


def _is_between(since: Version | None, series: Version, until: Version | None) -> bool:
    return since is not None and since <= series and (until is None or series < until)


def version_numbers(server_version: str) -> tuple[int, int, int]:
    """Return the first three numbers of a version text: (5, 6, 24) for `5.6.24-log`, zeros if there are none."""
    match = _VERSION.match(server_version)
    return (int(match[1]), int(match[2]), int(match[3] or 0)) if match else (0, 0, 0)


def version_id(server_version: str) -> int:
    """Return the version as in comments: 50624 for `5.6.24-log`; 0 for a text that is no version of any server."""
    major, minor, patch = version_numbers(server_version)
    return major * 10_000 + minor * 100 + patch if major < 1000 and minor < 100 and patch < 100 else 0


def is_only_mysqls(comment_version: int) -> bool:
    """Return whether MariaDB skips a comment that begins with `/*!` and this version; with `/*M!` it runs the same."""
    return comment_version in _ONLY_MYSQLS
