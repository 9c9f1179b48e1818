"""What is known by GTID after disasters: always what the binlogs themselves say, and never less than was published."""

import asyncio
import random
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mysql_gtid import MysqlGtid
from relay.archive.generation import Generation
from relay.archive.gtids.gtid_state import GtidView
from relay.archive.write.options import ArchiveOptions, SyncPolicy
from relay.archive_inspection.listing import rebuild_archive
from relay.archive_inspection.transaction_search import find_gtid
from tests.support.archive_filling import append_all, fill
from tests.support.forgetful_disk import ForgetfulDisk
from tests.support.gtid_binlog import add_mysql, mysql_binlog

REPOSITORY = Path(__file__).resolve().parents[2]
U = "11111111-1111-1111-1111-111111111111"
NAMES = [f"mysql-bin.{number:06d}" for number in range(1, 8)]


def file_of(first: int, count: int, size: int) -> bytearray:
    """A file of transactions U:first and the following, after all before it."""
    binlog = mysql_binlog(GtidSet.from_text(f"{U}:1-{first - 1}") if first > 1 else GtidSet())
    for number in range(first, first + count):
        add_mysql(binlog, MysqlGtid.from_text(f"{U}:{number}"), size)
    return binlog.data


async def opened(directory: Path) -> GtidView:
    generation = await Generation.open(directory)
    view = generation.gtids.view()
    await generation.close()
    return view


def shown(view: GtidView) -> tuple[object, ...]:
    insides = [view.search.inside(place).line for place in range(len(view.search))]
    return view.names, insides, str(view.executed), str(view.purged), view.anonymous_files


async def rebuilt(directory: Path) -> GtidView:
    """As the bytes of the binlogs alone tell it."""
    copy = directory.with_name(directory.name + "-rebuilt")
    shutil.copytree(directory, copy)
    for path in copy.glob("*.gtx"):
        path.unlink()
    rebuild_archive(copy)
    view = await opened(copy)
    shutil.rmtree(copy)
    return view


@pytest.mark.parametrize("damage", ["cut", "zeros", "garbage"])
async def test_an_index_torn_at_any_byte_changes_nothing(tmp_path: Path, damage: str) -> None:
    directory = tmp_path / "archive"
    await fill(directory, (NAMES[0], file_of(1, 3, 10)), (NAMES[1], file_of(4, 70, 5000)))
    index = directory / f"{NAMES[1]}.gtx"
    whole = index.read_bytes()
    before = await opened(directory)
    assert before.executed == GtidSet.from_text(f"{U}:1-73")
    wrong = []
    # 7 bytes on each time is another place of a row each time; what each byte does is tested with the index itself.
    for size in range(0, len(whole), 7 if damage == "cut" else 11):
        filling = {"cut": b"", "zeros": bytes(len(whole) - size), "garbage": random.Random(size).randbytes(120)}
        index.write_bytes(whole[:size] + filling[damage])
        if shown(await opened(directory)) != shown(before) or index.read_bytes() != whole:
            wrong.append(size)
    assert wrong == []


async def test_a_sealed_files_index_torn_at_any_byte_hides_no_transaction(tmp_path: Path) -> None:
    await fill(tmp_path, (NAMES[0], file_of(1, 40, 5000)), (NAMES[1], file_of(41, 1, 10)))
    index = tmp_path / f"{NAMES[0]}.gtx"
    whole = index.read_bytes()
    wrong = []
    for size in range(len(whole)):
        index.write_bytes(whole[:size])
        place = find_gtid(tmp_path, MysqlGtid.from_text(f"{U}:40"))
        if place is None or place.gtid != f"{U}:40":
            wrong.append(size)
    assert wrong == []


@pytest.mark.parametrize("sync", list(SyncPolicy))
async def test_after_a_power_cut_the_state_is_what_the_files_hold(tmp_path: Path, sync: SyncPolicy) -> None:
    chance = random.Random(str(sync))
    wrong = []
    for turn in range(12):
        directory, survivor = tmp_path / f"before{turn}", tmp_path / f"after{turn}"
        disk = ForgetfulDisk()
        generation = await Generation.open(directory, ArchiveOptions(sync=sync, sync_interval_s=0.02), layer=disk)
        stop = chance.randrange(300, 400_000)
        for name, data in ((NAMES[0], file_of(1, 40, 5000)), (NAMES[1], file_of(41, 40, 5000))):
            if stop <= 0:
                break
            await generation.begin_file(name)
            await append_whole(generation, data, stop)
            stop -= len(data)
            await asyncio.sleep(chance.uniform(0, 0.05))
        # First the catalog: it is told of a sync after it, so what it knows is on the disk by now.
        for path in directory.glob("catalog.sqlite*"):
            shutil.copy(path, tmp_path)
        disk.lose_power(directory, survivor, turn)
        for path in tmp_path.glob("catalog.sqlite*"):
            path.rename(survivor / path.name)
        await generation.close()
        view = await opened(survivor)
        expected = await rebuilt(survivor)
        if shown(view) != shown(expected):
            wrong.append((turn, shown(view), shown(expected)))
    assert wrong == []


async def append_whole(generation: Generation, data: bytearray, stop: int) -> None:
    at = 4
    while at < len(data) and at + int.from_bytes(data[at + 9 : at + 13], "little") <= stop:
        at += int.from_bytes(data[at + 9 : at + 13], "little")
    await append_all(generation, data[:at], range(0, at, 7000))


KILLED_PROGRAM = """
import asyncio, sys
from pathlib import Path
from protocol.gtid.gtid_set import GtidSet
from relay.archive.generation import Generation
from relay.archive.write.options import ArchiveOptions, SyncPolicy
from tests.faults.test_gtid_faults import file_of
from tests.support.binlog_builder import runs_of

async def main():
    generation = await Generation.open(Path(sys.argv[1]), ArchiveOptions(sync=SyncPolicy(sys.argv[2])))
    count = generation.gtids.executed.count
    number = generation.files[-1].number + 1 if generation.files else 1
    while True:
        data = file_of(count + 1, 60, 3000)
        await generation.begin_file(f"mysql-bin.{number:06d}", previous_cut=True)
        for run in runs_of(data, range(0, len(data), 1700)):
            generation.append(run)
            print(generation.gtids.executed.count, flush=True)
            await asyncio.sleep(0)
        number += 1
        count += 60

asyncio.run(main())
"""


@pytest.mark.parametrize("sync", ["transaction", "interval", "none"])
def test_kill_nine_at_random_moments_takes_no_published_transaction_out_of_the_state(tmp_path: Path, sync: str) -> None:
    chance = random.Random(sync)
    directory = tmp_path / "archive"
    program = [sys.executable, "-c", textwrap.dedent(KILLED_PROGRAM), str(directory), sync]
    for _ in range(3):
        printed = tmp_path / "printed"
        with printed.open("w") as out:
            process = subprocess.Popen(program, cwd=REPOSITORY, stdout=out)
            try:
                deadline = time.monotonic() + 30
                while not printed.stat().st_size and time.monotonic() < deadline:
                    time.sleep(0.01)
                time.sleep(chance.uniform(0.01, 0.4))
            finally:
                process.kill()
                process.wait()
        lines = printed.read_text().split("\n")[:-1]
        assert lines, "killed before it wrote anything"
        view = asyncio.run(opened(directory))
        assert isinstance(view.executed, GtidSet)
        assert view.executed.count >= int(lines[-1])
        assert shown(view) == shown(asyncio.run(rebuilt(directory)))


async def test_lost_connections_and_restarts_anywhere_end_in_the_state_of_the_files(tmp_path: Path) -> None:
    chance = random.Random(11)
    data = file_of(1, 60, 4000)
    directory = tmp_path / "archive"
    generation = await Generation.open(directory)
    await generation.begin_file(NAMES[0])
    position = 4
    for _ in range(25):
        stop = position + chance.randrange(100, 30_000)
        at = position
        while at < len(data) and at + int.from_bytes(data[at + 9 : at + 13], "little") <= stop:
            at += int.from_bytes(data[at + 9 : at + 13], "little")
        await append_all(generation, data[:at], start=position)
        if chance.random() < 0.5 and generation.files:
            await generation.close()
            generation = await Generation.open(directory)
            end = generation.end
        else:
            end = await generation.trim()
        if end is None or end.offset == 4:
            await generation.begin_file(NAMES[0])
            position = 4
        else:
            position = end.offset
        held = generation.gtids.executed
        assert isinstance(held, GtidSet)
        assert shown(generation.gtids.view()) == shown(await rebuilt_beside(directory))
    await generation.close()


async def rebuilt_beside(directory: Path) -> GtidView:
    copy = directory.with_name("beside")
    shutil.copytree(directory, copy)
    view = await rebuilt(copy)
    shutil.rmtree(copy)
    return view
