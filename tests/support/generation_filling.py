"""Archives of several sources, filled as upstream would fill them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import DomainGtid, GtidList
from protocol.position import Position
from relay.archive.archive import Archive
from relay.archive.gaps.accepted_gap import AcceptedGap
from relay.archive.generation import Generation
from relay.archive.storage.archived_file import SourceIdentity
from tests.support.archive_filling import append_all
from tests.support.gtid_binlog import add_mariadb, add_mysql, mariadb_binlog, mysql_binlog

File = tuple[str, bytearray]
A = "aaaaaaaa-1111-1111-1111-111111111111"
B = "bbbbbbbb-2222-2222-2222-222222222222"


def identity(server_uuid: str | None, server_id: int, flavour: str = "mysql") -> SourceIdentity:
    return SourceIdentity(flavour, "9.7.4", server_id, server_uuid)


def mysql_series(first: int, *insides: str, start: str = "") -> list[File]:
    """Return consecutive files from number `first` on with these transactions; `start` was executed before them."""
    before = GtidSet.from_text(start)
    files = []
    for number, inside in enumerate(insides, start=first):
        binlog = mysql_binlog(before)
        for gtid in GtidSet.from_text(inside).members():
            add_mysql(binlog, gtid)
        before |= GtidSet.from_text(inside)
        files.append((f"mysql-bin.{number:06d}", binlog.data))
    return files


def mariadb_series(first: int, *insides: str, start: str = "") -> list[File]:
    """Return the same of MariaDB; an inside is a list of groups in their order."""
    state = GtidList.from_text(start)
    files = []
    for number, inside in enumerate(insides, start=first):
        binlog = mariadb_binlog(state)
        for text in inside.split(","):
            gtid = DomainGtid.from_text(text)
            add_mariadb(binlog, gtid)
            state = state.advanced([gtid])
        files.append((f"mysql-bin.{number:06d}", binlog.data))
    return files


async def append_files(archive: Archive, files: Sequence[File]) -> None:
    """Append to the generation that is prepared or current."""
    generation = archive.receiving
    for name, data in files:
        await generation.begin_file(name)
        await append_all(generation, data)


async def change_source(archive: Archive, source: SourceIdentity, files: Sequence[File]) -> Generation:
    """Go on with `files` of another source; return its generation once the previous one has ended."""
    before = archive.current
    made = await archive.prepare(source, "source-b:3306", files[0][0])
    await append_files(archive, files)
    await archive.settled()
    assert archive.current is made and before.ended
    return made


async def two_generations(directory: Path) -> Archive:
    """Return an archive with source A with 1-6 in two files, then B from the file with 5 on, which has 7-9 and two transactions of its
    own."""
    archive = await Archive.open(directory)
    archive.current.set_identity(identity(A, 1))
    await append_files(archive, mysql_series(1, f"{A}:1-3", f"{A}:4-6"))
    files = mysql_series(2, f"{A}:5-9", f"{B}:1-2", start=f"{A}:1-4")
    await change_source(archive, identity(B, 2), files)
    return archive


GAP: Final = AcceptedGap(
    flavour="mysql",
    stop="source_lost_its_tail",
    time=1_700_000_000.0,
    by="'root'@'localhost'",
    source="db:3306",
    after=Position("mysql-bin.000002", 0),
    last_time=1_600_000_000,
    common=Position("mysql-bin.000001", 0),
    to=Position("mysql-bin.000002", 4),
    created=1_600_000_100,
    server_id=1,
    is_whole=True,
    lost=f"{A}:4-6",
    state=f"{A}:1-3",
    replicas=("server_id 7 up to mysql-bin.000002:300",),
)


async def behind_a_gap(directory: Path, archive: Archive | None = None) -> Archive:
    """Return files 1 and 2 with 1-3 and 4-6, of which the source lost file 2; generation 2 begins with its new file 2, with 4-5.

    `archive` is one with the first two files.
    """
    if archive is None:
        archive = await Archive.open(directory)
        archive.current.set_identity(identity(A, 1))
        await append_files(archive, mysql_series(1, f"{A}:1-3", f"{A}:4-6"))
    first, end = archive.current.files[0], archive.current.end
    assert end is not None
    gap = replace(GAP, after=end, common=Position(first.name, first.end))
    await archive.prepare(identity(A, 1), "db:3306", "mysql-bin.000002", gap)
    await append_files(archive, mysql_series(2, f"{A}:4-5", start=f"{A}:1-3"))
    await archive.settled()
    return archive
