"""The bucket compared with the archive, for `archive verify`: unneeded objects, and missing copies.

It applies only to a bucket that is this archive's, and only with the relay stopped: a running one copies and removes by itself.
"""

import hashlib
import threading
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from protocol.errors import Malformed
from protocol.position import binlog_number, is_binlog_name
from relay.archive.catalog.catalog_rows import file_of
from relay.archive.catalog.generation_directories import FIRST, generation_numbers, generation_path
from relay.archive.storage.archive_finding import ArchiveFinding
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.files import BESIDE_SUFFIXES
from relay.archive.storage.storage_location import PLACE_SUFFIX, StorageLocation, Tier
from relay.archive_inspection.listing import list_archive
from relay.bucket_copy.bucket_content import bucket_content
from relay.bucket_copy.bucket_manifest import MANIFEST_KEY
from relay.bucket_copy.checked_copy import CheckedCopy, open_copy
from relay.bucket_copy.mirror_errors import RestoreRefused
from relay.bucket_copy.mirror_parts import MirrorPart, part_of
from relay.mirror.mirror_pass import MirrorPass
from relay.mirror.mirror_picture import PicturedFile, PicturedGeneration
from relay.object_store.archive_object import Ownership
from relay.object_store.object_errors import MirrorRefused, ObjectStoreError
from relay.object_store.object_store import ObjectFacts, ObjectStore
from relay.object_store.stored_object import StoredObject
from relay.packed.key_ring import KeyRing
from relay.packed.packed_errors import KeyMissing, KeyWrong, PackedError
from relay.packed.packed_facts import PACKED_SUFFIXES, is_encrypted_name
from relay.packed.packed_file import PackedFile
from relay.packed.packing import PackOptions
from relay.packing_process.compression_settings import CompressionSettings

_SUFFIXES: Final = (*reversed(PACKED_SUFFIXES), *BESIDE_SUFFIXES)
_PIECE: Final = 8 << 20
_REMOVES: Final = "`archive verify --cure` removes it"
_COPIES: Final = "`archive verify --cure` copies it again, and so does the relay when it starts"
Found = tuple[int, ArchiveFinding]


@dataclass(slots=True)
class _Folder:
    """The objects of one generation, by name, without parts."""

    number: int
    objects: dict[str, ObjectFacts] = field(default_factory=dict)
    parts: list[MirrorPart] = field(default_factory=list)

    @property
    def prefix(self) -> str:
        return folder_of(self.number)

    def has(self, name: str) -> bool:
        """Return whether the binlog is there as a whole, as far as names tell."""
        return name + PLACE_SUFFIX in self.objects and any(name + suffix in self.objects for suffix in PACKED_SUFFIXES)


def folder_of(number: int) -> str:
    """Return the folder of a generation's objects, with a slash at its end, or empty."""
    return "" if number == FIRST else f"{generation_path(Path(), number).name}/"


class BucketCheck:
    """The check of one archive, in `root`. Blocking. `writer` is its relay's uuid. With `is_mirror` all sealed binlogs should be in the
    bucket, and what was purged at the relay is kept there.

    With `purged` what a mirror has kept of purged binlogs counts as left over. With `deep` the bytes of copies are read too. With
    `cure` findings are repaired.
    """

    def __init__(
        self,
        root: Path,
        store: ObjectStore,
        writer: str,
        *,
        is_mirror: bool,
        purged: bool = False,
        deep: bool = False,
        cure: bool = False,
    ) -> None:
        self._root = root
        self._store = store
        self._writer = writer
        self._is_mirror = is_mirror
        self._keeps_purged = is_mirror and not purged
        self._removes = _REMOVES if not purged else "`archive verify --purged --cure` removes it"
        self._deep = deep
        self._cure = cure
        self._ownership = Ownership(store, writer, root, is_whole=is_mirror)
        self._lacking: dict[int, list[ArchivedFile]] = {}
        self._was_removed = False

    def run(
        self, generations: Sequence[tuple[int, Path]], keys: KeyRing | None, packing: PackOptions
    ) -> Iterator[Found]:
        """Yield what is wrong, by generation. `generations` are those that have begun. Raises: OSError; CatalogUnreadable."""
        try:
            if self._cure:
                self._ownership.hold()
            else:
                self._ownership.check()
            folders = self._listed()
            held = {number: list_archive(path) for number, path in generations}
            newest = max(held, default=FIRST)
            for number, folder in sorted(folders.items()):
                if number in held:
                    yield from self._orphans(folder, held[number])
                elif number < newest and not self._keeps_purged:
                    yield from self._purged_generation(folder)
            if self._is_mirror:
                copy = yield from self._checked_copy(keys)
                yield from self._copies(folders, held, copy)
                if self._cure and (any(self._lacking.values()) or self._was_removed or copy is None):
                    yield from self._copied_again(generations, keys, packing)
        except MirrorRefused as error:
            yield FIRST, ArchiveFinding(self._root.name, None, f"the bucket is not this relay's now: {error}")
        except ObjectStoreError as error:
            yield FIRST, ArchiveFinding(self._root.name, None, f"the bucket cannot be looked through: {error}")

    def _listed(self) -> dict[int, _Folder]:
        folders: dict[int, _Folder] = {}
        for facts in self._store.list():
            directory, _, name = facts.key.rpartition("/")
            numbers = [FIRST] if not directory else generation_numbers([directory])[1:]
            if not numbers:
                continue
            folder = folders.setdefault(numbers[0], _Folder(numbers[0]))
            part = part_of(facts.key)
            if part is not None:
                folder.parts.append(part)
            else:
                folder.objects[name] = facts
        return folders

    # --- unneeded objects --------------------------------------------------------------------------------------------

    def _orphans(self, folder: _Folder, files: Sequence[ArchivedFile]) -> Iterator[Found]:
        """Yield the objects of binlogs that are older than all in the archive, or are missing among them, and parts of binlogs that are
        there as a whole.

        Binlogs that are newer than all in the archive are skipped: a relay that lost its newest files has them there.
        """
        held = {file.number: file.name for file in files}
        newest = max(held, default=0)
        directory = generation_path(self._root, folder.number)
        # A binlog with a note on the disk, though it is not in the archive, cannot be read, and the object may be all there is.
        noted = {path.name.removesuffix(PLACE_SUFFIX) for path in directory.glob(f"*{PLACE_SUFFIX}")}
        for name, facts in folder.objects.items() if not self._keeps_purged else ():
            binlog = next((name.removesuffix(suffix) for suffix in _SUFFIXES if name.endswith(suffix)), "")
            number = _number_of(binlog)
            if number is not None and number <= newest and number not in held and binlog not in noted:
                yield self._left(folder, facts.key, "is of a binlog that the archive does not hold")
        for part in folder.parts:
            number = _number_of(part.file)
            if number is None or number > newest or (part.file in noted and number not in held):
                continue
            if number not in held and not self._keeps_purged:
                yield self._left(folder, part.key, "is a part of a binlog that the archive does not hold")
            elif folder.has(part.file):
                yield self._left(folder, part.key, "is a part of a binlog that is there as a whole")

    def _purged_generation(self, folder: _Folder) -> Iterator[Found]:
        keys = [facts.key for facts in folder.objects.values()] + [part.key for part in folder.parts]
        for key in keys:
            yield self._left(folder, key, f"is of generation {folder.number}, which the archive does not hold any more")

    def _left(self, folder: _Folder, key: str, what: str) -> Found:
        name, text = key.rpartition("/")[2], f"{self._store.url(key)} {what}"
        if not self._cure:
            return folder.number, ArchiveFinding(name, None, f"{text}. {self._removes}")
        try:
            self._ownership.hold()
            self._store.delete([key])
            self._was_removed = True
        except ObjectStoreError as error:
            return folder.number, ArchiveFinding(name, None, f"{text}, and cannot be removed: {error}")
        return folder.number, ArchiveFinding(name, None, f"{text}; it was removed")

    # --- missing copies ----------------------------------------------------------------------------------------------

    def _checked_copy(self, keys: KeyRing | None) -> Generator[Found, None, CheckedCopy | None]:
        """Return the contents of the bucket by the manifest; None if it is not believed, or there is none yet."""
        try:
            copy = open_copy(self._store, keys, bucket_content(self._store, to_restore=False), root=self._root)
        except (RestoreRefused, PackedError) as error:
            yield FIRST, ArchiveFinding(MANIFEST_KEY, None, f"{str(error).rstrip('.')}. {_COPIES}")
            return None
        for generation in copy.content.generations:
            for name in sorted(copy.listed(generation).small):
                try:
                    copy.small(generation, name)
                except (RestoreRefused, PackedError, ObjectStoreError) as error:
                    yield generation.number, ArchiveFinding(name, None, f"{str(error).rstrip('.')}. {_COPIES}")
        return copy

    def _copies(
        self, folders: dict[int, _Folder], held: dict[int, list[ArchivedFile]], copy: CheckedCopy | None
    ) -> Iterator[Found]:
        """Check the sealed binlogs before the newest one that was copied: the relay copies later ones when it runs."""
        last = max(
            (
                (number, file.number)
                for number, files in held.items()
                for file in files
                if number in folders and file.name + PLACE_SUFFIX in folders[number].objects
            ),
            default=None,
        )
        for number, files in held.items():
            folder = folders.get(number, _Folder(number))
            for file in files:
                # A binlog in the bucket alone is checked by `relay.tiers`.
                is_wanted = file.sealed and not file.damaged and last is not None and (number, file.number) <= last
                # `relay.tiers` checks a binlog that is in the bucket alone.
                if not is_wanted or file.tier is Tier.OBJECT:
                    continue
                what = self._what_lacks(folder, file, copy)
                if what is None:
                    continue
                self._lacking.setdefault(number, []).append(file)
                if not self._cure:
                    yield number, ArchiveFinding(file.name, None, f"{what}. {_COPIES}")
                else:
                    yield number, ArchiveFinding(file.name, None, f"{what}; it is copied again now")

    def _what_lacks(self, folder: _Folder, file: ArchivedFile, copy: CheckedCopy | None) -> str | None:
        url = partial(self._url, folder)
        if file.name + PLACE_SUFFIX not in folder.objects:
            return f"its copy lacks: {url(file.name + PLACE_SUFFIX)} is not there"
        try:
            if copy is None:
                return f"{url(file.name + PLACE_SUFFIX)} is not listed by a manifest that can be believed"
            generation = next(one for one in copy.content.generations if one.number == folder.number)
            checked = copy.note(generation, file.name)
            place, digest = checked.note.place, file_of(checked.note.file_row).digest
        except (RestoreRefused, PackedError) as error:
            return str(error).partition(". ")[0]
        stored = folder.objects.get(place.stored_name)
        if stored is None:
            return f"its copy lacks: {url(place.stored_name)} is not there"
        if stored.size != place.stored_bytes:
            return f"{url(place.stored_name)} has {stored.size} bytes, {place.stored_bytes} were stored"
        if place.plain_bytes != file.end:
            return f"{url(place.stored_name)} is of {place.plain_bytes} bytes of the binlog, which has {file.end}"
        for suffix, (size, _sha) in checked.beside.items():
            beside = folder.objects.get(file.name + suffix)
            if beside is None or beside.size != size:
                return f"{url(file.name + suffix)} is not the one that was copied: it is missing, or has another size"
        if None not in (digest, file.digest) and digest != file.digest:
            return f"{url(place.stored_name)} is of a binlog with the digest {digest}; {file.digest} is archived"
        if (end := self._other_end(file.name, stored, place, copy)) is not None:
            return f"{url(place.stored_name)} is not what was stored: {end}"
        if self._deep and f"sha256:{self._sha(stored)}" != place.digest:
            return f"{url(place.stored_name)} is not what was stored: its SHA-256 is another"
        return None

    def _other_end(self, file: str, stored: ObjectFacts, place: StorageLocation, copy: CheckedCopy) -> str | None:
        must, end_digest = is_encrypted_name(place.stored_name), place.end_digest
        source = StoredObject(self._store, stored.key, stored.size)
        try:
            PackedFile.open(source, file, copy.keys, must_be_encrypted=must, end_digest=end_digest)
        except (KeyMissing, KeyWrong):
            return None  # `deep` compares it as it is stored
        except PackedError as error:
            return error.text
        return None

    def _url(self, folder: _Folder, name: str) -> str:
        return self._store.url(folder.prefix + name)

    def _sha(self, stored: ObjectFacts) -> str:
        sha = hashlib.sha256()
        for start in range(0, stored.size, _PIECE):
            sha.update(self._store.get_range(stored.key, start, min(start + _PIECE, stored.size)))
        return sha.hexdigest()

    def _copied_again(
        self, generations: Sequence[tuple[int, Path]], keys: KeyRing | None, packing: PackOptions
    ) -> Iterator[Found]:
        for number, files in self._lacking.items():
            # Without its note it does not count as there; so a killed repair is repeated.
            self._store.delete([folder_of(number) + file.name + PLACE_SUFFIX for file in files])
        copying = MirrorPass(
            self._store, self._ownership, CompressionSettings(options=packing, keys=keys), threading.Event()
        )
        paths = dict(generations)
        for number, files in self._lacking.items():
            pictured = tuple(PicturedFile(file.name, file.number, file.end, sealed=True) for file in files)
            try:
                copying.run([PicturedGeneration(number, paths[number], folder_of(number), pictured)])
            except (PackedError, OSError, EOFError) as error:
                yield number, ArchiveFinding(files[0].name, None, f"it or one behind it cannot be copied: {error}")
        for (number, name), left in sorted(copying.left_out.items()):
            yield number, ArchiveFinding(name, None, f"it cannot be copied: {left.what}", advice=left.advice)


def _number_of(binlog: str) -> int | None:
    if not is_binlog_name(binlog):
        return None
    try:
        return binlog_number(binlog)
    except Malformed:
        return None
