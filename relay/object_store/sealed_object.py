"""A sealed binlog on its way to the bucket, for tiers and for the mirror: packed with borrowed room, and read back from there.

A copy that is not wanted any more ends with CopyStopped, one that must not be moved with CopyFailed.
"""

import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from relay.archive.storage.files import TEMPORARY_SUFFIX
from relay.archive.storage.storage_location import StorageLocation, Tier
from relay.object_store.object_store import ObjectStore
from relay.packed.packed_facts import packed_name
from relay.packed.packing_room import BorrowedRoom
from relay.packing_process.compression_settings import CompressionSettings
from relay.packing_process.packed_copy import CopyOrder, CopyStopped, PackedCopy

_PIECE: Final = 8 << 20


class PackedBinlog(NamedTuple):
    """A packed binlog in the file `temporary`, on the disk as a whole. place: its future place."""

    place: StorageLocation
    copy: PackedCopy
    temporary: Path


class SealedPacking:
    """Packs one binlog after the other. Blocking, for one thread. mark: in the names of its temporary files."""

    def __init__(self, means: CompressionSettings, mark: str = "") -> None:
        self._means = means
        self._mark = mark
        self._borrowed: BorrowedRoom | None = None

    def pack(
        self, plain: Path, order: CopyOrder, tier: Tier, stop: Callable[[], bool], *, urgent: bool = True
    ) -> PackedBinlog:
        """Pack a binlog, which has its room until `give_room_back`. tier: its future tier.

        Raises: CopyFailed; CopyStopped; NoRoomToPack; OSError. Then nothing is left of it.
        """
        means, layer = self._means, self._means.packer.layer
        stored_name = packed_name(plain.name, means.encrypts)
        temporary = plain.with_name(stored_name + self._mark + TEMPORARY_SUFFIX)

        def stopped() -> bool:
            if self._borrowed is not None:
                with contextlib.suppress(FileNotFoundError):
                    self._borrowed.holds(layer.size_of(temporary))
            return stop()

        self.give_room_back()
        try:
            self._borrowed = None if means.options.room is None else means.options.room.begin(order.end)
            means.begin()
            copy = means.packer.make(plain, temporary, order, means.keys, stopped, urgent=urgent)
            if self._borrowed is not None:
                self._borrowed.holds(copy.stored_bytes)
                self._borrowed.is_packed()
        except BaseException:
            with contextlib.suppress(OSError):
                layer.unlink(temporary)
            self.give_room_back()
            raise
        key_id = None if means.keys is None else means.keys.active
        facts = (copy.stored_bytes, key_id, copy.packed_digest, order.end, copy.end_digest)
        return PackedBinlog(StorageLocation(tier, stored_name, *facts), copy, temporary)

    def give_room_back(self) -> None:
        """Give the room back: the binlog that was packed last is there alone, or not at all, and takes no temporary room."""
        if self._borrowed is not None:
            self._borrowed.give_back()


def unlike_sent(store: ObjectStore, key: str, place: StorageLocation, stop: Callable[[], bool]) -> str | None:
    """Read all of an object once more, as replicas will get it. Return how it differs from what was sent, after "it"; None: it does
    not.

    Raises: ObjectStoreError; CopyStopped.
    """
    found, size = store.head(key).size, place.stored_bytes
    if found != size:
        return f"has {found} bytes, {size} were sent"
    digest = sha256_of(size, lambda start, count: store.get_range(key, start, min(start + count, size)), stop)
    return None if digest == place.digest else "is read back as other bytes than were sent"


def sha256_of(size: int, read: Callable[[int, int], bytes], stop: Callable[[], bool]) -> str:
    """Return `sha256:…` of what `read(start, count)` returns. Raises: CopyStopped; as `read`."""
    sha = hashlib.sha256()
    for start in range(0, size, _PIECE):
        if stop():
            raise CopyStopped
        sha.update(read(start, _PIECE))
    return f"sha256:{sha.hexdigest()}"
