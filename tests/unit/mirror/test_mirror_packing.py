"""Who packs for the mirror: a process that gives way to receiving and serving, but not for ever."""

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from relay.archive.archive import Archive
from relay.archive.storage.files import FileLayer
from relay.mirror.mirror import Mirror
from relay.mirror.mirror_pass import MirrorPass
from relay.mirror.sealed_copy import GIVES_WAY_S
from relay.object_store.archive_object import Ownership
from relay.object_store.store_options import StoreOptions
from relay.packed.key_ring import KeyRing
from relay.packing_process.compression_settings import CompressionSettings
from relay.packing_process.packed_copy import CopyFiles, CopyOrder, CopyStopped, PackedCopy
from relay.packing_process.packer import Packer, ProcessPacker, ThreadPacker
from tests.support.mirrored_archive import bucket, copied, filled, picture, restored


class NotingPacker(ThreadPacker):
    """Notes what it is asked to pack; `never_ends`: it comes to no end."""

    def __init__(self, *, never_ends: bool = False) -> None:
        super().__init__(FileLayer())
        self.asked: list[tuple[str, float | None, bool]] = []
        self._never_ends = never_ends

    def _copy(
        self, files: CopyFiles, order: CopyOrder, keys: KeyRing | None, stop: Callable[[], bool], urgent: bool
    ) -> PackedCopy:
        self.asked.append((order.file, order.pauses_s, urgent))
        while self._never_ends:
            if stop():
                raise CopyStopped
            time.sleep(0.001)
        return super()._copy(files, order, keys, stop, urgent)


def mirror_with(tmp_path: Path, archive: Archive, packer: Packer, stop: threading.Event) -> MirrorPass:
    ownership = Ownership(bucket(tmp_path), "relay-a", archive.directory, 0.0)
    return MirrorPass(bucket(tmp_path), ownership, CompressionSettings(packer), stop)


async def test_packing_gives_way_for_some_seconds_only_and_with_parts_not_at_all(tmp_path: Path) -> None:
    archive = await filled(tmp_path)
    packer = NotingPacker()
    await copied(archive, mirror_with(tmp_path, archive, packer, threading.Event()))
    *sealed, newest = (file.name for file in archive.current.files)
    assert packer.asked == [*((name, GIVES_WAY_S, True) for name in sealed), (f"{newest}.part-0", 0.0, True)]
    assert restored(tmp_path).end == archive.current.end
    await archive.close()


async def test_a_relay_that_ends_does_not_wait_for_what_gives_way(tmp_path: Path) -> None:
    archive = await filled(tmp_path)
    packer, stop = NotingPacker(never_ends=True), threading.Event()
    mirrored = mirror_with(tmp_path, archive, packer, stop)
    running = asyncio.create_task(asyncio.to_thread(mirrored.run, picture(archive)))
    while not packer.asked:
        await asyncio.sleep(0.001)
    stop.set()
    with pytest.raises(CopyStopped):
        await running
    assert not list(archive.directory.glob("*.tmp"))
    await archive.close()


async def test_the_process_is_there_for_the_next_part_and_ends_when_nothing_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = await filled(tmp_path)
    packer = ProcessPacker()
    mirrored = mirror_with(tmp_path, archive, packer, threading.Event())
    await copied(archive, mirrored)
    assert packer.is_running
    monkeypatch.setattr("relay.mirror.mirror_pass._PROCESS_KEPT_S", 0.0)
    await asyncio.to_thread(mirrored.run, picture(archive))
    assert not packer.is_running
    await archive.close()


async def test_a_process_packs_and_ends_with_the_mirror(tmp_path: Path) -> None:
    archive = await filled(tmp_path)
    packer, began = ProcessPacker(), []
    start = packer._start

    def noted(urgent: bool) -> None:
        began.append((urgent, threading.current_thread().name))
        start(urgent)

    packer._start = noted  # type: ignore[method-assign]
    options = StoreOptions(f"file://{tmp_path}/bucket")
    mirrored = Mirror(archive, options, CompressionSettings(packer), ("relay-a", "token"), 0.01)
    mirrored.begin()
    while mirrored.status().lag_bytes or mirrored.status().state != "following":
        await asyncio.sleep(0.01)
    await mirrored.close()
    assert mirrored.status().files == 2 and not packer.is_running
    # From the thread that copies, which has little priority, no process is started: the interpreter would wait for it.
    assert began and all(urgent and thread != "archive-mirror" for urgent, thread in began), began
    assert restored(tmp_path).end == archive.current.end
    assert not list(archive.directory.glob("*.tmp"))
    await archive.close()
