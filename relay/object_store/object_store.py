"""One bucket, or a folder in it: whole objects go in, objects and parts of them come out.

Every call blocks, for a thread, and releases the interpreter while it waits. Keys are relative to the prefix. Each raises
StoreUnreachable after its tries, StoreRefused, and ObjectMissing if an object is needed.
"""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from relay.disk.file_calls import open_to_read, read_file
from relay.object_store.object_errors import ObjectDamaged, StoreRefused, StoreUnreachable
from relay.object_store.store_options import StoreOptions
from relay.object_store.trying import StoreCounts, Trying

if TYPE_CHECKING:
    from relay.object_store.breaker import Breaker

MOST_READ_BYTES: Final = 256 << 20
"""No object that is read at once has more, whatever the bucket says."""
MOST_LISTED: Final = 1_000_000
"""Objects of one listing: they are held in memory, some hundred bytes each."""
_PART_BYTES: Final = 6 << 20
"""S3 accepts no less than 5 MiB. A request has a minute: 12 MiB, so 2 Mbit/s are enough."""
_MOST_PARTS: Final = 9000
"""S3 accepts 10,000."""
_PARTS_AT_ONCE: Final = 2
_ENDED_S: Final = 2.0
"""The time that a stopped upload waits for the storage to forget its parts."""
_PIECE_BYTES: Final = 1 << 20
_PIECE_S: Final = 0.1
_PAGE: Final = 1000
_LOOK_S: Final = 10.0
"""The time that a bucket has for the answer to a look."""
_RANGE_SAID: Final = "equested"
"""A part of obstore's "Requested 0..40, got 0..5", if an object ends inside of a range."""


class ObjectFacts(NamedTuple):
    """The facts of one object. `modified`: seconds since 1970; `etag`: the storage's name for this content."""

    key: str
    size: int
    etag: str | None
    modified: float


class ObjectStore:
    """For any number of threads. `stop`: set, a call that fails is not retried.

    many_ask: for replicas: while the bucket is away their calls fail at once.
    """

    def __init__(self, options: StoreOptions, stop: threading.Event | None = None, *, many_ask: bool = False) -> None:
        """Create the store without a request. Raises: StoreRefused (credentials cannot be read)."""
        self.options = options
        self.counts = StoreCounts()
        self._store: Any = options.make()
        self._uploads: Any = None
        """The store for files in parts; created with the first one."""
        self.stopping = stop or threading.Event()
        """Once it is set, no call is retried."""
        self.breaker: Breaker | None = None
        """None: there is none, and each call finds out by itself."""
        if many_ask:
            self.breaker = self._new_breaker()
        self._trying = Trying(options.tries, options.give_up_s, self.counts, self.stopping, self.breaker)

    def _new_breaker(self) -> "Breaker":
        # It logs: Spark's executors, which need no more than pyarrow, do without it.
        from relay.object_store.breaker import Breaker

        options = replace(self.options, tries=1, timeout_s=min(self.options.timeout_s, _LOOK_S))
        look = ObjectStore(options, self.stopping)
        return Breaker(lambda: next(look.list(), None), self.url(), self.stopping)

    def stop(self) -> None:
        """Stop retrying calls from now on."""
        self.stopping.set()

    def url(self, key: str = "") -> str:
        """Return the URL of an object, for messages."""
        return f"{self.options.url.rstrip('/')}/{key}".rstrip("/")

    def put_bytes(self, key: str, data: bytes) -> None:
        """Create an object, or put other content into it; whole or not at all."""
        import obstore

        self._trying.run(self.url(key), lambda: obstore.put(self._store, key, data, use_multipart=False))
        self.counts.add(bytes_written=len(data))

    def put_file(self, key: str, path: Path) -> None:
        """Do as `put_bytes`, for a file; a large one in parts, whose upload `stop` breaks off. Raises: OSError (the file).

        A part that fails is sent again, not the whole file; these tries are obstore's own, and not counted.
        """
        size = path.stat().st_size
        if size <= _PART_BYTES:
            self.put_bytes(key, read_file(path))
            return
        if self._uploads is None:
            self._uploads = self.options.make(for_uploads=True)
        part = max(_PART_BYTES, -(-size // _MOST_PARTS))
        self._trying.run(self.url(key), lambda: self._put_parts(key, path, part))
        self.counts.add(bytes_written=size)

    def _put_parts(self, key: str, path: Path, part: int) -> None:
        """Upload in a thread of its own: one that retries a part is not notified that it should stop."""
        import obstore

        ended = threading.Event()
        failed: list[BaseException] = []

        def put() -> None:
            try:
                # obstore removes the existing parts when their origin raises.
                pieces = self._pieces(path, key)
                obstore.put(self._uploads, key, pieces, chunk_size=part, max_concurrency=_PARTS_AT_ONCE)
            except BaseException as error:
                failed.append(error)
            ended.set()

        threading.Thread(target=put, name="bucket-upload", daemon=True).start()
        while not ended.wait(_PIECE_S):
            if self.stopping.is_set() and not ended.wait(_ENDED_S):
                raise StoreUnreachable("the upload was told to stop", url=self.url(key))
        if failed:
            raise failed[0]

    def _pieces(self, path: Path, key: str) -> Iterator[bytes]:
        with open(open_to_read(path), "rb") as file:
            while piece := file.read(_PIECE_BYTES):
                if self.stopping.is_set():
                    raise StoreUnreachable("the upload was told to stop", url=self.url(key))
                yield piece

    def get(self, key: str, most_bytes: int = MOST_READ_BYTES) -> bytes:
        """Return all of an object. Raises: ObjectDamaged if it has more than `most_bytes`: its writer determines the size."""
        import obstore

        def call() -> bytes:
            found = obstore.get(self._store, key)
            size = found.meta["size"]
            if size > most_bytes:
                raise ObjectDamaged(f"it has {size} bytes, and no more than {most_bytes} are read", url=self.url(key))
            return bytes(found.bytes())

        data = self._trying.run(self.url(key), call)
        self.counts.add(bytes_read=len(data))
        return data

    def get_range(self, key: str, start: int, stop: int) -> bytes:
        """Return [start, stop) of an object. Raises: ObjectDamaged if it has not all of that."""
        import obstore

        if start == stop:
            return b""

        def call() -> bytes:
            try:
                data = bytes(obstore.get_range(self._store, key, start=start, end=stop))
            except obstore.exceptions.GenericError as error:
                if _RANGE_SAID in str(error):
                    self._must_reach(key, stop)
                raise
            if len(data) != stop - start:
                self._must_reach(key, stop)
                raise ConnectionError(f"{len(data)} bytes came, {stop - start} were asked for")
            return data

        data = self._trying.run(self.url(key), call)
        self.counts.add(bytes_read=len(data))
        return data

    def get_tail(self, key: str, count: int) -> tuple[bytes, int]:
        """Return the last `count` bytes of an object, all of a shorter one, and the object's size."""
        if self.options.scheme != "s3":  # Azure has no such ranges
            size = self.head(key).size
            return self.get_range(key, max(0, size - count), size), size
        import obstore

        def call() -> tuple[bytes, int]:
            found = obstore.get(self._store, key, options={"range": {"suffix": count}})
            data, size = bytes(found.bytes()), found.meta["size"]
            if len(data) != min(count, size):
                raise ConnectionError(f"{len(data)} bytes came, {min(count, size)} were asked for")
            return data, size

        try:
            data, size = self._trying.run(self.url(key), call)
        except ObjectDamaged:  # some report that for an object that is shorter than `count`
            size = self.head(key).size
            return self.get_range(key, max(0, size - count), size), size
        self.counts.add(bytes_read=len(data))
        return data, size

    def head(self, key: str) -> ObjectFacts:
        """Return the facts of an object without its bytes."""
        import obstore

        return _facts(self._trying.run(self.url(key), lambda: obstore.head(self._store, key)))

    def list(self, folder: str = "", after: str = "") -> Iterator[ObjectFacts]:
        """Yield the objects in a folder and those below it, in the order of their keys, after the key `after`.

        They are requested page by page; a page that fails is requested again. On a disk and with Azure all at once: these do not
        begin after a key. Raises: StoreRefused if there are more than any archive has: a writer there can create as many as it likes.
        """
        import obstore

        last, passed = after, 0
        if self.options.scheme in ("file", "az"):
            found = self._trying.run(self.url(folder), lambda: self._all(folder))
            yield from (fact for fact in sorted(map(_facts, found)) if fact.key > last)
            return
        while True:
            offset = last or None

            def page(offset: str | None = offset) -> Any:
                stream = obstore.list(self._store, folder or None, offset=offset, chunk_size=_PAGE)
                return next(iter(stream), None)

            found = self._trying.run(self.url(folder), page)
            if not found:
                return
            if found[-1]["path"] <= last:
                what = f"it lists the same names again when it is asked for those behind {last}"
                raise StoreRefused(
                    what, url=self.url(folder), advice="This storage cannot be used: it must know start-after."
                )
            passed += len(found)
            self._check_count(folder, passed)
            yield from map(_facts, found)
            last = found[-1]["path"]

    def _all(self, folder: str) -> Sequence[Any]:
        import obstore

        found: list[Any] = []
        for page in obstore.list(self._store, folder or None, chunk_size=_PAGE):
            found += page
            self._check_count(folder, len(found))
        return found

    def _check_count(self, folder: str, count: int) -> None:
        if count > MOST_LISTED:
            what = f"it has more than {MOST_LISTED} objects, as no archive has"
            raise StoreRefused(
                what,
                url=self.url(folder),
                advice="Look who writes there; give the archive a bucket or a prefix of its own.",
            )

    def delete(self, keys: Sequence[str]) -> None:
        """Remove objects; missing ones are ignored."""
        import obstore

        def one(key: str) -> None:
            try:
                obstore.delete(self._store, key)
            except (FileNotFoundError, obstore.exceptions.NotFoundError):
                return

        for key in keys:
            self._trying.run(self.url(key), lambda key=key: one(key))  # type: ignore[misc]

    def _must_reach(self, key: str, stop: int) -> None:
        import obstore

        size = obstore.head(self._store, key)["size"]
        if size < stop:
            raise ObjectDamaged(f"it has {size} bytes, no byte {stop - 1}", url=self.url(key))

    def __repr__(self) -> str:
        return f"ObjectStore({self.options.url!r})"


def _facts(found: Any) -> ObjectFacts:
    return ObjectFacts(found["path"], found["size"], found.get("e_tag"), found["last_modified"].timestamp())
