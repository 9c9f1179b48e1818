"""The reads of a bucket's copy, compared with its manifest: objects that are older, of another archive or of another place are
refused."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from relay.archive.catalog.catalog_rows import file_of
from relay.archive.storage.storage_location import PLACE_SUFFIX, LocationNote
from relay.bucket_copy.bucket_content import BucketContent, BucketGeneration
from relay.bucket_copy.bucket_manifest import (
    MANIFEST_KEY,
    MOST_MANIFEST_BYTES,
    MOST_NOTE_BYTES,
    BucketManifest,
    ListedGeneration,
    read_manifest,
)
from relay.bucket_copy.manifest_record import read_record, unlike_record
from relay.bucket_copy.mirror_errors import RestoreRefused
from relay.bucket_copy.mirror_parts import MOST_STORED_PART, MirrorPart, covered_to, opened_part, part_of
from relay.bucket_copy.mirrored_names import BESIDE
from relay.bucket_copy.signed_object import NotAuthentic, SignedContent, Signer, digest_of
from relay.object_store.object_errors import ObjectMissing
from relay.object_store.object_store import ObjectStore
from relay.packed.key_ring import KeyRing
from relay.packed.packed_facts import PackedFacts

_WITHOUT_IT: Final = (
    "Put it back from the bucket's versions. If it is lost for good, remove its .place object: then the copy has a hole there, or "
    "begins behind it, and --holes says what is restored."
)
_AS_IT_IS: Final = (
    "Put it back from the bucket's versions. If that cannot be: the same command with --accept-changed takes what is there as it is, "
    "and nobody can say then that all of it is this archive's."
)
_ONE_MORE: Final = 1
"""The objects that a relay had put when it died have the number of the manifest that it did not write any more."""


@dataclass(frozen=True, slots=True)
class WantedCopy:
    """The requirements for a copy. accept_unencrypted: although the ring has an active key, what was created without one is accepted
    too. accept_changed: what differs from the manifest is accepted too. at_least: the lowest number that its manifest may have."""

    accept_unencrypted: bool = False
    accept_changed: bool = False
    at_least: int = 0


AS_WRITTEN: Final = WantedCopy()
"""Nothing is accepted that may be foreign."""


@dataclass(frozen=True, slots=True)
class CheckedNote:
    """A note, and the indexes of its binlog: sizes and digests by suffix."""

    note: LocationNote
    beside: dict[str, tuple[int, str]]


class CheckedCopy:
    """`open_copy` creates it. Blocking; any thread. Raises: RestoreRefused; KeyMissing; ObjectStoreError."""

    def __init__(
        self,
        store: ObjectStore,
        keys: KeyRing | None,
        content: BucketContent,
        manifest: BucketManifest,
        wanted: WantedCopy,
    ) -> None:
        self.content = content
        self.manifest = manifest
        self.doubts: list[str] = []
        """The objects that differ from the manifest, and were accepted nevertheless."""
        self._store = store
        self.keys = keys
        self._signer = Signer(keys)
        self._wanted = wanted
        self._must_be_signed = must_be_signed(keys, wanted)

    @property
    def is_signed(self) -> bool:
        """True if only an owner of the key can have created it."""
        return self.manifest.key_id is not None

    def listed(self, generation: BucketGeneration) -> ListedGeneration:
        """Return what the manifest lists of a generation."""
        return self.manifest.by_folder.get(generation.folder, ListedGeneration())

    def note(self, generation: BucketGeneration, file: str) -> CheckedNote:
        """Return the note of a whole binlog."""
        name = file + PLACE_SUFFIX
        key, digest = generation.folder + name, self.listed(generation).files.get(file)
        found = self._content(key, self._store.get(key, MOST_NOTE_BYTES), digest, _WITHOUT_IT)
        try:
            note = LocationNote.decode(found.content)
            row = file_of(note.file_row)
            if row.name != file or type(row.end) is not int or not 0 <= row.end == note.place.plain_bytes:
                raise ValueError("what it says of its binlog cannot be")
            return CheckedNote(note, _beside(found.bound))
        except (ValueError, TypeError) as error:
            raise RestoreRefused(f"{self._store.url(key)} cannot be read: {error}. {_WITHOUT_IT}") from None

    def small(self, generation: BucketGeneration, name: str) -> bytes:
        """Return a small file."""
        key, digest = generation.folder + name, self.listed(generation).small.get(name)
        return self._content(key, self._store.get(key), digest, _AS_IT_IS).content

    def beside(self, generation: BucketGeneration, file: str, suffix: str, note: CheckedNote) -> bytes | None:
        """Return an index of a binlog; None: it is changed, and that was accepted: it is rebuilt from the binlog."""
        key, (size, digest) = generation.folder + file + suffix, note.beside[suffix]
        try:
            data = self._store.get(key, max(size, 1))
            if digest_of(data) == digest:
                return data
            what = "it is not what its note tells of: it was changed, or is of another binlog"
        except ObjectMissing:
            what = "it is not there: somebody removed it"
        self._doubt(key, what, _AS_IT_IS)
        return None

    def part(self, generation: BucketGeneration, part: MirrorPart) -> bytes:
        """Return the binlog's bytes of a part. Raises also: PackedError."""
        data = self._store.get(part.key, MOST_STORED_PART)
        reader = opened_part(data, part, self.keys)
        digest = self.listed(generation).parts.get(part.key.rpartition("/")[2])
        if digest != digest_of(data):
            facts = reader.packed.facts
            self.check_facts(generation, part.key, facts)
            signed = SignedContent(b"", facts.archive, facts.sequence, reader.packed.key_id)
            what = self._why_not(signed, digest)
            if what:
                self._doubt(part.key, what, _AS_IT_IS)
        return reader.read_all()

    def check_facts(self, generation: BucketGeneration, key: str, facts: PackedFacts) -> None:
        """Check that a packed file is of the archive and the generation at whose place it is."""
        if facts.archive not in self.manifest.archives or facts.generation != generation.number:
            what = f"it is of generation {facts.generation} of the archive {facts.archive or 'of nobody'}"
            self._doubt(
                key, f"{what}, not of generation {generation.number} of {self.manifest.archives[0]}", _WITHOUT_IT
            )

    @property
    def accepts_changed(self) -> bool:
        """True if differences from the notes are accepted."""
        return self._wanted.accept_changed

    def lacks(self, key: str) -> None:
        """Note that a small file is listed and missing. It is refused, unless that is accepted."""
        self._doubt(key, "the manifest lists it, and it is not there: somebody removed it", _AS_IT_IS)

    def check_parts(self) -> None:
        """Check that the parts of growing binlogs reach as far as the manifest lists; else it is refused, unless that is accepted."""
        for generation in self.content.generations:
            listed: dict[str, list[MirrorPart]] = {}
            for name in self.listed(generation).parts:
                if (part := part_of(name)) is not None and part.file not in generation.files:
                    listed.setdefault(part.file, []).append(part)
            for file, parts in listed.items():
                covered, wanted = covered_to(generation.parts.get(file, [])), covered_to(parts)
                if covered < wanted:
                    what = f"its parts end at {covered}, and the manifest lists them up to {wanted}: some were removed"
                    self._doubt(generation.folder + file, what, _AS_IT_IS)

    def _content(self, key: str, data: bytes, digest: str | None, advice: str) -> SignedContent:
        is_listed = digest == digest_of(data)
        try:
            found = self._signer.read(key, data, is_listed=is_listed)
        except NotAuthentic as error:
            self._doubt(key, str(error), advice)
            content, _, line = data.rpartition(b"\n")
            return SignedContent(content if line.startswith(b'{"format"') else data, "", 0, None)
        if not is_listed and (what := self._why_not(found, digest)):
            self._doubt(key, what, advice)
        return found

    def _why_not(self, found: SignedContent, digest: str | None) -> str:
        """Return why an object that differs from the manifest's list is not newer, either; empty: it is."""
        manifest, sequence = self.manifest, found.sequence
        if found.archive not in manifest.archives:
            return f"it is of the archive {found.archive or 'of nobody'}, not of {manifest.archives[0]}"
        if (self._must_be_signed or self.is_signed) and found.key_id is None:
            return "it was made without the key"
        if sequence == manifest.sequence + _ONE_MORE:
            return ""
        if sequence > manifest.sequence:
            return (
                f"it was put there with manifest {sequence}, and the manifest there has the number {manifest.sequence}: an older "
                "manifest was put back, or it was removed"
            )
        if digest is None:
            return f"it is of manifest {sequence}, and the manifest there, {manifest.sequence}, does not list it"
        return f"it is not the one that the manifest lists, {manifest.sequence}: an older one, of {sequence}, or another's was put back"

    def _doubt(self, key: str, what: str, advice: str) -> None:
        """Note a difference. Raises: RestoreRefused, unless that is accepted."""
        text = f"{self._store.url(key)}: {what}"
        if not self._wanted.accept_changed:
            raise RestoreRefused(f"{text}. {advice}")
        self.doubts.append(text)


def must_be_signed(keys: KeyRing | None, wanted: WantedCopy) -> bool:
    """Return whether everything that was created without a key is refused."""
    return keys is not None and keys.active is not None and not wanted.accept_unencrypted


def open_copy(
    store: ObjectStore,
    keys: KeyRing | None,
    content: BucketContent,
    wanted: WantedCopy = AS_WRITTEN,
    root: Path | None = None,
) -> CheckedCopy:
    """Open the copy. root: of the archive, if its disk exists: it knows the last manifest's number. Blocking.

    Raises: RestoreRefused: the manifest is not believed, or is older than required; KeyMissing; ObjectStoreError.
    """
    archive, doubt = content.about.archive, ""
    try:
        manifest = read_manifest(store, Signer(keys))
    except RestoreRefused as error:
        if not wanted.accept_changed:
            raise
        manifest, doubt = None, str(error)
    if manifest is None:
        manifest = BucketManifest((archive,))
    elif must_be_signed(keys, wanted) and manifest.key_id is None:
        doubt = (
            f"{store.url(MANIFEST_KEY)} was made without a key, and [archive.encryption] of relay.toml has an active one: whoever may "
            "write to the bucket could have made it. If it is from the time before encryption was switched on: the same command with "
            "--accept-unencrypted"
        )
    elif archive not in manifest.archives:
        doubt = f"{store.url(MANIFEST_KEY)} is of the archive {manifest.archives[0]}, and binlog-relay.json there names {archive}"
    if root is not None:
        found = manifest if manifest.digest else None
        unlike = unlike_record(store.url(MANIFEST_KEY), found, read_record(root, store.url()))
        doubt = doubt or unlike.rstrip(".")
    if manifest.sequence < wanted.at_least:
        doubt = (
            f"{store.url(MANIFEST_KEY)} has the number {manifest.sequence}, and {wanted.at_least} or more is wanted: an older state of "
            "the bucket was put back, or newer objects were removed"
        )
    if doubt and not wanted.accept_changed:
        raise RestoreRefused(f"{doubt}. {_AS_IT_IS}")
    copy = CheckedCopy(store, keys, _with_listed(content, manifest), manifest, wanted)
    copy.doubts += [doubt] if doubt else []
    return copy


def _with_listed(content: BucketContent, manifest: BucketManifest) -> BucketContent:
    """Return the content with the generations that the manifest lists and of which nothing is there."""
    there = {generation.folder for generation in content.generations}
    lacking = [
        BucketGeneration(folder)
        for folder, listed in manifest.by_folder.items()
        if folder not in there and (listed.files or listed.parts)
    ]
    generations = sorted((*content.generations, *lacking), key=lambda one: one.number)
    return replace(content, generations=tuple(generations))


def _beside(bound: dict[str, Any]) -> dict[str, tuple[int, str]]:
    """Decode the sizes and digests. Raises: ValueError."""
    told = bound.get("beside", {})
    if not isinstance(told, dict):
        raise ValueError("it does not say what stands beside it")
    found = {}
    for suffix, one in told.items():
        if suffix not in BESIDE or not isinstance(one, list) or len(one) != len(("size", "digest")):
            raise ValueError("it does not say what stands beside it")
        size, digest = one
        if type(size) is not int or not 0 <= size <= MOST_MANIFEST_BYTES * 16 or not isinstance(digest, str):
            raise ValueError("it does not say what stands beside it")
        found[suffix] = size, digest
    return found
