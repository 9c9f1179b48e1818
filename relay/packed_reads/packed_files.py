"""Opens packed binlogs by the paths that they had as plain files: on the disk next to them, or in the bucket."""

import contextlib
import os
import threading
from collections import OrderedDict
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from relay.archive.storage.archive_errors import ArchiveUnavailable
from relay.archive.storage.boundary_index import BoundaryIndex, index_path
from relay.archive.storage.files import FileLayer, StoredFile
from relay.archive.storage.storage_location import StorageLocation, Tier, place_path, read_place
from relay.object_store.object_store import ObjectStore
from relay.object_store.stored_object import StoredObject
from relay.packed.key_ring import KeyRing
from relay.packed.packed_facts import PACKED_SUFFIXES, is_encrypted_name
from relay.packed.packed_file import PackedFile
from relay.packed_reads.frame_counts import FrameFacts
from relay.packed_reads.packed_frames import PackedFrames, StoredBytes
from relay.packed_reads.shared_frames import SharedFrames

_DISK: Final = FileLayer()
_MOST_TABLES: Final = 64
"""The most tables that are kept of files without readers: some 50 KiB for a GiB of binlog."""
_MOST_PLACES: Final = 1024
_VERIFY: Final = "Run `archive verify`."
_NO_BUCKET: Final = "Give the bucket in [archive.bucket] of relay.toml, as it was when the file was moved there."


class PackedFiles:
    """The packed files of one archive. root: its directory, which keys in the bucket are relative to. Any thread.

    keys: None: encrypted ones cannot be read. store: None: files in a bucket cannot be read.
    """

    def __init__(self, root: Path, shared: SharedFrames, keys: KeyRing | None, store: ObjectStore | None) -> None:
        self.shared = shared
        self._root = root
        self.keys = keys
        self.store = store
        self._places: OrderedDict[Path, tuple[tuple[int, int, int], StorageLocation]] = OrderedDict()
        """The contents of NAME.place, with the state of that file: it may have megabytes of GTIDs."""
        self._tables: OrderedDict[str, PackedFile] = OrderedDict()
        self._lock = threading.Lock()

    def close(self) -> None:
        """Stop reading; reads in progress are not waited for."""
        if self.store is not None:
            self.store.stop()
        self.shared.close()

    def facts(self) -> FrameFacts:
        """Return what is held in memory, and whether the bucket answers."""
        found = self.shared.facts()
        breaker = None if self.store is None else self.store.breaker
        if breaker is None:
            return found
        since, times, at_once = breaker.away_since, breaker.times_away, breaker.told_at_once
        return replace(found, has_bucket=True, bucket_away_since=since, times_away=times, told_at_once=at_once)

    def place_of(self, path: Path) -> StorageLocation | None:
        """Return the place of the binlog that has no file at `path`; None: nowhere. Raises: OSError; ArchiveUnavailable."""
        try:
            facts = os.stat(place_path(path))
        except FileNotFoundError:
            return _unnoted(path)
        like = (facts.st_ino, facts.st_mtime_ns, facts.st_size)
        with self._lock:
            known = self._places.get(path)
        if known is not None and known[0] == like:
            return known[1]
        try:
            place = read_place(path)
        except ValueError as error:
            place = _unnoted(path)
            if place is None:
                what = f"{path.name}.place, which says where it is, cannot be understood: {error}"
                raise ArchiveUnavailable(what, file=path.name, advice=_VERIFY) from error
        if place is not None:
            with self._lock:
                self._places[path] = like, place
                while len(self._places) > _MOST_PLACES:
                    self._places.popitem(last=False)
        return place

    def open(self, path: Path) -> PackedFrames:
        """Return the frames of the binlog that has no file at `path`. Raises: FileNotFoundError, OSError, ArchiveUnavailable."""
        stored = self._stored(path)
        if stored is None:
            raise FileNotFoundError(2, os.strerror(2), str(path))
        with self._lock:
            known = self._tables.get(stored.key)
        find_again, boundary = partial(self._stored, path, is_again=True), partial(boundary_before, path)
        return PackedFrames(path.name, stored, self.keys, find_again, known, self._opened, boundary)

    def stored_object(self, path: Path, place: StorageLocation) -> tuple[StoredObject, str]:
        """Return the bytes of a binlog in the bucket, and their URL, for messages. It contacts nothing. Raises: ArchiveUnavailable."""
        if self.store is None:
            what = f"it is in a bucket, as {place.stored_name}, and no bucket is given"
            raise ArchiveUnavailable(what, file=path.name, advice=_NO_BUCKET)
        name = object_key(self._root, path.with_name(place.stored_name))
        return StoredObject(self.store, name, place.stored_bytes), self.store.url(name)

    def _opened(self, key: str, packed: PackedFile) -> None:
        with self._lock:
            self._tables[key] = packed
            while len(self._tables) > _MOST_TABLES:
                self._tables.popitem(last=False)

    def _stored(self, path: Path, *, is_again: bool = False) -> StoredBytes | None:
        if is_again:
            try:
                plain = StoredFile(_DISK, _DISK.open_read(path))
            except FileNotFoundError:
                pass
            else:
                return StoredBytes(f"{path}:plain", plain, False, str(path), plain.close, is_plain=True)
        place = self.place_of(path)
        if place is None:
            return None
        key, is_encrypted = f"{path}:{place.digest}", is_encrypted_name(place.stored_name)
        if place.tier is Tier.OBJECT:
            source, where = self.stored_object(path, place)
            return StoredBytes(key, source, True, where, _nothing, False, is_encrypted, place.end_digest)
        packed = path.with_name(place.stored_name)
        try:
            stored = StoredFile(_DISK, _DISK.open_read(packed))
        except FileNotFoundError:
            if self.place_of(path) != place:
                return self._stored(path, is_again=is_again)  # it moved just now
            if is_again:
                return StoredBytes(key, _Nowhere(), False, str(packed), _nothing)
            raise
        return StoredBytes(key, stored, False, str(packed), stored.close, False, is_encrypted, place.end_digest)


class _Nowhere:
    """A missing file that should exist."""

    size = 0

    def read(self, offset: int, count: int) -> bytes:
        raise FileNotFoundError(2, os.strerror(2))


def _unnoted(path: Path) -> StorageLocation | None:
    """Return the place of a packed file that was put in the place of the binlog at `path` by hand. Raises: OSError."""
    for suffix in PACKED_SUFFIXES:
        stored = path.with_name(path.name + suffix)
        with contextlib.suppress(FileNotFoundError):
            facts = stored.stat()
            return StorageLocation(
                Tier.COLD, stored.name, facts.st_size, None, f"{facts.st_ino}-{facts.st_mtime_ns}", -1
            )
    return None


def object_key(root: Path, path: Path) -> str:
    """Return the key of a file of the archive in `root` in the bucket."""
    return path.relative_to(root).as_posix()


def boundary_before(path: Path, offset: int) -> int:
    """Return the end of a transaction at `offset` or before, by NAME.idx; 0: unknown."""
    try:
        fd = _DISK.open_read(index_path(path))
    except OSError:
        return 0
    try:
        index = BoundaryIndex(_DISK, fd)
        number = index.last_at_or_before(offset)
        return index.record(number).group_start if number >= 0 else 0
    except (OSError, IndexError):
        return 0
    finally:
        _DISK.close(fd)


def _nothing() -> None:
    """Do nothing: there is nothing to close."""
