"""The check whether packed binlogs are what was archived, on the disk and in the bucket, and for leftovers of a move or a purge.

It accompanies `archive verify`, also while the relay runs: it then reports nothing that is in progress.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from relay.archive.catalog.catalog import CatalogUnreadable
from relay.archive.storage.archive_finding import ArchiveFinding
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.files import BESIDE_SUFFIXES, FileLayer, StoredFile
from relay.archive.storage.storage_location import PLACE_SUFFIX, StorageLocation, Tier, read_note
from relay.archive_inspection.listing import list_archive
from relay.object_store.object_errors import ObjectMissing, ObjectStoreError
from relay.object_store.object_store import ObjectStore
from relay.object_store.stored_object import StoredObject
from relay.packed.byte_source import ByteSource
from relay.packed.key_ring import KeyRing
from relay.packed.packed_errors import KeyMissing, KeyWrong, PackedError
from relay.packed.packed_facts import PACKED_SUFFIXES, is_encrypted_name, plain_name
from relay.packed.packed_file import PackedFile
from relay.packed_reads.packed_check import check_stored
from relay.tiers.missing_objects import gone_names, remove_gone

_SUFFIXES: Final = (*reversed(PACKED_SUFFIXES), *BESIDE_SUFFIXES)
_NO_BUCKET: Final = "it is in a bucket, and relay.toml has no [archive.bucket]"
_LOST: Final = (
    "Fetch it from another relay or a backup, or put the binlog itself in its place and run `archive rebuild`."
)
_UNPLACED: Final = "Restart the relay: the catalog still knows the place."
Progress = Callable[[str, int], None]


class TierCheck:
    """The check of one generation. Blocking. root: the archive's directory; store: None: no bucket is contacted; keys: None:
    encrypted files are compared as they are stored.

    alone: no relay has the archive open: leftovers of a move or a purge are looked for too. cure: and removed.
    """

    def __init__(
        self,
        root: Path,
        directory: Path,
        *,
        store: ObjectStore | None,
        keys: KeyRing | None,
        deep: bool = False,
        alone: bool = False,
        cure: bool = False,
        layer: FileLayer | None = None,
    ) -> None:
        self._root = root
        self._directory = directory
        self._store = store
        self._keys = keys
        self._deep = deep
        self._alone = alone
        self._cure = cure
        self._layer = layer or FileLayer()

    def run(self, on_progress: Progress | None = None) -> Iterator[ArchiveFinding]:
        """Yield what is wrong; nothing if the catalog cannot be read, which is a finding of its own. Raises: OSError."""
        names = self._layer.names(self._directory)
        try:
            files = list_archive(self._directory)
        except (CatalogUnreadable, sqlite3.DatabaseError):
            return
        for file in files:
            if file.place is not None:
                yield from self._check(file, file.place)
                if on_progress is not None:
                    on_progress(file.name, file.end)
        if not self._alone:
            return
        yield from self._left_on_disk(files, names)
        yield from self._gone()

    # --- packed files ------------------------------------------------------------------------------------------------

    def _check(self, file: ArchivedFile, place: StorageLocation) -> Iterator[ArchiveFinding]:
        noted: StorageLocation | None = place
        try:
            note = read_note(self._directory / file.name)
            noted = None if note is None else note.place
        except (OSError, ValueError) as error:
            yield ArchiveFinding(file.name + PLACE_SUFFIX, None, f"cannot be read: {error}. {_UNPLACED}")
        else:
            if noted is None:
                yield ArchiveFinding(file.name + PLACE_SUFFIX, None, f"is missing. {_UNPLACED}")
            elif noted != place and self._alone:
                yield ArchiveFinding(
                    file.name + PLACE_SUFFIX, None, "says another place than the catalog; start the relay"
                )
        try:
            source = self._source(place)
            if isinstance(source, str):
                yield ArchiveFinding(file.name, None, source)
                return
            if source.size != place.stored_bytes:
                what = f"{self._where(place)} has {source.size} bytes, {place.stored_bytes} were stored"
                yield ArchiveFinding(file.name, None, what, 0, _LOST)
            elif self._deep:
                yield from self._check_bytes(file, place, source)
            else:
                yield from self._check_end(file, place, source)
        except FileNotFoundError:
            if noted == place:  # else it was moved a moment ago
                yield ArchiveFinding(file.name, None, f"{self._where(place)} is not there", 0, _LOST)
        except ObjectMissing as error:
            yield ArchiveFinding(file.name, None, error.text, 0, _LOST)
        except ObjectStoreError as error:
            yield ArchiveFinding(file.name, None, f"cannot be looked at: {error}")

    def _source(self, place: StorageLocation) -> ByteSource | str:
        if place.tier is Tier.COLD:
            return StoredFile.open(self._layer, self._directory / place.stored_name)
        if self._store is None:
            return _NO_BUCKET
        key = self._key(place.stored_name)
        return StoredObject(self._store, key, self._store.head(key).size)

    def _check_bytes(self, file: ArchivedFile, place: StorageLocation, source: ByteSource) -> Iterator[ArchiveFinding]:
        """Check all stored bytes, and all plain ones if their key is available."""
        where = self._where(place)
        for finding in check_stored(source, file, place, self._keys, lambda offset: 0, where=where):
            yield finding if finding.boundary is None else replace(finding, advice=_LOST)

    def _check_end(self, file: ArchivedFile, place: StorageLocation, source: ByteSource) -> Iterator[ArchiveFinding]:
        """Check what follows the frames, which distinguishes another packed file of the same size."""
        must, end_digest = is_encrypted_name(place.stored_name), place.end_digest
        try:
            PackedFile.open(source, file.name, self._keys, must_be_encrypted=must, end_digest=end_digest)
        except (KeyMissing, KeyWrong):
            pass  # `deep` compares it as it is stored
        except PackedError as error:
            yield ArchiveFinding(file.name, None, f"{self._where(place)}: {error.text}", 0, _LOST)

    def _key(self, name: str) -> str:
        return (self._directory / name).relative_to(self._root).as_posix()

    def _where(self, place: StorageLocation) -> str:
        if place.tier is Tier.OBJECT and self._store is not None:
            return self._store.url(self._key(place.stored_name))
        return place.stored_name

    # --- leftovers ---------------------------------------------------------------------------------------------------

    def _left_on_disk(self, files: Sequence[ArchivedFile], names: Sequence[str]) -> Iterator[ArchiveFinding]:
        cold = {file.place.stored_name for file in files if file.place is not None and file.place.tier is Tier.COLD}
        held = {file.name for file in files}
        for name in sorted(names):
            binlog = plain_name(name)
            if binlog in held and name not in cold:
                yield self._left(name, "is left of a move that did not end", partial(self._remove, name))

    def _gone(self) -> Iterator[ArchiveFinding]:
        def key_of(path: Path) -> str:
            return path.relative_to(self._root).as_posix()

        for name in gone_names(self._layer, self._directory):
            what = "was purged, and the bucket may still have it"
            yield self._left(name, what, partial(remove_gone, self._layer, self._directory, key_of, self._store, name))

    def _left(self, name: str, what: str, remove: Callable[[], object]) -> ArchiveFinding:
        if not self._cure:
            return ArchiveFinding(name, None, f"{what}. `archive verify --cure` removes it")
        try:
            remove()
        except (OSError, ObjectStoreError) as error:
            return ArchiveFinding(name, None, f"{what}, and cannot be removed: {error}")
        return ArchiveFinding(name, None, f"{what}; it was removed")

    def _remove(self, name: str) -> None:
        self._layer.unlink(self._directory / name)
        self._layer.sync_directory(self._directory)
