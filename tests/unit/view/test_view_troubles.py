"""Nothing ends the making of a view for good: what nobody foresaw, and what the disk refuses, is told where it is, and tried again."""

import errno
import shutil
from collections.abc import AsyncIterator, Iterator, MutableMapping
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from protocol.binlog.layout import FIRST_EVENT
from protocol.position import Position
from relay.archive.archive import Archive
from relay.archive.read.open_file import OpenFile
from relay.archive.storage.files import FileLayer
from relay.view.inspect.named_view import named_view
from relay.view.inspect.view_listing import view_facts
from relay.view.rules.group_rules import MysqlRules
from relay.view.stops.source_stops import file_missing
from relay.view.stops.view_stop import ViewStop
from tests.support.archive_filling import append_all, fill
from tests.support.binlog_builder import BinlogBuilder
from tests.support.view_making import (
    UUID_OF_VIEW,
    files_of_view,
    is_published,
    made_view,
    marked,
    settings,
    until,
    until_made,
)

SOURCE = "mysql-bin.000001"
SECOND = "mysql-bin.000002"
DEFINITION = "CREATE TABLE d.t (a INT)"


def binlog() -> BinlogBuilder:
    return BinlogBuilder("mysql", version="5.6.24-log").transaction(10).query(DEFINITION).transaction(20)


AT = BinlogBuilder("mysql", version="5.6.24-log").transaction(10).size
BEHIND = BinlogBuilder("mysql", version="5.6.24-log").transaction(10).query(DEFINITION).size


@pytest.fixture
async def mirror(tmp_path: Path) -> AsyncIterator[Archive]:
    await fill(tmp_path / "source", (SOURCE, marked(binlog().data)))
    archive = await Archive.open(tmp_path / "source")
    yield archive
    await archive.close()


@pytest.fixture(autouse=True)
def logged() -> Iterator[list[MutableMapping[str, Any]]]:
    """Not shown: to paint a traceback takes seconds."""
    with capture_logs() as lines:
        yield lines


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relay.view.running.maker.AGAIN_S", 0.02)
    monkeypatch.setattr("relay.view.running.maker.LONGEST_PAUSE_S", 0.05)


class Faulty:
    """Rules that fail as nobody foresaw, as long as `fails`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
        self.fails, self.met = True, 0
        plan = MysqlRules.plan

        def planned(rules: MysqlRules, group: object) -> object:
            if self.fails:
                self.met += 1
                raise error
            return plan(rules, group)  # type: ignore[arg-type]

        monkeypatch.setattr(MysqlRules, "plan", planned)


def shown(mirror: Archive) -> ViewStop | None:
    """What `binlog-relay view list` says."""
    view = named_view(mirror.directory, settings())
    return view_facts(view.archive, view.directory, view.settings, view.places).stop


@pytest.mark.parametrize(
    "error", [EOFError("ends inside"), OverflowError("65534"), IndexError("no such state"), MemoryError()]
)
async def test_what_nobody_foresaw_stands_where_it_is_told_once_and_tried_again(
    mirror: Archive, monkeypatch: pytest.MonkeyPatch, logged: list[MutableMapping[str, Any]], error: Exception
) -> None:
    faulty = Faulty(monkeypatch, error)
    async with made_view(mirror, settings(), is_fault_wanted=True) as view:
        stop = (await until(view, lambda status: status.stop is not None and is_published(view))).stop
        assert stop is not None
        assert (stop.file, stop.offset, stop.group_stop) == (SOURCE, AT, BEHIND)
        assert stop.reason.name == "internal_error"
        assert type(error).__name__ in stop.reason.text and "(planned)" in stop.reason.text
        assert str(view.archive.executed) == f"{UUID_OF_VIEW}:1"
        await until(view, lambda _: faulty.met >= 4)
        await until(view, lambda _: shown(mirror) == stop)
        assert [line["event"] for line in logged].count("task_failed") == 1
        assert [line["event"] for line in logged].count("view_stopped") == 1
        # The mirror goes on, and so does the view once the fault is gone.
        await append_all(mirror.current, marked(binlog().transaction(30).data), start=binlog().size)
        faulty.fails = False
        await until(view, lambda status: status.stop is None and status.behind_bytes == 0)
        await until_made(view)
        assert str(view.archive.executed) == f"{UUID_OF_VIEW}:1-4"
        await until(view, lambda _: shown(mirror) is None)


async def test_other_views_know_nothing_of_a_fault(mirror: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    Faulty(monkeypatch, KeyError("x"))
    async with made_view(mirror, settings(), is_fault_wanted=True) as faulty:
        await until(faulty, lambda status: status.stop is not None)
        async with made_view(mirror, settings(name="other", target="mysql-5.5", gtids="keep")) as other:
            assert other.status.stop is None


async def test_a_transaction_at_which_a_fault_is_met_can_be_skipped(
    mirror: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    Faulty(monkeypatch, KeyError("x"))
    async with made_view(mirror, settings(), is_fault_wanted=True) as view:
        await until(view, lambda status: status.stop is not None)
        await view.skip(SOURCE, AT, "a test")
        await until(view, lambda status: status.stop is None and status.behind_bytes == 0)
        await until_made(view)
        assert str(view.archive.executed) == f"{UUID_OF_VIEW}:1-3"


async def test_pauses_grow_and_are_bounded(mirror: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, float, float]] = []

    def pause(failures: int, first_s: float, longest_s: float, _: object) -> float:
        asked.append((failures, first_s, longest_s))
        return 0.001

    monkeypatch.setattr("relay.view.running.maker.growing_pause", pause)
    Faulty(monkeypatch, KeyError("x"))
    async with made_view(mirror, settings(), is_fault_wanted=True) as view:
        await until(view, lambda _: len(asked) >= 4)
    assert asked[:4] == [(number, 0.02, 0.05) for number in (1, 2, 3, 4)]


# --- the disk ----------------------------------------------------------------------------------------------------------


def refuse(monkeypatch: pytest.MonkeyPatch, name: str, suffix: str, number: int) -> list[bool]:
    """The call `name` of the file layer fails for paths that end so, as long as the list that is returned has something."""
    on = [True]
    real = getattr(FileLayer, name)

    def call(layer: FileLayer, path: Path, *more: object) -> object:
        if on and str(path).endswith(suffix):
            raise OSError(number, "refused", None)
        return real(layer, path, *more)

    monkeypatch.setattr(FileLayer, name, call)
    return on


async def test_a_disk_that_is_full_for_the_map_is_the_view_s(mirror: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    on = refuse(monkeypatch, "create", ".map.tmp", errno.ENOSPC)
    async with made_view(mirror, settings()) as view:
        stop = (await until(view, lambda status: status.stop is not None)).stop
        assert stop is not None
        assert (stop.reason.name, stop.file, stop.offset) == ("view_write_failed", SOURCE, FIRST_EVENT)
        assert f"views/v/{SOURCE}" in stop.reason.text and "The disk is full" in stop.reason.advice
        await until(view, lambda _: shown(mirror) == stop)
        on.clear()
        await until(view, lambda status: status.stop is None and status.behind_bytes == 0)
        await until_made(view)
        await until(view, lambda _: shown(mirror) is None)


async def test_a_file_of_the_mirror_that_cannot_be_read_is_named_with_the_place(
    mirror: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    on = [True]
    real = OpenFile.read_into

    def read_into(file: OpenFile, view: memoryview, offset: int) -> int:
        if on:
            raise OSError(errno.EIO, "Input/output error")
        return real(file, view, offset)

    monkeypatch.setattr(OpenFile, "read_into", read_into)
    async with made_view(mirror, settings()) as view:
        stop = (await until(view, lambda status: status.stop is not None)).stop
        assert stop is not None
        assert (stop.reason.name, stop.file, stop.offset) == ("archive_unreadable", SOURCE, FIRST_EVENT)
        assert SOURCE in stop.reason.text and "Input/output error" in stop.reason.text
        on.clear()
        await until(view, lambda status: status.stop is None and status.behind_bytes == 0)
        await until_made(view)
        await until(view, lambda _: shown(mirror) is None)


async def test_a_file_of_the_view_that_cannot_be_read_is_the_view_s(
    mirror: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with made_view(mirror, settings()) as view:
        await until_made(view)
    on = [True]
    real = FileLayer.pread

    def pread(layer: FileLayer, fd: int, count: int, offset: int) -> bytes:
        import os

        if on and os.readlink(f"/proc/self/fd/{fd}").endswith(f"views/v/{SOURCE}"):
            raise OSError(errno.EIO, "Input/output error")
        return real(layer, fd, count, offset)

    async with made_view(mirror, settings()) as view:
        monkeypatch.setattr(FileLayer, "pread", pread)
        stop = (await until(view, lambda status: status.stop is not None)).stop
        assert stop is not None and stop.reason.name == "view_unreadable"
        assert f"views/v/{SOURCE}" in stop.reason.text
        on.clear()
        await until(view, lambda status: status.stop is None and status.behind_bytes == 0)


# --- what commands are shown --------------------------------------------------------------------------------------------


async def test_a_view_that_differs_stands_at_the_source_s_place(mirror: Archive) -> None:
    async with made_view(mirror, settings()) as view:
        await until_made(view)
        made = view.archive.directory
    data = files_of_view(made)[SOURCE]
    (made / f"{SOURCE}.idx").unlink()
    map_before = (made / f"{SOURCE}.map").read_bytes()
    await differing(made, data)
    (made / f"{SOURCE}.map").write_bytes(map_before)
    async with made_view(mirror, settings()) as view:
        stop = (await until(view, lambda status: status.stop is not None)).stop
        assert stop is not None and stop.reason.name == "view_differs"
        assert stop.file == SOURCE and stop.offset in {FIRST_EVENT, *binlog().boundaries}
        await until(view, lambda _: shown(mirror) == stop)


async def differing(made: Path, data: bytes) -> None:
    """The view's file with another, sound, event in it."""
    other = bytearray(data)
    at = data.index(DEFINITION.encode()) + len("CREATE TABLE d.")
    other[at : at + 1] = b"s"
    begin = at
    while begin > 4:
        begin -= 1
        size = int.from_bytes(other[begin + 9 : begin + 13], "little")
        if int.from_bytes(other[begin + 13 : begin + 17], "little") == begin + size and begin + size > at:
            break
    import zlib

    end = begin + size
    other[end - 4 : end] = zlib.crc32(other[begin : end - 4]).to_bytes(4, "little")
    for path in made.iterdir():
        if path.is_file() and path.name != "view.json" and not path.name.endswith(".json"):
            path.unlink()
    (made / SOURCE).write_bytes(other)


async def test_a_stop_that_comes_again_behind_another_one_is_shown(
    mirror: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger has the first row of a place only, and not what came after it."""
    real = OpenFile.read_into
    on = [True]

    def read_into(file: OpenFile, view: memoryview, offset: int) -> int:
        if on:
            raise OSError(errno.EIO, "Input/output error")
        return real(file, view, offset)

    async with made_view(mirror, settings()) as view:
        await until_made(view)
    for _ in range(2):
        monkeypatch.setattr(OpenFile, "read_into", read_into)
        async with made_view(mirror, settings()) as view:
            first = (await until(view, lambda status: status.stop is not None)).stop
            assert first is not None and first.reason.name == "archive_unreadable"
            await until(view, lambda status: shown(mirror) == status.stop)
        monkeypatch.setattr(OpenFile, "read_into", real)
        async with made_view(mirror, settings()) as view:
            refusing = refuse(monkeypatch, "open_read", f"views/v/{SOURCE}", errno.EACCES)
            second = (await until(view, lambda status: status.stop is not None)).stop
            assert second is not None and second.reason.name == "view_unreadable"
            await until(view, lambda status: shown(mirror) == status.stop)
            refusing.clear()
            await until(view, lambda status: status.stop is None and status.behind_bytes == 0)
            await until(view, lambda _: shown(mirror) is None)


async def test_a_view_without_a_file_is_shown_as_stopped_too(tmp_path: Path) -> None:
    await fill(tmp_path / "source", (SECOND, marked(binlog().data)))
    mirror = await Archive.open(tmp_path / "source")
    from relay.view.rules.settings import ViewStart

    wanted = settings(start=ViewStart(Position(SOURCE, 4), 5))
    async with made_view(mirror, wanted) as view:
        stop = (await until(view, lambda status: status.stop is not None)).stop
        assert stop is not None and stop.reason == file_missing(SOURCE)
        await until(view, lambda _: shown(mirror) == stop)
    await mirror.close()
    shutil.rmtree(tmp_path / "source" / "views")
