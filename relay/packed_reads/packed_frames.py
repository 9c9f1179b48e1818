"""The frames of one packed binlog, wherever it is stored: fetched, decoded, and fetched again if they are not what was packed."""

import itertools
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from relay.archive.storage.archive_errors import ArchiveDamaged, ArchiveError, ArchiveUnavailable
from relay.object_store.object_errors import BucketAway, ObjectDamaged, ObjectMissing, ObjectStoreError
from relay.packed.byte_source import ByteSource, read_exactly
from relay.packed.frame_table import FrameTable
from relay.packed.key_ring import KeyRing
from relay.packed.packed_errors import KeyMissing, KeyWrong, PackedDamaged, PackedError
from relay.packed.packed_file import PackedFile

_TRIES: Final = 3
"""The fetches of a frame before it is believed to be damaged."""
_PAUSE_S: Final = 0.2
_PLAIN_FRAME: Final = 512 << 10


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StoredBytes:
    """The stored form of a binlog. `key`: the same for the same bytes, whoever opened them. `is_remote`: in a bucket. `where`: for
    messages. `close`: releases `source`. `is_plain`: as it was received, not packed. `is_encrypted`: an encrypted one was stored.
    `end_digest`: as in `StorageLocation`, by the note on the relay's own disk."""

    key: str
    source: ByteSource
    is_remote: bool
    where: str
    close: Callable[[], object]
    is_plain: bool = False
    is_encrypted: bool = False
    end_digest: str = ""


class Fetched(NamedTuple):
    """The bytes of a frame as they are stored."""

    data: bytes
    is_plain: bool
    is_remote: bool


class PackedFrames:
    """The frames of one binlog. Thread-safe; all but `frames`, `hold` and `release` may block. Its creator holds it once.

    name: the binlog's. find_again: looks up its present place; None: nowhere. known: its end, if it was read before; opened(key,
    end): called when it is read. boundary_before(offset): returns where a transaction ends there or before.
    """

    def __init__(
        self,
        name: str,
        stored: StoredBytes,
        keys: KeyRing | None,
        find_again: Callable[[], StoredBytes | None],
        known: PackedFile | None = None,
        opened: Callable[[str, PackedFile], None] = lambda key, packed: None,
        boundary_before: Callable[[int], int] = lambda offset: offset,
    ) -> None:
        self.name = name
        self.key = stored.key
        """The key of its frames."""
        self._stored = stored
        self._left: list[StoredBytes] = []
        """Its former places, where reads may be in progress."""
        self._keys = keys
        self._find_again = find_again
        self._opened = opened
        self._boundary_before = boundary_before
        self.packed = known
        """The contents of its end; None: it was not read."""
        self.frames = None if known is None else known.frames
        """The frame table; None: unknown before `open`."""
        self.last_frame = -1
        """The frame that its reader came to last: looking at it again is nothing new."""
        self._lock = threading.Lock()
        self._opening = threading.Lock()
        self._users = 1

    @property
    def is_remote(self) -> bool:
        """True if it is in a bucket."""
        return self._stored.is_remote

    def hold(self) -> bool:
        """Add a user. False: it is closed."""
        with self._lock:
            if not self._users:
                return False
            self._users += 1
            return True

    def release(self) -> None:
        """Remove a user; the last one closes it."""
        with self._lock:
            self._users -= 1
            is_last = not self._users
        if is_last:
            for stored in (self._stored, *self._left):
                stored.close()

    def open(self) -> FrameTable:
        """Return its table. Raises: ArchiveDamaged, ArchiveUnavailable, OSError."""
        if self.frames is None:
            with self._opening:
                if self.frames is None:
                    self.frames = self._fetched(self._read_end, 0)
        return self.frames

    def take_end_of(self, other: "PackedFrames") -> None:
        """Take over the table of the same bytes, which `other` has read. It does not block."""
        self.packed, self.frames = other.packed, other.frames

    def _read_end(self) -> FrameTable:
        stored = self._stored
        if stored.is_plain:
            whole, rest = divmod(stored.source.size, _PLAIN_FRAME)
            sizes = [_PLAIN_FRAME] * whole + ([rest] if rest else [])
            return FrameTable((size, size, 0) for size in sizes)
        self.packed = self._open_end(stored)
        self._opened(self.key, self.packed)
        return self.packed.frames

    def _open_end(self, stored: StoredBytes) -> PackedFile:
        must, end_digest = stored.is_encrypted, stored.end_digest
        return PackedFile.open(stored.source, self.name, self._keys, must_be_encrypted=must, end_digest=end_digest)

    def fetch(self, first: int, stop: int) -> list[Fetched]:
        """Return the stored bytes of frames [first, stop). Raises: as `open`."""
        table = self.open()
        return self._fetched(lambda: self._read(table, first, stop), table[first].plain_start)

    def _read(self, table: FrameTable, first: int, stop: int) -> list[Fetched]:
        stored = self._stored
        if stored.is_plain:
            edges = [table[index].plain_start for index in range(first, stop)] + [table[stop - 1].plain_stop]
        else:
            edges = [table[index].stored_start for index in range(first, stop)] + [table[stop - 1].stored_stop]
        begin, end = edges[0], edges[-1]
        data = read_exactly(stored.source, begin, end - begin)
        if len(data) != end - begin:
            what = f"it ends at {begin + len(data)}, before a frame does that ends at {end}"
            raise PackedDamaged(what, file=self.name, offset=begin + len(data))
        return [
            Fetched(data[one - begin : other - begin], stored.is_plain, stored.is_remote)
            for one, other in itertools.pairwise(edges)
        ]

    def decode(self, index: int, fetched: Fetched) -> bytes:
        """Return the plain bytes of a frame that was fetched. Raises: as `open`."""
        if fetched.is_plain:
            return fetched.data
        table = self.open()
        is_first = True

        def look() -> bytes:
            nonlocal is_first, fetched
            if not is_first:
                self._look_at_end_again(table, index)
                fetched = self._read(table, index, index + 1)[0]
            is_first = False
            if fetched.is_plain:
                return fetched.data
            assert self.packed is not None
            return self.packed.decode(index, fetched.data, from_own_disk=not fetched.is_remote)

        return self._fetched(look, table[index].plain_start)

    def _look_at_end_again(self, table: FrameTable, index: int) -> None:
        """Read the end of a file that replaced it, with another key or by a repair: it has an end of its own."""
        if self._stored.is_plain:
            return
        found = self._open_end(self._stored)
        if index >= len(found.frames) or found.frames[index][:3] != table[index][:3]:
            raise self._unavailable("it was packed again just now", "The next request finds it.")
        self.packed = found

    def _fetched(self, fetch: Callable[[], T], offset: int) -> T:
        """Call `fetch`, and again at a new place. offset: of the binlog, for errors."""
        tries = 0
        while True:
            tries += 1
            try:
                return fetch()
            except (ObjectMissing, FileNotFoundError) as error:
                if tries >= _TRIES:
                    raise self._gone(error, offset) from error
                if not self._moves():
                    if not self.is_remote:
                        raise self._gone(error, offset) from error
                    # Buckets now and then report existing objects as missing.
                    time.sleep(_PAUSE_S * tries * random.uniform(0.5, 1.5))
            except (PackedDamaged, ObjectDamaged) as error:
                if tries >= _TRIES:
                    raise self._damaged(error, offset) from error
                if self.is_remote:
                    time.sleep(_PAUSE_S * tries * random.uniform(0.5, 1.5))
            except (KeyMissing, KeyWrong) as error:
                raise self._unavailable(error.what, error.advice) from error
            except PackedError as error:
                raise self._damaged(error, offset) from error
            except ObjectStoreError as error:
                unavailable = self._unavailable(error.text, error.advice)
                unavailable.is_told = isinstance(error, BucketAway)
                raise unavailable from error

    def _moves(self) -> bool:
        """Look up the present place, as it is not at the old one. False: nowhere else."""
        found = self._find_again()
        if found is None:
            return False
        if found.where == self._stored.where:
            found.close()
            return False
        self._left.append(self._stored)
        self._stored = found
        return True

    def _gone(self, error: Exception, offset: int) -> ArchiveError:
        found = self._find_again()
        if found is None:
            return ArchiveUnavailable("it was removed from the archive just now", file=self.name)
        found.close()
        what = error.text if isinstance(error, ObjectStoreError) else f"it is not at {self._stored.where}"
        return ArchiveDamaged(what, file=self.name, offset=offset, boundary=self._boundary_before(offset))

    def _damaged(self, error: PackedError | ObjectStoreError, offset: int) -> ArchiveDamaged:
        what = f"what is stored at {self._stored.where} is not what was packed: {error.text}"
        return ArchiveDamaged(what, file=self.name, offset=offset, boundary=self._boundary_before(offset))

    def _unavailable(self, what: str, advice: str) -> ArchiveUnavailable:
        what = f"it is stored at {self._stored.where} and cannot be read now: {what}"
        return ArchiveUnavailable(what, file=self.name, advice=advice)
