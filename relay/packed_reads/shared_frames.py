"""Frames for all readers of a process: fetched once for all of them; fetched ahead of sequential readers; kept while there is room.

Reading ahead works as in the kernel's page cache: the first reader that reaches the last part that was read ahead triggers the next
part, which is twice as long. So 16 streams at one place read ahead once.
"""

import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final, TypeVar

from relay.archive.storage.archive_errors import ArchiveUnavailable
from relay.packed.frame_table import FrameTable
from relay.packed_reads.frame_counts import FROM_BUCKET, FROM_DISK, FrameCounts, FrameFacts, error_kind
from relay.packed_reads.packed_frames import PackedFrames
from relay.process.daemon_pool import DaemonPool

_STORE_THREADS: Final = 8
_DISK_THREADS: Final = 2
_FIRST_AHEAD: Final = 2
"""Frames that are read ahead of a reader that has just begun."""
_MOST_AHEAD_BYTES: Final = 8 << 20
_Key = tuple[str, int]
T = TypeVar("T")


class _Slot:
    """A frame that is here or is being fetched."""

    __slots__ = ("ahead", "coming", "data", "is_unread", "size")

    def __init__(self, size: int, *, is_unread: bool) -> None:
        self.size = size
        """The bytes that are counted for it."""
        self.data: bytes | None = None
        self.coming: Future[bytes] | None = Future()
        self.is_unread = is_unread
        """True if it was read ahead, and no reader reached it yet."""
        self.ahead = 0
        """A reader that reaches it triggers reading of so many frames; 0: none."""


class SharedFrames:
    """From any thread. limit_bytes: of what is kept and what is on its way, together.

    One frame is fetched even if it alone is larger than the limit.
    """

    def __init__(self, limit_bytes: int, *, store_threads: int = _STORE_THREADS) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        """The bytes that are kept, and on their way: stored and plain."""
        self.most_used_bytes = 0
        self._counts = FrameCounts()
        self._unread_bytes = 0
        self._slots: OrderedDict[_Key, _Slot] = OrderedDict()
        """The frames, oldest use first."""
        self._opening: dict[str, tuple[PackedFrames, Future[FrameTable]]] = {}
        self._waiting: deque[tuple[PackedFrames, int, Future[bytes]]] = deque()
        """Requested frames for which there was no room."""
        self._on_the_way = 0
        self._is_closed = False
        self._lock = threading.RLock()
        self._store_threads = DaemonPool(store_threads, "store-read")
        self._disk_threads = DaemonPool(_DISK_THREADS, "packed-read")

    def close(self) -> None:
        """Stop fetching; fetches in progress are not waited for. Those that wait for a frame get an error."""
        with self._lock:
            self._is_closed = True
            for pool in (self._store_threads, self._disk_threads):
                pool.close()
            left: list[tuple[str, Future[Any]]] = [(file.name, wanted) for file, _index, wanted in self._waiting]
            left += [(file.name, opening) for file, opening in self._opening.values()]
            # A silent bucket may delay these for half a minute: a thread that waits would keep the process alive.
            coming = [(key, slot.coming) for key, slot in self._slots.items() if slot.coming is not None]
            for key, future in coming:
                self._drop(key)
                left.append((Path(key[0]).name, future))
            self._waiting.clear()
            self._opening.clear()
            self._on_the_way = 0
        for name, wanted in left:
            wanted.set_exception(_closed(name))

    def facts(self) -> FrameFacts:
        """Return the contents and counts. It does not block for long."""
        with self._lock:
            counts = self._counts
            return FrameFacts(
                self.limit_bytes,
                self.used_bytes,
                self._on_the_way,
                len(self._waiting),
                counts.hits,
                counts.shared,
                counts.misses,
                counts.evictions,
                dict(counts.fetches),
                dict(counts.fetched_bytes),
                dict(counts.errors),
            )

    # --- requests ----------------------------------------------------------------------------------------------------

    def at_hand(self, file: PackedFrames, index: int) -> bytes | None:
        """Return the frame, if it is here. It does not block."""
        with self._lock:
            slot = self._slots.get((file.key, index))
            if slot is None or slot.data is None:
                return None
            self._slots.move_to_end((file.key, index))
            if file.last_frame != index:
                file.last_frame = index
                self._counts.hits += 1
            self._come_to(file, index, slot)
            return slot.data

    def coming(self, file: PackedFrames, index: int, *, reads_on: bool) -> Future[bytes]:
        """Return a future that is done when the frame is here; its error is ArchiveDamaged, ArchiveUnavailable or OSError. It does
        not block.

        reads_on: what follows will be wanted too. `file` is open.
        """
        with self._lock:
            slot = self._slots.get((file.key, index))
            is_new, file.last_frame = file.last_frame != index, index
            if slot is None:
                self._counts.misses += is_new
                wanted: Future[bytes] = Future()
                if self._is_closed:
                    wanted.set_exception(_closed(file.name))
                    return wanted
                slot = self._claim(file, index, is_unread=False)
                if slot is None:
                    self._waiting.append((file, index, wanted))
                    return wanted
                assert slot.coming is not None
                future = slot.coming
                if reads_on:
                    slot.ahead = _FIRST_AHEAD
                self._submit(file, index, index + 1)
                self._come_to(file, index, slot)
                return future
            self._come_to(file, index, slot)
            if slot.coming is not None:
                self._counts.shared += is_new
                return slot.coming
            self._counts.hits += is_new
            assert slot.data is not None
            done: Future[bytes] = Future()
            done.set_result(slot.data)
            return done

    def opened(self, file: PackedFrames) -> Future[FrameTable]:
        """Return a future that is done when the file's table is known. It does not block."""
        with self._lock:
            if file.frames is not None:
                done: Future[FrameTable] = Future()
                done.set_result(file.frames)
                return done
            opening = self._opening.get(file.key)
            if opening is None:
                future: Future[FrameTable] = Future()
                self._opening[file.key] = file, future
                self._start(file, lambda: self._open(file, future), lambda error: self._not_opened(file, future, error))
                return future
        other, future = opening
        if other is file:
            return future
        taken: Future[FrameTable] = Future()

        def take(done: Future[FrameTable]) -> None:
            if not done.cancelled() and done.exception() is None:
                file.take_end_of(other)
            _pass_on(done, taken)

        future.add_done_callback(take)
        return taken

    def _open(self, file: PackedFrames, opening: Future[FrameTable]) -> None:
        try:
            table = file.open()
        except Exception as error:
            self._not_opened(file, opening, error)
        else:
            with self._lock:
                if self._opening.pop(file.key, None) is None:
                    return  # it was closed meanwhile
            opening.set_result(table)

    def _not_opened(self, file: PackedFrames, opening: Future[FrameTable], error: Exception) -> None:
        with self._lock:
            self._counts.errors[error_kind(error)] += 1
            if self._opening.pop(file.key, None) is None:
                return  # it was closed meanwhile
        opening.set_exception(error)

    # --- ahead -------------------------------------------------------------------------------------------------------

    def _come_to(self, file: PackedFrames, index: int, slot: _Slot) -> None:
        """Note that a reader reads the frame now."""
        if slot.is_unread:
            slot.is_unread = False
            self._unread_bytes -= slot.size
        if not slot.ahead or file.frames is None:
            return
        table, wanted = file.frames, slot.ahead
        first = index + 1
        while first < len(table) and first <= index + wanted and (file.key, first) in self._slots:
            first += 1
        stop = first
        most = min(_MOST_AHEAD_BYTES, self.limit_bytes // 8)
        size = 0
        claimed: _Slot | None = None
        while stop < min(len(table), first + wanted) and (file.key, stop) not in self._slots:
            size += table[stop].plain_size
            if size > most or self._unread_bytes + table[stop].plain_size > self.limit_bytes // 2:
                break
            one = self._claim(file, stop, is_unread=True)
            if one is None:
                break
            claimed = claimed or one
            stop += 1
        if claimed is None:
            return  # the next caller tries it again
        slot.ahead = 0
        claimed.ahead = wanted * 2 if size <= most else wanted
        self._submit(file, first, stop)

    # --- fetching ----------------------------------------------------------------------------------------------------

    def _claim(self, file: PackedFrames, index: int, *, is_unread: bool) -> _Slot | None:
        """Reserve room for a frame that is fetched now; None: there is none."""
        assert file.frames is not None
        frame = file.frames[index]
        size = frame.plain_size + frame.stored_size
        if not self._make_room(size) and (is_unread or self._on_the_way):
            return None
        slot = _Slot(size, is_unread=is_unread)
        self._slots[file.key, index] = slot
        self._on_the_way += 1
        self.used_bytes += size
        self.most_used_bytes = max(self.most_used_bytes, self.used_bytes)
        if is_unread:
            self._unread_bytes += size
        return slot

    def _make_room(self, size: int) -> bool:
        """Evict what was not used for longest. False: too much is on its way."""
        while self.used_bytes + size > self.limit_bytes:
            # Frames on their way are new: few of those precede the oldest that is here.
            oldest = next((key for key, slot in self._slots.items() if slot.data is not None), None)
            if oldest is None:
                return False
            self._drop(oldest)
            self._counts.evictions += 1
        return True

    def _drop(self, key: _Key) -> _Slot:
        slot = self._slots.pop(key)
        self.used_bytes -= slot.size
        if slot.is_unread:
            self._unread_bytes -= slot.size
        return slot

    def _submit(self, file: PackedFrames, first: int, stop: int) -> None:
        def lost(error: Exception) -> None:
            for index in range(first, stop):
                self._failed(file, index, error)

        self._start(file, lambda: self._fetch(file, first, stop), lost)

    def _start(self, file: PackedFrames, work: Callable[[], None], lost: Callable[[Exception], None]) -> None:
        """Start work in a thread. lost: called with the reason why it will never begin."""
        held = file.hold()
        assert held, "whoever asks has the file open"

        def run() -> None:
            try:
                work()
            finally:
                file.release()

        def ended(started: Future[None]) -> None:
            if started.cancelled():
                file.release()
                lost(_closed(file.name))

        pool = self._store_threads if file.is_remote else self._disk_threads
        with self._lock:
            if not self._is_closed:
                pool.submit(run).add_done_callback(ended)
                return
        file.release()
        lost(_closed(file.name))

    def _fetch(self, file: PackedFrames, first: int, stop: int) -> None:
        """Fetch frames, in a thread."""
        try:
            fetched = file.fetch(first, stop)
        except Exception as error:
            with self._lock:
                self._counts.errors[error_kind(error)] += 1
            for index in range(first, stop):
                self._failed(file, index, error)
            return
        came_from = FROM_BUCKET if file.is_remote else FROM_DISK
        with self._lock:
            self._counts.fetches[came_from] += 1
            self._counts.fetched_bytes[came_from] += sum(len(one.data) for one in fetched)
        for index in range(first, stop):
            try:
                data = file.decode(index, fetched[index - first])
            except Exception as error:
                with self._lock:
                    self._counts.errors[error_kind(error)] += 1
                self._failed(file, index, error)
            else:
                self._arrived(file, index, data)

    def _arrived(self, file: PackedFrames, index: int, data: bytes) -> None:
        with self._lock:
            slot = self._slots.get((file.key, index))
            if slot is None:
                return  # it was closed meanwhile
            future, slot.coming = slot.coming, None
            slot.data = data
            self._on_the_way -= 1
            self.used_bytes -= slot.size - len(data)
            if slot.is_unread:
                self._unread_bytes -= slot.size - len(data)
            slot.size = len(data)
        assert future is not None
        future.set_result(data)
        self._serve_waiting()

    def _failed(self, file: PackedFrames, index: int, error: Exception) -> None:
        with self._lock:
            if (file.key, index) not in self._slots:
                return  # it was closed meanwhile
            slot = self._drop((file.key, index))
            self._on_the_way -= 1
        assert slot.coming is not None
        slot.coming.set_exception(error)
        self._serve_waiting()

    def _serve_waiting(self) -> None:
        """Serve the waiting requests: there may be room now."""
        with self._lock:
            waiting = list(self._waiting)
            self._waiting.clear()
            for file, index, wanted in waiting:
                slot = self._slots.get((file.key, index))
                if slot is None:
                    if not file.hold():
                        wanted.cancel()
                        continue
                    slot = self._claim(file, index, is_unread=False)
                    if slot is not None:
                        self._submit(file, index, index + 1)
                    file.release()
                    if slot is None:
                        self._waiting.append((file, index, wanted))
                        continue
                if slot.coming is not None:
                    slot.coming.add_done_callback(lambda done, wanted=wanted: _pass_on(done, wanted))  # type: ignore[misc]
                else:
                    assert slot.data is not None
                    wanted.set_result(slot.data)


def _closed(name: str) -> ArchiveUnavailable:
    return ArchiveUnavailable("the relay is stopping", file=name)


def _pass_on(done: Future[T], wanted: Future[T]) -> None:
    if done.cancelled():
        wanted.cancel()
    elif (error := done.exception()) is not None:
        wanted.set_exception(error)
    else:
        wanted.set_result(done.result())
