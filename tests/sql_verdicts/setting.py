"""Under what a statement is read: the server that logged it, and its sql_mode."""

import hashlib
from collections.abc import Iterator
from typing import Final, NamedTuple

ANSI_QUOTES: Final = 1 << 2
NO_BACKSLASH_ESCAPES: Final = 1 << 20
SERVERS: Final = {
    "mysql56": "5.6.24-log",
    "mysql57": "5.7.44-log",
    "mysql97": "9.7.4",
    "mariadb": "10.11.19-MariaDB-log",
    "mariadb118": "11.8.6-MariaDB-log",
}
"""Name -> version, as a format description has it."""
MODES: Final = {
    "": 0,
    "ansi": ANSI_QUOTES,
    "plain": NO_BACKSLASH_ESCAPES,
    "ansi+plain": ANSI_QUOTES | NO_BACKSLASH_ESCAPES,
}
_READ_BY_ALL: Final = 16


class Setting(NamedTuple):
    """`server`: a name of SERVERS. `mode`: a name of MODES."""

    server: str
    mode: str

    @property
    def version(self) -> str:
        """The server's, as "9.7.4"."""
        return SERVERS[self.server]

    @property
    def sql_mode(self) -> int:
        """The bits."""
        return MODES[self.mode]

    @property
    def is_mariadb(self) -> bool:
        """Whether a MariaDB logged it."""
        return self.server.startswith("mariadb")

    def __str__(self) -> str:
        return f"{self.server}/{self.mode or 'no mode'}"


def modes_of(statement: bytes) -> Iterator[str]:
    """The modes that a statement is read in: those whose character it contains."""
    for name, bits in MODES.items():
        needs_quote, needs_backslash = bool(bits & ANSI_QUOTES), bool(bits & NO_BACKSLASH_ESCAPES)
        if _is_read_by_all(statement) or (
            (not needs_quote or b'"' in statement) and (not needs_backslash or b"\\" in statement)
        ):
            yield name


def tells_servers_apart(statement: bytes) -> bool:
    """Whether servers may cut it into other tokens."""
    return b"/*" in statement or _is_read_by_all(statement)


def _is_read_by_all(statement: bytes) -> bool:
    """Whether it is the one of sixteen that is read under everything, so that a reader which asks for more than it says is found."""
    return hashlib.blake2b(statement, digest_size=1).digest()[0] % _READ_BY_ALL == 0
