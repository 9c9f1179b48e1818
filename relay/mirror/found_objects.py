"""The objects that a start of the mirror finds in the bucket: those in the manifest, and the last ones of a relay that died."""

from collections.abc import Mapping, Sequence, Set

from relay.archive.storage.storage_location import PLACE_SUFFIX
from relay.bucket_copy.bucket_manifest import MOST_NOTE_BYTES
from relay.bucket_copy.manifest_keeper import ManifestKeeper
from relay.bucket_copy.mirror_parts import MOST_STORED_PART, MirrorPart, opened_part
from relay.bucket_copy.signed_object import NotAuthentic
from relay.object_store.object_errors import ObjectDamaged, ObjectMissing
from relay.object_store.object_store import ObjectStore
from relay.packed.key_ring import KeyRing
from relay.packed.packed_errors import KeyMissing, KeyWrong, PackedError


class FoundObjects:
    """The objects in the bucket. `manifest` is as it was loaded; objects that are taken over are listed in it. Blocking. Raises:
    ObjectStoreError."""

    def __init__(self, store: ObjectStore, keys: KeyRing | None, manifest: ManifestKeeper) -> None:
        self._store = store
        self._keys = keys
        self._manifest = manifest

    def notes(self, there: Set[str]) -> tuple[set[str], list[str]]:
        """Return those that count as copied, and those of them that the manifest did not list. `there` has folder and binlog of those
        with a note and a packed file."""
        listed = {folder + file for folder, one in self._manifest.manifest.by_folder.items() for file in one.files}
        for key in listed - there:
            folder, slash, name = key.rpartition("/")
            self._manifest.lacks_note(folder + slash, name)
        taken = [key for key in sorted(there - listed) if self._takes_note(key)]
        return (listed & there) | set(taken), taken

    def _takes_note(self, key: str) -> bool:
        try:
            data = self._store.get(key + PLACE_SUFFIX, MOST_NOTE_BYTES)
            found = self._manifest.signer.read(key + PLACE_SUFFIX, data)
        except (ObjectMissing, ObjectDamaged, NotAuthentic, KeyMissing, KeyWrong):
            return False
        if not self._is_ours(found.archive, found.sequence, signed=found.key_id is not None):
            return False
        folder, slash, name = key.rpartition("/")
        self._manifest.has_note(folder + slash, name, data)
        return True

    def _is_ours(self, archive: str, sequence: int, *, signed: bool) -> bool:
        """Return whether a relay of this archive put there an object that the manifest does not list."""
        if archive not in self._manifest.manifest.archives:
            return False
        if signed:
            # Also where the manifest was lost: it is listed again.
            return bool(self._manifest.trouble) or sequence == self._manifest.next_sequence
        return (
            not self._manifest.trouble
            and self._manifest.signer.key_id is None
            and sequence == self._manifest.next_sequence
        )

    def parts(
        self, found: Mapping[str, Sequence[MirrorPart]], numbers: Mapping[str, int]
    ) -> dict[str, list[MirrorPart]]:
        """Return the parts that count; foreign ones are removed. `found` is by folder and binlog; `numbers` are those of generations,
        by folder."""
        by_folder = self._manifest.manifest.by_folder
        keys = {part.key for parts in found.values() for part in parts}
        for folder, one in by_folder.items():
            for name in [name for name in one.parts if folder + name not in keys]:
                self._manifest.lacks_part(folder + name)
        counted: dict[str, list[MirrorPart]] = {}
        for binlog, parts in found.items():
            folder, slash, _name = binlog.rpartition("/")
            listed = by_folder[folder + slash].parts if folder + slash in by_folder else {}
            number = numbers.get(folder + slash, 0)
            for part in parts:
                if part.key.rpartition("/")[2] in listed or self._takes_part(part, number):
                    counted.setdefault(binlog, []).append(part)
                else:
                    self._store.delete([part.key])
        return counted

    def _takes_part(self, part: MirrorPart, generation: int) -> bool:
        try:
            data = self._store.get(part.key, MOST_STORED_PART)
            packed = opened_part(data, part, self._keys).packed
        except (ObjectMissing, ObjectDamaged, PackedError):
            return False
        facts, is_signed = packed.facts, packed.key_id is not None
        if facts.generation != generation or not self._is_ours(facts.archive, facts.sequence, signed=is_signed):
            return False
        self._manifest.has_part(part.key, data)
        return True
