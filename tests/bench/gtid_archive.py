"""Archives of many small files with GTIDs, valid to the last bit: made as sources write them, catalogued by `archive rebuild`."""

from pathlib import Path
from typing import Final

from protocol.gtid.gtid_set import GtidSet, GtidSetBuilder
from protocol.gtid.mariadb import DomainGtid, GtidList, GtidPosition
from protocol.gtid.mysql_gtid import MysqlGtid, Tsid, parse_uuid
from relay.archive_inspection.listing import rebuild_archive
from tests.support.gtid_binlog import add_mariadb, add_mysql, mariadb_binlog, mysql_binlog

SOURCE_UUID: Final = "11111111-1111-1111-1111-111111111111"
_OWN: Final = Tsid(parse_uuid(SOURCE_UUID))
_OTHER: Final = Tsid(parse_uuid("22222222-2222-2222-2222-222222222222"))
_OWN_IN_FILE: Final = 8
_OTHER_IN_FILE: Final = 2


def file_name(number: int) -> str:
    """Of file `number`, from 1."""
    return f"mysql-bin.{number:06d}"


def make_mysql(directory: Path, files: int) -> None:
    """Ten transactions in each file, two of them of another source."""
    before = GtidSetBuilder()
    own = other = 0
    for number in range(1, files + 1):
        binlog = mysql_binlog(before.snapshot())
        for turn in range(_OWN_IN_FILE + _OTHER_IN_FILE):
            if turn < _OWN_IN_FILE:
                own += 1
                gtid = MysqlGtid(_OWN, own)
            else:
                other += 1
                gtid = MysqlGtid(_OTHER, other)
            add_mysql(binlog, gtid)
            before.add(gtid.tsid.key, gtid.gno)
        if number < files:
            binlog.rotate(file_name(number + 1))
        (directory / file_name(number)).write_bytes(binlog.data)
    rebuild_archive(directory)


def mysql_held_before(file: int) -> GtidSet:
    """What a replica has that needs file `file` (from 1) and, of it, all but its first three transactions."""
    builder = GtidSetBuilder()
    builder.add_run(_OWN.key, 1, _OWN_IN_FILE * (file - 1) + 4)
    if file > 1:
        builder.add_run(_OTHER.key, 1, _OTHER_IN_FILE * (file - 1) + 1)
    return builder.snapshot()


def foreign_set(uuids: int, intervals: int) -> GtidSet:
    """Transactions of servers that the archive knows nothing of, with holes between all intervals."""
    builder = GtidSetBuilder()
    for number in range(uuids):
        key = number.to_bytes(16, "big")
        for interval in range(intervals):
            builder.add_run(key, 3 * interval + 1, 3 * interval + 3)
    return builder.snapshot()


def make_mariadb(directory: Path, files: int) -> None:
    """Ten groups in each file, in two domains."""
    state = GtidList()
    groups = [0, 0]
    for number in range(1, files + 1):
        binlog = mariadb_binlog(state)
        newest = []
        for turn in range(10):
            domain = turn % 2
            groups[domain] += 1
            gtid = DomainGtid(domain, 1, groups[domain])
            add_mariadb(binlog, gtid)
            newest.append(gtid)
        state = state.advanced(newest)
        if number < files:
            binlog.server_id = 1
            binlog.rotate(file_name(number + 1))
        (directory / file_name(number)).write_bytes(binlog.data)
    rebuild_archive(directory)


def mariadb_position_in(file: int) -> GtidPosition:
    """Where a replica stands that has three groups of each domain in file `file` (from 1)."""
    return GtidPosition([DomainGtid(domain, 1, 5 * (file - 1) + 3) for domain in (0, 1)])
