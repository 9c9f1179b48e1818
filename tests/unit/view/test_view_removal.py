"""A view's files are removed, and nothing else, ever."""

import os
from pathlib import Path

import pytest

from relay.archive.storage.archive_errors import ArchiveLocked
from relay.archive.storage.directory_lock import take_lock
from relay.archive.storage.files import FileLayer
from relay.view.inspect.view_removal import NotRemoved, remove_view
from relay.view.rules.kept_settings import view_directory


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    directory = tmp_path / "archive"
    for name in ("gtid", "other"):
        view_directory(directory, name).mkdir(parents=True)
        (view_directory(directory, name) / "mysql-bin.000001").write_bytes(b"x")
    (directory / "mysql-bin.000001").write_bytes(b"the mirror's")
    return directory


def files(directory: Path) -> list[str]:
    return sorted(
        str(path.relative_to(directory)) for path in directory.rglob("*") if path.name != "lock" and path.is_file()
    )


def test_the_files_of_the_one_view_are_gone(archive: Path) -> None:
    assert remove_view(archive, "gtid")
    assert files(archive) == ["mysql-bin.000001", "views/other/mysql-bin.000001"]
    assert [path.name for path in (archive / "views").iterdir()] == ["other"]


def test_a_view_without_files_is_none(archive: Path) -> None:
    assert not remove_view(archive, "new")
    (archive / "bare").mkdir()
    assert not remove_view(archive / "bare", "new")


def test_nothing_is_removed_while_a_relay_has_the_archive(archive: Path) -> None:
    lock = take_lock(archive, FileLayer())
    try:
        with pytest.raises(ArchiveLocked):
            remove_view(archive, "gtid")
    finally:
        os.close(lock)
    assert "views/gtid/mysql-bin.000001" in files(archive)


@pytest.mark.parametrize("link", ["views", "views/gtid"])
def test_a_link_is_not_followed(archive: Path, tmp_path: Path, link: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    (archive / link).rename(elsewhere)
    (archive / link).symlink_to(elsewhere)
    before = files(elsewhere)
    with pytest.raises(NotRemoved, match="a link"):
        remove_view(archive, "gtid")
    assert files(elsewhere) == before


def test_links_inside_of_the_view_are_removed_and_not_what_they_lead_to(archive: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_bytes(b"x")
    (view_directory(archive, "gtid") / "away").symlink_to(kept)
    assert remove_view(archive, "gtid") and files(kept) == ["file"]


def test_what_is_no_directory_is_left_alone(archive: Path) -> None:
    (archive / "views" / "file").write_bytes(b"x")
    with pytest.raises(NotRemoved, match="no directory"):
        remove_view(archive, "file")


def test_what_an_earlier_call_left_is_removed_by_the_next(archive: Path) -> None:
    view_directory(archive, "gtid").rename(archive / "views" / ".removed-gtid")
    assert not remove_view(archive, "gtid")
    assert [path.name for path in (archive / "views").iterdir()] == ["other"]
