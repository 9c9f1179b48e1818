"""`metadata` in a dump of mydumper contains the position of the server.

Started dump at: 2011-05-05 13:57:17        # Started dump at: 2023-06-09 11:47:18
SHOW MASTER STATUS:                         [master]                               or [source]
        Log: mysql-bin.000001               File = mysql-bin.000017                SOURCE_LOG_FILE = "mysql-bin.000017"
        Pos: 106                            Position = 241149225                   SOURCE_LOG_POS = 241149225
        GTID:                               Executed_Gtid_Set =
SHOW SLAVE STATUS:                          [replication]                          or [replication.CHANNEL]
        Host: 10.0.0.1
up to 0.13                                  from 0.14 on                           with --source-data

The newest ones contain the fact that the server is a replica only with --replica-data.
"""

import re
from typing import Final

from protocol.position import Position
from relay.view.seeding.dump_head import DumpHead, DumpPlace

_STARTED: Final = re.compile(r"(?:# )?Started dump at:")
_SECTION: Final = re.compile(r"\[(?P<name>[^\]]*)\]|(?P<old>SHOW (?:MASTER|SLAVE|BINARY LOG|REPLICA) STATUS):")
_FIELD: Final = re.compile(r"#?\s*(?P<name>\w+)\s*[:=](?P<value>.*)")
_SERVER: Final = frozenset({"master", "source", "show master status", "show binary log status"})
_REPLICA: Final = re.compile(r"replication(?:\..*)?|show (?:slave|replica) status")
_HOST: Final = "source_host"
_FILE: Final = frozenset({"log", "file", "source_log_file"})
_OFFSET: Final = frozenset({"pos", "position", "source_log_pos"})


def is_metadata(head: DumpHead) -> bool:
    """Return whether it is such a file."""
    lines = [line for line in head.lines[:20] if line.strip()]
    return any(_STARTED.match(line) for line in lines[:3]) or bool(
        lines and lines[0] in ("[config]", "[master]", "[source]")
    )


def metadata_place(head: DumpHead) -> DumpPlace:
    """Return the place. Raises: DumpRefused, also where the server was a replica: its coordinates are its own, or its source's."""
    section = ""
    server: dict[str, tuple[int, str]] = {}
    replica_line = 0
    host = ""
    for number, line in enumerate(head.lines, start=1):
        begins = _SECTION.match(line)
        if begins is not None:
            section = (begins["name"] or begins["old"] or "").lower()
            continue
        field = _FIELD.fullmatch(line.strip())
        if field is None:
            continue
        name, value = field["name"].lower(), field["value"].strip("\"' ")
        if section in _SERVER and (name in _FILE or name in _OFFSET):
            key = "file" if name in _FILE else "offset"
            if key in server and server[key][1] != value:
                raise head.refuse(number, "a second position. Give the right one with --at.")
            server[key] = number, value
        elif section in _SERVER and name == _HOST:
            host = value
        elif _REPLICA.fullmatch(section) is not None and value:
            replica_line = replica_line or number
    position = _position(head, server)
    if replica_line:
        own = f"{position} is its own position" if position is not None else "it has no position of its own"
        raise head.refuse(
            replica_line,
            f"the dumped server was a replica: {own}, and what stands here is that of its source. Give the one that is of the "
            "source of this relay with --at.",
        )
    if position is None:
        raise head.refuse(
            None,
            "no position: the dumped server had no binlog, or its account lacks REPLICATION CLIENT. Give --at FILE:POSITION.",
        )
    return DumpPlace(position, "mydumper", head.path, server["file"][0], host)


def _position(head: DumpHead, server: dict[str, tuple[int, str]]) -> Position | None:
    if not server:
        return None
    line = next(iter(server.values()))[0]
    if len(server) < 2:
        raise head.refuse(line, "a file without a position, or the other way round. Give --at FILE:POSITION.")
    return head.position(server["offset"][0], server["file"][1], server["offset"][1])
