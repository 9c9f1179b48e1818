"""Files are made again, with their mode, and no link, FIFO or second name leads anywhere."""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from relay.disk import file_calls
from relay.disk.database_file import open_database, open_database_to_read

CALLS: dict[str, Callable[[Path], object]] = {
    "make": file_calls.make_file,
    "make new": file_calls.make_new_file,
    "open or make": file_calls.open_or_make,
    "write": file_calls.open_to_write,
    "read": file_calls.open_to_read,
    "remove": file_calls.remove_file,
    "directory": file_calls.make_directory,
    "new directory": file_calls.make_new_directory,
    "database": open_database,
    "database to read": open_database_to_read,
    "tree": file_calls.remove_tree,
    "part": file_calls.part_from_other_names,
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "root"
    place.mkdir()
    file_calls.keep_within(place)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("kept")
    return place


@pytest.mark.parametrize("call", CALLS)
def test_a_directory_that_is_a_link_leads_nowhere(call: str, root: Path) -> None:
    outside = root.parent / "outside"
    (root / "views").symlink_to(outside)
    for name in ("file", "another"):
        with pytest.raises(OSError, match="symbolic link"):
            CALLS[call](root / "views" / name)
    assert os.listdir(outside) == ["file"] and (outside / "file").read_text() == "kept"


@pytest.mark.parametrize("call", ["write", "read", "open or make", "database", "database to read", "directory"])
def test_a_file_that_is_a_link_is_not_followed(call: str, root: Path) -> None:
    (root / "file").symlink_to(root.parent / "outside" / "file")
    with pytest.raises(OSError, match="symbolic link"):
        CALLS[call](root / "file")


@pytest.mark.parametrize("call", ["write", "read", "open or make", "database", "database to read"])
def test_a_fifo_is_not_waited_for(call: str, root: Path) -> None:
    os.mkfifo(root / "file")
    with pytest.raises(OSError, match="no regular file"):
        CALLS[call](root / "file")


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_what_is_made_has_its_mode_whatever_the_umask(umask: int, root: Path) -> None:
    before = os.umask(umask)
    try:
        os.close(file_calls.make_file(root / "made"))
        os.close(file_calls.open_or_make(root / "secret", file_calls.SECRET_MODE))
        made = file_calls.make_directory(root / "a" / "b" / "c")
    finally:
        os.umask(before)
    assert stat.S_IMODE((root / "made").stat().st_mode) == 0o640
    assert stat.S_IMODE((root / "secret").stat().st_mode) == 0o600
    assert made == [root / "a", root / "a" / "b", root / "a" / "b" / "c"]
    assert {stat.S_IMODE(place.stat().st_mode) for place in made} == {0o750}


def test_a_file_is_made_in_the_place_of_a_link_and_not_through_it(root: Path) -> None:
    victim = root.parent / "outside" / "file"
    (root / "file.tmp").symlink_to(victim)
    os.close(file_calls.make_file(root / "file.tmp"))
    assert victim.read_text() == "kept" and not (root / "file.tmp").is_symlink()


def test_a_file_with_a_second_name_is_parted_from_it(root: Path) -> None:
    victim = root.parent / "outside" / "file"
    os.link(victim, root / "file")
    with pytest.raises(OSError, match="another name"):
        file_calls.open_in_place(root / "file")
    file_calls.part_from_other_names(root / "file")
    os.close(file_calls.open_in_place(root / "file"))
    (root / "file").write_text("changed")
    assert victim.read_text() == "kept"


def test_the_same_file_is_opened_by_all_who_make_it_at_once(root: Path) -> None:
    first, second = file_calls.open_or_make(root / "lock"), file_calls.open_or_make(root / "lock")
    assert os.path.sameopenfile(first, second)
    os.close(first)
    os.close(second)


def test_links_in_a_tree_are_removed_and_not_followed(root: Path) -> None:
    (root / "tree" / "inner").mkdir(parents=True)
    (root / "tree" / "inner" / "away").symlink_to(root.parent / "outside")
    file_calls.remove_tree(root / "tree")
    assert os.listdir(root) == [] and (root.parent / "outside" / "file").read_text() == "kept"


def test_a_file_outside_of_archives_is_read_through_the_link_that_somebody_named(root: Path) -> None:
    named = root.parent / "named"
    named.symlink_to(root.parent / "outside" / "file")
    assert file_calls.read_file(named) == b"kept"


def test_the_root_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "root").symlink_to("real")
    file_calls.keep_within(tmp_path / "root")
    os.close(file_calls.make_file(tmp_path / "root" / "file"))
    assert (tmp_path / "real" / "file").is_file()


def test_a_device_in_place_of_a_file_stays(tmp_path: Path) -> None:
    device = tmp_path / "full"
    try:
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 7))
    except PermissionError:
        pytest.skip("only root makes devices")
    with pytest.raises(OSError) as raised:
        file_calls.make_file(device)
    assert raised.value.errno == errno.EINVAL and stat.S_ISCHR(device.lstat().st_mode)
