"""The contents of an archive's bucket: by generation the small files, the whole binlogs, and parts of the one that grew."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from protocol.position import binlog_number, is_binlog_name
from relay.archive.catalog.generation_directories import FIRST, generation_numbers
from relay.archive.storage.storage_location import PLACE_SUFFIX
from relay.bucket_copy.mirror_errors import RestoreRefused
from relay.bucket_copy.mirror_parts import MirrorPart, part_of
from relay.bucket_copy.mirrored_names import SMALL_FILES
from relay.object_store.archive_object import ARCHIVE_KEY, ArchiveObject, read_archive_object
from relay.object_store.object_store import ObjectFacts, ObjectStore


@dataclass(slots=True)
class BucketGeneration:
    """folder: of its objects, with a slash at its end, or empty. files: whole binlogs, oldest first. objects: by name within the
    folder, all but parts. parts: by binlog."""

    folder: str
    files: list[str] = field(default_factory=list)
    objects: dict[str, ObjectFacts] = field(default_factory=dict)
    parts: dict[str, list[MirrorPart]] = field(default_factory=dict)

    @property
    def number(self) -> int:
        """The number of the generation."""
        return FIRST if not self.folder else int(self.folder.strip("g/"))

    @property
    def small(self) -> Iterator[str]:
        """The names of existing small files."""
        return (name for name in SMALL_FILES if name in self.objects)


@dataclass(frozen=True, slots=True)
class BucketContent:
    """about: whose archive it is. generations: oldest first, the last one is the one that grew."""

    about: ArchiveObject
    generations: tuple[BucketGeneration, ...]


_FOLDER_DEPTH: Final = 1


def bucket_content(store: ObjectStore, *, to_restore: bool = True) -> BucketContent:
    """List the bucket. to_restore: everything that makes it no whole copy is refused. Blocking.

    Raises: RestoreRefused, MirrorRefused; ObjectStoreError.
    """
    about = read_archive_object(store)
    if about is None:
        raise RestoreRefused(
            f"{store.url()} holds no archive: there is no {ARCHIVE_KEY}. Check the bucket and the prefix; only what [archive.mirror] "
            "wrote can be restored."
        )
    if not about.is_whole:
        raise RestoreRefused(
            f"{store.url()} has old binlogs of the archive {about.source!r}, which [archive.tiers] moved there, and no copy of it: "
            "without [archive.mirror] what the relay's disk had cannot be made again. Its binlogs can be read there: docs/TIERS.md."
        )
    found: dict[str, BucketGeneration] = {}
    for facts in store.list():
        folder, slash, name = facts.key.rpartition("/")
        if folder.count("/") >= _FOLDER_DEPTH:
            continue
        generation = found.setdefault(folder + slash, BucketGeneration(folder + slash))
        part = part_of(facts.key)
        if part is not None:
            generation.parts.setdefault(part.file, []).append(part)
            continue
        generation.objects[name] = facts
        binlog = name.removesuffix(PLACE_SUFFIX)
        if binlog != name and is_binlog_name(binlog):
            generation.files.append(binlog)
    folders = [folder.rstrip("/") for folder in found if folder]
    numbers = generation_numbers(folders)
    names = ["" if number == FIRST else f"g{number:04d}/" for number in numbers]
    ordered = [found[name] for name in names if name in found]
    for generation in ordered:
        generation.files.sort(key=binlog_number)
        if to_restore:
            _check_files(store, generation)
    if to_restore and not any(generation.files or generation.parts for generation in ordered):
        raise RestoreRefused(f"{store.url()} holds no binlog of the archive {about.source!r}: nothing was copied yet.")
    return BucketContent(about, tuple(ordered))


def _check_files(store: ObjectStore, generation: BucketGeneration) -> None:
    """Check the files. Raises: RestoreRefused if a whole file's packed bytes are missing."""
    for name in generation.files:
        packed = [suffix for suffix in (".zst", ".zst.enc") if name + suffix in generation.objects]
        if not packed:
            raise RestoreRefused(
                f"{store.url(generation.folder + name)}{PLACE_SUFFIX} is there, and the packed binlog is not: somebody removed it. An "
                "archive without it has a hole. Put it back, or remove the .place object if the archive's beginning may be lost."
            )
