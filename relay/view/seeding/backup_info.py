"""`xtrabackup_binlog_info`: one line with file, position and maybe a GTID set, which may go on over more lines.

mysql-bin.000003<tab>57<tab>3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5
"""

import re
from typing import Final

from relay.view.seeding.dump_head import DumpHead, DumpPlace

_LINE: Final = re.compile(r"(?P<file>[^\t ]+)[\t ]+(?P<offset>[0-9]{1,20})(?:[\t ]+(?P<gtids>\S.*)?)?")
_MORE: Final = re.compile(r"[0-9a-fA-F:,\-\s_a-z]*")


def is_backup_info(head: DumpHead) -> bool:
    """Whether it is such a file."""
    return bool(head.lines) and len(head.lines) < 100_000 and _LINE.fullmatch(head.lines[0]) is not None


def backup_info_place(head: DumpHead) -> DumpPlace:
    """Raises: DumpRefused."""
    match = _LINE.fullmatch(head.lines[0]) if head.lines else None
    if match is None:
        raise head.refuse(1, "no line of file and position. Was the server's binlog on? Give --at FILE:POSITION.")
    position = head.position(1, match["file"], match["offset"])
    for number, line in enumerate(head.lines[1:], start=2):
        if _MORE.fullmatch(line) is None:
            raise head.refuse(number, "more than a position and GTIDs. Give --at FILE:POSITION.")
    return DumpPlace(position, "xtrabackup", head.path, 1)
