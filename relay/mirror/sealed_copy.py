"""A sealed binlog goes to the bucket: compared with what was archived before it is sent, and read back behind that."""

import hashlib
import os
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from relay.archive.catalog.catalog import Catalog, CatalogUnreadable
from relay.archive.catalog.catalog_rows import file_row
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.boundary_index import AT_BOUNDARY, RECORD, index_path
from relay.archive.storage.file_place import PLACE_SUFFIX, FilePlace, PlaceNote, Tier, read_place
from relay.archive.storage.files import CATALOG_NAME, TEMPORARY_SUFFIX, FileLayer, StoredFile
from relay.mirror.mirror_picture import PicturedGeneration
from relay.object_store.object_errors import ObjectDamaged, ObjectMissing
from relay.object_store.object_store import ObjectStore
from relay.packed.byte_source import ByteSource
from relay.packed.frame_cuts import frame_cuts
from relay.packed.key_ring import KeyRing
from relay.packed.packed_facts import packed_name
from relay.packed.packing import PackOptions, pack

_MIRRORING: Final = ".mirror"
_PIECE: Final = 8 << 20
_REPAIR: Final = "Run `binlog-relay archive repair`: it fetches the binlog again. It is copied when it is sound."
_Gtids = tuple[str, bytes | None, bytes | None, int]


class MirrorStopped(Exception):
    """The relay ends: what was begun is begun anew at the next start."""


class NotAsArchived(Exception):
    """What is to be copied is not what was archived. `what`: half a sentence; `advice`: the next step."""

    def __init__(self, what: str, advice: str = _REPAIR) -> None:
        self.what = what
        self.advice = advice
        super().__init__(what)


class SealedCopy:
    """Blocking, for one thread. keys: whose active key encrypts what is packed.

    Raises: NotAsArchived (nothing of it was sent); ObjectStoreError, ObjectDamaged (what was sent is read back as other bytes);
    OSError; MirrorStopped.
    """

    def __init__(self, store: ObjectStore, keys: KeyRing | None, options: PackOptions, stop: threading.Event) -> None:
        self._store = store
        self._keys = keys
        self._options = options
        self._stop = stop
        self._layer = FileLayer()

    def put(self, generation: PicturedGeneration, name: str) -> PlaceNote | None:
        """Puts the packed binlog into the bucket. None: the catalog does not know yet that it is sealed."""
        catalog_path = generation.directory / CATALOG_NAME
        try:
            catalog = Catalog.open_read_only(catalog_path)
            try:
                row = catalog.file(name)
                gtids = None if row is None else catalog.gtids_of(row.number)
            finally:
                catalog.close()
        except (CatalogUnreadable, sqlite3.Error) as error:
            raise OSError(f"{catalog_path}: {error}") from error
        if row is None or not row.sealed or gtids is None:
            return None
        path = generation.directory / name
        try:
            stored = StoredFile.open(self._layer, path)
        except FileNotFoundError:
            pass
        else:
            with stored:
                return self._packed(path, stored, generation.folder, row, gtids)
        return PlaceNote(self._packed_already(path, generation.folder), file_row(row), gtids)

    # --- as it was received --------------------------------------------------------------------------------------------

    def _packed(self, path: Path, stored: StoredFile, folder: str, row: ArchivedFile, gtids: _Gtids) -> PlaceNote:
        encrypted = self._keys is not None and self._keys.active is not None
        stored_name = packed_name(row.name, encrypted)
        temporary = path.with_name(stored_name + _MIRRORING + TEMPORARY_SUFFIX)
        sha, key = hashlib.sha256(), folder + stored_name
        borrowed = None if self._options.room is None else self._options.room.begin(row.end)
        try:
            with os.fdopen(self._layer.create(temporary), "wb") as sink:
                cuts = frame_cuts(_places(self._layer, path), row.end, self._options.frame_bytes)

                def take(data: bytes) -> None:
                    if borrowed is not None:
                        borrowed.wants(len(data))
                    sha.update(data)
                    sink.write(data)

                source = _Checked(stored)
                try:
                    facts = pack(source, take, row.name, cuts, self._options, keys=self._keys, stop=self._stop.is_set)
                except EOFError as error:
                    raise NotAsArchived(f"it has {stored.size} bytes, {row.end} were archived") from error
            if facts is None:
                raise MirrorStopped
            if row.digest is not None and row.digest != facts.digest:
                raise NotAsArchived(f"its digest is {facts.digest}; {row.digest} was noted when it was sealed")
            if borrowed is not None:
                borrowed.is_packed()
            size = temporary.stat().st_size
            self._store.put_file(key, temporary)
        finally:
            temporary.unlink(missing_ok=True)
            if borrowed is not None:
                borrowed.give_back()
        digest = f"sha256:{sha.hexdigest()}"
        self._read_back(key, size, digest)
        row.digest = facts.digest
        key_id = self._keys.active if self._keys is not None else None
        return PlaceNote(FilePlace(Tier.OBJECT, stored_name, size, key_id, digest, row.end), file_row(row), gtids)

    # --- packed already ------------------------------------------------------------------------------------------------

    def _packed_already(self, path: Path, folder: str) -> FilePlace:
        """On the disk, from where it goes as it is; or in the bucket."""
        gone = ""
        for _ in range(2):  # it may leave the disk for the bucket meanwhile
            try:
                place = read_place(path)
            except ValueError as error:
                raise NotAsArchived(f"{path.name}{PLACE_SUFFIX} cannot be read: {error}") from error
            if place is None:
                raise NotAsArchived("it is neither on the disk nor noted as packed")
            key = folder + place.stored_name
            if place.tier is Tier.OBJECT:
                self._look(key, place)
                return place
            stored = path.with_name(place.stored_name)
            try:
                digest = self._digest(stored)
            except FileNotFoundError:
                gone = stored.name
                continue
            if digest != place.digest:
                raise NotAsArchived(f"{stored.name} is not what was packed: its SHA-256 is another")
            self._store.put_file(key, stored)
            self._read_back(key, place.stored_bytes, place.digest)
            return replace(place, tier=Tier.OBJECT)
        raise NotAsArchived(f"{gone} is not there")

    def _digest(self, path: Path) -> str:
        with StoredFile.open(self._layer, path) as stored:
            source = _Checked(stored)
            return self._sha(stored.size, source.read)

    def _look(self, key: str, place: FilePlace) -> None:
        """It is in the bucket alone, where it was read back when it was moved."""
        try:
            size = self._store.head(key).size
        except ObjectMissing:
            raise NotAsArchived(f"it is only in the bucket, and {self._store.url(key)} is not there") from None
        if size != place.stored_bytes:
            url = self._store.url(key)
            raise NotAsArchived(
                f"it is only in the bucket, and {url} has {size} bytes; {place.stored_bytes} were stored"
            )

    # --- in the bucket -------------------------------------------------------------------------------------------------

    def _read_back(self, key: str, size: int, digest: str) -> None:
        found = self._store.head(key).size
        url = self._store.url(key)
        if found != size:
            raise ObjectDamaged(f"it has {found} bytes, {size} were sent", url=url)
        read = self._sha(size, lambda start, count: self._store.get_range(key, start, min(start + count, size)))
        if read != digest:
            raise ObjectDamaged("it is read back as other bytes than were sent", url=url, advice="It is sent again.")

    def _sha(self, size: int, read: Callable[[int, int], bytes]) -> str:
        sha = hashlib.sha256()
        for start in range(0, size, _PIECE):
            if self._stop.is_set():
                raise MirrorStopped
            sha.update(read(start, _PIECE))
        return f"sha256:{sha.hexdigest()}"


class _Checked:
    """A file whose bytes the disk may refuse: that is a fault of this file, not of the copying."""

    def __init__(self, source: ByteSource) -> None:
        self._source = source

    @property
    def size(self) -> int:
        return self._source.size

    def read(self, offset: int, count: int) -> bytes:
        try:
            return self._source.read(offset, count)
        except OSError as error:
            raise NotAsArchived(
                f"the disk does not give its bytes behind {offset}: {error.strerror or error}"
            ) from error


def _places(layer: FileLayer, path: Path) -> list[tuple[int, bool]]:
    """The records of NAME.idx; none where it cannot be read."""
    try:
        with StoredFile.open(layer, index_path(path)) as index:
            data = index.read_all()
    except OSError:
        return []
    whole = data[: len(data) // RECORD.size * RECORD.size]
    return [(offset, bool(flags & AT_BOUNDARY)) for offset, _start, _time, flags in RECORD.iter_unpack(whole)]
