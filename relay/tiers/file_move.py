"""The steps of a move, each durable before the next begins.

    hot -> cold      NAME.zst.tmp written, synced, read back -> NAME.zst -> NAME.place   | the loop takes it over | NAME removed
    cold -> object   uploaded with what stands beside it, read back -> NAME.place        | the loop takes it over | NAME.zst removed

A start after a crash finds the old one still there, and takes the move back (`relay.archive.recovery.placed_files`).
"""

import contextlib
import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from relay.archive.storage.file_place import PLACE_SUFFIX, FilePlace, PlaceNote, Tier, place_path
from relay.archive.storage.files import BESIDE_SUFFIXES, TEMPORARY_SUFFIX, replace_file
from relay.object_store.archive_object import STALE_S, Ownership
from relay.object_store.object_errors import MirrorRefused, PrefixBusy, StoreRefused
from relay.object_store.object_store import ObjectStore
from relay.packed.key_ring import KeyRing
from relay.packed.packed_facts import packed_name
from relay.packed.packing import PackOptions
from relay.packing_process.packed_copy import CopyFailed, CopyOrder, CopyStopped
from relay.packing_process.packer import Packer
from relay.tiers.move_errors import MoveFailed, MoveStopped

_PIECE: Final = 8 << 20
_UPLOADED_AGAIN: Final = "It is uploaded again with the next try."


@dataclass(frozen=True, slots=True)
class MovedFile:
    """What is to be known of a file that moves. `directory`: of its generation; `row`, `gtids`: as in the catalog, for NAME.place."""

    directory: Path
    name: str
    end: int
    digest: str
    row: tuple[Any, ...]
    gtids: tuple[str, bytes | None, bytes | None, int] | None

    @property
    def path(self) -> Path:
        """Of the binlog while it is on the disk as it was received."""
        return self.directory / self.name


class FileMover:
    """Blocking: for one thread. root: the archive's directory, which keys in the bucket are relative to.

    packer: is closed by whoever made it. keys: whose active key encrypts what is packed. stop: ends a move between two frames by
    MoveStopped. ownership: of the place in the bucket; None: nobody else can write there.
    """

    def __init__(
        self,
        root: Path,
        packer: Packer,
        options: PackOptions,
        *,
        keys: KeyRing | None = None,
        store: ObjectStore | None = None,
        stop: Callable[[], bool] = lambda: False,
        ownership: Ownership | None = None,
    ) -> None:
        self._root = root
        self._layer = packer.layer
        self._packer = packer
        self._options = options
        self._keys = keys
        self._store = store
        self._stop = stop
        self._ownership = ownership
        self._busy_since = 0.0
        """By the monotonic clock; 0: nobody else was met in the bucket."""

    def hold_place(self) -> None:
        """Before the bucket is changed: nobody else writes there, and no other archive is there.

        Raises: StoreRefused, ObjectStoreError; MoveStopped while one may be there that was killed: it is free within a minute.
        """
        if self._ownership is None or self._store is None:
            return
        try:
            self._ownership.hold()
        except PrefixBusy as error:
            self._busy_since = self._busy_since or time.monotonic()
            if time.monotonic() - self._busy_since < 2 * STALE_S:
                raise MoveStopped from error
            raise self._refused(error, self._store) from error
        except MirrorRefused as error:
            raise self._refused(error, self._store) from error
        self._busy_since = 0.0

    @staticmethod
    def _refused(error: MirrorRefused, store: ObjectStore) -> StoreRefused:
        return StoreRefused(str(error).rstrip("."), url=store.url(), advice="")

    def key_of(self, path: Path) -> str:
        """What a file of the archive is called in the bucket."""
        return path.relative_to(self._root).as_posix()

    def pack(
        self, file: MovedFile, *, urgent: bool = False, becomes_urgent: Callable[[], bool] = lambda: False
    ) -> tuple[FilePlace, float]:
        """hot -> cold, up to NAME.place; and for how many seconds packing paused for others.

        becomes_urgent: true of a file that was not: it has to be begun anew, by MoveStopped.
        Raises: MoveFailed, MoveStopped, OSError. Then nothing is left of it.
        """

        def stop() -> bool:
            return self._stop() or (not urgent and becomes_urgent())

        encrypted = self._keys is not None and self._keys.active is not None
        stored = file.path.with_name(packed_name(file.name, encrypted))
        temporary = stored.with_name(stored.name + TEMPORARY_SUFFIX)
        order = CopyOrder(file.name, file.end, file.digest, self._options)
        try:
            copy = self._packer.make(file.path, temporary, order, self._keys, stop, urgent=urgent)
        except BaseException as error:
            with contextlib.suppress(OSError):
                self._layer.unlink(temporary)
            if isinstance(error, CopyFailed):
                raise MoveFailed(error.what, file=file.name, advice=error.advice) from error
            if isinstance(error, CopyStopped):
                raise MoveStopped from None
            raise
        key_id = self._keys.active if self._keys is not None else None
        place = FilePlace(Tier.COLD, stored.name, copy.stored_bytes, key_id, copy.packed_digest, file.end)
        self._layer.rename(temporary, stored)
        self._layer.sync_directory(file.directory)
        self._note(file, place)
        return place, copy.paused_s

    def upload(self, file: MovedFile, place: FilePlace) -> FilePlace:
        """cold -> object, up to NAME.place. Raises: MoveFailed, MoveStopped, OSError, ObjectStoreError."""
        assert self._store is not None
        self.hold_place()
        stored = file.path.with_name(place.stored_name)
        self._store.put_file(self.key_of(stored), stored)
        for suffix in BESIDE_SUFFIXES:
            beside = file.path.with_name(file.name + suffix)
            if suffix != PLACE_SUFFIX and self._layer.exists(beside):
                self._store.put_file(self.key_of(beside), beside)
        self._compare_object(file, place, self.key_of(stored))
        moved = replace(place, tier=Tier.OBJECT)
        self._store.put_bytes(self.key_of(place_path(file.path)), self._note_of(file, moved).encode())
        if self._stop():
            raise MoveStopped
        self._note(file, moved)
        return moved

    def drop(self, file: MovedFile, moved_to: FilePlace) -> None:
        """Removes the old one, once everybody knows the new one. Raises: OSError."""
        self._layer.unlink(file.path if moved_to.tier is Tier.COLD else file.path.with_name(moved_to.stored_name))
        self._layer.sync_directory(file.directory)

    def take_back(self, file: MovedFile, moved_to: FilePlace) -> None:
        """The move is not wanted any more, and its file is there: what it made goes. Raises: OSError."""
        if moved_to.tier is Tier.COLD:
            self._layer.unlink(place_path(file.path))
            self._layer.unlink(file.path.with_name(moved_to.stored_name))
            self._layer.sync_directory(file.directory)
        else:
            self._note(file, replace(moved_to, tier=Tier.COLD))

    # --- parts -------------------------------------------------------------------------------------------------------

    def _compare_object(self, file: MovedFile, place: FilePlace, key: str) -> None:
        """Reads all of it once more, as replicas will get it."""
        assert self._store is not None
        sha = hashlib.sha256()
        size = self._store.head(key).size
        if size != place.stored_bytes:
            what = f"{self._store.url(key)} has {size} bytes after its upload, not {place.stored_bytes}"
            raise MoveFailed(what, file=file.name, advice=_UPLOADED_AGAIN)
        for start in range(0, size, _PIECE):
            if self._stop():
                raise MoveStopped
            sha.update(self._store.get_range(key, start, min(start + _PIECE, size)))
        if f"sha256:{sha.hexdigest()}" != place.digest:
            what = f"{self._store.url(key)} is read back as other bytes than were uploaded"
            raise MoveFailed(what, file=file.name, advice=_UPLOADED_AGAIN)

    def _note_of(self, file: MovedFile, place: FilePlace) -> PlaceNote:
        return PlaceNote(place, file.row, file.gtids)

    def _note(self, file: MovedFile, place: FilePlace) -> None:
        replace_file(self._layer, place_path(file.path), self._note_of(file, place).encode())
