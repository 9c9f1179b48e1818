"""Whoever may write in the archive puts links, FIFOs and directories under the names that commands use: nothing outside is touched.

The names are not a list: they are those that the commands were seen to use on an archive without traps.
"""

import asyncio
import contextlib
import io
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from protocol.errors import RelayError
from relay.archive.archive import Archive
from relay.archive.storage.files import MARKS_NAME
from relay.commands.archive_cat import cat
from relay.commands.archive_command import list_files, rebuild, show_ledger, verify
from relay.disk import file_calls
from relay.export.export_command import ExportRequest, export
from relay.view.inspect.view_removal import remove_view
from relay.view.rules.settings import ViewSettings
from tests.support.generation_filling import A, append_files, mysql_series, two_generations
from tests.support.view_making import made_view, settings, until_made

SECRET = b"root:secret\n"
REFUSED = (RelayError, OSError, sqlite3.Error)
ALL = "ALL_TRAPS" in os.environ
"""All names with all commands: some minutes. Otherwise each name is tried with one command and one kind of trap."""
KINDS = ("link", "second name", "fifo", "directory")


async def _run(directory: Path) -> None:
    """What `run` does with the archive and a view of it, without servers."""
    archive = await Archive.open(directory)
    try:
        async with made_view(archive, VIEW) as view:
            await until_made(view)
    finally:
        await archive.close()


async def _receive(directory: Path) -> None:
    archive = await Archive.open(directory)
    try:
        number = archive.current.files[-1].number + 1
        await append_files(archive, mysql_series(number, f"{A}:{number + 20}", start=f"{A}:1-9"))
    finally:
        await archive.close()


VIEW: ViewSettings = settings()
COMMANDS: dict[str, Callable[[Path], object]] = {
    "list": lambda place: list_files(place, as_json=False),
    "ledger": lambda place: show_ledger(place, as_json=True),
    "verify": lambda place: verify(place, deep=True, as_json=False),
    "cat": lambda place: cat(place, "mysql-bin.000001", io.BytesIO()),
    "export": lambda place: export(
        place, ExportRequest(place.parent / "out", None, None, None, (), "refuse", False), as_json=True
    ),
    "receive": lambda place: asyncio.run(_receive(place)),
    "run": lambda place: asyncio.run(_run(place)),
    "rebuild": lambda place: rebuild(place, as_json=True),
    "view rebuild": lambda place: remove_view(place, VIEW.name),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of two sources with a view."""
    directory = tmp_path_factory.mktemp("whole") / "archive"

    async def made() -> None:
        archive = await two_generations(directory)
        await archive.close()

    asyncio.run(made())
    with contextlib.suppress(*REFUSED):
        asyncio.run(_run(directory))
    return directory


@pytest.fixture(scope="module")
def names(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """All that the commands ask the system for below the archive's directory."""
    used: set[str] = set()
    parent = file_calls._parent

    @contextlib.contextmanager
    def noted(path: Path) -> Iterator[tuple[int, str]]:
        whole_path = os.path.abspath(path)
        if f"{os.sep}archive{os.sep}" in whole_path:
            used.add(whole_path.partition(f"{os.sep}archive{os.sep}")[2])
        with parent(path) as found:
            yield found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_calls, "_parent", noted)
        for command in COMMANDS.values():
            place = tmp_path_factory.mktemp("seen") / "archive"
            shutil.copytree(whole, place)
            (place / "mysql-bin.000001.idx").unlink()
            with contextlib.suppress(*REFUSED):
                command(place)
    present = {str(path.relative_to(whole)) for path in whole.rglob("*")}
    found = sorted(used | present)
    assert {"mysql-bin.000001.idx.tmp", "ledger.jsonl", "lock", "views", MARKS_NAME, "catalog.sqlite-wal"} <= set(found)
    return found


def _trap(kind: str, place: Path, victim: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        place.rename(place.with_name(place.name + ".away"))
        victim = victim.parent
    elif os.path.lexists(place):
        place.unlink()
    place.parent.mkdir(parents=True, exist_ok=True)
    if kind == "link" or (kind == "second name" and victim.is_dir()):
        place.symlink_to(victim)
    elif kind == "second name":
        os.link(victim, place)
    elif kind == "fifo":
        os.mkfifo(place)
    else:
        place.mkdir()


@pytest.mark.parametrize("kind", KINDS)
def test_no_command_is_led_out_of_the_archive(
    kind: str, whole: Path, names: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    victim = outside / "shadow"
    victim.write_bytes(SECRET)
    victim.chmod(0o600)
    before = victim.stat()
    led = []
    for number, name in enumerate(names):
        for turn, (command, run) in enumerate(COMMANDS.items()):
            if not ALL and ((number + turn) % len(COMMANDS) or (number - KINDS.index(kind)) % len(KINDS)):
                continue
            place = tmp_path / f"{number}-{turn}" / "archive"
            shutil.copytree(whole, place)
            _trap(kind, place / name, victim)
            with contextlib.suppress(*REFUSED):
                run(place)
            capsys.readouterr()
            now = victim.stat()
            same = (now.st_ino, now.st_mode, now.st_uid) == (before.st_ino, before.st_mode, before.st_uid)
            if victim.read_bytes() != SECRET or not same or os.listdir(outside) != ["shadow"]:
                led.append((command, name))
                shutil.rmtree(outside)
                outside.mkdir()
                victim.write_bytes(SECRET)
                victim.chmod(0o600)
                before = victim.stat()
            shutil.rmtree(place.parent)
    assert led == []
