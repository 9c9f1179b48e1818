"""The restore of an archive from the bucket alone: small files, the indexes of binlogs, the file that grew from its parts.

The binlogs stay in the bucket (tier `object`), or come back as plain files. The catalog is rebuilt from NAME.place and ledger.jsonl
by the next start, as after each loss of a catalog.
"""

import contextlib
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from protocol.binlog.layout import FIRST_EVENT
from protocol.position import Position, binlog_number
from relay.archive.catalog.catalog_rows import file_of
from relay.archive.storage.files import FileLayer, StoredFile, replace_file
from relay.archive.storage.scan import scan
from relay.archive.storage.storage_location import PLACE_SUFFIX, LocationNote
from relay.archive.whole_directory import DirectoryBusy, whole_directory
from relay.binlog_file.broken import Broken
from relay.bucket_copy.bucket_content import BucketContent, BucketGeneration, bucket_content
from relay.bucket_copy.bucket_gaps import BucketHole, HolesWanted, holes_of, holes_text, removed_oldest, trimmed
from relay.bucket_copy.checked_copy import AS_WRITTEN, CheckedCopy, WantedCopy, must_be_signed, open_copy
from relay.bucket_copy.manifest_record import ManifestRecord
from relay.bucket_copy.mirror_errors import RestoreRefused
from relay.bucket_copy.mirror_parts import MirrorPart, covered_to
from relay.object_store.object_errors import ObjectMissing
from relay.object_store.object_store import ObjectStore
from relay.object_store.stored_object import StoredObject
from relay.packed.key_ring import KeyRing
from relay.packed.packed_content import packed_content
from relay.packed.packed_errors import KEYS_ADVICE, KeyMissing, PackedDamaged, PackedError, PackedUnknown
from relay.packed.packed_facts import is_encrypted_name
from relay.packed.packed_file import PackedFile
from relay.packed.packed_reader import PackedReader

_THREADS: Final = 8
_UNFINISHED: Final = ".restoring"
_CHOOSE: Final = (
    "Nothing was restored. No replica goes over a hole. Choose one. --holes before: the archive ends before the first hole, and the "
    "relay asks its source for all behind that; take it if the source still has those binlogs. --holes behind: the archive begins "
    "behind the last hole. --holes keep: all comes back; replicas are served up to a hole, or from behind it."
)
_TAKE_ANOTHER: Final = (
    "If it is the right one, the same command with --download --accept-changed takes it as it is, and nobody can say then that it is "
    "this archive's."
)
_WITHOUT_IT: Final = (
    "If it is lost for good, remove its .place object: then the copy has a hole there, or begins behind it, and --holes says what is "
    "restored."
)
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class RestoredArchive:
    """The result of a restore."""

    generations: int
    files: int
    """The number of whole binlogs."""
    first: str
    end: Position
    """The archive's end, from which on the source is followed."""
    downloaded: bool
    """True if they came back as plain files."""
    bytes_read: int
    dropped: int
    """The bytes of an unfinished transaction at the end of the parts."""
    holes: tuple[BucketHole, ...] = ()
    """The binlogs that are missing in the bucket, though one after them is there."""
    manifest: int = 0
    """The manifest's number."""
    is_signed: bool = False
    """True if only an owner of the key can have created all that."""
    doubts: tuple[str, ...] = ()
    """The differences from the manifest that were accepted."""
    removed: tuple[str, ...] = ()
    """The oldest binlogs that the manifest lists, which are not there."""


def restore_archive(
    store: ObjectStore,
    directory: Path,
    keys: KeyRing | None,
    *,
    download: bool,
    wanted: WantedCopy = AS_WRITTEN,
    holes: HolesWanted = HolesWanted.REFUSE,
    on_progress: Progress = lambda _text: None,
) -> RestoredArchive:
    """Create `directory` (<archive.dir>/<source name>), which must be missing or empty; it exists whole or not at all. Blocking.

    `wanted` says what is accepted although it may be foreign. `holes` says what is restored if binlogs are missing in the middle of the
    copy.

    Raises: RestoreRefused, MirrorRefused; ObjectStoreError; PackedError (damage, keys); OSError.
    """
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise RestoreRefused(
            f"{directory} is not empty: an archive is restored into a directory of its own only. Move what is there away, if it is not "
            "needed, or name another [archive] dir."
        )
    content = bucket_content(store)
    if content.about.source != directory.name:
        raise RestoreRefused(
            f"{store.url()} holds the archive {content.about.source!r}, and relay.toml is for {directory.name!r}. Set [source] name = "
            f'"{content.about.source}", or name the bucket of the other archive.'
        )
    copy = open_copy(store, keys, content, wanted)
    found, removed = holes_of(store, copy), removed_oldest(copy)
    if found and holes is HolesWanted.REFUSE:
        count = "a binlog" if len(found) == 1 else f"{len(found)} binlogs"
        raise RestoreRefused(f"{store.url()} lacks {count} in the middle of the copy: {holes_text(found)}. {_CHOOSE}")
    if not found:
        copy.check_parts()
    content = trimmed(copy.content, found, holes)
    with _made(directory) as making:
        restoring = _Restoring(store, making, keys, download, on_progress, copy)
        restoring.wants_encrypted = must_be_signed(keys, wanted)
        done = restoring.all_of(content)
        if copy.manifest.digest:
            ManifestRecord(store.url(), copy.manifest.sequence, (copy.manifest.digest,)).write(making)
        manifest, is_signed = copy.manifest.sequence, copy.is_signed
        doubts = tuple(copy.doubts)
        return replace(
            done, holes=tuple(found), manifest=manifest, is_signed=is_signed, doubts=doubts, removed=tuple(removed)
        )


@contextlib.contextmanager
def _made(directory: Path) -> Iterator[Path]:
    directory = directory.absolute()
    layer = FileLayer()
    layer.make_directory(directory.parent)
    making = directory.with_name(f".{directory.name}{_UNFINISHED}")
    layer.make_directory(making)
    try:
        with whole_directory(making, directory):
            yield making
    except DirectoryBusy:
        raise RestoreRefused(f"Another restore makes {directory} now. Wait for it.") from None


class _Restoring:
    def __init__(
        self,
        store: ObjectStore,
        making: Path,
        keys: KeyRing | None,
        download: bool,
        on_progress: Progress,
        copy: CheckedCopy,
    ) -> None:
        self._store = store
        self._copy = copy
        self.wants_encrypted = True
        """True if what is not encrypted is refused."""
        self._making = making
        self._keys = keys
        self._download = download
        self._on_progress = on_progress
        self._layer = FileLayer()
        self._dropped = 0

    def all_of(self, content: BucketContent) -> RestoredArchive:
        ends: list[Position] = []
        first = ""
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="restore") as threads:
            for number, generation in enumerate(content.generations):
                last = number == len(content.generations) - 1
                directory = self._making / generation.folder if generation.folder else self._making
                self._layer.make_directory(directory)
                for name in sorted({*generation.small, *self._copy.listed(generation).small}):
                    self._small(generation, directory / name)
                # The first failure ends it: downloads in progress are waited for.
                for end in threads.map(lambda file: self._file(generation, directory, file), generation.files):  # noqa: B023
                    ends.append(end)
                    first = first or end.file
                grown = self._grown(generation, directory)
                if grown is not None:
                    ends.append(grown)
                    first = first or grown.file
                if not last and not generation.files:
                    continue
                self._layer.sync_directory(directory)
        if not ends:
            raise RestoreRefused(f"{self._store.url()} holds no whole binlog and no usable part of one.")
        return RestoredArchive(
            len(content.generations),
            sum(len(generation.files) for generation in content.generations),
            first,
            ends[-1],
            self._download,
            self._store.counts.bytes_read,
            self._dropped,
        )

    def _small(self, generation: BucketGeneration, path: Path) -> None:
        try:
            replace_file(self._layer, path, self._copy.small(generation, path.name))
        except ObjectMissing:
            self._copy.lacks(generation.folder + path.name)

    def _file(self, generation: BucketGeneration, directory: Path, file: str) -> Position:
        checked = self._copy.note(generation, file)
        note = checked.note
        self._check_encrypted(generation.folder + note.place.stored_name)
        key_id = note.place.key_id
        if key_id is not None and (self._keys is None or key_id not in self._keys.ids):
            raise KeyMissing(
                f"it is encrypted with the key {key_id!r}, which is not given", file=file, advice=KEYS_ADVICE
            )
        for suffix in checked.beside:
            data = self._copy.beside(generation, file, suffix, checked)
            if data is not None:
                replace_file(self._layer, directory / (file + suffix), data)
        if self._download:
            self._unpack(generation, directory / file, note)
        else:
            stored = generation.objects.get(note.place.stored_name)
            size = None if stored is None else stored.size
            if size != note.place.stored_bytes or not self._is_noted(generation, file, note):
                note = self._packed_otherwise(generation, file, note, size)
            replace_file(self._layer, directory / (file + PLACE_SUFFIX), note.encode())
        self._on_progress(file)
        return Position(file, note.place.plain_bytes)

    def _is_noted(self, generation: BucketGeneration, file: str, note: LocationNote) -> bool:
        """Return whether the object is the one of its note, by its end. Raises: KeyMissing, KeyWrong."""
        key, place = generation.folder + note.place.stored_name, note.place
        must, source = is_encrypted_name(place.stored_name), StoredObject(self._store, key, place.stored_bytes)
        try:
            packed = PackedFile.open(source, file, self._keys, must_be_encrypted=must, end_digest=place.end_digest)
        except (PackedDamaged, PackedUnknown):
            return False
        self._copy.check_facts(generation, key, packed.facts)
        return True

    def _packed_otherwise(
        self, generation: BucketGeneration, file: str, note: LocationNote, size: int | None
    ) -> LocationNote:
        """Return the note of an object that is not the one that was noted, and has the binlog: its relay died before it noted that.

        `size` is that of the object; None if there is none. Raises: RestoreRefused; ObjectStoreError; KeyMissing, KeyWrong.
        """
        key, place, why = generation.folder + note.place.stored_name, note.place, ""
        if size is not None:
            try:
                must = is_encrypted_name(place.stored_name)
                source = StoredObject(self._store, key, size)
                found = packed_content(source, file, self._keys, must_be_encrypted=must)
                assert found is not None
                facts = PackedFile.open(source, file, self._keys, must_be_encrypted=must).facts
                self._copy.check_facts(generation, key, facts)
                if (found.plain_bytes, found.digest) == (place.plain_bytes, file_of(note.file_row).digest):
                    there = replace(
                        place,
                        stored_bytes=found.stored_bytes,
                        key_id=found.key_id,
                        digest=found.stored_digest,
                        end_digest=found.end_digest,
                    )
                    return replace(note, place=there)
                why, advice = " (it is sound, and another one)", _TAKE_ANOTHER
            except (PackedDamaged, PackedUnknown, TypeError) as error:
                why, advice = f" ({getattr(error, 'text', error)})", _WITHOUT_IT
        else:
            advice = _WITHOUT_IT
        has = "is not there" if size is None else f"has {size} bytes, and not the binlog that was archived{why}"
        raise RestoreRefused(
            f"{self._store.url(key)} {has}; {place.stored_bytes} bytes were stored. It was changed or removed: nothing was restored. "
            f"Put it back from the bucket's versions. {advice}"
        )

    def _check_encrypted(self, key: str) -> None:
        if self.wants_encrypted and not is_encrypted_name(key):
            raise RestoreRefused(
                f"{self._store.url(key)} is not encrypted, and [archive.encryption] of relay.toml has an active key. Whoever may write "
                "to the bucket could have put it there, with other events in it. If it is from the time before encryption was switched "
                "on: the same command with --accept-unencrypted. Nothing was restored."
            )

    def _unpack(self, generation: BucketGeneration, path: Path, note: LocationNote) -> None:
        source = StoredObject(self._store, generation.folder + note.place.stored_name)
        must = is_encrypted_name(note.place.stored_name)
        reader = self._opened(generation, path.name, note, source, must_be_encrypted=must)
        crc = 0
        fd = self._layer.create(path)
        try:
            with os.fdopen(fd, "wb", closefd=False) as sink:
                for frame in range(len(reader.packed.frames)):
                    start, stop = reader.packed.stored_range(frame)
                    plain = reader.packed.decode(frame, source.read(start, stop - start))
                    crc = zlib.crc32(plain, crc)
                    sink.write(plain)
            self._layer.sync_data(fd)
        finally:
            self._layer.close(fd)
        noted = None if self._copy.accepts_changed else file_of(note.file_row).digest
        found, wanted = f"crc32:{crc:08x}", noted or reader.packed.facts.digest
        if found != wanted:
            url = self._store.url(generation.folder + note.place.stored_name)
            raise RestoreRefused(
                f"{url} does not give the binlog that was packed: {found}, not {wanted}. Nothing was restored. {_WITHOUT_IT}"
            )

    def _opened(
        self,
        generation: BucketGeneration,
        file: str,
        note: LocationNote,
        source: StoredObject,
        *,
        must_be_encrypted: bool,
    ) -> PackedReader:
        key, place = generation.folder + note.place.stored_name, note.place
        try:
            end_digest = "" if self._copy.accepts_changed else place.end_digest
            reader = PackedReader.open(
                source, file, self._keys, must_be_encrypted=must_be_encrypted, end_digest=end_digest
            )
        except (PackedDamaged, PackedUnknown) as error:
            raise RestoreRefused(
                f"{self._store.url(key)} is not what was stored: {error.text}. Nothing was restored. {_WITHOUT_IT}"
            ) from error
        self._copy.check_facts(generation, key, reader.packed.facts)
        return reader

    def _grown(self, generation: BucketGeneration, directory: Path) -> Position | None:
        """Restore the file after the last whole one, from its parts, cut back to its last whole transaction; return its end, or None if
        there is none."""
        newest = binlog_number(generation.files[-1]) if generation.files else -1
        names = sorted((name for name in generation.parts if binlog_number(name) > newest), key=binlog_number)
        if not names:
            return None
        name = names[-1]
        parts = generation.parts[name]
        for part in parts:
            self._check_encrypted(part.key)
        path = directory / name
        fd = self._layer.create(path)
        try:
            size = self._join(fd, generation, parts)
            with StoredFile.open(self._layer, path) as stored:
                end = _whole_end(stored, size)
            self._layer.truncate(fd, end)
            self._layer.sync_data(fd)
        finally:
            self._layer.close(fd)
        self._dropped = size - end
        if end <= FIRST_EVENT:
            self._layer.unlink(path)
            return None
        self._on_progress(name)
        return Position(name, end)

    def _join(self, fd: int, generation: BucketGeneration, parts: Sequence[MirrorPart]) -> int:
        """Write the contents of the parts from the first byte on; return how much that is."""
        at = 0
        limit = covered_to(parts)
        while at < limit:
            part = max((part for part in parts if part.start <= at), key=lambda part: part.stop)
            try:
                data = self._copy.part(generation, part)
            except (PackedError, RestoreRefused):
                parts = [other for other in parts if other is not part]
                # While parts were joined, the bucket had the same bytes twice.
                if covered_to(parts) < limit:
                    raise
                continue
            os.pwrite(fd, data[at - part.start :], at)
            at = part.stop
        return at


def _whole_end(stored: StoredFile, size: int) -> int:
    try:
        return scan(stored, FIRST_EVENT, size).boundary
    except Broken:
        return FIRST_EVENT
