"""A sealed binlog goes to the bucket: compared with what was archived before it is sent, and read back behind that."""

import contextlib
import errno
import hashlib
import sqlite3
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from relay.archive.catalog.catalog import Catalog, CatalogUnreadable
from relay.archive.catalog.catalog_rows import file_of, file_row
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.file_place import PLACE_SUFFIX, FilePlace, PlaceNote, Tier, read_place
from relay.archive.storage.files import CATALOG_NAME, TEMPORARY_SUFFIX, StoredFile
from relay.mirror.mirror_picture import PicturedGeneration
from relay.object_store.object_errors import ObjectDamaged, ObjectMissing
from relay.object_store.object_store import ObjectStore
from relay.packed.packed_facts import packed_name
from relay.packed.packing_room import BorrowedRoom
from relay.packing_process.packed_copy import CopyFailed, CopyOrder, CopyStopped, PackedCopy
from relay.packing_process.packing_means import PackingMeans

GIVES_WAY_S: Final = 10.0
"""So long packing pauses for receiving and serving, of each binlog: what is behind it is not in the bucket before it is."""
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
    """Blocking, for one thread. stop: ends it by MirrorStopped, also between two frames.

    Raises: NotAsArchived (nothing of it was sent); ObjectStoreError, ObjectDamaged (what was sent is read back as other bytes);
    OSError; MirrorStopped.
    """

    def __init__(
        self,
        store: ObjectStore,
        means: PackingMeans,
        stop: threading.Event,
        may_wait: Callable[[], bool] = lambda: True,
    ) -> None:
        self._store = store
        self._means = means
        self._stop = stop
        self._layer = means.packer.layer

    def put(self, generation: PicturedGeneration, name: str) -> PlaceNote | None:
        """Puts the packed binlog into the bucket. None: the catalog does not know yet that it is sealed."""
        row, gtids = self._row(generation, name)
        if row is None or not row.sealed or gtids is None:
            return None
        path = generation.directory / name
        place = self._packed(path, generation.folder, row) or self._packed_already(path, generation.folder)
        return PlaceNote(place, file_row(row), gtids)

    def differs(self, generation: PicturedGeneration, name: str, sizes: Mapping[str, int]) -> str | None:
        """How the bucket's copy of a sealed binlog is another one than is archived, as far as its note and its size tell; None: it
        is not. sizes: by key, of what the bucket has for it. It costs one small object."""
        key = generation.folder + name
        row, _gtids = self._row(generation, name)
        try:
            note = PlaceNote.decode(self._store.get(key + PLACE_SUFFIX))
            noted = file_of(note.file_row)
        except (ValueError, TypeError, ObjectMissing) as error:
            return f"its note cannot be read: {error}"
        size = sizes.get(generation.folder + note.place.stored_name)
        if size != note.place.stored_bytes:
            has = "is not there" if size is None else f"has {size} bytes"
            return f"{note.place.stored_name} {has}; {note.place.stored_bytes} bytes were stored"
        if row is None or not row.sealed:
            return None  # its row comes into the catalog within moments
        if note.place.plain_bytes != row.end:
            return f"it is of {note.place.plain_bytes} bytes of the binlog, which has {row.end}"
        if None not in (row.digest, noted.digest) and row.digest != noted.digest:
            return f"it is of a binlog with the digest {noted.digest}; {row.digest} is archived"
        return None

    def _row(self, generation: PicturedGeneration, name: str) -> tuple[ArchivedFile | None, _Gtids | None]:
        """What the catalog says. Raises: OSError."""
        catalog_path = generation.directory / CATALOG_NAME
        try:
            catalog = Catalog.open_read_only(catalog_path)
            try:
                row = catalog.file(name)
                return row, None if row is None else catalog.gtids_of(row.number)
            finally:
                catalog.close()
        except (CatalogUnreadable, sqlite3.Error) as error:
            raise OSError(f"{catalog_path}: {error}") from error

    # --- as it was received --------------------------------------------------------------------------------------------

    def _packed(self, path: Path, folder: str, row: ArchivedFile) -> FilePlace | None:
        """None: it is not on the disk as it was received, or not any more."""
        stored_name = packed_name(row.name, self._means.encrypts)
        temporary = path.with_name(stored_name + _MIRRORING + TEMPORARY_SUFFIX)
        key, room = folder + stored_name, self._means.options.room
        try:
            size = self._layer.size_of(path)
        except FileNotFoundError:
            return None
        if size < row.end:
            raise NotAsArchived(f"it has {size} bytes, {row.end} were archived")
        borrowed = None if room is None else room.begin(row.end)
        try:
            copy = self._copy(path, temporary, row, borrowed)
            if copy is None:
                return None
            if borrowed is not None:
                borrowed.holds(copy.stored_bytes)
                borrowed.is_packed()
            self._store.put_file(key, temporary)
        finally:
            self._layer.unlink(temporary)
            if borrowed is not None:
                borrowed.give_back()
        self._read_back(key, copy.stored_bytes, copy.packed_digest)
        row.digest = copy.plain_digest
        key_id = None if self._means.keys is None else self._means.keys.active
        return FilePlace(Tier.OBJECT, stored_name, copy.stored_bytes, key_id, copy.packed_digest, row.end)

    def _copy(self, path: Path, temporary: Path, row: ArchivedFile, borrowed: BorrowedRoom | None) -> PackedCopy | None:
        """Packs it; None: the binlog is not there any more."""
        order = CopyOrder(row.name, row.end, row.digest, self._means.options, GIVES_WAY_S)

        def stop() -> bool:
            if borrowed is not None:
                with contextlib.suppress(FileNotFoundError):
                    borrowed.holds(self._layer.size_of(temporary))
            return self._stop.is_set()

        try:
            self._means.begin()
            return self._means.packer.make(path, temporary, order, self._means.keys, stop, urgent=True)
        except CopyStopped:
            raise MirrorStopped from None
        except CopyFailed as error:
            if error.of_binlog:
                raise NotAsArchived(error.what) from error
            raise OSError(errno.EIO, f"{row.name}: {error.what}") from error
        except FileNotFoundError:
            if self._layer.exists(path):
                raise
            return None

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
        def read(start: int, count: int) -> bytes:
            try:
                return stored.read(start, count)
            except OSError as error:  # a fault of this file, not of the copying
                what = f"the disk does not give its bytes behind {start}: {error.strerror or error}"
                raise NotAsArchived(what) from error

        with StoredFile.open(self._layer, path) as stored:
            return self._sha(stored.size, read)

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
