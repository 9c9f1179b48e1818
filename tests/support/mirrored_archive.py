"""An archive whose copy goes into a directory, as into a bucket, and an archive restored from that."""

import asyncio
import threading
import time
from pathlib import Path

from relay.archive.archive import Archive
from relay.archive.catalog.catalog_rows import LedgerRow
from relay.archive.storage.storage_location import LocationNote
from relay.bucket_copy.bucket_gaps import HolesWanted
from relay.bucket_copy.checked_copy import AS_WRITTEN, WantedCopy
from relay.mirror.mirror_pass import MirrorPass
from relay.mirror.mirror_picture import PicturedFile, PicturedGeneration
from relay.mirror.restoring import RestoredArchive, restore_archive
from relay.object_store.archive_object import Ownership
from relay.object_store.object_store import ObjectStore
from relay.object_store.store_options import StoreOptions
from relay.packed.key_ring import KeyRing
from relay.packed.packing import PackOptions
from relay.packing_process.compression_settings import CompressionSettings
from tests.support.generation_filling import A, append_files, identity, mysql_series

KEYS = KeyRing({"one": bytes(32)}, "one")


def bucket(tmp_path: Path) -> ObjectStore:
    """Return the bucket."""
    return ObjectStore(StoreOptions(f"file://{tmp_path}/bucket"))


def picture(archive: Archive) -> list[PicturedGeneration]:
    """Return all of the archive as it is now."""
    return [
        PicturedGeneration(
            one.number,
            one.directory,
            "" if one.number == 1 else f"{one.directory.name}/",
            tuple(PicturedFile(file.name, file.number, file.end, file.sealed) for file in one.files),
        )
        for one in archive.all
    ]


def mirror(
    tmp_path: Path,
    uuid: str = "relay-a",
    place: Path | None = None,
    keys: KeyRing | None = None,
    options: PackOptions | None = None,
) -> MirrorPass:
    """Return what copies into it, as the relay `uuid` that has its archive below `place`."""
    store = bucket(tmp_path)
    directory = (place or tmp_path / "archive") / "source"
    directory.mkdir(parents=True, exist_ok=True)
    means = CompressionSettings(options=options or PackOptions(), keys=keys)
    return MirrorPass(store, Ownership(store, uuid, directory, 0.0), means, threading.Event())


async def copied(archive: Archive, mirrored: MirrorPass) -> None:
    """Wait until all of it is in the bucket: rows of sealed files come into the catalog within moments."""
    for _ in range(200):
        await asyncio.to_thread(mirrored.run, picture(archive))
        if not mirrored.pending_bytes(picture(archive)):
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never became whole")


async def filled(tmp_path: Path) -> Archive:
    """Return an archive with two sealed files and one that grows."""
    archive = await Archive.open(tmp_path / "archive" / "source")
    archive.current.set_identity(identity(A, 1))
    (archive.directory / "server_uuid").write_text("11111111-2222-3333-4444-555555555555\n")
    await append_files(archive, mysql_series(1, f"{A}:1-3", f"{A}:4-6", f"{A}:7-9"))
    # On the disk on return, unlike what `append_ledger` hands to a thread: the mirror's first pass is to find it.
    decided = LedgerRow(time.time(), "view_skip", "mysql-bin.000001", 4, "what was decided of a view", "")
    await asyncio.to_thread(archive.current.write_ledger, decided)
    return archive


def note_there(tmp_path: Path, name: str) -> LocationNote:
    """Return the bucket's note on a binlog."""
    return LocationNote.decode((tmp_path / "bucket" / f"{name}.place").read_bytes().partition(b"\n")[0])


def restored(
    tmp_path: Path,
    keys: KeyRing | None = None,
    *,
    download: bool = True,
    name: str = "source",
    holes: HolesWanted = HolesWanted.REFUSE,
    wanted: WantedCopy = AS_WRITTEN,
) -> RestoredArchive:
    """Return an archive from the bucket, in `again/NAME`."""
    made = tmp_path / "again" / name
    return restore_archive(bucket(tmp_path), made, keys, download=download, holes=holes, wanted=wanted)
