"""The place at which a dump was taken: in a file of SQL, or in the directory of mydumper or xtrabackup."""

from pathlib import Path
from typing import Final

from relay.view.seeding.backup_info import backup_info_place, is_backup_info
from relay.view.seeding.dump_head import DumpPlace, DumpRefused, read_head
from relay.view.seeding.mydumper_metadata import is_metadata, metadata_place
from relay.view.seeding.sql_dump import sql_dump_place

_NAMES: Final = ("metadata", "xtrabackup_binlog_info", "mariadb_backup_binlog_info")
_UNFINISHED: Final = "metadata.partial"
_OF_A_REPLICA: Final = ("xtrabackup_slave_info", "mariadb_backup_slave_info", "xtrabackup_replica_info")
_PACKED: Final = ("", ".zst", ".lz4", ".qp", ".gz", ".xbcrypt")
"""The suffixes that --compress and --encrypt append to a name."""


def dump_place(path: Path) -> DumpPlace:
    """Return the place that the dump itself names. Reads a MiB at most. Blocking. Raises: DumpRefused; OSError."""
    if path.is_dir():
        return dump_place(_told_in(path))
    if path.name.startswith(_OF_A_REPLICA):
        text = "this is a position of the dumped server's own source. If that is what this relay follows, give it with --at."
        raise DumpRefused(path, None, text)
    head = read_head(path)
    if is_metadata(head):
        return metadata_place(head)
    if is_backup_info(head):
        place = backup_info_place(head)
        _check_is_no_replica(place)
        return place
    return sql_dump_place(head)


def _told_in(directory: Path) -> Path:
    """Return the file that contains the place. Raises: DumpRefused."""
    there = [name for name in _NAMES if (directory / name).is_file()]
    if len(there) == 1:
        return directory / there[0]
    if there:
        raise DumpRefused(directory, None, f"{' and '.join(there)} are both there: name the one that is meant.")
    if (directory / _UNFINISHED).exists():
        raise DumpRefused(directory, None, f"{_UNFINISHED} is there: mydumper has not finished, or failed.")
    replica = _of_a_replica(directory)
    if replica is not None:
        return replica
    text = f"none of {', '.join(_NAMES)} is in it. Name the dump's file, or give --at FILE:POSITION."
    raise DumpRefused(directory, None, text)


def _of_a_replica(directory: Path) -> Path | None:
    """Return the file that --slave-info has written; of a server that is no replica it is empty, if it exists."""
    paths = [directory / f"{name}{end}" for name in _OF_A_REPLICA for end in _PACKED]
    return next((path for path in paths if path.is_file() and path.stat().st_size), None)


def _check_is_no_replica(place: DumpPlace) -> None:
    """Check that the dumped server was no replica. Raises: DumpRefused."""
    replica = _of_a_replica(place.path.parent)
    if replica is not None:
        text = (
            f"{replica.name} is beside it, so the dumped server was a replica: {place.position} is its own position. Give the "
            f"one that is of the source of this relay with --at: if the replica follows that source, it is in {replica.name}."
        )
        raise DumpRefused(place.path, place.line, text)
