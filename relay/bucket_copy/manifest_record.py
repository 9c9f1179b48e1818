"""The record of the bucket's manifest on the relay's own disk: the number that was written last, which reveals an older one."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from relay.archive.storage.files import MANIFEST_RECORD_NAME, FileLayer, replace_file
from relay.bucket_copy.bucket_manifest import BucketManifest

_MOST_BYTES: Final = 8192
_PUT: Final = b"put\n"


@dataclass(frozen=True, slots=True)
class ManifestRecord:
    """url: of the bucket. sequence: of the manifest that was written last; digests: of it as it is stored, and of those before it of
    which one is still there if the relay died before it put the new one. was_put: it did not die."""

    url: str
    sequence: int
    digests: tuple[str, ...]
    was_put: bool = False

    def write(self, root: Path) -> None:
        """Write it into the archive's directory, durably. Raises: OSError."""
        told = {"url": self.url, "sequence": self.sequence, "digests": list(self.digests)}
        replace_file(FileLayer(), root / MANIFEST_RECORD_NAME, (json.dumps(told) + "\n").encode())

    def is_put(self, root: Path) -> None:
        """Note that the manifest is in the bucket: earlier ones are not believed any more. This is not synced: after a power failure
        they may be.

        Raises: OSError.
        """
        fd = FileLayer().open_alone(root / MANIFEST_RECORD_NAME)
        try:
            os.lseek(fd, 0, os.SEEK_END)
            os.write(fd, _PUT)
        finally:
            os.close(fd)

    def is_of(self, digest: str) -> bool:
        """Return whether this relay wrote the manifest with that digest, as one of its last."""
        return digest in self.digests


def read_record(root: Path, url: str) -> ManifestRecord | None:
    """Return the record of the archive in `root`; None: nothing was recorded for that bucket, or it is unreadable. Raises: OSError."""
    try:
        with (root / MANIFEST_RECORD_NAME).open("rb") as file:
            line, _, rest = file.read(_MOST_BYTES).partition(b"\n")
        told = json.loads(line)
        if told["url"] != url:
            return None
        sequence, digests = told["sequence"], tuple(map(str, told["digests"]))
        was_put = rest.startswith(_PUT)
        if was_put:
            digests = digests[:1]
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return ManifestRecord(url, sequence, digests, was_put) if type(sequence) is int and sequence > 0 else None


def unlike_record(url: str, found: BucketManifest | None, record: ManifestRecord | None) -> str:
    """Return why the manifest in the bucket, at `url`, is not believed by the relay's own record: whole sentences; empty: it is.
    found: None: there is none."""
    if found is None:
        # A relay that died before it put the first one has noted it.
        if record is None or (record.sequence == 1 and not record.was_put):
            return ""
        return f"{url} is not there: it was removed. The last that this relay wrote has the number {record.sequence}."
    if record is not None and record.is_of(found.digest):
        return ""
    if record is not None and found.sequence <= record.sequence:
        return (
            f"{url} has the number {found.sequence}, and is not what this relay wrote; the last that it wrote has the number "
            f"{record.sequence}: an older one was put back, or somebody else wrote there."
        )
    if found.key_id is None:
        return f"{url} has the number {found.sequence}, and nothing on this relay's disk says that it is a relay's."
    return ""
