"""Where a stream begins in a file: what is opened, which head the replica gets, from where on stored bytes are sent."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from protocol.auth.account import Account
from protocol.binlog.encoded_events import patch_format_description
from protocol.commands import BinlogDump, DumpFlag
from protocol.errors import ErrorCode, PositionRefused
from protocol.statements import SourceFacts
from relay.archive.generation import Generation
from relay.archive.read.file_reads import FileReads
from relay.archive.storage.archive_errors import ArchiveDamaged
from relay.downstream.gtid_filter.group_filter import GroupFilter
from relay.downstream.gtid_filter.gtid_filter import GtidFilter
from relay.downstream.gtid_filter.gtid_lookup import GtidLookup
from relay.downstream.request.dump_request import DumpRequest
from relay.downstream.request.refusal import refusal
from relay.downstream.start.segment import SegmentOpener
from tests.support.archive_filling import append_all
from tests.support.binlog_builder import BinlogBuilder

FIRST, SECOND = "mysql-bin.000001", "mysql-bin.000002"
FACTS = SourceFacts("mysql", "5.6.24-log", 1)
REQUEST = DumpRequest(
    BinlogDump(FIRST, 4, DumpFlag(0), 9), {"master_binlog_checksum": "CRC32"}, FACTS, None, registered=None, uuid=""
)


class Host:
    def __init__(self) -> None:
        self.reads = FileReads()
        self.refuses = False

    def shown_server_id(self, _generation: Generation) -> int:
        return 42

    def check_replica(self, _server_id: int, _server_uuid: str) -> None:
        if self.refuses:
            raise refusal("somebody else's")


class Everything(GtidFilter):
    """Of a replica by GTID that lacks all."""

    def __init__(self, generation: Generation, *, continues: bool) -> None:
        super().__init__(cast(GtidLookup, None), generation, FIRST, None, continues=continues)

    def must_look(self, _file: str) -> bool:
        return False

    def changed(self, groups: GroupFilter | None) -> GroupFilter | None:
        return groups


@pytest.fixture
def built() -> BinlogBuilder:
    return BinlogBuilder().transaction(20).rotate(SECOND)


@pytest.fixture
async def generation(tmp_path: Path, built: BinlogBuilder) -> AsyncIterator[Generation]:
    generation = await Generation.open(tmp_path / "archive")
    for name, data in ((FIRST, built.data), (SECOND, BinlogBuilder().transaction(20).data)):
        await generation.begin_file(name)
        await append_all(generation, data)
    yield generation
    await generation.close()


def stored_head(built: BinlogBuilder) -> bytes:
    return bytes(built.data[4 : 4 + int.from_bytes(built.data[13:17], "little")])


async def test_a_file_by_position_from_its_beginning_is_sent_as_it_is_stored(generation: Generation) -> None:
    segment = await SegmentOpener(Host(), REQUEST).open(generation, FIRST)
    assert (segment.head, segment.offset, segment.stored_from, segment.server_id) == (None, 4, 4, 42)
    assert segment.opened.path == generation.path(FIRST)


async def test_in_the_middle_of_a_file_its_head_is_sent_besides(generation: Generation, built: BinlogBuilder) -> None:
    end = generation.files[0].end
    segment = await SegmentOpener(Host(), REQUEST).open(generation, FIRST, end, resumes=True)
    assert segment.head == patch_format_description(stored_head(built), mid_file=True, strip_markers=False)
    assert (segment.stored_from, segment.resumes) == (end, True)


@pytest.mark.parametrize("continues", [False, True])
async def test_by_gtid_the_head_is_sent_in_the_place_of_the_stored_one(
    generation: Generation, built: BinlogBuilder, continues: bool
) -> None:
    filter = Everything(generation, continues=continues)
    segment = await SegmentOpener(Host(), REQUEST).open(generation, FIRST, filter=filter)
    stored = stored_head(built)
    made = patch_format_description(stored, mid_file=False, strip_markers=False, clear_created=continues)
    assert (segment.head, segment.filter) == (made, filter)
    assert (segment.offset, segment.stored_from) == (4, 4 + len(stored))


async def test_an_account_without_markers_gets_a_head_without_them(
    generation: Generation, built: BinlogBuilder
) -> None:
    account = Account.with_password("plain", "secret", "strip")
    opener = SegmentOpener(Host(), replace(REQUEST, account=account))
    segment = await opener.open(generation, FIRST, filter=Everything(generation, continues=False))
    assert segment.head == patch_format_description(stored_head(built), mid_file=False, strip_markers=True)


async def test_the_next_file_of_the_generation_is_sent_as_it_is_stored(generation: Generation) -> None:
    host = Host()
    filter = Everything(generation, continues=True)
    segment = await SegmentOpener(host, REQUEST).open(generation, FIRST, filter=filter)
    following = segment.in_next_file(generation.files[1], host.reads)
    assert (following.file.name, following.offset, following.stored_from) == (SECOND, 4, 4)
    assert (following.head, following.filter, following.server_id) == (None, filter, 42)
    generation.path(SECOND).unlink()
    host.reads.close(following.opened)
    with pytest.raises(ArchiveDamaged, match="it cannot be opened: No such file"):
        segment.in_next_file(generation.files[1], host.reads)


async def test_a_file_that_was_removed_is_asked_for_again(generation: Generation) -> None:
    with pytest.raises(PositionRefused, match="was removed") as caught:
        await SegmentOpener(Host(), REQUEST).open(generation, "mysql-bin.000009")
    assert caught.value.number == ErrorCode.ER_UNKNOWN_ERROR


@pytest.mark.parametrize("ids", [None, 77])
async def test_ids_of_somebody_else_are_refused_where_a_replica_has_registered(
    generation: Generation, ids: int | None
) -> None:
    host = Host()
    host.refuses = True
    opener = SegmentOpener(host, replace(REQUEST, registered=ids))
    if ids is None:
        assert (await opener.open(generation, FIRST)).file.name == FIRST
    else:
        with pytest.raises(PositionRefused, match="somebody else's"):
            await opener.open(generation, FIRST)


async def test_a_replica_that_knows_no_checksums_is_refused_where_the_file_has_them(generation: Generation) -> None:
    with pytest.raises(PositionRefused, match="can not handle"):
        await SegmentOpener(Host(), replace(REQUEST, variables={})).open(generation, FIRST)


async def test_a_file_without_a_head_is_closed_again(generation: Generation) -> None:
    path = generation.path(FIRST)
    path.write_bytes(path.read_bytes()[:8] + b"\x02" + path.read_bytes()[9:])
    host = Host()
    with pytest.raises(ArchiveDamaged, match="does not begin with a format description"):
        await SegmentOpener(host, REQUEST).open(generation, FIRST, generation.files[0].end)
    assert host.reads._files == {}
    assert [(place.file, place.offset) for place in generation.damaged_files.all] == [(FIRST, 4)]
