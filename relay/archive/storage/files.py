"""All file calls of the archive, so that a test can replace the disk.

`catalog.sqlite` (SQLite's own calls) and `replicas.marks` (which may be lost) are the two files that do not go through here. The
calls themselves, which follow no links, are in `relay/disk/`.
"""

import errno
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Self

from relay.archive.storage.storage_location import PLACE_SUFFIX
from relay.disk import file_calls

Buffer = bytes | bytearray | memoryview

INDEX_NAME: Final = "mysql-bin.index"
CATALOG_NAME: Final = "catalog.sqlite"
LEDGER_TEXT_NAME: Final = "ledger.jsonl"
"""The second copy of the ledger, the source's identity and the origin: the catalog is rebuilt from it and from the binlogs."""
MARKS_NAME: Final = "replicas.marks"
LOCK_NAME: Final = "lock"
UUID_NAME: Final = "server_uuid"
DECOYS_NAME: Final = "decoys"
"""Random bytes by which unknown users look like accounts, the same ones after a restart; kept by the downstream side."""
REGISTRATION_NAME: Final = "registration.json"
"""The registration that the relay last sent to its source; kept by the upstream side."""
SOURCE_GTIDS_NAME: Final = "source-gtids.json"
"""The GTIDs that the source last reported; kept by the upstream side."""
SOURCE_SETTINGS_NAME: Final = "source-settings.json"
"""The settings for the logging of rows and such that the source last reported; kept by the upstream side."""
SCHEMA_NAME: Final = "source-schema.jsonl"
"""The source's table definitions, each with the position from which on it is valid; kept by the upstream side."""
SOURCE_NAME: Final = "source.json"
"""The address at which the source was followed last; kept by the upstream side."""
KNOWN_REPLICAS_NAME: Final = "known-replicas.json"
"""The known replicas, and the file that each needs; kept by the retention."""
PURGE_NAME: Final = "purging"
"""The names of the files that are being removed, until that is finished."""
GAP_NAME: Final = "gap.json"
"""The accepted gap in the source's binlogs after which this generation begins."""
ACCEPTED_NAME: Final = "gap-accepted.json"
"""The accepted gap after which no generation begins yet; in the archive's directory."""
VIEW_NAME: Final = "view.json"
"""In a view's directory: the settings that its files were built with."""
VIEW_STOP_NAME: Final = "view-stop.json"
"""In a view's directory: the reason why it has stopped."""
VIEW_WAITS_NAME: Final = "view-waits.json"
"""In a view's directory: the number of its transactions that need not wait for the one before them, and the reasons of the others."""
VIEW_LEFT_OUT_NAME: Final = "view-left-out.json"
"""In the directory of a view of a MariaDB: what it leaves out, and how often."""
MADE_FROM_NAME: Final = "made-from.json"
"""In each generation's directory of a view: the generation of the source's archive that it is built from."""
TIERS_NAME: Final = "tiers.json"
"""The bucket, and the origin of its keys: for readers of packed files that have no relay.toml."""
MANIFEST_RECORD_NAME: Final = "bucket-manifest.json"
"""The number of the manifest that the mirror wrote into its bucket last."""
OWN_NAMES: Final = frozenset(
    {
        *(
            INDEX_NAME,
            CATALOG_NAME,
            LEDGER_TEXT_NAME,
            MARKS_NAME,
            LOCK_NAME,
            UUID_NAME,
            DECOYS_NAME,
            PURGE_NAME,
            KNOWN_REPLICAS_NAME,
        ),
        *(REGISTRATION_NAME, SOURCE_GTIDS_NAME, SOURCE_SETTINGS_NAME, SOURCE_NAME, SCHEMA_NAME),
        *(
            GAP_NAME,
            ACCEPTED_NAME,
            VIEW_NAME,
            VIEW_STOP_NAME,
            VIEW_WAITS_NAME,
            VIEW_LEFT_OUT_NAME,
            MADE_FROM_NAME,
            TIERS_NAME,
            MANIFEST_RECORD_NAME,
        ),
    }
)
"""The names in an archive directory besides the binlogs and what is named after them."""
IDX_SUFFIX: Final = ".idx"
GTX_SUFFIX: Final = ".gtx"
"""NAME.gtx: the transactions of each block of the file."""
SUM_SUFFIXES: Final = (".sum", ".sum2")
"""NAME.sum and its copy: for a file whose events have no checksums, one of each block."""
MAP_SUFFIXES: Final = (".map", ".rules")
"""Next to a file of a view: the map from places of the source to places of the view, and the state of its rules there."""
BESIDE_SUFFIXES: Final = (IDX_SUFFIX, GTX_SUFFIX, *SUM_SUFFIXES, *MAP_SUFFIXES, PLACE_SUFFIX)
"""The suffixes of files that accompany a binlog and mean nothing without it."""
TEMPORARY_SUFFIX: Final = ".tmp"
"""A file that was being written when the process ended; removed at open."""
QUARANTINE_INFIX: Final = ".lost-"
"""NAME.lost-OFFSET: bytes that recovery cut off although they were not merely an incomplete tail."""
DAMAGED_INFIX: Final = ".damaged-"
"""NAME.damaged-TIME: a file as it was before a repair replaced it."""

_NOWAIT: Final = getattr(os, "RWF_NOWAIT", 0)
CAN_READ_CACHED: Final = bool(_NOWAIT)
"""True if the system can read only what is in memory, as `FileLayer.preadv_cached` does."""


class Listing(NamedTuple):
    """Names of the regular files and of the directories in a directory, in no order."""

    files: list[str]
    directories: list[str]


class FileLayer:
    """Plain system calls. Every method raises OSError as the system does."""

    def make_directory(self, path: Path) -> None:
        """Create `path` with mode 0750 whatever the umask, durably; an existing one is left alone, with its mode."""
        # Without that a power failure removes the directory, and all that was synced in it.
        for place in file_calls.make_directory(path):
            self.sync_directory(place.parent)

    def create(self, path: Path) -> int:
        """Create an empty file, mode 0640 whatever the umask; an old one is removed. Return a read-write descriptor."""
        return file_calls.make_file(path)

    def open_or_make(self, path: Path) -> int:
        """Open the file, which is created empty if it is missing; an existing one stays the same file for others who have it open.
        Read-write."""
        return file_calls.open_or_make(path)

    def open_write(self, path: Path) -> int:
        """Open an existing file, for reading and writing."""
        return file_calls.open_to_write(path)

    def open_alone(self, path: Path) -> int:
        """Do as `open_write`; a file with a second name is copied first, and the copy has this one. Not for one that is open
        already."""
        file_calls.part_from_other_names(path)
        return self.open_write(path)

    def open_in_place(self, path: Path) -> int:
        """Do as `open_write`, for a file that has no second name."""
        return file_calls.open_in_place(path)

    def open_read(self, path: Path) -> int:
        """Open an existing file, for reading."""
        return file_calls.open_to_read(path)

    def stored(self, path: Path) -> "StoredFile":
        """Open an existing file, to be read as a whole or in places: of a binlog its plain bytes, wherever and however it is stored."""
        return StoredFile(self, self.open_read(path))

    def close(self, fd: int) -> None:
        """Close a descriptor."""
        os.close(fd)

    def pwritev(self, fd: int, buffers: Sequence[Buffer], offset: int) -> int:
        """Write at `offset`; return how many bytes went in, which may be fewer than given."""
        return os.pwritev(fd, buffers, offset)

    def pread(self, fd: int, count: int, offset: int) -> bytes:
        """Return up to `count` bytes at `offset`; fewer only at the end of the file."""
        return os.pread(fd, count, offset)

    def preadv(self, fd: int, buffers: Sequence[Buffer], offset: int) -> int:
        """Read into `buffers`; return how many bytes came."""
        return os.preadv(fd, buffers, offset)

    def preadv_cached(self, fd: int, buffers: Sequence[Buffer], offset: int) -> int:
        """Read into `buffers` what is in memory. Raises: BlockingIOError if that is nothing; OSError, with EOPNOTSUPP or EINVAL if
        the file system has no such reads."""
        return os.preadv(fd, buffers, offset, _NOWAIT)

    def size(self, fd: int) -> int:
        """Return the file's size in bytes."""
        return os.fstat(fd).st_size

    def inode(self, fd: int) -> int:
        """Return the inode of an open file."""
        return os.fstat(fd).st_ino

    def inode_of(self, path: Path) -> int:
        """Return the inode of the file at `path`."""
        return os.stat(path).st_ino

    def size_of(self, path: Path) -> int:
        """Return the size in bytes of a file that is not open."""
        return path.stat().st_size

    def sizes(self, directory: Path, names: Iterable[str]) -> dict[str, int]:
        """Do as `size_of`, for many files in `directory`: a third less than with a path to be walked for each."""
        fd = file_calls.open_directory(directory)
        try:
            return {name: os.stat(name, dir_fd=fd).st_size for name in names}
        finally:
            os.close(fd)

    def truncate(self, fd: int, size: int) -> None:
        """Cut the file to `size` bytes."""
        os.ftruncate(fd, size)

    def sync_data(self, fd: int) -> None:
        """Return when the file's bytes and size are on stable storage."""
        os.fdatasync(fd)

    def rename(self, source: Path, target: Path) -> None:
        """Replace `target` by `source`. Durable after `sync_directory`."""
        file_calls.rename(source, target)

    def link(self, path: Path, other: Path) -> None:
        """Give the file at `path` one more name, which must be free."""
        file_calls.link(path, other)

    def unlink(self, path: Path) -> None:
        """Remove a file; a missing one is ignored."""
        file_calls.remove_file(path)

    def exists(self, path: Path) -> bool:
        """Return whether something exists at `path`."""
        return path.exists()

    def names(self, directory: Path) -> list[str]:
        """Return the names of the regular files in `directory`, in no order."""
        return self.listed(directory).files

    def listed(self, directory: Path) -> Listing:
        """Return the names in `directory`. It reads no inode."""
        found = Listing([], [])
        fd = file_calls.open_directory(directory)
        try:
            with os.scandir(fd) as entries:
                for entry in entries:
                    if entry.is_file(follow_symlinks=False):
                        found.files.append(entry.name)
                    elif entry.is_dir(follow_symlinks=False):
                        found.directories.append(entry.name)
        finally:
            os.close(fd)
        return found

    def remove_directory(self, path: Path) -> None:
        """Remove an empty directory."""
        file_calls.remove_directory(path)

    def remove_tree(self, path: Path) -> None:
        """Remove a directory and all that is in it."""
        file_calls.remove_tree(path)

    def free_bytes(self, directory: Path) -> int:
        """Return how many bytes may still be written there. Raises: OSError."""
        found = os.statvfs(directory)
        return found.f_bavail * found.f_frsize

    def whole_bytes(self, directory: Path) -> int:
        """Return the size of its file system in bytes. Raises: OSError."""
        found = os.statvfs(directory)
        return found.f_blocks * found.f_frsize

    def free_inodes(self, directory: Path) -> int | None:
        """Return how many files may still be created there; None: the file system does not count them. Raises: OSError."""
        found = os.statvfs(directory)
        return found.f_favail if found.f_files else None

    def sync_directory(self, directory: Path) -> None:
        """Return when renames, creations and removals in `directory` are on stable storage."""
        file_calls.sync_directory(directory)


class StoredFile:
    """A file that is open in a layer, for reading. `close` it, or use `with`, if `open` made it."""

    def __init__(self, layer: FileLayer, fd: int) -> None:
        self._layer = layer
        self._fd = fd

    @staticmethod
    def open(layer: FileLayer, path: Path) -> "StoredFile":
        """Open an existing file. Raises: OSError."""
        return layer.stored(path)

    @property
    def size(self) -> int:
        """The file's present size in bytes."""
        return self._layer.size(self._fd)

    def read_into(self, view: memoryview, offset: int) -> int:
        """Read at `offset`; return how many bytes came, 0 only at the end."""
        return self._layer.preadv(self._fd, [view], offset)

    def read(self, offset: int, count: int) -> bytes:
        """Return up to `count` bytes at `offset`; fewer only at the end of the file."""
        return self._layer.pread(self._fd, count, offset)

    def read_all(self) -> bytes:
        """Return the whole file. Raises: OSError, also if it is larger than what may be read as a whole."""
        size = self.size
        file_calls.check_readable(size)
        return self.read(0, size)

    def close(self) -> None:
        """Close the file."""
        self._layer.close(self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def write_all(layer: FileLayer, fd: int, buffers: Sequence[Buffer], offset: int, size: int) -> None:
    """Write `buffers` (`size` bytes together) at `offset`, continuing after short writes.

    Raises: OSError; then any prefix may have been written.
    """
    done = layer.pwritev(fd, buffers, offset)
    if done == size:
        return
    views = [memoryview(buffer).cast("B") for buffer in buffers]
    while done < size:
        skip = done
        rest = []
        for view in views:
            if skip >= len(view):
                skip -= len(view)
            else:
                rest.append(view[skip:])
                skip = 0
        written = layer.pwritev(fd, rest, offset + done)
        if written <= 0:
            raise OSError(5, "the system wrote nothing and gave no reason")
        done += written


def write_again(layer: FileLayer, path: Path, start: int, stop: int) -> None:
    """Write [start, stop) of a file over itself and sync it.

    After an fsync that failed, Linux takes the pages for clean although they never reached the disk: the next fsync would
    succeed without them. Written again, they are synced for what they are. Raises: OSError.
    """
    fd = layer.open_write(path)
    try:
        while start < stop:
            chunk = layer.pread(fd, min(1 << 20, stop - start), start)
            if not chunk:
                raise OSError(errno.EIO, f"the file ends at {start}, {stop} was written", str(path))
            write_all(layer, fd, [chunk], start, len(chunk))
            start += len(chunk)
        layer.sync_data(fd)
    finally:
        layer.close(fd)


def replace_file(layer: FileLayer, path: Path, content: Buffer) -> None:
    """Put `content` at `path` so that after any crash the old or the new content is there, whole."""
    temporary = path.with_name(path.name + TEMPORARY_SUFFIX)
    fd = layer.create(temporary)
    try:
        view = memoryview(content).cast("B")
        if len(view):
            write_all(layer, fd, [view], 0, len(view))
        layer.sync_data(fd)
    finally:
        layer.close(fd)
    layer.rename(temporary, path)
    layer.sync_directory(path.parent)
