"""One pass over what is not in the bucket: small files, sealed binlogs, then a part of the file that grows."""

import errno
import hashlib
import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from pathlib import Path
from typing import Final

from protocol.position import binlog_number, is_binlog_name
from relay.archive.storage.storage_location import PLACE_SUFFIX
from relay.bucket_copy.bucket_manifest import MOST_NOTE_BYTES, is_page
from relay.bucket_copy.manifest_keeper import ManifestKeeper
from relay.bucket_copy.mirror_parts import (
    MOST_PART_BYTES,
    MirrorPart,
    covered_to,
    merged_start,
    part_key,
    part_of,
    part_order,
)
from relay.bucket_copy.mirrored_names import BESIDE, SMALL_FILES
from relay.bucket_copy.signed_object import NotAuthentic, digest_of
from relay.disk.file_calls import read_file
from relay.mirror.found_objects import FoundObjects
from relay.mirror.mirror_picture import PicturedFile, PicturedGeneration
from relay.mirror.sealed_copy import SealedCopy
from relay.object_store.archive_object import Ownership
from relay.object_store.object_errors import ObjectMissing
from relay.object_store.object_store import ObjectStore
from relay.packed.packed_errors import KeyMissing, KeyWrong
from relay.packed.packed_facts import PACKED_SUFFIXES, OfArchive, plain_name
from relay.packing_process.compression_settings import CompressionSettings
from relay.packing_process.packed_copy import CopyFailed, CopyOrder, CopyStopped

_DAMAGED_AGAIN_S: Final = 3600.0
"""The time after which a file that was not what was archived is retried, unless it is another one by then."""
_COMPARED: Final = 20
"""So many of the listed binlogs, the newest, are compared with the archive's: a relay that was killed or another process may have
left them. For the others `archive verify` reads the notes."""
_PROCESS_KEPT_S: Final = 30.0
"""The process that packs ends after so long without work: starting one for each part would cost more than the part."""
_MANIFEST_S: Final = 10.0
"""The interval in which the manifest is written while much is copied."""
_LISTED_AGAIN_S: Final = 86400.0
"""Objects that were removed from the bucket are copied again within this time."""


@dataclass(frozen=True, slots=True)
class LeftOutFile:
    """A sealed binlog that is not copied, because it is not what was archived. `end` is its size. `what` and `advice` are half a
    sentence, and the next step. `state` is that of its files on the disk; `tried_s` is the time of the last attempt, by the monotonic
    clock."""

    end: int
    what: str
    advice: str
    state: tuple[tuple[int, int, int], ...]
    tried_s: float


class MirrorPass:
    """One pass. It knows the bucket's contents from a listing, once a day. Blocking, for one thread.

    Its methods raise: MirrorRefused; ObjectStoreError; OSError; CopyStopped.
    """

    def __init__(
        self,
        store: ObjectStore,
        ownership: Ownership,
        means: CompressionSettings,
        stop: threading.Event,
    ) -> None:
        self._store = store
        self._ownership = ownership
        self._means = means
        self._stop = stop
        self._sealed = SealedCopy(store, means, stop, ownership.archive)
        self.manifest = ManifestKeeper(store, means.keys, ownership.root, ownership.archive)
        """The manifest of the bucket's contents."""
        self._listed_in_s = 0.0
        """The time when the manifest was written last, by the monotonic clock."""
        self.troubles: list[str] = []
        """The reasons why a manifest that was found there is not believed; the reporter removes them here."""
        self._packed_s = 0.0
        """The time when something was packed last, by the monotonic clock."""
        self._there: set[str] | None = None
        """Those that are there as a whole, by folder and binlog; None if the bucket was not listed yet."""
        self._compared: dict[str, dict[str, int]] = {}
        """The binlogs that must still be compared, by folder and binlog: each has the sizes of the bucket's objects for it, by key."""
        self.others: list[tuple[str, str]] = []
        """Binlogs of which the bucket had another one, and the difference; the reporter removes them here."""
        self._term = 0
        """The term of the ownership when the bucket was listed."""
        self._listed_s = 0.0
        """The time when it was listed, by the monotonic clock."""
        self.times_lost = 0
        """The number of times that another process was found to have written there."""
        self._parts: dict[str, list[MirrorPart]] = {}
        """The parts by folder and binlog."""
        self._small: dict[str, tuple[int, int, int]] = {}
        """By key, inode, size and time of the file that was copied last."""
        self.done: dict[int, int] = {}
        """By generation, the number of the last sealed file up to which all are in the bucket, or left out."""
        self.left_out: dict[tuple[int, str], LeftOutFile] = {}
        """The left-out files by generation and name."""
        self.copied: dict[str, int] = {}
        """By folder and binlog, the offset up to which the file that grows is in the bucket."""
        self.files = self.part_count = 0
        """The numbers of copied files and parts."""

    def run(self, generations: Sequence[PicturedGeneration]) -> bool:
        """Copy what is missing, in the archive's order. Return False if what was known of the bucket is forgotten, because it is old or
        another process wrote there. Then it must be called again, with all of the archive."""
        if self._there is not None and time.monotonic() - self._listed_s > _LISTED_AGAIN_S:
            self._forget()
            return False
        if self._there is None:
            self._ownership.claim()
            self._term = self._ownership.term
            self._list(generations)
        if not self._is_still_ours():
            return False
        try:
            return self._copy(generations)
        finally:
            if time.monotonic() - self._packed_s > _PROCESS_KEPT_S:
                self._means.packer.close()

    def _copy(self, generations: Sequence[PicturedGeneration]) -> bool:
        for generation in generations:
            self._copy_small(generation)
            for file in generation.files:
                if self._stop.is_set():
                    raise CopyStopped
                if file.sealed and self._is_copied(generation, file):
                    continue
                if not file.sealed:
                    self._copy_part(generation, file)
                elif not self._copy_unless_damaged(generation, file):
                    self._write_manifest()
                    return True  # its row comes into the catalog within moments
                else:
                    self.done[generation.number] = max(file.number, self.done.get(generation.number, -1))
                if not self._is_still_ours():
                    return False
                if time.monotonic() - self._listed_in_s > _MANIFEST_S:
                    self._write_manifest()
        self._write_manifest()
        return True

    def _write_manifest(self) -> None:
        """Write the manifest, if it is still the last one: another writer's is not overwritten before it is known."""
        if self.manifest.is_changed and self._ownership.term == self._term:
            self.manifest.write()
        self._listed_in_s = time.monotonic()

    def _is_copied(self, generation: PicturedGeneration, file: PicturedFile) -> bool:
        is_done = file.number <= self.done.get(generation.number, -1)
        return is_done and (generation.number, file.name) not in self.left_out

    def _is_still_ours(self) -> bool:
        """Return whether no other process wrote there since it was listed; if one did, nothing is known any more."""
        self._ownership.renew()
        if self._ownership.term == self._term:
            return True
        self.times_lost += 1
        self._forget()
        return False

    def _forget(self) -> None:
        self._there = None
        for known in (self._parts, self._small, self.done, self.copied):
            known.clear()

    def pending_bytes(self, generations: Sequence[PicturedGeneration]) -> int:
        """Return the bytes that are not in the bucket."""
        pending = 0
        for generation in generations:
            done = self.done.get(generation.number, -1)
            for file in generation.files:
                if not file.sealed or file.number > done:
                    pending += file.end - min(file.end, self.copied.get(generation.folder + file.name, 0))
        return pending

    def _list(self, generations: Sequence[PicturedGeneration]) -> None:
        if not self.manifest.load() and self.manifest.trouble:
            self.troubles.append(self.manifest.trouble)
        noted, packed = set[str](), dict[str, dict[str, int]]()
        parts: dict[str, list[MirrorPart]] = {}
        keys: list[str] = []
        for found in self._store.list():
            if is_page(found.key.rpartition("/")[2]):
                keys.append(found.key)
            part = part_of(found.key)
            if part is not None:
                parts.setdefault(found.key.rpartition("/")[0] + "/" + part.file, []).append(part)
            elif found.key.endswith(PLACE_SUFFIX):
                noted.add(found.key.removesuffix(PLACE_SUFFIX))
            elif (name := plain_name(found.key)) is not None:
                packed.setdefault(name, {})[found.key] = found.size
        self._store.delete(self.manifest.left_pages(keys))
        # A note without its packed bytes belongs to a removed binlog.
        binlogs = {key for key in noted if key in packed and is_binlog_name(key.rpartition("/")[2])}
        adopted = FoundObjects(self._store, self._means.keys, self.manifest)
        self._there, unlisted = adopted.notes(binlogs)
        numbers = {generation.folder: generation.number for generation in generations}
        self._parts = adopted.parts({name.removeprefix("/"): found for name, found in parts.items()}, numbers)
        newest = nlargest(
            _COMPARED, self._there, lambda key: (key.rpartition("/")[0], binlog_number(key.rpartition("/")[2]))
        )
        self._compared = {key: packed[key] for key in (*newest, *unlisted)}
        self._listed_s = time.monotonic()

    def _copy_small(self, generation: PicturedGeneration) -> None:
        for name in SMALL_FILES:
            path = generation.directory / name
            try:
                status = path.stat()
                key, state = generation.folder + name, (status.st_ino, status.st_size, status.st_mtime_ns)
                if self._small.get(key) == state:
                    continue
                data = read_file(path)
            except FileNotFoundError:
                continue
            signed = self.manifest.signed(key, data)
            self._store.put_bytes(key, signed)
            self.manifest.has_small(generation.folder, name, signed)
            self._small[key] = state

    # --- sealed files ----------------------------------------------------------------------------------------------------

    def _copy_sealed(self, generation: PicturedGeneration, file: PicturedFile) -> bool:
        """Copy a sealed binlog. Return False if the catalog does not know yet that it is sealed."""
        assert self._there is not None
        key = generation.folder + file.name
        if key in self._compared:
            what = self._differs(generation, file.name, self._compared[key])
            del self._compared[key]
            if what is not None:
                self.others.append((file.name, what))
                self._there.discard(key)
                # The binlog that is overwritten now is not the one that its note describes.
                self._store.delete([key + PLACE_SUFFIX])
                self.manifest.lacks_note(generation.folder, file.name)
        if key not in self._there:
            self._packed_s = time.monotonic()
            beside: dict[str, list[str | int]] = {}
            with self._ownership.kept():  # a large one takes longer than the place stays this process's
                note = self._sealed.put(generation, file.name)
                if note is None:
                    return False
                for suffix in BESIDE:
                    path = generation.directory / (file.name + suffix)
                    if path.exists():
                        with path.open("rb") as opened:
                            digest = hashlib.file_digest(opened, "sha256").hexdigest()
                            beside[suffix] = [os.fstat(opened.fileno()).st_size, digest]
                        self._store.put_file(key + suffix, path)
            if self._ownership.term != self._term:
                return True  # its caller sees that
            # The last one: with it the file is there.
            signed = self.manifest.signed(key + PLACE_SUFFIX, note.encode(), {"beside": beside})
            self._store.put_bytes(key + PLACE_SUFFIX, signed)
            self.manifest.has_note(generation.folder, file.name, signed)
            self.files += 1
        self._there.discard(key)  # it is not looked up again
        self.left_out.pop((generation.number, file.name), None)
        self._drop_parts(key, self._parts.pop(key, []))
        self.copied.pop(key, None)
        return True

    def _differs(self, generation: PicturedGeneration, name: str, sizes: Mapping[str, int]) -> str | None:
        """Return the difference that `SealedCopy.differs` finds, and check that its note is the one that was written."""
        key = generation.folder + name + PLACE_SUFFIX
        try:
            data = self._store.get(key, MOST_NOTE_BYTES)
            content = self.manifest.signer.read(key, data).content
        except (ObjectMissing, NotAuthentic, KeyMissing, KeyWrong) as error:
            return f"its note cannot be read: {error}"
        if self.manifest.manifest.of(generation.folder).files.get(name) != digest_of(data):
            return "its note is not the one that the manifest lists"
        return self._sealed.differs(generation, name, content, sizes)

    def _copy_unless_damaged(self, generation: PicturedGeneration, file: PicturedFile) -> bool:
        """Do as `_copy_sealed`; a file that is not what was archived is left out, so that it does not hold up those after it."""
        key, state = (generation.number, file.name), _state(generation.directory / file.name)
        left = self.left_out.get(key)
        if left is not None and left.state == state and time.monotonic() - left.tried_s < _DAMAGED_AGAIN_S:
            return True
        try:
            return self._copy_sealed(generation, file)
        except CopyFailed as error:
            self.left_out[key] = LeftOutFile(file.end, error.what, error.advice, state, time.monotonic())
            return True

    # --- the file that grows ---------------------------------------------------------------------------------------------

    def _copy_part(self, generation: PicturedGeneration, file: PicturedFile) -> None:
        key = generation.folder + file.name
        parts = self._parts.setdefault(key, [])
        # A part that goes beyond the archive is of a binlog that was cut back after a crash.
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
            made = part_key(generation.folder, file.name, start, end, encrypted=self._means.encrypts)
            whose = OfArchive(self._ownership.archive, generation.number, self.manifest.next_sequence)
            order = part_order(file.name, start, end, whose)
            data = self._packed_part(generation.directory / file.name, order)
            self._store.put_bytes(made, data)
            self.manifest.has_part(made, data)
            self.part_count += 1
            merged = [part for part in parts if part.start >= start]
            parts[:] = [part for part in parts if part.start < start] + [MirrorPart(file.name, start, end, made)]
            self._drop_parts(key, merged)

    def _packed_part(self, path: Path, order: CopyOrder) -> bytes:
        self._packed_s = time.monotonic()
        try:
            self._means.begin()
            return self._means.packer.make_in_memory(path, order, self._means.keys, self._stop.is_set, urgent=True)
        except CopyFailed as error:
            raise OSError(errno.EIO, f"{order.file}: {error.what}") from error

    def _drop_parts(self, key: str, parts: Sequence[MirrorPart]) -> None:
        """Remove parts that are in the bucket in another form by now."""
        if parts:
            self._store.delete([part.key for part in parts])
            for part in parts:
                self.manifest.lacks_part(part.key)


def _state(path: Path) -> tuple[tuple[int, int, int], ...]:
    """Return the state of the binlog and of its packed files: it changes with a repair."""
    found = []
    for suffix in ("", *PACKED_SUFFIXES, PLACE_SUFFIX):
        try:
            status = path.with_name(path.name + suffix).stat()
        except OSError:
            continue
        found.append((status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(found)
