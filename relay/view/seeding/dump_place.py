"""Where a dump was taken: a file of SQL, or the directory of mydumper or xtrabackup."""

from pathlib import Path
from typing import Final

from relay.view.seeding.backup_info import backup_info_place, is_backup_info
from relay.view.seeding.dump_head import DumpPlace, DumpRefused, read_head
from relay.view.seeding.mydumper_metadata import is_metadata, metadata_place
from relay.view.seeding.sql_dump import sql_dump_place

_NAMES: Final = ("metadata", "xtrabackup_binlog_info", "mariadb_backup_binlog_info")
_UNFINISHED: Final = "metadata.partial"
_OF_A_REPLICA: Final = ("xtrabackup_slave_info", "mariadb_backup_slave_info")


def dump_place(path: Path) -> DumpPlace:
    """By the dump's own words. Reads a MiB at most. Blocking. Raises: DumpRefused; OSError."""
    if path.is_dir():
        return dump_place(_told_in(path))
    if path.name in _OF_A_REPLICA:
        text = "this is a position of the dumped server's own source. If that is what this relay follows, give it with --at."
        raise DumpRefused(path, None, text)
    head = read_head(path)
    if is_metadata(head):
        return metadata_place(head)
    if is_backup_info(head):
        return backup_info_place(head)
    return sql_dump_place(head)


def _told_in(directory: Path) -> Path:
    """The file that says it. Raises: DumpRefused."""
    there = [name for name in _NAMES if (directory / name).is_file()]
    if len(there) == 1:
        return directory / there[0]
    if there:
        raise DumpRefused(directory, None, f"{' and '.join(there)} are both there: name the one that is meant.")
    if (directory / _UNFINISHED).exists():
        raise DumpRefused(directory, None, f"{_UNFINISHED} is there: mydumper has not finished, or failed.")
    files = [name for name in _OF_A_REPLICA if (directory / name).exists()]
    if files:
        return directory / files[0]
    text = f"none of {', '.join(_NAMES)} is in it. Name the dump's file, or give --at FILE:POSITION."
    raise DumpRefused(directory, None, text)
