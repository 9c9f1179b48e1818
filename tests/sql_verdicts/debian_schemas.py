"""Statements of applications' schemas, out of Debian's packages.

They are fetched when the command wants them, and none of them is kept in the repository.
"""

import gzip
import hashlib
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from deploy.servers.location import ServerUnavailable, locked, root_directory

PACKAGES: Final = (
    "zabbix-server-mysql", "kea-admin", "icinga2-ido-mysql", "icingadb", "icingaweb2", "bacula-director-mysql", "request-tracker5",
    "roundcube-core", "phpmyadmin", "pdns-backend-mysql", "freeradius-config", "cacti", "ejabberd", "kamailio-mysql-modules",
    "tango-db", "sogo", "rsyslog-mysql", "mediawiki", "mariadb-server-core",
)  # fmt: skip
_WANTED: Final = re.compile(
    r"\.sql(\.gz)?\Z|\.mysql\Z|dbconfig-common/data/[^/]+/(install|upgrade)/mysql|mysql[^/]*\.schema\Z|_mysql_tables\Z"
)
_NOT_WANTED: Final = re.compile(
    r"pgsql|postgres|sqlite|oracle|mssql|sybase|cassandra|(?<!my)mongo|db2|firebird|informix", re.IGNORECASE
)
_TAKEN_INSERTS: Final = 16
_TIMEOUT_S: Final = 300
_LONGEST_FILE: Final = 16 << 20
"""Characters of a file that are read."""
_PIECES: Final = re.compile(
    r"'(?>(?:[^'\\]++|\\.|'')*)'|\"(?>(?:[^\"\\]++|\\.|\"\")*)\"|`[^`]*`|/\*(?>.*?\*/)|--(?=\s)[^\n]*|\#[^\n]*|[^;'\"`/\#\-]+|.",
    re.DOTALL,
)
_DELIMITER: Final = re.compile(r"^\s*DELIMITER\s+(\S+)\s*$", re.IGNORECASE | re.MULTILINE)


def package_statements(packages: tuple[str, ...] = PACKAGES) -> Iterator[tuple[str, bytes]]:
    """(origin, statement) of those packages that can be had. Raises: ServerUnavailable where none can be."""
    missing = []
    for package in packages:
        try:
            tree = unpacked(package)
        except ServerUnavailable as error:
            missing.append(str(error))
            continue
        for path in sorted(tree.rglob("*")):
            name = str(path.relative_to(tree))
            if path.is_file() and not path.is_symlink() and _WANTED.search(name) and not _NOT_WANTED.search(name):
                for text in statements_of(text_of(path)[:_LONGEST_FILE]):
                    statement = text.encode("utf-8", "surrogateescape")
                    if _is_taken(statement):
                        yield f"package {package}", statement
    if len(missing) == len(packages):
        raise ServerUnavailable("; ".join(missing[:2]))


def _is_taken(statement: bytes) -> bool:
    """Of INSERTs one in sixteen: they are nearly all that some packages have."""
    rare = hashlib.blake2b(statement, digest_size=1).digest()[0] % _TAKEN_INSERTS == 0
    return rare or statement.lstrip()[:6].upper() != b"INSERT"


def unpacked(package: str) -> Path:
    """The directory with the package's files, fetched where they are missing. Raises: ServerUnavailable."""
    directory = root_directory() / "schemas" / package
    with locked(f"schemas-{package}"):
        if (directory / ".complete").exists():
            return directory
        directory.mkdir(parents=True, exist_ok=True)
        try:
            for one in directory.glob("*.deb"):
                one.unlink()
            for command in (["apt-get", "download", package], ["sh", "-c", "dpkg-deb -x *.deb . && rm *.deb"]):
                subprocess.run(command, cwd=directory, check=True, capture_output=True, timeout=_TIMEOUT_S)
        except (OSError, subprocess.SubprocessError) as error:
            raise ServerUnavailable(f"Debian's package {package} cannot be had: {error}") from error
        (directory / ".complete").touch()
    return directory


def text_of(path: Path) -> str:
    """The text of a file, or what is packed in it."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    return data.decode("utf-8", "surrogateescape")


def statements_of(script: str) -> Iterator[str]:
    """The statements of a script for the `mysql` client, without their delimiters."""
    at, delimiter = 0, ";"
    for found in [*_DELIMITER.finditer(script), None]:
        part = script[at : found.start() if found is not None else len(script)]
        yield from _cut(part) if delimiter == ";" else part.split(delimiter)
        if found is not None:
            at, delimiter = found.end(), found[1]


def _cut(part: str) -> Iterator[str]:
    made = ""
    for piece in _PIECES.findall(part):
        if piece != ";":
            made += piece
            continue
        yield made.strip()
        made = ""
    yield made.strip()
