"""The copy of a sealed binlog to the bucket: it is compared with what was archived before it is sent, and read back after that."""

import errno
import sqlite3
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from relay.archive.catalog.catalog import Catalog, CatalogUnreadable
from relay.archive.catalog.catalog_rows import file_of, file_row
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.files import CATALOG_NAME, StoredFile
from relay.archive.storage.storage_location import PLACE_SUFFIX, LocationNote, StorageLocation, Tier, read_place
from relay.mirror.mirror_picture import PicturedGeneration
from relay.object_store.object_errors import ObjectDamaged, ObjectMissing
from relay.object_store.object_store import ObjectStore
from relay.object_store.sealed_object import SealedPacking, sha256_of, unlike_sent
from relay.packed.packed_facts import OfArchive
from relay.packing_process.compression_settings import CompressionSettings
from relay.packing_process.packed_copy import CopyFailed, CopyOrder

GIVES_WAY_S: Final = 10.0
"""The longest pause of packing for receiving and serving, for each binlog: those after it wait for it."""
_MIRRORING: Final = ".mirror"
_REPAIR: Final = "Run `binlog-relay archive repair`: it fetches the binlog again. It is copied when it is sound."


_Gtids = tuple[str, bytes | None, bytes | None, int]


def _not_as_archived(what: str) -> CopyFailed:
    """Return the error for a file that is not what was archived."""
    return CopyFailed(what, _REPAIR)


class SealedCopy:
    """The copier. Blocking, for one thread. `stop` ends it by CopyStopped, also between two frames. `archive` is the uuid of packed
    files.

    Raises: CopyFailed (nothing of it was sent); ObjectStoreError, ObjectDamaged (what was sent is read back as other bytes);
    OSError; CopyStopped.
    """

    def __init__(
        self,
        store: ObjectStore,
        means: CompressionSettings,
        stop: threading.Event,
        archive: str,
    ) -> None:
        self._store = store
        self._archive = archive
        self._means = means
        self._stop = stop
        self._layer = means.packer.layer
        self._packing = SealedPacking(means, _MIRRORING)

    def put(self, generation: PicturedGeneration, name: str) -> LocationNote | None:
        """Put the packed binlog into the bucket. Return None if the catalog does not know yet that it is sealed."""
        row, gtids = self._row(generation, name)
        if row is None or not row.sealed or gtids is None:
            return None
        path = generation.directory / name
        of = OfArchive(self._archive, generation.number)
        place = self._packed(path, generation.folder, row, of) or self._packed_already(path, generation.folder)
        return LocationNote(place, file_row(row), gtids)

    def differs(
        self, generation: PicturedGeneration, name: str, content: bytes, sizes: Mapping[str, int]
    ) -> str | None:
        """Return how the bucket's copy of a sealed binlog differs from the archived one, as far as its note and its size tell; None if
        it does not. `content` is that of the note. `sizes` are those of the bucket's objects for it, by key."""
        row, _gtids = self._row(generation, name)
        try:
            note = LocationNote.decode(content)
            noted = file_of(note.file_row)
        except (ValueError, TypeError) as error:
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
        """Return the catalog's row. Raises: OSError."""
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

    def _packed(self, path: Path, folder: str, row: ArchivedFile, of: OfArchive) -> StorageLocation | None:
        """Return the place of the packed file; None if it is not on the disk as it was received, or no longer."""
        try:
            size = self._layer.size_of(path)
        except FileNotFoundError:
            return None
        if size < row.end:
            raise _not_as_archived(f"it has {size} bytes, {row.end} were archived")
        order = CopyOrder(row.name, row.end, row.digest, self._means.options, GIVES_WAY_S, of=of)
        try:
            place, copy, temporary = self._packing.pack(path, order, Tier.OBJECT, self._stop.is_set)
        except CopyFailed as error:
            if error.of_binlog:
                raise _not_as_archived(error.what) from error
            raise OSError(errno.EIO, f"{order.file}: {error.what}") from error
        except FileNotFoundError:
            if self._layer.exists(path):
                raise
            return None
        key = folder + place.stored_name
        try:
            self._store.put_file(key, temporary)
        finally:
            self._layer.unlink(temporary)
            self._packing.give_room_back()
        self._read_back(key, place)
        row.digest = copy.plain_digest
        return place

    # --- packed already ------------------------------------------------------------------------------------------------

    def _packed_already(self, path: Path, folder: str) -> StorageLocation:
        """Return the place of a file that is packed on the disk, from where it is sent unchanged, or in the bucket."""
        gone = ""
        for _ in range(2):  # it may leave the disk for the bucket meanwhile
            try:
                place = read_place(path)
            except ValueError as error:
                raise _not_as_archived(f"{path.name}{PLACE_SUFFIX} cannot be read: {error}") from error
            if place is None:
                raise _not_as_archived("it is neither on the disk nor noted as packed")
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
                raise _not_as_archived(f"{stored.name} is not what was packed: its SHA-256 is another")
            self._store.put_file(key, stored)
            self._read_back(key, place)
            return replace(place, tier=Tier.OBJECT)
        raise _not_as_archived(f"{gone} is not there")

    def _digest(self, path: Path) -> str:
        def read(start: int, count: int) -> bytes:
            try:
                return stored.read(start, count)
            except OSError as error:  # a fault of this file, not of the copying
                what = f"the disk does not give its bytes behind {start}: {error.strerror or error}"
                raise _not_as_archived(what) from error

        with StoredFile.open(self._layer, path) as stored:
            return sha256_of(stored.size, read, self._stop.is_set)

    def _look(self, key: str, place: StorageLocation) -> None:
        """Look up a file that is in the bucket alone, where it was read back when it was moved."""
        try:
            size = self._store.head(key).size
        except ObjectMissing:
            raise _not_as_archived(f"it is only in the bucket, and {self._store.url(key)} is not there") from None
        if size != place.stored_bytes:
            url = self._store.url(key)
            raise _not_as_archived(
                f"it is only in the bucket, and {url} has {size} bytes; {place.stored_bytes} were stored"
            )

    # --- in the bucket -------------------------------------------------------------------------------------------------

    def _read_back(self, key: str, place: StorageLocation) -> None:
        what = unlike_sent(self._store, key, place, self._stop.is_set)
        if what is not None:
            raise ObjectDamaged(f"it {what}", url=self._store.url(key), advice="It is sent again.")
