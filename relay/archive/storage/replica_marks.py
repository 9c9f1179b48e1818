"""`replicas.marks`: the part of a file that each replica was receiving, surviving a kill of this process.

A replica that lost its connection asks for the event after the last one it stored, which may be inside a transaction. It alone may
start there, and only in a part that was sent to it. Source: docs/PROTOCOL.md#reconnecting.

A replica of another account under the same server_id and uuid is another replica: it neither replaces a mark nor may resume by it.
When all slots are used, the account that has most of them gives up its oldest.

Slots of 256 bytes, little endian. At 0: crc32 u32 of the 49 bytes that follow, server_id u32, length of uuid u8, uuid 36 bytes,
digest of the account's name u64. At 64 and 160: two copies of the state, written in turn, each crc32 u32 of the 68 bytes that follow,
then sequence u64, time u32 s, two windows of (file number u64, crc32 of the file's name u32, low u64, high u64): of the newest file
that was sent, and of the oldest one that may not have arrived; the files between them were sent whole. The sound copy with the
greater sequence counts, so a write that a kill tears leaves the state before it, which is what the replica has.

The file is written and not mapped: cutting a mapped file, or a disk that fails below one, ends the process with a signal.
"""

import hashlib
import os
import struct
import time
import zlib
from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from protocol.errors import Malformed
from protocol.position import Position, binlog_number
from relay.archive.storage.archive_errors import ArchiveError
from relay.disk.file_calls import open_or_make, part_from_other_names

log = structlog.get_logger()

SLOT_SIZE: Final = 256
FIRST_SLOTS: Final = 4096
MOST_SLOTS: Final = 65536
_IDENTITY: Final = struct.Struct("<IB36sQ")
_CRC: Final = struct.Struct("<I")
_STATE: Final = struct.Struct("<QIQIQQQIQQ")
_STATE_WITH_CRC: Final = struct.Struct("<IQIQIQQQIQQ")
_COPIES: Final = (64, 160)
# A file after which so much was sent has arrived: more than the buffers of both systems hold between here and a replica.
ARRIVED_AFTER_BYTES: Final = 64 << 20
# If files are so small that this many are on their way at once, the oldest are forgotten.
_MOST_FILES: Final = 4096


@dataclass(frozen=True, slots=True)
class ReplicaIdentity:
    """A replica as it registers: server_id (u32), server_uuid ("" where it has none, at most 36 bytes), and a digest of the account
    that it logged in as (u64)."""

    server_id: int
    server_uuid: str
    account: int

    @classmethod
    def of(cls, server_id: int, server_uuid: str, user: str) -> "ReplicaIdentity":
        """Return the identity. `user`: the account's name."""
        digest = hashlib.blake2b(user.encode(errors="surrogateescape"), digest_size=8).digest()
        return cls(server_id, server_uuid, int.from_bytes(digest, "little"))


@dataclass(frozen=True, slots=True)
class SentPlace:
    """The offset up to which a replica was sent a file."""

    identity: ReplicaIdentity
    place: Position


class _Window:
    __slots__ = ("high", "low", "name_crc", "number")

    def __init__(self, number: int = 0, name_crc: int = 0, low: int = 0, high: int = 0) -> None:
        self.number = number
        self.name_crc = name_crc
        self.low = low
        self.high = high

    def holds(self, number: int, name_crc: int, offset: int) -> bool:
        """Return whether `offset` of that file was in the part; both ends count: the high end is the event after the last."""
        return 0 < self.low <= offset <= self.high and self.number == number and self.name_crc == name_crc


# The window of a missing earlier file.
_NO_WINDOW: Final = _Window()


class Mark:
    """One session's mark of what it sends. `end` when the session is over; the mark stays for the next one."""

    __slots__ = ("_begun", "_current", "_earlier", "_file", "_marks", "_sent_before", "_sequence", "_slot", "identity")

    def __init__(self, marks: "ReplicaMarks", identity: ReplicaIdentity, slot: int, sequence: int) -> None:
        self._marks = marks
        self.identity = identity
        self._slot = slot
        self._sequence = sequence
        self._file = ""
        self._current = _Window()
        self._begun = 0
        """The offset at which sending the current file began."""
        self._earlier: deque[tuple[_Window, int]] = deque(maxlen=_MOST_FILES)
        """The files that may not have arrived, oldest first, each with the bytes sent by its end."""
        self._sent_before = 0
        """The bytes sent of all files before the current one."""

    def sending(self, file: str, low: int, high: int) -> None:
        """Note, before bytes up to `high` of `file` are sent, that they are; `low` is where this session's sending of the file began.

        Windows of the files before it are kept until they must have arrived. It costs about a microsecond.
        """
        current = self._current
        if file != self._file:
            if self._file:
                self._sent_before += current.high - self._begun
                self._earlier.append((current, self._sent_before))
            number, name_crc = _file_key(file)
            current = self._current = _Window(number, name_crc)
            self._begun = low
            self._file = file
        current.low = low
        current.high = high
        earlier = self._earlier
        while earlier and self._sent_before + high - self._begun - earlier[0][1] > ARRIVED_AFTER_BYTES:
            earlier.popleft()
        oldest = earlier[0][0] if earlier else _NO_WINDOW
        self._sequence = sequence = self._sequence + 1
        state = _STATE.pack(
            sequence,
            int(time.time()),
            current.number,
            current.name_crc,
            low,
            high,
            oldest.number,
            oldest.name_crc,
            oldest.low,
            oldest.high,
        )
        self._marks.write(self._slot * SLOT_SIZE + _COPIES[sequence & 1], _CRC.pack(zlib.crc32(state)) + state)

    def arrived(self) -> None:
        """Note that the replica has everything that was sent: it may continue at the end of it, and nowhere before."""
        self._earlier.clear()
        self.sending(self._file, self._current.high, self._current.high)

    def end(self) -> None:
        """End the session: its slot may be reused once all others are younger."""
        self._marks.release(self)


class ReplicaMarks:
    """All marks of an archive. For the event loop's thread.

    They are in memory, and each change is written to the file. If that fails, it is logged once, and replicas are served all the
    same; the next change that can be written puts everything into the file again.
    """

    def __init__(self, path: Path, fd: int, memory: bytearray, most_slots: int) -> None:
        self._path = path
        self._fd = fd
        self._memory = memory
        self._is_kept = True
        """True if the file has what is in memory, as far as this process knows."""
        self._most_slots = most_slots
        self._slots: dict[ReplicaIdentity, int] = {}
        self._accounts: dict[int, OrderedDict[ReplicaIdentity, None]] = {}
        """The identities whose slots are used, by account, least recently used first."""
        self._free: list[int] = []
        self._users: dict[int, int] = {}
        """The number of active sessions per slot."""
        self._load()

    @classmethod
    def open(cls, path: Path, *, first_slots: int = FIRST_SLOTS, most_slots: int = MOST_SLOTS) -> "ReplicaMarks":
        """Open or create the file (mode 0640). A file of odd size is extended to whole slots. Raises: OSError."""
        part_from_other_names(path)
        fd = open_or_make(path)
        try:
            size = os.fstat(fd).st_size
            wanted = max(first_slots * SLOT_SIZE, -(-size // SLOT_SIZE) * SLOT_SIZE)
            if size != wanted:
                os.posix_fallocate(fd, 0, wanted)
            memory = _read(fd, wanted)
        except BaseException:
            os.close(fd)
            raise
        return cls(path, fd, memory, most_slots)

    def close(self) -> None:
        """Close the file; marks must not be used afterwards."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def begin(self, identity: ReplicaIdentity, file: str, offset: int) -> Mark:
        """Begin a session of this replica at (file, offset); its earlier mark is replaced.

        Call it after `may_resume`. Raises: ArchiveError when all slots are in use by connected replicas.
        """
        slot = self._slots.get(identity)
        sequence = 0
        if slot is None:
            slot = self._take_slot()
            self._name_slot(slot, identity)
        else:
            state = self._state(slot)
            sequence = state[0] if state is not None else 0
        self._use(identity, slot)
        self._users[slot] = self._users.get(slot, 0) + 1
        mark = Mark(self, identity, slot, sequence)
        mark.sending(file, offset, offset)
        return mark

    def may_resume(self, identity: ReplicaIdentity, file: str, offset: int) -> bool:
        """Return whether this very replica was receiving the part that contains (file, offset) when its last session ended."""
        slot = self._slots.get(identity)
        if slot is None or not self._is_named(slot, identity):
            return False
        state = self._state(slot)
        if state is None:
            return False
        try:
            number, name_crc = _file_key(file)
        except Malformed:
            return False
        newest, oldest = _Window(*state[2:6]), _Window(*state[6:10])
        if oldest.low and oldest.number < number < newest.number:
            return True
        return newest.holds(number, name_crc, offset) or oldest.holds(number, name_crc, offset)

    def knows(self, identity: ReplicaIdentity) -> bool:
        """Return whether this replica was ever sent something of these files."""
        return identity in self._slots

    def sent_in(self, files: Iterable[str]) -> list[SentPlace]:
        """Return the replicas that were receiving one of `files` last, each with the offset up to which. Some 4 us a slot: may be
        called in another thread."""
        names = {_file_key(name): name for name in files}
        found = []
        for identity, slot in list(self._slots.items()):
            state = self._state(slot)
            name = names.get((state[2], state[3])) if state is not None else None
            if state is not None and name is not None:
                found.append(SentPlace(identity, Position(name, state[5])))
        return found

    def write(self, at: int, data: bytes) -> None:
        """Put bytes into memory and file; for `Mark`."""
        if self._fd < 0:
            return
        self._memory[at : at + len(data)] = data
        try:
            if self._is_kept:
                _write(self._fd, data, at)
            else:
                _write(self._fd, self._memory, 0)
        except OSError as error:
            if self._is_kept:
                log.warning("replica_marks_not_kept", file=str(self._path), error=error.strerror)
            self._is_kept = False
            return
        if not self._is_kept:
            log.info("replica_marks_kept", file=str(self._path))
        self._is_kept = True

    def release(self, mark: Mark) -> None:
        """Release a mark, for `Mark.end`."""
        slot = self._slots.get(mark.identity)
        if slot is None:
            return
        left = self._users.get(slot, 0) - 1
        if left > 0:
            self._users[slot] = left
        else:
            self._users.pop(slot, None)

    def _load(self) -> None:
        used: list[tuple[int, ReplicaIdentity, int]] = []
        count = len(self._memory) // SLOT_SIZE
        for slot in range(count - 1, -1, -1):
            raw = self._memory[slot * SLOT_SIZE : slot * SLOT_SIZE + 4 + _IDENTITY.size]
            identity = _identity_of(raw)
            state = self._state(slot) if identity is not None else None
            if identity is None or state is None:
                self._free.append(slot)
            else:
                used.append((state[1], identity, slot))
        for _, identity, slot in sorted(used, key=lambda item: item[0]):
            if identity in self._slots:
                self._free.append(self._slots[identity])
            self._use(identity, slot)

    def _state(self, slot: int) -> tuple[int, ...] | None:
        best: tuple[int, ...] | None = None
        for copy in _COPIES:
            at = slot * SLOT_SIZE + copy
            raw = self._memory[at : at + _STATE_WITH_CRC.size]
            if _CRC.unpack_from(raw)[0] != zlib.crc32(raw[4:]):
                continue
            state = _STATE.unpack_from(raw, 4)
            if state[0] and (best is None or state[0] > best[0]):
                best = state
        return best

    def _is_named(self, slot: int, identity: ReplicaIdentity) -> bool:
        raw = self._memory[slot * SLOT_SIZE : slot * SLOT_SIZE + 4 + _IDENTITY.size]
        return _identity_of(raw) == identity

    def _use(self, identity: ReplicaIdentity, slot: int) -> None:
        self._slots[identity] = slot
        identities = self._accounts.setdefault(identity.account, OrderedDict())
        identities[identity] = None
        identities.move_to_end(identity)

    def _name_slot(self, slot: int, identity: ReplicaIdentity) -> None:
        uuid = identity.server_uuid.encode()
        if len(uuid) > 36:
            raise ArchiveError(f"a server_uuid of {len(uuid)} bytes; at most 36 are possible")
        at = slot * SLOT_SIZE
        # Windows first: a kill between the two must not leave one replica's windows under another's name.
        self.write(at + _COPIES[0], bytes(SLOT_SIZE - _COPIES[0]))
        packed = _IDENTITY.pack(identity.server_id, len(uuid), uuid, identity.account)
        self.write(at, _CRC.pack(zlib.crc32(packed)) + packed)

    def _take_slot(self) -> int:
        if self._free:
            return self._free.pop()
        count = len(self._memory) // SLOT_SIZE
        if count < self._most_slots:
            grown = min(count * 2, self._most_slots)
            os.posix_fallocate(self._fd, 0, grown * SLOT_SIZE)
            self._memory.extend(bytes((grown - count) * SLOT_SIZE))
            self._free.extend(range(grown - 1, count - 1, -1))
            return self._free.pop()
        for identities in sorted(self._accounts.values(), key=len, reverse=True):
            for identity in identities:
                slot = self._slots[identity]
                if not self._users.get(slot):
                    del self._slots[identity], identities[identity]
                    return slot
        raise ArchiveError(
            f"all {count} replica slots are in use by connected replicas",
            file=self._path.name,
            advice="Disconnect some.",
        )


def _read(fd: int, size: int) -> bytearray:
    data = bytearray(size)
    view, at = memoryview(data), 0
    while at < size and (count := os.preadv(fd, [view[at:]], at)):
        at += count
    return data


def _write(fd: int, data: bytes | bytearray, at: int) -> None:
    view = memoryview(data)
    while view:
        count = os.pwrite(fd, view, at)
        view, at = view[count:], at + count


def _identity_of(raw: bytes | bytearray) -> ReplicaIdentity | None:
    if not any(raw) or _CRC.unpack_from(raw)[0] != zlib.crc32(raw[4:]):
        return None
    server_id, length, uuid, account = _IDENTITY.unpack_from(raw, 4)
    try:
        return ReplicaIdentity(server_id, uuid[:length].decode(), account)
    except UnicodeDecodeError:
        return None


def _file_key(file: str) -> tuple[int, int]:
    return binlog_number(file), zlib.crc32(file.encode())
