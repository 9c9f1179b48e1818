"""The head of a dump as SQL: mysqldump of MySQL 5.6 to 9, mariadb-dump.

    -- MySQL dump 10.13  Distrib 5.6.24, for linux-glibc2.5 (x86_64)
    -- Host: db-old    Database: shop
    -- Server version	5.6.24-log
    -- Position to start replication or point-in-time recovery from
    -- CHANGE MASTER TO MASTER_LOG_FILE='mysql-bin.000002', MASTER_LOG_POS=559;
    -- Current Database: `shop`

Only the heading says whose position it is: with --dump-slave the same statement has that of the dumped server's own source.
--compact and --skip-comments leave out the heading, but not the statement.

With --master-data=1 the statement is no comment; with mariadb-dump --gtid the one without a place is none, and the one with it is still
one. 8.0.26 and later write CHANGE REPLICATION SOURCE TO with --source-data. Lines after the first definition are never looked at: they
are the users' data.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from protocol.position import Position
from relay.view.seeding.dump_head import DumpHead, DumpPlace, shown

_CHANGE: Final = re.compile(
    r"(?:--\s+|#\s*)?CHANGE\s+(?:MASTER|REPLICATION\s+SOURCE)\s+(?P<connection>'[^']*'\s+)?TO\s+(?P<options>.*)",
    re.IGNORECASE,
)
_OPTION: Final = re.compile(r"\s*(?P<name>\w+)\s*=\s*(?:'(?P<text>(?:[^'\\]|\\.|'')*)'|(?P<word>[\w.]+))\s*(?:,|\Z)")
_LONGEST_STATEMENT: Final = 8192
"""The longest statement in characters. A server's names and numbers need a few hundred."""
_DATA: Final = re.compile(
    r"(?:/\*!\d*\s*)?(?:CREATE|INSERT|REPLACE|DROP|USE|LOCK|DELIMITER|ALTER)\b|-- Current Database:|-- Table structure|"
    r"-- Dumping data|-- (?:Final|Temporary) view structure",
    re.IGNORECASE,
)
_OF_A_REPLICA: Final = (
    "recovery from (the ",  # "... master of this slave)", from 8.0.26 on "... source for this replica)"
    "SHOW SLAVE STATUS",
    "dump-slave",
)
_OF_THE_SERVER: Final = ("Position to start replication or point-in-time recovery from", "SHOW MASTER STATUS")
_HEADINGS: Final = {"-- MySQL dump": "mysqldump", "-- MariaDB dump": "mariadb-dump"}
_HOST: Final = re.compile(r"-- Host: (?P<host>\S+)")
_VERSION: Final = re.compile(r"-- Server version\s+(?P<version>\S.*)", re.DOTALL)
_FILE: Final = ("MASTER_LOG_FILE", "SOURCE_LOG_FILE")
_OFFSET: Final = ("MASTER_LOG_POS", "SOURCE_LOG_POS")
_PORT_OR_HOST: Final = ("MASTER_HOST", "SOURCE_HOST")
NO_COORDINATES: Final = (
    "Dump again with --source-data=2 (--master-data=2 before MySQL 8.0.26 and in MariaDB), or give --at FILE:POSITION, the "
    "place at which the dump was taken."
)

_UNHEADED: Final = (
    "no heading above it says whose position {0} is: the dumped server's, or with --dump-slave that of its source. --compact and "
    "--skip-comments leave the heading out. If it is of the source that this relay follows, say so: --at {0}. Else dump again "
    "with --comments."
)


class _Found(NamedTuple):
    line: int
    position: Position
    is_headed: bool


def sql_dump_place(head: DumpHead) -> DumpPlace:
    """Return the place. Raises: DumpRefused, also where the coordinates are of the server's own source (--dump-slave), or may be."""
    made_by, host, version = "a dump", "", ""
    of_a_replica = is_headed = False
    found: list[_Found] = []
    carried_out: list[int] = []
    last = len(head.lines)
    for number, line in enumerate(head.lines, start=1):
        if _DATA.match(line):
            last = number
            break
        made_by = next((name for begin, name in _HEADINGS.items() if line.startswith(begin)), made_by)
        if line.startswith("--"):
            host = _group(_HOST, line) or host
            version = _group(_VERSION, line).rstrip() or version
            if any(words in line for words in _OF_A_REPLICA):
                of_a_replica = True
            elif any(words in line for words in _OF_THE_SERVER):
                of_a_replica, is_headed = False, True
        change = _CHANGE.match(line)
        if change is not None:
            if len(line) > _LONGEST_STATEMENT:
                raise head.refuse(number, f"a statement of {len(line)} characters, which no dump program has written.")
            options = dict(_options(head, number, change["options"].rstrip("; \t")))
            # MariaDB names the connection, be it '', in the statement that --dump-slave writes, and only there.
            is_of_replica = of_a_replica or change["connection"] is not None
            position = _position(head, number, options, of_a_replica=is_of_replica)
            if line[:1] not in "-#":
                carried_out.append(number)
            if position is not None:
                found.append(_Found(number, position, is_headed))
    if not found:
        where = (
            f"line {last} begins the data"
            if last < len(head.lines)
            else "and that is all of it"
            if head.is_all
            else f"of which {last} lines were read"
        )
        raise head.refuse(
            None, f"no CHANGE MASTER or CHANGE REPLICATION SOURCE in its head ({where}). {NO_COORDINATES}"
        )
    if len({one.position for one in found}) > 1:
        text = f"line {found[0].line} says {found[0].position}, this line {found[-1].position}. Give one of them with --at."
        raise head.refuse(found[-1].line, text)
    one = found[0]
    if not one.is_headed:
        raise head.refuse(one.line, _UNHEADED.format(one.position))
    return DumpPlace(one.position, made_by, head.path, one.line, host, version, tuple(carried_out), head.is_packed)


def _group(pattern: re.Pattern[str], line: str) -> str:
    match = pattern.match(line)
    return match[1] if match is not None else ""


def _position(head: DumpHead, line: int, given: dict[str, str], *, of_a_replica: bool) -> Position | None:
    """Return the position; None: it names none. Raises: DumpRefused."""
    file = next((given[name] for name in _FILE if name in given), None)
    offset = next((given[name] for name in _OFFSET if name in given), None)
    if file is None and offset is None:
        return None
    if file is None or offset is None:
        raise head.refuse(line, f"a file without a position, or the other way round. {NO_COORDINATES}")
    position = head.position(line, file, offset)
    host = next((given[name] for name in _PORT_OR_HOST if name in given), None)
    if of_a_replica or host is not None:
        whose = f"of {shown(host)}, the source of the dumped server" if host else "of the dumped server's own source"
        raise head.refuse(
            line,
            f"this dump was taken at a replica (--dump-slave): {position} is a position {whose}. If that is the source "
            f"that this relay follows, say so: --at {position}.",
        )
    return position


def _options(head: DumpHead, line: int, options: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(options):
        match = _OPTION.match(options, at)
        if match is None:
            raise head.refuse(line, f"cannot be read from {shown(options[at:])} on.")
        text = match["text"]
        yield match["name"].upper(), match["word"] if text is None else _unquoted(text)
        at = match.end()


def _unquoted(text: str) -> str:
    # Other escapes stay: a name with them is no binlog's name.
    return text.replace("\\'", "'").replace("''", "'")
