"""`xtrabackup_binlog_info`: one line with file, position and maybe a GTID set, which may continue on more lines.

mysql-bin.000003<tab>57<tab>3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5

`backup-my.cnf` beside it identifies the server, since xtrabackup 2.3 or so (mariadb-backup's does not):

server_id=101
server_uuid=74b64a5b-cfba-11e9-95d0-000c2994d425
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from relay.view.seeding.dump_head import DumpHead, DumpPlace, DumpRefused, read_head

_LINE: Final = re.compile(r"(?P<file>[^\t ]+)[\t ]+(?P<offset>[0-9]{1,20})(?:[\t ]+(?P<gtids>\S.*)?)?")
_OPTIONS: Final = "backup-my.cnf"
_SERVER: Final = re.compile(
    r"server_(?:id=(?P<id>[0-9]{1,10})|uuid=(?P<uuid>[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}))"
)
_MORE: Final = re.compile(r"[0-9a-fA-F:,\-\s_a-z]*")


def is_backup_info(head: DumpHead) -> bool:
    """Return whether it is such a file."""
    return bool(head.lines) and len(head.lines) < 100_000 and _LINE.fullmatch(head.lines[0]) is not None


def backup_info_place(head: DumpHead) -> DumpPlace:
    """Return the place in it. Raises: DumpRefused."""
    match = _LINE.fullmatch(head.lines[0]) if head.lines else None
    if match is None:
        raise head.refuse(1, "no line of file and position. Was the server's binlog on? Give --at FILE:POSITION.")
    position = head.position(1, match["file"], match["offset"])
    for number, line in enumerate(head.lines[1:], start=2):
        if _MORE.fullmatch(line) is None:
            raise head.refuse(number, "more than a position and GTIDs. Give --at FILE:POSITION.")
    told = dict(_server(head.path.with_name(_OPTIONS)))
    # 0: the my.cnf that xtrabackup read did not contain it.
    number, uuid = int(told.get("id", "0")), told.get("uuid", "").lower()
    return DumpPlace(position, "xtrabackup", head.path, 1, server_id=number, server_uuid=uuid)


def _server(path: Path) -> Iterator[tuple[str, str]]:
    """Yield what the file says of the server; nothing if it is missing or packed."""
    try:
        lines = read_head(path).lines
    except (DumpRefused, FileNotFoundError):
        return
    for line in lines:
        match = _SERVER.fullmatch(line.strip())
        if match is not None and match.lastgroup is not None:
            yield match.lastgroup, match[match.lastgroup]
