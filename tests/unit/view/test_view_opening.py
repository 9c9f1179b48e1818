"""What keeps a view from being opened, and whether trying again may help."""

import errno
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from relay.archive.archive import Archive
from relay.archive.storage.archive_errors import ArchiveError, ArchiveWriteError
from relay.archive.storage.files import CATALOG_NAME, VIEW_NAME
from relay.archive.write.options import ArchiveOptions
from relay.view.rules.kept_settings import view_directory
from relay.view.running.view_opening import ViewNotOpened, open_view
from tests.support.generation_filling import append_files, mysql_series
from tests.support.view_making import settings

UUID_A = "aaaaaaaa-1111-1111-1111-111111111111"


@pytest.fixture
async def mirror(tmp_path: Path) -> AsyncIterator[Archive]:
    archive = await Archive.open(tmp_path / "archive")
    await append_files(archive, mysql_series(1, f"{UUID_A}:1-3"))
    yield archive
    await archive.close()


async def trouble(mirror: Archive, **changed: object) -> ViewNotOpened:
    """With which the view `v` cannot be opened."""
    with pytest.raises(ViewNotOpened) as caught:
        await open_view(mirror, settings(**changed), ArchiveOptions())
    return caught.value


async def test_other_settings_than_those_of_its_files_want_a_restart(mirror: Archive) -> None:
    await (await open_view(mirror, settings(), ArchiveOptions())).close()
    met = await trouble(mirror, engines="innodb")
    assert not met.may_pass
    assert met.what == "view v was made with other settings: engines was 'keep', is 'innodb'."
    assert "view rebuild v" in met.advice


async def test_kept_settings_that_cannot_be_read_want_a_restart(mirror: Archive) -> None:
    await (await open_view(mirror, settings(), ArchiveOptions())).close()
    (view_directory(mirror.directory, "v") / VIEW_NAME).write_text("{")
    met = await trouble(mirror)
    assert not met.may_pass and VIEW_NAME in met.what and "view rebuild v" in met.advice


async def test_the_rest_of_a_removal_that_a_crash_ended_is_removed(mirror: Archive, tmp_path: Path) -> None:
    """Nothing shows it, and it may be as large as the mirror."""
    rest = view_directory(mirror.directory, ".removed-v")
    rest.mkdir(parents=True)
    (rest / "mysql-bin.000001").write_bytes(b"x")
    of_another = view_directory(mirror.directory, ".removed-w")
    of_another.symlink_to(tmp_path)
    await (await open_view(mirror, settings(), ArchiveOptions())).close()
    assert not rest.exists()
    await (await open_view(mirror, settings(name="w"), ArchiveOptions())).close()
    assert of_another.is_symlink() and (tmp_path / "archive").is_dir()


async def test_another_process_that_has_it_open_may_end(mirror: Archive) -> None:
    view = await open_view(mirror, settings(), ArchiveOptions())
    met = await trouble(mirror)
    assert met.may_pass and "another process has" in met.what
    await view.close()
    await (await open_view(mirror, settings(), ArchiveOptions())).close()


async def test_a_file_where_its_directory_should_be_may_be_taken_away(mirror: Archive) -> None:
    (mirror.directory / "views").write_text("a mistake")
    met = await trouble(mirror)
    assert met.may_pass and str(mirror.directory / "views") in met.what, met.what
    (mirror.directory / "views").unlink()
    await (await open_view(mirror, settings(), ArchiveOptions())).close()


async def test_a_ledger_that_cannot_be_read_is_made_again_by_the_relay(mirror: Archive, tmp_path: Path) -> None:
    await mirror.close()  # a running one makes it again before anybody looks
    (tmp_path / "noise").write_bytes(os.urandom(8192))
    (tmp_path / "noise").replace(mirror.directory / CATALOG_NAME)
    met = await trouble(mirror)
    assert met.may_pass and met.what.startswith(
        "the ledger of the archive, with what the view leaves out, cannot be read"
    )


@pytest.mark.parametrize(
    ("error", "may_pass"),
    [
        (ArchiveWriteError("no room", file=None, offset=None, errno=errno.ENOSPC), True),
        (ArchiveError("another layout of the catalog"), False),
    ],
)
async def test_of_the_archive_s_errors_those_of_the_disk_may_pass(
    mirror: Archive, monkeypatch: pytest.MonkeyPatch, error: ArchiveError, *, may_pass: bool
) -> None:
    async def fails(*_: object) -> Archive:
        raise error

    monkeypatch.setattr(Archive, "open", fails)
    met = await trouble(mirror)
    assert (met.may_pass, met.what) == (may_pass, f"{error.text}.")
