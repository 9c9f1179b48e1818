"""A crash at any step of a purge: every file is still there, or gone with a row in the ledger; never half of them."""

import asyncio
import random
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from protocol.position import is_binlog_name
from relay.archive.generation import Generation
from relay.archive.storage.files import PURGE_NAME
from relay.archive_inspection.listing import read_ledger
from relay.archive_inspection.verify import verify_archive
from tests.support.archive_filling import fill
from tests.support.binlog_builder import BinlogBuilder
from tests.support.forgetful_disk import ForgetfulDisk
from tests.support.stepped_disk import SteppedDisk
from tests.unit.archive.test_purge import NAMES, binlogs, binlogs_in

GOING = NAMES[:3]
MOST_STEPS = 40
REPOSITORY = Path(__file__).resolve().parents[2]


class Crash(Exception):
    """The process ends here."""


class CrashingDisk(SteppedDisk, ForgetfulDisk):
    """Ends the purge before its call number `steps_left` that would change the disk. -1: never."""

    steps_left = -1
    crashed = False

    def step(self) -> None:
        if self.crashed or self.steps_left == 0:
            self.crashed = True
            raise Crash
        if self.steps_left > 0:
            self.steps_left -= 1


async def crash_in_purge(directory: Path, survivor: Path, step: int, *, power: bool) -> bool:
    """Purges, ends before disk call number `step`, and leaves in `survivor` what is left; whether it ended early."""
    await fill(directory, *binlogs())
    disk = CrashingDisk()
    generation = await Generation.open(directory, layer=disk)
    for path in directory.iterdir():
        disk.synced[path.stat().st_ino] = path.read_bytes()
    ForgetfulDisk.sync_directory(disk, directory)
    disk.steps_left = step
    crashed = False
    try:
        await generation.purge(GOING, "for a test")
    except Crash:
        crashed = True
    if power:
        disk.lose_power(directory, survivor, step)
        for path in directory.glob("catalog.sqlite*"):
            shutil.copy(path, survivor)
    else:
        shutil.copytree(directory, survivor)
    disk.steps_left, disk.crashed = -1, False
    await generation.close()
    return crashed


@pytest.mark.parametrize("power", [False, True], ids=["process killed", "power cut"])
async def test_after_a_crash_at_any_step_all_files_are_there_or_all_are_gone_and_noted(
    tmp_path: Path, power: bool
) -> None:
    outcomes = []
    wrong = []
    for step in range(MOST_STEPS):
        survivor = tmp_path / f"after{step}"
        crashed = await crash_in_purge(tmp_path / f"before{step}", survivor, step, power=power)
        generation = await Generation.open(survivor)
        held = [file.name for file in generation.files]
        await generation.close()
        noted = [row.file for row in read_ledger(survivor) if row.kind == "purged"]
        others = [row.kind for row in read_ledger(survivor) if row.kind != "purged"]
        listed = (survivor / "mysql-bin.index").read_text().split()
        findings = list(verify_archive(survivor, deep=True))
        expected = (NAMES, []) if held == NAMES else (NAMES[3:], GOING)
        if (
            (held, noted) != expected
            or binlogs_in(survivor) != held
            or listed != [f"./{name}" for name in held]
            or findings
            or others
            or (survivor / PURGE_NAME).exists()
        ):
            wrong.append((step, held, noted, listed, others, findings))
        outcomes.append(held == NAMES)
        if not crashed:
            break
    assert wrong == []
    assert not crashed, "the purge takes more steps than were tried"
    assert True in outcomes and outcomes.count(False) > 5, "the steps do not cover both sides of the decision"


async def test_an_intent_that_cannot_be_read_removes_nothing(tmp_path: Path) -> None:
    await fill(tmp_path, *binlogs())
    (tmp_path / PURGE_NAME).write_text('[1.0, "purged", "../../etc/passwd", 4, ""]\n')
    generation = await Generation.open(tmp_path)
    await generation.close()
    assert binlogs_in(tmp_path) == NAMES
    assert [row.kind for row in read_ledger(tmp_path)] == ["purge_unreadable"]


PURGING_PROGRAM = """
import asyncio, sys
from pathlib import Path
from relay.archive.generation import Generation

async def main():
    generation = await Generation.open(Path(sys.argv[1]))
    while True:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        await generation.purge([generation.files[0].name], "for a test")

asyncio.run(main())
"""


def purge_and_kill(directory: Path, whole: int, chance: random.Random) -> None:
    """Purges `whole` files one by one, and kills the process at some moment of the next one's purge."""
    program = [sys.executable, "-c", textwrap.dedent(PURGING_PROGRAM), str(directory)]
    with subprocess.Popen(program, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        orders, answers = process.stdin, process.stdout

        def go() -> None:
            orders.write(b"go\n")
            orders.flush()

        def await_ready() -> None:
            while (line := answers.readline()) != b"ready\n":  # the log is there too
                assert line, "the purging program ended by itself"

        await_ready()
        took_s = 0.01
        for _ in range(whole):
            began = time.monotonic()
            go()
            await_ready()
            took_s = time.monotonic() - began
        go()
        time.sleep(chance.uniform(0, took_s))
        process.kill()


def test_kill_nine_in_a_purge_leaves_every_file_whole_or_gone_and_noted(tmp_path: Path) -> None:
    chance = random.Random(7)
    for turn in range(6):
        directory = tmp_path / str(turn)
        asyncio.run(fill(directory, *binlogs()))
        whole = turn % (len(NAMES) - 1)
        purge_and_kill(directory, whole, chance)

        async def reopen(directory: Path = directory) -> list[str]:
            generation = await Generation.open(directory)
            held = [file.name for file in generation.files]
            await generation.close()
            return held

        held = asyncio.run(reopen())
        noted = [row.file for row in read_ledger(directory) if row.kind == "purged"]
        assert [*noted, *held] == NAMES
        assert len(noted) in (whole, whole + 1), "a purge that was done is undone, or one begun that nobody asked for"
        assert (binlogs_in(directory), list(verify_archive(directory, deep=True))) == (held, [])


MANY_PROGRAM = """
import asyncio, structlog, sys
from pathlib import Path
from relay.archive.generation import Generation

structlog.configure(logger_factory=structlog.ReturnLoggerFactory())  # nobody reads thousands of lines

async def main():
    generation = await Generation.open(Path(sys.argv[1]))
    print("ready", flush=True)
    await generation.purge([file.name for file in generation.files[:-1]], "for a test")
    print("purged", flush=True)

asyncio.run(main())
"""
MANY = 3000


def all_binlogs(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if is_binlog_name(path.name))


async def fill_with_many(directory: Path) -> None:
    """Thousands of tiny files, as recovery takes them over."""
    content = bytes(BinlogBuilder().ddl().data)
    directory.mkdir()
    for number in range(1, MANY + 1):
        (directory / f"mysql-bin.{number:06d}").write_bytes(content)
    await (await Generation.open(directory)).close()


def begin_and_kill(directory: Path, share: float) -> int:
    """Kills a purge of all files but the newest when `share` of them are gone; how many binlogs are left then."""
    program = [sys.executable, "-c", textwrap.dedent(MANY_PROGRAM), str(directory)]
    with subprocess.Popen(program, cwd=REPOSITORY, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while (line := process.stdout.readline()) != b"ready\n":
            assert line, "the purging program ended by itself"
        while len(all_binlogs(directory)) > MANY * (1 - share):
            assert process.poll() is None, "the purge was over too soon"
        process.kill()
    return len(all_binlogs(directory))


@pytest.mark.parametrize("share", [0.1, 0.7])
def test_a_purge_of_thousands_that_was_killed_is_finished_by_the_next_start(tmp_path: Path, share: float) -> None:
    directory = tmp_path / "archive"
    asyncio.run(fill_with_many(directory))
    left = begin_and_kill(directory, share)
    assert 1 < left < MANY, "it was not killed in the middle"

    async def reopen() -> list[str]:
        generation = await Generation.open(directory)
        held = [file.name for file in generation.files]
        await generation.close()
        return held

    newest = f"mysql-bin.{MANY:06d}"
    assert asyncio.run(reopen()) == [newest]
    assert (all_binlogs(directory), (directory / PURGE_NAME).exists()) == ([newest], False)
    ledger = read_ledger(directory)
    assert [row.file for row in ledger if row.kind == "purged"] == [f"mysql-bin.{n:06d}" for n in range(1, MANY)]
    assert {row.kind for row in ledger} == {"purged"}
    assert list(verify_archive(directory, deep=True)) == []


async def test_a_purge_that_a_stop_interrupts_is_finished_by_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relay.archive.write.purge._BATCH", 1)
    await fill(tmp_path, *binlogs())
    generation = await Generation.open(tmp_path)
    purging = asyncio.ensure_future(generation.purge(NAMES[:3], "for a test"))
    while len(binlogs_in(tmp_path)) == len(NAMES):
        await asyncio.sleep(0)
    await generation.close()
    await purging
    assert NAMES[2] in binlogs_in(tmp_path), "the stop waited for all of it"
    await (await Generation.open(tmp_path)).close()
    assert (binlogs_in(tmp_path), [row.file for row in read_ledger(tmp_path)]) == (NAMES[3:], NAMES[:3])
