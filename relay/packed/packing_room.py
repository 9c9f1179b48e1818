"""The room on the archive's disk that packed files take for a while: until the plain file is removed, or until the bucket has them.

Receiving has priority: packing waits while the disk has little room, and ends when room becomes little meanwhile. `min_free` removes
no binlog for what is borrowed: it comes back within moments.
"""

import errno
import threading
from collections.abc import Callable
from typing import Final

from protocol.errors import RelayError

RESERVE_BYTES: Final = 128 << 20
"""So much stays free for what is received meanwhile."""
_RESERVE_PART: Final = 40
"""At most one of so many parts of the disk: half of what `[retention]` leaves free when it does not wait for the mirror any more."""
_LEAST_RESERVE: Final = 1 << 20
_FIRST_SHARE: Final = 0.5
"""The share of a plain binlog that a packed one is expected to take, until one was packed."""
_MOST_SHARE: Final = 1.1
_LOOK_BYTES: Final = 4 << 20


class NoRoomToPack(RelayError, OSError):
    """The disk has too little room for a packed file. Nothing is left of what was begun.

    An OSError too, like every other reason for which a disk takes no more.
    """

    def __init__(self, reserve_bytes: int = RESERVE_BYTES) -> None:
        super().__init__(
            f"packing it would leave less than {reserve_bytes >> 20} MiB free on the archive's disk: make room there"
        )
        self.errno = errno.ENOSPC


def reserve_of(disk_bytes: int) -> int:
    """Return what stays free on a disk of that size: on a small one less, so that the mirror can pack while `[retention]` waits for
    it."""
    return max(_LEAST_RESERVE, min(RESERVE_BYTES, disk_bytes // _RESERVE_PART))


class PackingRoom:
    """The room of one archive's file system. Any thread. free_bytes: returns how much may still be written there; raises OSError.
    reserve_bytes: so much of it stays free."""

    def __init__(self, free_bytes: Callable[[], int], reserve_bytes: int = RESERVE_BYTES) -> None:
        self._free_bytes = free_bytes
        self._reserve_bytes = reserve_bytes
        self._lock = threading.Lock()
        self._borrowed = 0
        self._share = _FIRST_SHARE

    @property
    def borrowed_bytes(self) -> int:
        """The room borrowed by all packing in progress."""
        return self._borrowed

    def begin(self, plain_bytes: int) -> "BorrowedRoom":
        """Borrow room for a binlog with so many bytes. Raises: NoRoomToPack; OSError."""
        if self._free_bytes() < self._reserve_bytes + min(_MOST_SHARE, self._share) * plain_bytes:
            raise NoRoomToPack(self._reserve_bytes)
        return BorrowedRoom(self, plain_bytes)

    def take(self, count: int) -> None:
        """Borrow more, or with a negative count give back. Only `BorrowedRoom` calls it, as `look` and `was_packed`."""
        with self._lock:
            self._borrowed += count

    def look(self) -> None:
        """Check the room. Raises: NoRoomToPack; OSError."""
        if self._free_bytes() < self._reserve_bytes:
            raise NoRoomToPack(self._reserve_bytes)

    def was_packed(self, plain_bytes: int, packed_bytes: int) -> None:
        """Expect the next one to take as much of its size, and a quarter more."""
        if plain_bytes:
            self._share = 1.25 * packed_bytes / plain_bytes


class BorrowedRoom:
    """The room of one packed file. For one thread."""

    def __init__(self, room: PackingRoom, plain_bytes: int) -> None:
        self._room = room
        self._plain_bytes = plain_bytes
        self._taken = self._looked_at = 0

    def wants(self, count: int) -> None:
        """Borrow room before so many more bytes are written. Raises: NoRoomToPack; OSError."""
        if self._taken + count - self._looked_at >= _LOOK_BYTES:
            self._room.look()
            self._looked_at = self._taken + count
        self._taken += count
        self._room.take(count)

    def holds(self, size: int) -> None:
        """Note that it has so many bytes by now, from whichever writer. Raises: as `wants`."""
        if size > self._taken:
            self.wants(size - self._taken)

    def is_packed(self) -> None:
        """Note that all of it is written."""
        self._room.was_packed(self._plain_bytes, self._taken)

    def give_back(self) -> None:
        """Give the room back: the packed file is removed, or the plain one is. May be called again."""
        self._room.take(-self._taken)
        self._taken = 0
