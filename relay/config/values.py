"""Single values of a configuration, checked one by one; each check says what to write instead."""

import contextlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final
from uuid import UUID

from pydantic import AfterValidator, Field, SecretStr

from protocol.auth.credentials import Credentials
from protocol.auth.host_pattern import HostPattern
from protocol.errors import Malformed
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidPosition
from protocol.handshake import plain_version
from protocol.position import binlog_number
from protocol.sql.expressions.construct_names import ACCEPTED_NAMES
from relay.config.text.problems import Wrong
from relay.view.rules.settings import TARGETS, TableKind

_VERSION = re.compile(r"(\d{1,2})\.(\d{1,4})(?:\.(\d{1,4}))?(?![\d.])")
_LONGEST_VERSION: Final = 59
_DIRECTORY_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_LAST_COLLATION: Final = 2047
_LAST_OF_MARIADB: Final = 4095

Port = Annotated[int, Field(ge=1, le=65535)]
Seconds = Annotated[float, Field(gt=0, le=86400, allow_inf_nan=False)]
PathText = Annotated[Path, Field(strict=False)]


def checked_printable(text: str) -> str:
    """Check a name that logs, pages and terminals show."""
    if not text.isprintable():
        raise Wrong("this has characters that cannot be seen", "Write it without control characters and line ends")
    return text


NonEmpty = Annotated[str, Field(min_length=1), AfterValidator(checked_printable)]
HostName = Annotated[str, Field(min_length=1, max_length=255), AfterValidator(checked_printable)]
UserName = Annotated[str, Field(min_length=1, max_length=128), AfterValidator(checked_printable)]
"""128 characters are MariaDB's limit; MySQL's is 32."""


_INTERVAL = re.compile(r"([1-9][0-9]{0,4})([hd])")
_UNIT_S: Final = {"h": 3600.0, "d": 86400.0}


def checked_interval(text: str) -> str:
    """Check hours or days, or never."""
    if text != "off" and _INTERVAL.fullmatch(text) is None:
        raise Wrong("this is no time between two checks", 'Write such as "30d" (days) or "12h" (hours), or "off"')
    return text


def interval_s(text: str) -> float | None:
    """Return the seconds of what `checked_interval` accepted; None: never."""
    match = _INTERVAL.fullmatch(text)
    return float(match[1]) * _UNIT_S[match[2]] if match is not None else None


def checked_source_name(name: str) -> str:
    """Check the name of the source's directory in the archive. Raises: Wrong, as all of these do."""
    # It becomes a directory: a path in it would put the archive outside the archive directory.
    if _DIRECTORY_NAME.fullmatch(name) is None:
        raise Wrong(
            "this name cannot be a directory of the archive",
            "Use 1 to 64 letters, digits, '_', '-' or '.', not starting with '-' or '.'",
        )
    return name


def checked_view_name(name: str) -> str:
    """Check the name of a view, and of its directory in the source's."""
    return checked_source_name(name)


def checked_target(text: str) -> str:
    """Check the version of the replicas that a view is for."""
    if text not in TARGETS:
        *most, last = (f'"{target}"' for target in TARGETS)
        raise Wrong("no view can be made for such replicas", f"Write {', '.join(most)} or {last}")
    return text


def checked_uuid(text: str) -> str:
    """Check a uuid as servers write it, not all zeros."""
    with contextlib.suppress(ValueError):
        uuid = UUID(text)
        if uuid.int and str(uuid) == text.lower():
            return str(uuid)
    raise Wrong("this is no uuid", 'Write one such as "6d0c5a43-9c63-4f4e-8d1f-5a166f0f3cb2", or leave it out')


def checked_engines(table: Mapping[str, str]) -> dict[str, str]:
    """Check engines by schema.table, or by * for all others."""
    for name in table:
        schema, dot, rest = name.partition(".")
        if name != "*" and not (schema and dot and rest):
            raise Wrong(f"{name!r} names no table", 'Write { "schema.table" = "MyISAM" }, or "*" for all others')
    return dict(table)


def checked_kinds(table: Mapping[str, TableKind]) -> dict[str, TableKind]:
    """Check kinds by schema.table."""
    for name in table:
        schema, dot, rest = name.partition(".")
        if not (schema and dot and rest):
            raise Wrong(f"{name!r} names no table", 'Write { "schema.table" = "sequence" }')
    return dict(table)


_HOST_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,252}[A-Za-z0-9_.])?|\[?[0-9A-Fa-f:.]{2,45}\]?")


def checked_host_names(names: Sequence[str]) -> list[str]:
    """Check names as in a browser's address, without scheme, port and path. Raises: Wrong."""
    for name in names:
        if _HOST_NAME.fullmatch(name) is None:
            raise Wrong(
                f"{name!r} is no name of a host", 'Write the name alone, without http:// and port: ["relay.example"]'
            )
    return list(names)


def checked_plain_tables(names: Sequence[str]) -> list[str]:
    """Check schema.table, or * for all others."""
    for name in names:
        schema, dot, rest = name.partition(".")
        if name != "*" and not (schema and dot and rest):
            raise Wrong(f"{name!r} names no table", 'Write ["schema.table"], or ["*"] for all others')
    return list(names)


def checked_accepted(names: Sequence[str]) -> list[str]:
    """Check names of constructs."""
    for name in names:
        if name not in ACCEPTED_NAMES:
            known = ", ".join(sorted(ACCEPTED_NAMES))
            raise Wrong(
                f"{name!r} is no construct that can be accepted",
                f"The names are those that stops have, of these: {known}",
            )
    return sorted(set(names))


def checked_collations(table: Mapping[str, int]) -> dict[str, int]:
    """Check numbers of collations by numbers of others, which are keys in the file."""
    for source, target in table.items():
        if not source.isascii() or not source.isdecimal():
            raise Wrong(f'"{source[:40]}" is no number of a collation', "Write such as { 255 = 45 }")
        if not (0 < int(source[:9]) <= _LAST_OF_MARIADB and 0 < target <= _LAST_COLLATION):
            raise Wrong(
                f"no collation has such a number: {source[:40]} = {target}",
                f"Numbers are from 1 to {_LAST_COLLATION}, those of a MariaDB source to {_LAST_OF_MARIADB}",
            )
    return {str(int(source)): target for source, target in table.items()}


def checked_binlog_name(name: str) -> str:
    """Check the name of a binlog of the source."""
    try:
        binlog_number(name)
    except Malformed:
        raise Wrong("this is not a binlog file name", 'Write a name such as "mysql-bin.000042", no path') from None
    return name


def checked_version(version: str) -> str:
    """Check a version that every generation of replicas accepts in a greeting.

    MySQL up to 5.7 refuses a first digit below 3, later ones a major below 5; before 5.6.2 there were no checksums, and a MariaDB
    replica stops if such a source sends format descriptions that know of them. The longest version of a server has 59 characters.
    MariaDB's own greets with 5.5.5- where its replicas need that.
    """
    plain = plain_version(version)
    match = _VERSION.match(plain)
    if match is None or len(version) > _LONGEST_VERSION or not (version.isascii() and version.isprintable()):
        raise Wrong(
            "this is not a server's version",
            'Write one such as "5.7.44-log" or "10.11.6-MariaDB-log", 59 characters at most',
        )
    newest = 99 if "mariadb" in plain.lower() else 9
    numbers = tuple(int(part) for part in match.groups(default="0"))
    if numbers < (5, 6, 2) or numbers[0] > newest:
        raise Wrong(
            f"not every replica takes a source of version {match[0]}",
            'Write a version from 5.6.2 to 9; only one with "MariaDB" in it may begin with 10 or more',
        )
    return version


def checked_hash(value: SecretStr) -> SecretStr:
    """Check a password's hash as a server stores it."""
    try:
        Credentials.from_stored(value.get_secret_value())
    except ValueError:
        raise Wrong(
            "this is no hash that a server stores",
            "Write '*' and 40 hexadecimal digits (mysql_native_password), '$A$005$' and what follows "
            "(caching_sha2_password) or 43 characters of base64 (ed25519), as mysql.user shows them, or 0x and the "
            "hexadecimal digits that SELECT HEX(authentication_string) FROM mysql.user shows",
        ) from None
    return value


def checked_host(text: str) -> str:
    """Check the hosts from which an account may log in."""
    try:
        HostPattern.parse(text)
    except ValueError as error:
        raise Wrong(
            str(error), 'Write "%", an address, "10.0.0.0/24", "10.0.0.0/255.255.255.0" or a pattern like "10.0.%"'
        ) from None
    return text


def checked_gtids(text: str) -> str:
    """Check a set of GTIDs that is not empty."""
    for read in (GtidSet.from_text, GtidPosition.from_text):
        with contextlib.suppress(Malformed):
            if read(text):
                return text
    raise Wrong(
        "these are no GTIDs that a server writes",
        'Write what the newest backup says, such as "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-77" (MySQL) or "0-1-77" (MariaDB)',
    )
