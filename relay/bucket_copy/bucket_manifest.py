"""The manifest of a bucket's copy: its number, and the digest of each object that the copy is made of.

    binlog-relay-manifest.json      number, archive, small files, parts, pages; bound as all objects (`signed_object`)
    [gNNNN/]manifest-P-N.json       a page: the digests of the notes of up to 256 binlogs; the manifest has the page's digest

The note of a binlog (NAME.place) has the digests of its packed file and of its indexes. A page is written under a new name each time,
so a manifest is whole at any moment; the number grows by one with each that is written. Objects are written before the manifest that
lists them, with its number: what a relay had written when it died is recognized by a number that is one higher.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any, Final

from protocol.position import binlog_number, is_binlog_name
from relay.bucket_copy.mirror_errors import RestoreRefused
from relay.bucket_copy.mirror_parts import part_of
from relay.bucket_copy.mirrored_names import SMALL_FILES
from relay.bucket_copy.signed_object import NotAuthentic, SignedContent, Signer, digest_of
from relay.object_store.object_errors import ObjectMissing
from relay.object_store.object_store import ObjectStore

MANIFEST_KEY: Final = "binlog-relay-manifest.json"
MOST_MANIFEST_BYTES: Final = 64 << 20
MOST_NOTE_BYTES: Final = 64 << 20
"""The most bytes of a note that are read: it may have megabytes of GTIDs."""
_MOST_PAGE_BYTES: Final = 1 << 20
_PAGE_FILES: Final = 256
_PAGE: Final = re.compile(r"manifest-[0-9]{6,20}-[0-9]{1,20}\.json")
_FOLDER: Final = re.compile(r"(g[0-9]{4,9}/)?")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_ADVICE: Final = (
    "Put it back from the bucket's versions. If that cannot be: `archive restore --accept-changed` takes what is there as it is, and "
    "nobody can say then that all of it is this archive's."
)


@dataclass(slots=True)
class ListedGeneration:
    """Digests, by name: of the notes of whole binlogs, of small files, and of parts. pages: by number, their keys and
    digests."""

    files: dict[str, str] = field(default_factory=dict)
    small: dict[str, str] = field(default_factory=dict)
    parts: dict[str, str] = field(default_factory=dict)
    pages: dict[int, tuple[str, str]] = field(default_factory=dict)


@dataclass(slots=True)
class BucketManifest:
    """archives: the archive's uuid, then those that it had before it was claimed. by_folder: the generations. key_id: as in
    `SignedContent`. digest: of the manifest as it is stored; empty: it is not."""

    archives: tuple[str, ...]
    sequence: int = 0
    by_folder: dict[str, ListedGeneration] = field(default_factory=dict)
    key_id: str | None = None
    digest: str = ""

    def of(self, folder: str) -> ListedGeneration:
        """Return what is listed of a generation."""
        return self.by_folder.setdefault(folder, ListedGeneration())


def is_page(name: str) -> bool:
    """Return whether an object of that name, without its folder, is a page of a manifest."""
    return _PAGE.fullmatch(name) is not None


def page_number(file: str) -> int:
    """Return the number of the page that lists a binlog."""
    return binlog_number(file) // _PAGE_FILES


def page_key(folder: str, number: int, sequence: int) -> str:
    """Return the key of a page that is written with the manifest of that number."""
    return f"{folder}manifest-{number:06d}-{sequence}.json"


def encoded_page(files: dict[str, str]) -> bytes:
    """Return a page. files: the binlogs of one page."""
    return json.dumps(files, sort_keys=True).encode()


def encoded_manifest(manifest: BucketManifest) -> bytes:
    """Return the manifest's content."""
    told = {
        folder: {
            "pages": {str(number): page for number, page in sorted(listed.pages.items())},
            "small": listed.small,
            "parts": listed.parts,
        }
        for folder, listed in sorted(manifest.by_folder.items())
    }
    return json.dumps({"archives": list(manifest.archives), "generations": told}).encode()


def read_manifest(store: ObjectStore, signer: Signer) -> BucketManifest | None:
    """Return the bucket's manifest, with its pages; None: there is none. Blocking.

    Raises: RestoreRefused: it, or a page, is not what was written; KeyMissing; ObjectStoreError.
    """
    try:
        data = store.get(MANIFEST_KEY, MOST_MANIFEST_BYTES)
    except ObjectMissing:
        return None
    try:
        found = signer.read(MANIFEST_KEY, data)
    except NotAuthentic as error:
        raise RestoreRefused(f"{store.url(MANIFEST_KEY)} is not what was written there: {error}. {_ADVICE}") from None
    return _decoded(store, found, digest_of(data))


def _decoded(store: ObjectStore, found: SignedContent, digest: str) -> BucketManifest:
    manifest = BucketManifest((found.archive,), found.sequence, {}, found.key_id, digest)
    key = MANIFEST_KEY
    try:
        told = json.loads(found.content)
        manifest.archives = tuple(_text(one) for one in told["archives"])
        if not manifest.archives or manifest.archives[0] != found.archive:
            raise ValueError("it names no archive")
        for folder, listed in told["generations"].items():
            if _FOLDER.fullmatch(folder) is None:
                raise ValueError(f"{folder!r} is no folder of a generation")
            generation = manifest.of(folder)
            generation.small = _digests(listed["small"], SMALL_FILES.__contains__)
            generation.parts = _digests(listed["parts"], lambda name: "/" not in name and part_of(name) is not None)
            for number, (page, page_digest) in listed["pages"].items():
                if not page.startswith(folder) or not is_page(page[len(folder) :]):
                    raise ValueError(f"{page!r} is no page")
                key = page
                data = store.get(page, _MOST_PAGE_BYTES)
                if digest_of(data) != page_digest:
                    raise ValueError("its digest is not the one in the manifest")
                generation.files |= _digests(json.loads(data), is_binlog_name)
                generation.pages[int(number)] = page, page_digest
                key = MANIFEST_KEY
    except ObjectMissing:
        raise RestoreRefused(
            f"{store.url(key)}, a page of the manifest, is not there: somebody removed it. {_ADVICE}"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise RestoreRefused(f"{store.url(key)} is not what was written there: {error}. {_ADVICE}") from None
    return manifest


def _digests(told: Any, is_name: Any) -> dict[str, str]:
    """Decode digests. Raises: ValueError."""
    if not isinstance(told, dict):
        raise ValueError("it has no list of digests")
    for name, digest in told.items():
        if not is_name(name) or not isinstance(digest, str) or _DIGEST.fullmatch(digest) is None:
            raise ValueError(f"it has {name!r} with the digest {str(digest)[:80]!r}")
    return told


def _text(told: Any) -> str:
    if not isinstance(told, str):
        raise ValueError("it names no archive")
    return told
