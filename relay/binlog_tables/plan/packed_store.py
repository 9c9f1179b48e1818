"""Stores whose binlogs may be packed: a local directory, or a folder of a bucket; and the choice of the store for a path."""

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Final

from relay.binlog_tables.plan.read_finding import StorageSilent
from relay.binlog_tables.plan.store import LocalReader, LocalStore, Reader, RemoteStore, Store, plain_path
from relay.object_store.object_errors import ObjectMissing, ObjectStoreError, StoreUnreachable
from relay.packed.packed_facts import plain_name
from relay.packed_reads.named_binlog import bucket_of, open_binlog, open_object

_BUCKETS: Final = ("s3", "gs", "az")


def store_of(path: str) -> Store:
    """Return the store for `path`: by its URL, else the local one. Buckets are read by obstore, or, without it, by fsspec as other file
    systems are. Raises: ImportError without either; OSError."""
    scheme, has_scheme, _ = path.partition("://")
    if not has_scheme or scheme == "file":
        return ArchiveStore()
    if scheme in _BUCKETS and importlib.util.find_spec("obstore") is not None:
        return BucketStore(path)
    return AskedStore(path)


class ArchiveStore(LocalStore):
    """The machine's own files. A binlog that is not at its path is looked for where the archive has it."""

    def open(self, path: str) -> Reader:
        """Open a file for reading; a packed one gives its plain bytes."""
        place = plain_path(path)
        if plain_name(place) is None:
            try:
                return LocalReader(place)
            except FileNotFoundError:
                pass
        with _silence_told(path):
            return AskedReader(open_binlog(place), path)


@contextmanager
def _silence_told(path: str) -> Iterator[None]:
    """Raise StorageSilent in place of an OSError that results from a bucket without an answer."""
    try:
        yield
    except (OSError, ObjectStoreError) as error:
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, StoreUnreachable | ConnectionError | TimeoutError):
                what = cause.text if isinstance(cause, StoreUnreachable) else cause
                raise StorageSilent(
                    f"{path} could not be read: {what}. Nothing of it is left out: the read fails, and is to be done again "
                    "when the storage answers."
                ) from None
            cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
        raise


class AskedReader:
    """An open file whose bytes may come from a bucket. All methods raise StorageSilent."""

    def __init__(self, reader: Reader, path: str) -> None:
        self._reader = reader
        self._path = path

    @property
    def size(self) -> int:
        """The size in bytes."""
        with _silence_told(self._path):
            return self._reader.size

    def read_into(self, view: memoryview, offset: int) -> int:
        """Read at `offset`."""
        with _silence_told(self._path):
            return self._reader.read_into(view, offset)

    def close(self) -> None:
        """Close the file."""
        self._reader.close()


class AskedStore(RemoteStore):
    """A file system that fsspec knows; if it does not answer a read, StorageSilent is raised."""

    def open(self, path: str) -> Reader:
        """Open a file for reading."""
        with _silence_told(path):
            return AskedReader(super().open(path), path)


class BucketStore:
    """A bucket; if it does not answer, StorageSilent is raised.

    Paths are URLs; credentials and endpoint come from the environment of each machine that reads.
    """

    def __init__(self, url: str) -> None:
        """Open the bucket. Raises: OSError."""
        self._url = url
        self._store, _ = bucket_of(url)
        self._root = self._store.url()

    def __reduce__(self) -> tuple[type["BucketStore"], tuple[str]]:
        """Prepare for an executor, which opens the bucket itself."""
        return BucketStore, (self._url,)

    def _key(self, path: str) -> str:
        return path.removeprefix(self._root).strip("/")

    def is_directory(self, path: str) -> bool:
        """Return whether anything is below `path`."""
        return next(self._below(path), None) is not None

    def is_file(self, path: str) -> bool:
        """Return whether there is an object at `path`."""
        key = self._key(path)
        try:
            with _silence_told(path):
                return bool(key) and self._store.head(key).key == key
        except ObjectMissing:
            return False
        except ObjectStoreError as error:
            raise OSError(5, error.text, path) from error

    def names(self, directory: str) -> list[str]:
        """Return the names in a folder, sorted."""
        return sorted({name.partition("/")[0] for name in self._below(directory)})

    def _below(self, directory: str) -> Iterator[str]:
        folder = self._key(directory)
        try:
            with _silence_told(directory):
                for facts in self._store.list(folder):
                    if not folder or facts.key.startswith(f"{folder}/"):
                        yield facts.key.removeprefix(folder).lstrip("/")
        except ObjectStoreError as error:
            raise OSError(5, error.text, directory) from error

    def matching(self, pattern: str) -> list[str]:
        """Return the objects of one folder that a pattern names, sorted."""
        folder, _, wanted = pattern.rpartition("/")
        return [self.join(folder, name) for name in self.names(folder) if fnmatchcase(name, wanted)]

    def join(self, directory: str, name: str) -> str:
        """Return the path of `name` in `directory`."""
        return f"{directory.rstrip('/')}/{name}"

    def open(self, path: str) -> Reader:
        """Open an object; a packed binlog gives its plain bytes."""
        with _silence_told(path):
            return AskedReader(open_object(self._store, self._key(path)), path)
