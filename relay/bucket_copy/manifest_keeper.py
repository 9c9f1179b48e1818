"""Maintains the manifest of a bucket's copy as the mirror writes there, and knows whether the one that it finds is its own."""

from pathlib import Path
from typing import Any, Final

from relay.bucket_copy.bucket_manifest import (
    MANIFEST_KEY,
    BucketManifest,
    encoded_manifest,
    encoded_page,
    is_page,
    page_key,
    page_number,
    read_manifest,
)
from relay.bucket_copy.manifest_record import ManifestRecord, read_record, unlike_record
from relay.bucket_copy.mirror_errors import RestoreRefused
from relay.bucket_copy.signed_object import Signer, digest_of
from relay.object_store.object_store import ObjectStore
from relay.packed.key_ring import KeyRing
from relay.packed.packed_errors import KeyMissing, KeyWrong

_MOST_DIGESTS: Final = 32
"""The number of remembered manifests that could not be put, or seemed so."""


class ManifestKeeper:
    """The keeper for the archive `archive` in `root`. Blocking, for one thread. Raises: ObjectStoreError; OSError."""

    def __init__(self, store: ObjectStore, keys: KeyRing | None, root: Path, archive: str) -> None:
        self._store = store
        self.signer = Signer(keys)
        self._root = root
        self._archive = archive
        self.manifest = BucketManifest((archive,))
        self._may_be_there: list[str] = []
        """Digests of manifests of which one is in the bucket."""
        self._changed_pages: set[tuple[str, int]] = set()
        self.is_changed = False
        """True if something was put or removed since it was written."""
        self.trouble = ""
        """The reason why the manifest in the bucket is not believed: whole sentences; empty: it is, or there is none."""

    @property
    def next_sequence(self) -> int:
        """The number of the manifest that lists what is put now."""
        return self.manifest.sequence + 1

    def load(self) -> bool:
        """Read the manifest after a start and after another writer. Return whether it is believed: it has a digest with a key of the
        ring, or is the one that this relay wrote; and it is no older one."""
        record, self.trouble = read_record(self._root, self._store.url()), ""
        found: BucketManifest | None = None
        try:
            found = read_manifest(self._store, self.signer)
        except (RestoreRefused, KeyMissing, KeyWrong) as error:
            self.trouble = str(error)
        if not self.trouble:
            self.trouble = unlike_record(self._store.url(MANIFEST_KEY), found, record)
        if found is not None and self._archive not in found.archives:
            self.trouble = self.trouble or f"The manifest is of the archive {found.archives[0]}."
        if found is not None and not self.trouble:
            self.manifest, self._may_be_there = found, [found.digest]
            found.archives = (self._archive, *(one for one in found.archives if one != self._archive))
        else:
            known = (
                0 if found is None else found.sequence,
                0 if record is None or not self.trouble else record.sequence,
            )
            self.manifest, self._may_be_there = BucketManifest((self._archive,), max(known)), []
        self._changed_pages.clear()
        self.is_changed = True
        return found is not None and not self.trouble

    def claim(self) -> None:
        """Make the copy this archive's: its manifest names this archive first, then its earlier ones. One that is not believed stays
        as it is: the mirror reports that when it starts."""
        try:
            found = read_manifest(self._store, self.signer)
        except (RestoreRefused, KeyMissing, KeyWrong):
            return
        if found is not None:
            found.archives = (self._archive, *(one for one in found.archives if one != self._archive))
            self.manifest, self._may_be_there = found, [found.digest]
            self.write()

    # --- the objects -------------------------------------------------------------------------------------------------

    def signed(self, key: str, content: bytes, bound: dict[str, Any] | None = None) -> bytes:
        """Return the bytes to put as the object `key`."""
        return self.signer.sign(key, content, self._archive, self.next_sequence, bound)

    def has_note(self, folder: str, file: str, data: bytes) -> None:
        """Note that the note of a binlog is there, as `data`."""
        self.manifest.of(folder).files[file] = digest_of(data)
        self._touch(folder, file)

    def lacks_note(self, folder: str, file: str) -> None:
        """Note that the binlog is not there as a whole."""
        if self.manifest.of(folder).files.pop(file, None) is not None:
            self._touch(folder, file)

    def has_small(self, folder: str, name: str, data: bytes) -> None:
        """Note that a small file is there, as `data`."""
        self.manifest.of(folder).small[name] = digest_of(data)
        self.is_changed = True

    def has_part(self, key: str, data: bytes) -> None:
        """Note that a part is there, as `data`."""
        folder, slash, name = key.rpartition("/")
        self.manifest.of(folder + slash).parts[name] = digest_of(data)
        self.is_changed = True

    def lacks_part(self, key: str) -> None:
        """Note that a part is not there any more."""
        folder, slash, name = key.rpartition("/")
        self.is_changed |= self.manifest.of(folder + slash).parts.pop(name, None) is not None

    def _touch(self, folder: str, file: str) -> None:
        self._changed_pages.add((folder, page_number(file)))
        self.is_changed = True

    # --- writing it --------------------------------------------------------------------------------------------------

    def write(self) -> None:
        """List everything that was put until now, in a manifest with the next number."""
        sequence, old_pages = self.next_sequence, list[str]()
        for folder, number in sorted(self._changed_pages):
            listed = self.manifest.of(folder)
            files = {file: digest for file, digest in listed.files.items() if page_number(file) == number}
            if (old := listed.pages.pop(number, None)) is not None:
                old_pages.append(old[0])
            if files:
                key, data = page_key(folder, number, sequence), encoded_page(files)
                self._store.put_bytes(key, data)
                listed.pages[number] = key, digest_of(data)
        data = self.signer.sign(MANIFEST_KEY, encoded_manifest(self.manifest), self.manifest.archives[0], sequence)
        digest = digest_of(data)
        # Recorded first: otherwise one that was put by a relay that died then would be foreign.
        self._may_be_there = [digest, *self._may_be_there[:_MOST_DIGESTS]]
        record = ManifestRecord(self._store.url(), sequence, tuple(self._may_be_there))
        record.write(self._root)
        self._store.put_bytes(MANIFEST_KEY, data)
        record.is_put(self._root)
        self.manifest.sequence, self.manifest.digest, self.manifest.key_id = sequence, digest, self.signer.key_id
        self._may_be_there = [digest]
        self._changed_pages.clear()
        self.is_changed = False
        self._store.delete([old for old in old_pages if old not in self._pages()])

    def _pages(self) -> set[str]:
        return {key for listed in self.manifest.by_folder.values() for key, _digest in listed.pages.values()}

    def left_pages(self, keys: list[str]) -> list[str]:
        """Return, of all objects, the pages that no manifest has: those of an unfinished one."""
        used = self._pages()
        return [key for key in keys if is_page(key.rpartition("/")[2]) and key not in used]
