"""Advice on how to restore the data on the new server before the statements of a seed, by the program that copied them."""

import shlex
from typing import Final

from relay.view.seeding.dump_head import DumpPlace

_XTRABACKUP: Final = (
    "Restore the backup first: --prepare, then --copy-back, for a server of the series that was dumped. A newer one opens no "
    "data directory but that of the series before: from 5.6 to 9.7 start 5.7, 8.0 and 8.4 on it in between, each without "
    "replication. One of MariaDB no MySQL opens. Then these."
)

_GTID_POSITION: Final = "/^SET GLOBAL gtid_slave_pos=/d"


def restore_advice(taken: DumpPlace | None) -> str:
    """Return the first step. `taken` None: the program that copied the data is not known."""
    if taken is None:
        return _sql("cat dump.sql")
    if taken.made_by == "xtrabackup":
        return _XTRABACKUP
    path = shlex.quote(str(taken.path))
    if taken.made_by == "mydumper":
        directory = shlex.quote(str(taken.path.parent))
        return (
            f"Restore the dump first: myloader --directory {directory}. It does not log what it does, unless it is told to with "
            "--enable-binlog. Then these."
        )
    cat = "zcat" if taken.is_packed else "cat"
    if not taken.carried_out:
        return _sql(f"{cat} {path}")
    lines = [f"{line}d" for line in taken.carried_out]
    is_mariadb = taken.made_by == "mariadb-dump"
    # With --gtid it is after all data: its line is not known here.
    leaving_out = f"sed '{'; '.join([*lines, _GTID_POSITION] if is_mariadb else lines)}'"
    if len(lines) == 1 and not is_mariadb:
        leaving_out = f"sed {lines[0]}"
    text = _sql(f"zcat {path} | {leaving_out}" if taken.is_packed else f"{leaving_out} {path}")
    told = f"Line {taken.carried_out[0]}" if len(lines) == 1 else f"Lines {' and '.join(map(str, taken.carried_out))}"
    behind = " SET GLOBAL gtid_slave_pos neither." if is_mariadb else ""
    return f"{text} {told}, which this leaves out, would be carried out, and MySQL from 8.4 on does not know CHANGE MASTER.{behind}"


def _sql(command: str) -> str:
    return f"Restore the dump first, without logging it: (echo 'SET sql_log_bin = 0;'; {command}) | mysql. Then these."
