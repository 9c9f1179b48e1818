"""A binlog by the name that a person gives: a file, plain or packed, its plain name in an archive, or a URL of an object."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol, TypeVar
from urllib.parse import urlsplit

from relay.archive.storage.archive_errors import ArchiveError
from relay.archive.storage.files import FileLayer, StoredFile
from relay.object_store.object_errors import ObjectMissing, ObjectStoreError
from relay.object_store.object_store import ObjectStore
from relay.object_store.store_options import StoreOptions
from relay.object_store.stored_object import StoredObject
from relay.packed.key_ring import KeyRing
from relay.packed.packed_errors import KeyUnreadable
from relay.packed.packed_facts import is_encrypted_name, plain_name
from relay.packed_reads.archive_layer import layer_of, tool_frames
from relay.packed_reads.packed_frames import PackedFrames, StoredBytes
from relay.packed_reads.packed_stored_file import PackedStoredFile
from relay.packed_reads.tool_keys import tool_keys

_BUCKET: Final = re.compile(r"(s3|gs|az):/+", re.ASCII)
_ENDPOINT: Final = "AWS_ENDPOINT_URL"
_DISK: Final = FileLayer()
T = TypeVar("T")


class NamedBinlog(Protocol):
    """A binlog's plain bytes. Blocking; what cannot be read is an OSError."""

    @property
    def size(self) -> int:
        """The number of bytes."""

    def read_into(self, view: memoryview, offset: int) -> int:
        """Read at `offset`; return how many bytes came, 0 only at the end."""

    def close(self) -> None:
        """Close it."""


def bucket_url(place: str) -> str | None:
    """Return `place` as a URL, also if it went through a path, which has one slash less; None: it is none of a bucket's."""
    match = _BUCKET.match(place)
    return None if match is None else f"{match[1]}://{place[match.end() :]}"


def bucket_of(url: str) -> tuple[ObjectStore, str]:
    """Return the bucket of a URL, opened with the settings of the environment, and the key in it. Raises: OSError."""
    parts = urlsplit(url)
    options = StoreOptions(f"{parts.scheme}://{parts.netloc}", endpoint=os.environ.get(_ENDPOINT), tries=4)
    return _as_os_error(lambda: ObjectStore(options), url), parts.path.strip("/")


def open_binlog(place: str) -> NamedBinlog:
    """Open it. Raises: OSError."""
    url = bucket_url(place)
    if url is not None:
        store, key = bucket_of(url)
        return open_object(store, key)
    path = Path(place)
    return _as_os_error(lambda: _open_local(path), place)


def _open_local(path: Path) -> NamedBinlog:
    layer = layer_of(path.parent)
    if plain_name(path.name) is None:
        return _Named(layer.stored(path), str(path))
    stored = StoredFile(_DISK, _DISK.open_read(path))
    facts = path.stat()
    key = f"{path}:{facts.st_ino}-{facts.st_mtime_ns}"
    is_encrypted = is_encrypted_name(path.name)
    bytes_of = StoredBytes(key, stored, False, str(path), stored.close, is_encrypted=is_encrypted)
    return _packed(path.name, bytes_of, layer_of(path.parent).packed.keys)


def open_object(store: ObjectStore, key: str) -> NamedBinlog:
    """Open an object of a bucket. Raises: OSError."""
    url = store.url(key)
    facts = _as_os_error(lambda: store.head(key), url)
    source = StoredObject(store, key, facts.size)
    name = key.rpartition("/")[2]
    is_plain, is_encrypted = plain_name(name) is None, is_encrypted_name(name)
    known_by = f"{url}:{facts.etag or facts.modified}"
    bytes_of = StoredBytes(known_by, source, True, url, lambda: None, is_plain, is_encrypted)
    return _as_os_error(lambda: _packed(name, bytes_of, tool_keys()), url)


def _packed(name: str, stored: StoredBytes, keys: KeyRing | None) -> NamedBinlog:
    frames = PackedFrames(plain_name(name) or name, stored, keys, lambda: None)
    opened = PackedStoredFile(_DISK, frames, tool_frames())
    try:
        frames.open()
    except BaseException:
        opened.close()
        raise
    return _Named(opened, stored.where)


class _Named:
    """Names the place in what it raises."""

    def __init__(self, opened: StoredFile, place: str) -> None:
        self._opened = opened
        self._place = place

    @property
    def size(self) -> int:
        return _as_os_error(lambda: self._opened.size, self._place)

    def read_into(self, view: memoryview, offset: int) -> int:
        return _as_os_error(lambda: self._opened.read_into(view, offset), self._place)

    def close(self) -> None:
        self._opened.close()


def _as_os_error(call: Callable[[], T], place: str) -> T:
    """Convert errors to OSError, which every reader of binlogs expects, whatever it reads from."""
    try:
        return call()
    except ObjectMissing as error:
        raise FileNotFoundError(2, error.what, place) from error
    except (ArchiveError, ObjectStoreError, KeyUnreadable, ValueError) as error:
        text = getattr(error, "text", str(error))
        raise OSError(5, text, place) from error
