"""`view verify` on views that were really made: of all of the archive, of what is left of it, and of what was changed."""

import json
from pathlib import Path

import pytest

from protocol.position import Position
from relay.archive.archive import Archive
from relay.archive.storage.archived_file import ArchivedFile
from relay.commands.outcome import CommandFailed
from relay.commands.view_changes import rebuild
from relay.commands.view_command import verify_view
from relay.view.inspect.named_view import NamedView, named_view
from relay.view.inspect.view_listing import files_of
from relay.view.rules.settings import ViewSettings, ViewStart
from tests.support.archive_filling import fill
from tests.support.binlog_builder import BinlogBuilder
from tests.support.view_making import UUID_OF_VIEW, made_view, marked, settings, until_made

NAMES = [f"mysql-bin.{number:06d}" for number in (1, 2, 3)]


def binlog(number: int) -> bytes:
    made = BinlogBuilder("mysql", version="5.6.24-log")
    if number == 1:
        made.query("CREATE TABLE d.t7 (a INT) ENGINE=MyISAM")
    for size in range(30):
        made.transaction(20 + size * number)
    if number < len(NAMES):
        made.rotate(NAMES[number])
    return marked(made.data)


@pytest.fixture
async def view(tmp_path: Path) -> NamedView:
    place = tmp_path / "source"
    await fill(place, *((name, binlog(number)) for number, name in enumerate(NAMES, start=1)))
    await make(place, settings())
    return named_view(place, settings())


async def make(place: Path, wanted: ViewSettings) -> None:
    mirror = await Archive.open(place)
    try:
        async with made_view(mirror, wanted) as made:
            await until_made(made)
    finally:
        await mirror.close()


def change(view: NamedView, name: str, offset: int) -> None:
    path = view.directory / name
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)


def test_a_view_that_grows_while_it_is_verified_is_no_other_than_the_archive_gives(
    view: NamedView, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside a running relay: what is listed first is of a moment before."""
    moments = 0

    def listed(directory: Path) -> list[ArchivedFile]:
        nonlocal moments
        moments += 1
        files = files_of(directory)
        if moments == 1:
            places = named_view(view.archive, view.settings).places
            before = places.of_gno(82)
            files[-1].end = before.view.offset if directory == view.directory else before.source.offset
        return files

    monkeypatch.setattr("relay.view.inspect.made_again.files_of", listed)
    assert verify_view(view, as_json=False) == 0
    assert "not compared" not in capsys.readouterr().out and moments == 2


def test_a_file_that_begins_while_the_view_is_verified_is_no_older_one(
    view: NamedView, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "relay.view.inspect.made_again.files_of",
        lambda directory: files_of(directory)[: -1 if directory == view.directory else None],
    )
    assert verify_view(view, as_json=False) == 0
    assert "not compared" not in capsys.readouterr().out


def test_a_view_that_was_made_is_what_the_archive_gives(view: NamedView, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify_view(view, as_json=False) == 0
    assert "is what the archive gives: 3 files" in capsys.readouterr().out


@pytest.mark.parametrize("offset", [0, 100, 300, -1])
def test_one_byte_is_one_finding_and_files_behind_it_are_still_compared(
    view: NamedView, capsys: pytest.CaptureFixture[str], offset: int
) -> None:
    change(view, NAMES[0], offset)
    change(view, NAMES[2], 500)
    assert verify_view(view, as_json=True) == 2
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    at = offset if offset >= 0 else (view.directory / NAMES[0]).stat().st_size - 1
    assert [(one["file"], one["offset"]) for one in found] == [(NAMES[0], at), (NAMES[2], 500)]


async def test_what_was_purged_from_the_archive_is_left_out_and_said(
    view: NamedView, capsys: pytest.CaptureFixture[str]
) -> None:
    mirror = await Archive.open(view.archive)
    try:
        await mirror.current.purge([NAMES[0]], "tests")
    finally:
        await mirror.close()
    assert verify_view(view, as_json=False) == 0
    assert "2 files" in (out := capsys.readouterr().out) and "1 older files were not compared" in out
    change(view, NAMES[1], 400)
    assert verify_view(view, as_json=False) == 1


async def test_rebuilt_from_what_is_left_with_the_start_that_it_is_told_the_files_are_the_same(view: NamedView) -> None:
    before = {name: (view.directory / name).read_bytes() for name in NAMES}
    mirror = await Archive.open(view.archive)
    try:
        await mirror.current.purge([NAMES[0]], "tests")
    finally:
        await mirror.close()
    with pytest.raises(CommandFailed, match=r'start = \{ file = "mysql-bin.000002", position = 4, next = 32 \}'):
        rebuild(view, UUID_OF_VIEW, as_json=False)
    later = settings(start=ViewStart(Position(NAMES[1], 4), 32))
    rebuild(named_view(view.archive, later), UUID_OF_VIEW, as_json=False)
    assert not view.directory.exists()
    await make(view.archive, later)
    assert {name: (view.directory / name).read_bytes() for name in NAMES[1:]} == {
        name: before[name] for name in NAMES[1:]
    }
