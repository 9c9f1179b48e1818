"""A relay's life makes nothing that others may read or change, whatever the umask it was started under: path by path."""

import contextlib
import os
import stat
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

from relay.disk.file_calls import DIRECTORY_MODE, FILE_MODE, SECRET_MODE
from tests.support.binlog_builder import BinlogBuilder
from tests.support.chain import wait_until
from tests.support.fake_source import FakeSource
from tests.support.free_port import free_port
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess
from tests.support.replica_client import ReplicaClient

# The umask is this process's: a copy of the template would have the template's.
pytestmark = pytest.mark.usefixtures("relays_of_their_own")

NEWEST = "mysql-bin.000004"
MODES = {
    "source.health.sock": SECRET_MODE,
    "source/decoys": SECRET_MODE,
    ".": DIRECTORY_MODE,
    "source": DIRECTORY_MODE,
    "source/views": DIRECTORY_MODE,
    "source/views/v": DIRECTORY_MODE,
    "source/views/v/mysql-bin.000001.*": FILE_MODE,
    "source/mysql-bin.000001.zst": FILE_MODE,
    "source/mysql-bin.000001.idx": FILE_MODE,
    "source/mysql-bin.000001.place": FILE_MODE,
    "source/catalog.sqlite-wal": FILE_MODE,
    "source/ledger.jsonl": FILE_MODE,
    "source/lock": FILE_MODE,
    "source/bucket-manifest.json": FILE_MODE,
    "source/replicas.marks": FILE_MODE,
    "source/server_uuid": FILE_MODE,
    "*": FILE_MODE,
}
"""The first pattern that fits says the mode; each fits something."""


@contextlib.contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def modes_in(directory: Path) -> dict[str, int]:
    """Of every path, by its place below."""
    found = {}
    for path in (directory, *directory.rglob("*")):
        with contextlib.suppress(FileNotFoundError):
            found[str(path.relative_to(directory))] = stat.S_IMODE(path.lstat().st_mode)
    return found


def pattern_of(place: str) -> str:
    return next(pattern for pattern in MODES if fnmatch(place, pattern))


@pytest.mark.parametrize("mask", [0o000, 0o022], ids=oct)
def test_every_path_has_its_mode(mask: int, tmp_path: Path) -> None:
    files = {}
    for number in range(1, 5):
        built = BinlogBuilder().ddl().transaction(20, 3000)
        if number < 4:
            built.rotate(f"mysql-bin.{number + 1:06d}")
        files[f"mysql-bin.{number:06d}"] = bytes(built.data)
    sections = {
        "archive.bucket": {"url": f"file://{tmp_path / 'bucket'}"},
        "archive.tiers": {"hot_bytes": "1KiB", "cold_bytes": "1KiB"},
        "archive.mirror": {"interval_s": 0.1},
    }
    with umask(mask), FakeSource(files) as source:
        relay = RelayProcess(tmp_path / "relay", source, port=free_port(), sections=sections)
        relay.add_view(name="v", gtids="assign", engines="innodb", uuid="33333333-2222-1111-4444-555555555555")
        with relay:
            relay.wait_archived(NEWEST, len(files[NEWEST]))
            client = ReplicaClient(relay.port, user=REPLICA_USER, password=REPLICA_PASSWORD)
            client.set_up()
            client.ask_dump("mysql-bin.000001", 4)
            client.events(3)
            wait_until(lambda: relay.logged("file_moved"), "a file is packed")
            wait_until((relay.archive / "bucket-manifest.json").exists, "the bucket is followed")
            wait_until((relay.archive / f"views/v/{NEWEST}").exists, "the view is made")
            found = modes_in(relay.archive.parent)
            client.cut()
            assert relay.stop() == 0
        found |= modes_in(relay.archive.parent)
    assert oct(stat.S_IMODE((tmp_path / "bucket").stat().st_mode)) == oct(DIRECTORY_MODE)
    wanted = {place: MODES[pattern_of(place)] for place in found}
    assert {place: (oct(mode), oct(wanted[place])) for place, mode in found.items() if mode != wanted[place]} == {}
    assert {pattern_of(place) for place in found} == set(MODES)
