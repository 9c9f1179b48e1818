"""Advice on how to restore the data on the new server before the statements of a seed, by the program that copied them."""

import shlex
from collections.abc import Sequence
from typing import Final

from relay.view.seeding.dump_head import DumpPlace

_XTRABACKUP: Final = (
    "Restore the backup first: --prepare, then --copy-back, for a server of the series that was dumped. A newer one opens no "
    "data directory but that of the series before: from 5.6 to 9.7 start 5.7, 8.0 and 8.4 on it in between, each without "
    "replication. One of MariaDB no MySQL opens. Then these."
)

WITHOUT_MODE: Final = r"/^\/\*![0-9]* SET sql_mode/s/NO_AUTO_CREATE_USER//"
"""The edit of a dump for MySQL from 8.0 on, which refuses that mode (1231): programs of 5.7 and MariaDB have it. No line with
rows begins that way."""
_GTID_POSITION: Final = "/^SET GLOBAL gtid_slave_pos=/d"


def restore_advice(taken: DumpPlace | None, *, without_mode: bool = True) -> str:
    """Return the first step. `taken` None: the program that copied the data is not known. `without_mode`: the new server does not know
    NO_AUTO_CREATE_USER."""
    edits = [WITHOUT_MODE] if without_mode else []
    if taken is None:
        return _sql(_read("dump.sql", edits, packed=False))
    if taken.made_by == "xtrabackup":
        return _XTRABACKUP
    if taken.made_by == "mydumper":
        directory = shlex.quote(str(taken.path.parent))
        return (
            f"Restore the dump first: myloader --directory {directory}. It does not log what it does, unless it is told to with "
            "--enable-binlog. Then these."
        )
    path = shlex.quote(str(taken.path))
    if not taken.carried_out:
        return _sql(_read(path, edits, packed=taken.is_packed))
    edits = [*(f"{line}d" for line in taken.carried_out), *edits]
    is_mariadb = taken.made_by == "mariadb-dump"
    if is_mariadb:
        # With --gtid it is after all data: its line is not known here.
        edits.append(_GTID_POSITION)
    text = _sql(_read(path, edits, packed=taken.is_packed))
    told = (
        f"Line {taken.carried_out[0]}"
        if len(taken.carried_out) == 1
        else f"Lines {' and '.join(map(str, taken.carried_out))}"
    )
    behind = " SET GLOBAL gtid_slave_pos neither." if is_mariadb else ""
    return f"{text} {told}, which this leaves out, would be carried out, and MySQL from 8.4 on does not know CHANGE MASTER.{behind}"


def _read(path: str, edits: Sequence[str], *, packed: bool) -> str:
    """Return the command that writes the dump without what the edits leave out."""
    if not edits:
        return f"{'zcat' if packed else 'cat'} {path}"
    edit = f"sed '{'; '.join(edits)}'"
    return f"zcat {path} | {edit}" if packed else f"{edit} {path}"


def _sql(command: str) -> str:
    return f"Restore the dump first, without logging it: (echo 'SET sql_log_bin = 0;'; {command}) | mysql. Then these."
