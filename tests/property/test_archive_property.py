"""Whatever the runs, rotations, lost connections and restarts: the archive holds the source's bytes."""

import asyncio
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from protocol.position import Position
from relay.archive.generation import Generation
from relay.archive.write.options import ArchiveOptions, PublishPolicy, SyncPolicy
from relay.archive_inspection.listing import list_archive
from relay.archive_inspection.verify import verify_archive
from tests.support.archive_filling import append_all
from tests.support.binlog_builder import BinlogBuilder

GROUPS = st.lists(
    st.one_of(st.just(None), st.lists(st.integers(0, 70_000) | st.integers(0, 60), min_size=1, max_size=6)), max_size=12
)
CUTS = st.lists(st.integers(4, 300_000), max_size=12)


def build(groups: list[list[int] | None], flavour: str, checksum: bool) -> BinlogBuilder:
    built = BinlogBuilder(flavour, checksum)
    for group in groups:
        if group is None:
            built.ddl()
        else:
            built.transaction(*group)
    return built


async def read_back(generation: Generation, name: str, pieces: int) -> bytes:
    with generation.open_reader(name) as reader:
        buffer = bytearray(reader.end())
        view = memoryview(buffer)
        at = 0
        while got := reader.read_into(view[at : at + pieces], at):
            at += got
        return bytes(buffer[:at])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    files=st.lists(GROUPS, min_size=1, max_size=3),
    cuts=CUTS,
    flavour=st.sampled_from(["mysql", "mariadb"]),
    checksum=st.booleans(),
    pieces=st.integers(1, 100_000).filter(lambda n: n > 500),
    sync=st.sampled_from(SyncPolicy),
)
def test_any_split_of_runs_gives_the_sources_files(
    files: list[list[list[int] | None]], cuts: list[int], flavour: str, checksum: bool, pieces: int, sync: SyncPolicy
) -> None:
    built = {f"mysql-bin.{n + 1:06d}": build(groups, flavour, checksum) for n, groups in enumerate(files)}

    async def scenario(directory: Path) -> None:
        generation = await Generation.open(directory, ArchiveOptions(sync=sync))
        for name, one in built.items():
            await generation.begin_file(name)
            await append_all(generation, one.data, cuts)
            assert generation.end == Position(name, one.size)
            assert await read_back(generation, name, pieces) == bytes(one.data)
        await generation.close()

    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(scenario(Path(directory)))
        assert list(verify_archive(Path(directory), deep=True)) == []


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    groups=GROUPS,
    cuts=CUTS,
    losses=st.lists(st.tuples(st.integers(0, 300_000), st.booleans()), max_size=5),
    checksum=st.booleans(),
)
def test_lost_connections_and_restarts_anywhere_end_in_the_sources_file(
    groups: list[list[int] | None], cuts: list[int], losses: list[tuple[int, bool]], checksum: bool
) -> None:
    built = build(groups, "mysql", checksum)

    async def scenario(directory: Path) -> None:
        generation = await Generation.open(directory)
        await generation.begin_file("mysql-bin.000001")
        start = 4
        for lost_at, restart in losses:
            whole = max(event.end for event in built.events if event.end <= max(lost_at, built.events[0].end))
            if whole > start:
                await append_all(generation, built.data[:whole], cuts, start=start)
            if restart:
                await generation.close()
                generation = await Generation.open(directory, ArchiveOptions(publish=PublishPolicy.WRITTEN))
                resumed = generation.end
            else:
                resumed = await generation.trim()
            if resumed is None:
                await generation.begin_file("mysql-bin.000001")
                start = 4
            else:
                start = resumed.offset
                assert start in built.boundaries
        if start < built.size:
            await append_all(generation, built.data, cuts, start=start)
        await generation.close()

    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(scenario(Path(directory)))
        (file,) = list_archive(Path(directory))
        assert (Path(directory) / file.name).read_bytes() == built.data
        assert (file.events, file.end) == (len(built.events), built.size)
        assert list(verify_archive(Path(directory), deep=True)) == []
