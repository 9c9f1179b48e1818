"""Consecutive batches: the next one is read while one is applied."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait

from relay.feed.archive_reading import ArchiveReading
from relay.feed.feed_batch import FeedBatch, WantedTables, read_batch
from relay.feed.rows.feed_place import FeedOffset


class BatchesAhead:
    """The batches after a place, one after the other. One has at most `most_bytes` of binlog, unless a single transaction is larger.

    `wanted` returns the tables to read; it is called before each batch, in the caller's thread.
    """

    def __init__(self, reading: ArchiveReading, wanted: Callable[[], WantedTables], most_bytes: int) -> None:
        self._reading = reading
        self._wanted = wanted
        self._most_bytes = most_bytes
        self._end: FeedOffset | None = None
        self._pending: tuple[FeedOffset, FeedOffset, Future[FeedBatch]] | None = None
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="feed-reader")

    def next(self, place: FeedOffset, upto: FeedOffset | None) -> FeedBatch | None:
        """Return the batch that begins at `place`, at most up to `upto`; None if there is nothing new. Raises whatever reading
        raises."""
        pending, self._pending = self._pending, None
        if pending is not None and pending[0] == place and (upto is None or pending[1] <= upto):
            batch = pending[2].result()
        else:
            if pending is not None:
                _throw_away(pending[2])
            end = self._reach(place, upto)
            if end <= place:
                return None
            batch = self._reader.submit(read_batch, self._reading, place, end, self._wanted()).result()
        if batch.stop is None:
            self._read_on(batch, upto)
        return batch

    @property
    def archive_end(self) -> FeedOffset | None:
        """Return the end of the archive when it was last looked at; None if it was not yet."""
        return self._end

    def _read_on(self, batch: FeedBatch, upto: FeedOffset | None) -> None:
        """Begin to read the batch after this one, if there is known to be more."""
        last = self._end if upto is None else upto
        if last is None or batch.end >= last:
            return
        end = self._reach(batch.end, upto)
        if end > batch.end:
            wanted = self._wanted()
            wanted.known.extend(key for key in batch.parts if key not in wanted.known)
            self._pending = (batch.end, end, self._reader.submit(read_batch, self._reading, batch.end, end, wanted))

    def _reach(self, place: FeedOffset, upto: FeedOffset | None) -> FeedOffset:
        """Return the end of the batch that begins at `place`; `place` itself if nothing follows."""
        if self._end is None or self._end <= place:
            self._end = self._reading.newest()
        last = self._end if upto is None else min(upto, self._end)
        is_near = (last.generation, last.number) == (place.generation, place.number)
        if last <= place or (is_near and last.position - place.position <= self._most_bytes):
            return last
        return min(last, self._reading.newest(place, self._most_bytes))

    def close(self) -> None:
        """Discard the batch that is being read, and end its thread."""
        pending, self._pending = self._pending, None
        if pending is not None:
            _throw_away(pending[2])
        self._reader.shutdown(wait=True, cancel_futures=True)


def _throw_away(pending: Future[FeedBatch]) -> None:
    """Cancel a batch that will not be applied, or close it once it is read."""
    if not pending.cancel():
        wait([pending])
        if pending.exception() is None:
            pending.result().close()
