"""One pass over what is not in the bucket: small files, sealed binlogs, then a part of the file that grows."""

import sqlite3
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from relay.archive.catalog.catalog import Catalog, CatalogUnreadable
from relay.archive.catalog.catalog_rows import file_row
from relay.archive.storage.file_place import PLACE_SUFFIX, FilePlace, PlaceNote, Tier, read_place
from relay.archive.storage.files import CATALOG_NAME, TEMPORARY_SUFFIX, FileLayer, StoredFile
from relay.mirror.mirror_parts import MOST_PART_BYTES, MirrorPart, merged_start, packed_part, part_key, part_of
from relay.mirror.mirror_picture import PicturedFile, PicturedGeneration
from relay.mirror.mirrored_names import BESIDE, SMALL_FILES
from relay.object_store.archive_object import Ownership
from relay.object_store.object_errors import ObjectDamaged
from relay.object_store.object_store import ObjectStore
from relay.object_store.stored_object import StoredObject
from relay.packed.key_ring import KeyRing
from relay.packed.packed_facts import packed_name, plain_name
from relay.packed.packed_file import PackedFile
from relay.packed.packing import PackOptions
from relay.packing_process.packed_copy import CopyFailed, CopyOrder, CopyStopped
from relay.packing_process.packer import Packer

_MIRRORING: Final = ".mirror"
_LISTED_AGAIN_S: Final = 86400.0
"""What somebody has removed from the bucket is copied again within this time."""


class MirrorStopped(Exception):
    """The relay ends: what was begun is begun anew at the next start."""


class MirrorPass:
    """Knows what is in the bucket, since it was listed, once a day. Blocking, for one thread.

    Its methods raise: PrefixTaken and other MirrorRefused; ObjectStoreError; OSError; MirrorStopped.
    """

    def __init__(
        self,
        store: ObjectStore,
        ownership: Ownership,
        keys: KeyRing | None,
        packer: Packer,
        options: PackOptions,
        stop: threading.Event,
    ) -> None:
        self._store = store
        self._ownership = ownership
        self._keys = keys
        self._packer = packer
        self._options = options
        self._stop = stop
        self._there: set[str] | None = None
        """Keys of sealed binlogs and of what is beside them; None: the bucket was not listed yet."""
        self._listed_s = 0.0
        """When it was listed, by the monotonic clock."""
        self._parts: dict[str, list[MirrorPart]] = {}
        """By folder and binlog."""
        self._small: dict[str, tuple[int, int, int]] = {}
        """By key, inode, size and time of the file that was copied last."""
        self.done: dict[int, int] = {}
        """By generation, the number of the last sealed file up to which all are in the bucket."""
        self.copied: dict[str, int] = {}
        """By folder and binlog, up to where the file that grows is in the bucket."""
        self.files = self.part_count = 0
        """That were copied."""

    def run(self, generations: Sequence[PicturedGeneration]) -> None:
        """Copies what is missing, in the archive's order: what is in the bucket has no hole."""
        try:
            self._copy(generations)
        finally:
            self._packer.close()

    def _copy(self, generations: Sequence[PicturedGeneration]) -> None:
        if self._there is None:
            self._ownership.claim()
        if self._there is None or time.monotonic() - self._listed_s > _LISTED_AGAIN_S:
            self._list()
        self._ownership.renew()
        for generation in generations:
            self._copy_small(generation)
            for file in generation.files:
                if self._stop.is_set():
                    raise MirrorStopped
                if not file.sealed:
                    self._copy_part(generation, file)
                elif not self._copy_sealed(generation, file):
                    return  # its row comes into the catalog within moments
                else:
                    self.done[generation.number] = file.number
                self._ownership.renew()

    def pending_bytes(self, generations: Sequence[PicturedGeneration]) -> int:
        """What of it is not in the bucket."""
        pending = 0
        for generation in generations:
            done = self.done.get(generation.number, -1)
            for file in generation.files:
                if not file.sealed or file.number > done:
                    pending += file.end - min(file.end, self.copied.get(generation.folder + file.name, 0))
        return pending

    def _list(self) -> None:
        there: set[str] = set()
        parts: dict[str, list[MirrorPart]] = {}
        for found in self._store.list():
            part = part_of(found.key)
            if part is None:
                there.add(found.key)
                continue
            parts.setdefault(found.key.rpartition("/")[0] + "/" + part.file, []).append(part)
        self._parts = {name.removeprefix("/"): found for name, found in parts.items()}
        # Without its packed bytes a note is of a binlog that somebody has removed.
        packed = {plain_name(key) for key in there}
        self._there = {
            key for key in there if not key.endswith(PLACE_SUFFIX) or key.removesuffix(PLACE_SUFFIX) in packed
        }
        self._listed_s = time.monotonic()
        self.done.clear()

    def _copy_small(self, generation: PicturedGeneration) -> None:
        for name in SMALL_FILES:
            path = generation.directory / name
            try:
                status = path.stat()
                key, state = generation.folder + name, (status.st_ino, status.st_size, status.st_mtime_ns)
                if self._small.get(key) == state:
                    continue
                data = path.read_bytes()
            except FileNotFoundError:
                continue
            self._store.put_bytes(key, data)
            self._small[key] = state

    # --- sealed files ----------------------------------------------------------------------------------------------------

    def _copy_sealed(self, generation: PicturedGeneration, file: PicturedFile) -> bool:
        """False: the catalog does not know yet that it is sealed."""
        assert self._there is not None
        key = generation.folder + file.name
        if key + PLACE_SUFFIX not in self._there:
            note = self._packed(generation, file)
            if note is None:
                return False
            for suffix in BESIDE:
                beside = generation.directory / (file.name + suffix)
                if beside.exists():
                    self._store.put_file(key + suffix, beside)
            # The last one: with it the file is there.
            self._store.put_bytes(key + PLACE_SUFFIX, note.encode())
            self._there.add(key + PLACE_SUFFIX)
            self.files += 1
        self._drop_parts(key, self._parts.pop(key, []))
        self.copied.pop(key, None)
        return True

    def _packed(self, generation: PicturedGeneration, file: PicturedFile) -> PlaceNote | None:
        """Puts the packed file into the bucket. None: the catalog does not know yet that it is sealed."""
        try:
            catalog = Catalog.open_read_only(generation.directory / CATALOG_NAME)
        except (CatalogUnreadable, sqlite3.Error) as error:
            raise OSError(f"{generation.directory / CATALOG_NAME}: {error}") from error
        try:
            row, gtids = catalog.file(file.name), catalog.gtids_of(file.number)
        except (CatalogUnreadable, sqlite3.Error) as error:
            raise OSError(f"{generation.directory / CATALOG_NAME}: {error}") from error
        finally:
            catalog.close()
        if row is None or not row.sealed or gtids is None:
            return None
        path = generation.directory / file.name
        if not path.exists():
            return self._packed_already(path, generation.folder, file_row(row), gtids)
        stored_name = packed_name(file.name, self._encrypted)
        key = generation.folder + stored_name
        temporary = path.with_name(stored_name + _MIRRORING + TEMPORARY_SUFFIX)
        order = CopyOrder(file.name, row.end, row.digest, self._options, stays=False)
        try:
            # The parts of the file that grows wait for it: it is urgent.
            copy = self._packer.make(path, temporary, order, self._keys, self._stop.is_set, urgent=True)
            self._store.put_file(key, temporary)
        except CopyStopped:
            raise MirrorStopped from None
        except CopyFailed as error:
            raise ObjectDamaged(f"the binlog is not what was archived: {error.what}", url=str(path)) from error
        finally:
            temporary.unlink(missing_ok=True)
        packed = self._check(key, copy.stored_bytes, file.name)
        row.digest = copy.plain_digest
        place = FilePlace(Tier.OBJECT, stored_name, copy.stored_bytes, packed.key_id, copy.packed_digest, row.end)
        return PlaceNote(place, file_row(row), gtids)

    def _packed_already(
        self,
        path: Path,
        folder: str,
        row: tuple[object, ...],
        gtids: tuple[str, bytes | None, bytes | None, int],
    ) -> PlaceNote:
        """Of a file that is packed on the disk, which goes as it is, or in the bucket."""
        try:
            place = read_place(path)
        except ValueError as error:
            raise OSError(f"{path}{PLACE_SUFFIX}: {error}") from error
        if place is None:
            raise FileNotFoundError(2, "the binlog is neither on the disk nor noted as packed", str(path))
        stored = path.with_name(place.stored_name)
        if stored.exists():
            self._store.put_file(folder + stored.name, stored)
        self._check(folder + stored.name, place.stored_bytes, path.name)
        return PlaceNote(replace(place, tier=Tier.OBJECT), row, gtids)

    def _check(self, key: str, size: int | None, file: str) -> PackedFile:
        """Reads back how large the object is, and its table. Raises: ObjectDamaged; ObjectStoreError."""
        found = self._store.head(key)
        if size is not None and found.size != size:
            raise ObjectDamaged(f"it has {found.size} bytes, {size} were sent", url=self._store.url(key))
        return PackedFile.open(StoredObject(self._store, key, found.size), file, self._keys)

    @property
    def _encrypted(self) -> bool:
        return self._keys is not None and self._keys.active is not None

    # --- the file that grows ---------------------------------------------------------------------------------------------

    def _copy_part(self, generation: PicturedGeneration, file: PicturedFile) -> None:
        key = generation.folder + file.name
        parts = self._parts.setdefault(key, [])
        # What goes beyond the archive is of a binlog that was cut back after a crash.
        wrong = [part for part in parts if part.stop > file.end]
        if wrong:
            self._drop_parts(key, wrong)
            parts[:] = [part for part in parts if part.stop <= file.end]
        while not self._stop.is_set():
            covered = covered_to(parts)
            self.copied[key] = covered
            if covered >= file.end:
                return
            end = min(file.end, covered + MOST_PART_BYTES)
            start = merged_start([part for part in parts if part.start < covered], covered, end)
            made = part_key(generation.folder, file.name, start, end, encrypted=self._encrypted)
            with StoredFile.open(FileLayer(), generation.directory / file.name) as stored:
                self._store.put_bytes(made, packed_part(stored, file.name, start, end, self._keys))
            self.part_count += 1
            merged = [part for part in parts if part.start >= start]
            parts[:] = [part for part in parts if part.start < start] + [MirrorPart(file.name, start, end, made)]
            self._drop_parts(key, merged)

    def _drop_parts(self, key: str, parts: Sequence[MirrorPart]) -> None:
        """Removes what the bucket has in another form by now."""
        if parts:
            self._store.delete([part.key for part in parts])


def covered_to(parts: Sequence[MirrorPart]) -> int:
    """Up to where a binlog is there, from its first byte on."""
    covered = 0
    for part in sorted(parts, key=lambda part: part.start):
        if part.start > covered:
            break
        covered = max(covered, part.stop)
    return covered
