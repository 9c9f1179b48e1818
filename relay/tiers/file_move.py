"""The steps of a move, each durable before the next begins.

    hot -> cold      NAME.zst.tmp written, synced, read back -> NAME.zst -> NAME.place   | the loop takes it over | NAME removed
    cold -> object   uploaded with its indexes, read back -> NAME.place        | the loop takes it over | NAME.zst removed

A start after a crash finds that the old one still exists, and takes the move back (`relay.archive.recovery.placed_files`).
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from relay.archive.storage.archive_errors import ArchiveDamaged
from relay.archive.storage.files import BESIDE_SUFFIXES, StoredFile, replace_file
from relay.archive.storage.storage_location import PLACE_SUFFIX, LocationNote, StorageLocation, Tier, place_path
from relay.object_store.archive_object import STALE_S, Ownership
from relay.object_store.object_errors import MirrorRefused, ObjectDamaged, ObjectMissing, PlaceRefused, PrefixBusy
from relay.object_store.object_store import ObjectStore
from relay.object_store.sealed_object import SealedPacking, unlike_sent
from relay.object_store.stored_object import StoredObject
from relay.packed.byte_source import ByteSource
from relay.packed.packed_content import PackedContent, packed_content
from relay.packed.packed_errors import KeyMissing, KeyWrong, PackedError
from relay.packed.packed_facts import OF_NOBODY, OfArchive, is_encrypted_name
from relay.packed.packed_file import PackedFile
from relay.packed_reads.packed_files import boundary_before
from relay.packing_process.compression_settings import CompressionSettings
from relay.packing_process.packed_copy import CopyFailed, CopyOrder, CopyStopped

_MOST_NOTE_BYTES: Final = 64 << 20
_OTHER_COPY: Final = "the mirror's copy of it in the bucket is not what was archived"
_COPY_AGAIN: Final = (
    "Stop the relay and run `archive verify --cure`: it copies it again. Then find out who else writes to this bucket."
)
_UPLOADED_AGAIN: Final = "It is uploaded again with the next try."
_NOT_UPLOADED: Final = (
    "Nothing was uploaded: the disk has changed the file. Run `archive verify --deep`, then `archive repair`."
)


@dataclass(frozen=True, slots=True)
class MovedFile:
    """The facts about a file that moves. `directory`: of its generation; `row`, `gtids`: as in the catalog, for NAME.place. `of`: its
    archive and generation."""

    directory: Path
    name: str
    end: int
    digest: str
    row: tuple[Any, ...]
    gtids: tuple[str, bytes | None, bytes | None, int] | None
    of: OfArchive = OF_NOBODY

    @property
    def path(self) -> Path:
        """The path of the binlog while it is on the disk as it was received."""
        return self.directory / self.name


class FileMover:
    """Blocking: for one thread. root: the archive's directory, which keys in the bucket are relative to.

    means: its packer is closed by its creator. stop: ends a move between two frames by CopyStopped. ownership: of the place in the
    bucket; None: no other process can write there. beside_mirror: the mirror writes the notes in the bucket, as its manifest lists
    them.
    """

    def __init__(
        self,
        root: Path,
        means: CompressionSettings,
        *,
        store: ObjectStore | None = None,
        stop: Callable[[], bool] = lambda: False,
        ownership: Ownership | None = None,
        beside_mirror: bool = False,
    ) -> None:
        self._root = root
        self._layer = means.packer.layer
        self._means = means
        self._keys = means.keys
        self.packing = SealedPacking(means)
        """The packing, whose room must be given back after each move."""
        self._store = store
        self._stop = stop
        self._ownership = ownership
        self._beside_mirror = beside_mirror
        self._busy_since = 0.0
        """The time, by the monotonic clock, since which another process is in the bucket; 0: none was met."""

    def hold_place(self) -> None:
        """Ensure, before the bucket is changed, that no other process writes there, and no other archive is there.

        Raises: PlaceRefused, ObjectStoreError; CopyStopped while the place may belong to a killed process: it is free within a
        minute.
        """
        if self._ownership is None or self._store is None:
            return
        try:
            self._ownership.hold()
        except PrefixBusy as error:
            self._busy_since = self._busy_since or time.monotonic()
            if time.monotonic() - self._busy_since < 2 * STALE_S:
                raise CopyStopped from error
            raise self._refused(error, self._store) from error
        except MirrorRefused as error:
            raise self._refused(error, self._store) from error
        self._busy_since = 0.0

    @contextlib.contextmanager
    def _kept_place(self) -> Iterator[None]:
        """Keep the place during the block. Raises at the end: CopyStopped if it was another process's meanwhile, which may have
        overwritten what was written here; else as `hold_place`."""
        if self._ownership is None or self._store is None:
            yield
            return
        term = self._ownership.term
        try:
            with self._ownership.kept():
                yield
        except PrefixBusy as error:
            raise CopyStopped from error
        except MirrorRefused as error:
            raise self._refused(error, self._store) from error
        if self._ownership.term != term:
            raise CopyStopped

    @staticmethod
    def _refused(error: MirrorRefused, store: ObjectStore) -> PlaceRefused:
        return PlaceRefused(str(error), url=store.url())

    def key_of(self, path: Path) -> str:
        """Return the key of a file of the archive in the bucket."""
        return path.relative_to(self._root).as_posix()

    def pack(
        self, file: MovedFile, *, urgent: bool = False, becomes_urgent: Callable[[], bool] = lambda: False
    ) -> tuple[StorageLocation, float]:
        """Move hot -> cold, up to NAME.place; return also for how many seconds packing paused for others.

        becomes_urgent: true for a file that was not urgent: it must be restarted, by CopyStopped. Raises: CopyFailed, CopyStopped,
        OSError. Then nothing is left of it.
        """

        def stop() -> bool:
            return self._stop() or (not urgent and becomes_urgent())

        pauses_s = 0.0 if urgent else None
        order = CopyOrder(file.name, file.end, file.digest, self._means.options, pauses_s, of=file.of)
        place, copy, temporary = self.packing.pack(file.path, order, Tier.COLD, stop, urgent=urgent)
        self._layer.rename(temporary, file.path.with_name(place.stored_name))
        self._layer.sync_directory(file.directory)
        self._note(file, place)
        return place, copy.paused_s

    def upload(self, file: MovedFile, place: StorageLocation) -> StorageLocation:
        """Move cold -> object, up to NAME.place. Raises: CopyFailed, CopyStopped, OSError, ObjectStoreError.

        A whole copy that exists already, the mirror's, becomes the file: nothing is written over it.
        """
        assert self._store is not None
        self.hold_place()
        with self._kept_place():  # a large one takes longer than the place stays this process's
            copy, place = self._uploaded(file, place)
        # All of that took time: another process may be the writer there by now.
        self.hold_place()
        moved = replace(copy or place, tier=Tier.OBJECT)
        if not self._beside_mirror:
            self._store.put_bytes(self.key_of(place_path(file.path)), self._note_of(file, moved).encode())
        if self._stop():
            raise CopyStopped
        self._note(file, moved)
        return moved

    def _uploaded(self, file: MovedFile, place: StorageLocation) -> tuple[StorageLocation | None, StorageLocation]:
        """Return the whole copy that existed already, or None; and what was uploaded."""
        assert self._store is not None
        stored = file.path.with_name(place.stored_name)
        key, copy = self.key_of(stored), self._whole_copy(file, place)
        if copy is None:
            place = self._sound(file, place)
            if self._beside_mirror and self._has_note(file):
                raise CopyFailed(_OTHER_COPY, _COPY_AGAIN)
            self._store.put_file(key, stored)
        for suffix in BESIDE_SUFFIXES:
            beside = file.path.with_name(file.name + suffix)
            if suffix != PLACE_SUFFIX and self._layer.exists(beside):
                self._store.put_file(self.key_of(beside), beside)
        if copy is None and (what := unlike_sent(self._store, key, place, self._stop)) is not None:
            raise CopyFailed(f"{self._store.url(key)} {what}", _UPLOADED_AGAIN)
        return copy, place

    def drop(self, file: MovedFile, moved_to: StorageLocation) -> None:
        """Remove the old file, once all readers know the new one. Raises: OSError."""
        self._layer.unlink(file.path if moved_to.tier is Tier.COLD else file.path.with_name(moved_to.stored_name))
        self._layer.sync_directory(file.directory)

    def take_back(self, file: MovedFile, moved_to: StorageLocation, old: StorageLocation | None) -> None:
        """Take back a move that is not wanted any more, whose file is there, as `old` says: what it created is removed. Raises:
        OSError."""
        if moved_to.tier is Tier.COLD:
            self._layer.unlink(place_path(file.path))
            self._layer.unlink(file.path.with_name(moved_to.stored_name))
            self._layer.sync_directory(file.directory)
        else:
            assert old is not None
            self._note(file, old)

    # --- parts -------------------------------------------------------------------------------------------------------

    def _content(self, source: ByteSource, file: MovedFile, place: StorageLocation) -> PackedContent:
        must = is_encrypted_name(place.stored_name)
        found = packed_content(source, file.name, self._keys, self._stop, must_be_encrypted=must)
        if found is None:
            raise CopyStopped
        return found

    def _whole_copy(self, file: MovedFile, place: StorageLocation) -> StorageLocation | None:
        """Return the bucket's copy of the file under the name that it gets there, if all of it is what was archived; None: there is
        none."""
        assert self._store is not None
        try:
            # The mirror's has a line more, which binds it.
            data = self._store.get(self.key_of(place_path(file.path)), _MOST_NOTE_BYTES)
            noted = LocationNote.decode(data.partition(b"\n")[0]).place
            if noted.stored_name != place.stored_name:
                return None
            key = self.key_of(file.path.with_name(noted.stored_name))
            found = self._content(StoredObject(self._store, key), file, noted)
        except (ObjectMissing, ObjectDamaged, ValueError, PackedError):
            return None
        # An attacker with write access to the bucket can forge another binlog with the same CRC32, but not with the same SHA-256.
        is_whole = found.sha256 == self._plain_sha256(file, place) and found.stored_digest == noted.digest
        there = replace(noted, plain_bytes=file.end, key_id=found.key_id, end_digest=found.end_digest)
        return there if is_whole else None

    def _has_note(self, file: MovedFile) -> bool:
        assert self._store is not None
        try:
            self._store.head(self.key_of(place_path(file.path)))
        except ObjectMissing:
            return False
        return True

    def _plain_sha256(self, file: MovedFile, place: StorageLocation) -> str:
        """Return the SHA-256 of the binlog, by the packed file on the disk. Raises: PackedError; OSError."""
        stored = file.path.with_name(place.stored_name)
        must = is_encrypted_name(stored.name)
        with StoredFile.open(self._layer, stored) as source:
            keys, end_digest = self._keys, place.end_digest
            packed = PackedFile.open(source, file.name, keys, must_be_encrypted=must, end_digest=end_digest)
        return f"sha256:{packed.facts.sha256}"

    def _sound(self, file: MovedFile, place: StorageLocation) -> StorageLocation:
        """Return the packed file on the disk, which is read before anything of it is uploaded. Raises: CopyFailed if it is not the
        binlog."""
        stored = file.path.with_name(place.stored_name)
        reached = 0

        def begins(offset: int) -> None:
            nonlocal reached
            reached = offset

        def damaged(what: str) -> CopyFailed:
            damage = ArchiveDamaged(what, file=file.name, offset=reached, boundary=boundary_before(file.path, reached))
            return CopyFailed(what, _NOT_UPLOADED, damage=damage)

        with StoredFile.open(self._layer, stored) as source:
            try:
                must = is_encrypted_name(stored.name)
                found = packed_content(source, file.name, self._keys, self._stop, begins, must_be_encrypted=must)
            except (KeyMissing, KeyWrong) as error:
                what = f"{stored.name} cannot be read: {error.text}"
                raise CopyFailed(what, error.advice) from error
            except PackedError as error:
                raise damaged(f"{stored.name} on the disk is not what was packed: {error.text}") from error
        if found is None:
            raise CopyStopped
        if found.digest != file.digest:
            reached = 0
            digests = f"{found.digest}; {file.digest} was noted when it was sealed"
            raise damaged(f"the binlog in {stored.name} on the disk has the digest {digests}")
        return replace(
            place,
            stored_bytes=found.stored_bytes,
            digest=found.stored_digest,
            key_id=found.key_id,
            plain_bytes=found.plain_bytes,
            end_digest=found.end_digest,
        )

    def _note_of(self, file: MovedFile, place: StorageLocation) -> LocationNote:
        return LocationNote(place, file.row, file.gtids)

    def _note(self, file: MovedFile, place: StorageLocation) -> None:
        replace_file(self._layer, place_path(file.path), self._note_of(file, place).encode())
