"""The process that packs: the same bytes as a thread makes, whom it gives way to, and how it ends."""

import errno
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from relay.archive.recovery.digest import file_digest
from relay.archive.storage.files import FileLayer, StoredFile
from relay.packed.byte_source import BytesInMemory
from relay.packed.key_ring import KeyRing
from relay.packed.packed_reader import PackedReader
from relay.packed.packing import PackOptions
from relay.packing_process.packed_copy import CopyFailed, CopyOrder, CopyStopped, PackedCopy
from relay.packing_process.packer import Packer, ProcessPacker, ThreadPacker
from tests.support.generation_filling import A, mysql_series
from tests.support.small_disk import small_disk

KEYS = KeyRing({"one": bytes(range(32))}, "one")
OPTIONS = PackOptions(level=1, frame_bytes=8192)
NAME = "mysql-bin.000001"


@pytest.fixture(scope="module")
def packer() -> Iterator[ProcessPacker]:
    made = ProcessPacker()
    yield made
    made.close()


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plain") / NAME
    path.write_bytes(mysql_series(1, f"{A}:1-500")[0][1])
    return path


def pack(
    packer: Packer, plain: Path, packed: Path, keys: KeyRing | None = None, digest: str | None = None
) -> PackedCopy:
    order = CopyOrder(NAME, plain.stat().st_size, digest, OPTIONS)
    return packer.make(plain, packed, order, keys, lambda: False)


@pytest.mark.parametrize("keys", [None, KEYS], ids=["plain", "encrypted"])
def test_process_and_thread_make_the_same(
    packer: ProcessPacker, plain: Path, tmp_path: Path, keys: KeyRing | None
) -> None:
    digest = file_digest(FileLayer(), plain, plain.stat().st_size)
    made = [
        pack(one, plain, tmp_path / str(number), keys, digest)
        for number, one in enumerate((packer, ThreadPacker(FileLayer())))
    ]
    for number, copy in enumerate(made):
        with StoredFile.open(FileLayer(), tmp_path / str(number)) as stored:
            assert PackedReader.open(stored, NAME, keys).read_all() == plain.read_bytes()
            assert stored.size == copy.stored_bytes
        assert copy.plain_digest == digest


@pytest.mark.parametrize("keys", [None, KEYS], ids=["plain", "encrypted"])
def test_a_stretch_is_packed_in_memory(packer: ProcessPacker, plain: Path, keys: KeyRing | None) -> None:
    for one in (packer, ThreadPacker(FileLayer())):
        order = CopyOrder("a stretch", 30_000, None, OPTIONS, start=1_000)
        data = one.make_in_memory(plain, order, keys, lambda: False)
        assert PackedReader.open(BytesInMemory(data), "a stretch", keys).read_all() == plain.read_bytes()[1_000:30_000]
        with pytest.raises(CopyFailed, match="ends at"):
            one.make_in_memory(plain, CopyOrder("a stretch", 1 << 30, None, OPTIONS, start=1_000), keys, lambda: False)


def test_a_file_that_is_not_what_was_sealed_is_refused_with_both_digests(
    packer: ProcessPacker, plain: Path, tmp_path: Path
) -> None:
    with pytest.raises(CopyFailed, match=r"its digest is crc32:[0-9a-f]{8}; crc32:00000000 was noted"):
        pack(packer, plain, tmp_path / "packed", digest="crc32:00000000")


def test_a_file_that_is_shorter_than_it_should_be_is_refused(
    packer: ProcessPacker, plain: Path, tmp_path: Path
) -> None:
    with pytest.raises(CopyFailed, match="ends at"):
        packer.make(plain, tmp_path / "packed", CopyOrder(NAME, 1 << 30, None, OPTIONS), None, lambda: False)


def test_an_error_of_the_system_comes_as_it_was(packer: ProcessPacker, plain: Path, tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", "4k") as full, pytest.raises(OSError) as raised:
        pack(packer, plain, full / NAME)
    assert raised.value.errno == errno.ENOSPC


def children() -> set[int]:
    return {int(pid) for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()}


def told_to(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


@pytest.mark.skipif(sys.platform != "linux", reason="priorities of Linux")
@pytest.mark.parametrize("urgent", [False, True], ids=["can wait", "urgent"])
def test_it_gives_way_to_all_else_and_less_so_when_it_is_urgent(plain: Path, tmp_path: Path, urgent: bool) -> None:
    packer, before = ProcessPacker(), children()
    order = CopyOrder(NAME, plain.stat().st_size, None, OPTIONS)
    packer.make(plain, tmp_path / "packed", order, KEYS, lambda: False, urgent=urgent)
    (pid,) = children() - before
    policy, nice = os.sched_getscheduler(pid), os.getpriority(os.PRIO_PROCESS, pid)
    told = told_to(pid) + Path(f"/proc/{pid}/environ").read_bytes()
    packer.close()
    assert (policy, nice) == ((os.SCHED_OTHER, 10) if urgent else (os.SCHED_IDLE, 0))
    assert bytes(range(32)) not in told and b"AAECAwQF" not in told
    assert not Path(f"/proc/{pid}").exists()


def killed_or_stopped(plain: Path, tmp_path: Path, number: int, *, stop: bool = False) -> None:
    """The process gets the signal as soon as it is there; nothing is left of it afterwards."""
    packer, before = ProcessPacker(), children()

    def send() -> None:
        # A program of its own: before that it is a part of this process, which waits for it.
        while not (pids := [pid for pid in children() - before if b"packing_child" in told_to(pid)]):
            time.sleep(0.001)
        os.kill(pids[0], number)

    sender = threading.Thread(target=send)
    sender.start()
    try:
        order = CopyOrder(NAME, plain.stat().st_size, None, OPTIONS)
        packer.make(plain, tmp_path / "packed", order, None, lambda: stop)
    finally:
        sender.join()
        packer.close()
        assert children() == before


def test_a_process_that_was_killed_is_told_and_the_next_file_gets_another(plain: Path, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="the process that packs ended with signal 9"):
        killed_or_stopped(plain, tmp_path, signal.SIGKILL)


def test_what_a_service_manager_sends_to_all_processes_is_for_the_relay(plain: Path, tmp_path: Path) -> None:
    killed_or_stopped(plain, tmp_path, signal.SIGTERM)


def test_a_process_that_hangs_is_ended_when_nobody_wants_the_file_any_more(
    plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relay.packing_process.packer._END_S", 0.2)
    with pytest.raises(CopyStopped):
        killed_or_stopped(plain, tmp_path, signal.SIGSTOP, stop=True)
