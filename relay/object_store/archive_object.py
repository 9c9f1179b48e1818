"""The object that names the archive that a place of a bucket belongs to, and the process that writes there now.

It is rewritten every 20 seconds. A process that was killed has not written it for a minute: another one may continue.
"""

import contextlib
import json
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from relay.object_store.object_errors import MirrorRefused, ObjectDamaged, ObjectMissing, PrefixBusy
from relay.object_store.object_store import ObjectStore
from relay.object_store.unknown_place import refuse_unknown

ARCHIVE_KEY: Final = "binlog-relay.json"
FORMAT: Final = 1
_MOST_BYTES: Final = 64 << 10
RENEWED_S: Final = 20.0
STALE_S: Final = 60.0
_OTHER_PLACE: Final = "Give each archive a prefix of its own in [archive.bucket] url."
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class ArchiveObject:
    """The contents of the object."""

    archive: str
    """The uuid of the archive's relay, which travels with the archive."""
    source: str
    """The name of the archive's directory."""
    host: str
    directory: str
    token: str
    """Like `host` and `directory`, of the process that writes."""
    time: float
    """The time of its last report, Unix seconds."""
    is_whole: bool = True
    """True if all of the archive goes there, so that it can be rebuilt from it; else old binlogs only."""
    machine: str = ""
    """An id of the directory: no two machines, containers or copies of a directory have the same; empty: unknown."""
    term: int = 0
    """Incremented each time that another process takes the place."""

    def encode(self) -> bytes:
        """Return the object as it is stored."""
        told = {"format": FORMAT, **asdict(self)}
        return json.dumps({**told, "sum": _sum(told)}).encode()


def read_archive_object(store: ObjectStore) -> ArchiveObject | None:
    """Return the bucket's own statement; None: there is none. Blocking. Raises: MirrorRefused; ObjectStoreError."""
    try:
        data = store.get(ARCHIVE_KEY, _MOST_BYTES)
    except ObjectMissing:
        return None
    url = store.url(ARCHIVE_KEY)
    try:
        told: dict[str, Any] = json.loads(data)
        total = told.pop("sum")
        written = int(told["format"])
        if written > FORMAT:
            raise MirrorRefused(
                f"{url} has format {written}, and this binlog-relay knows formats up to {FORMAT}. Use the newer binlog-relay."
            )
        if total == _sum(told):
            names = ("archive", "source", "host", "directory", "token")
            archive, source, host, directory, token = (str(told[name]) for name in names)
            more = bool(told.get("is_whole", True)), str(told.get("machine", "")), int(told.get("term", 0))
            return ArchiveObject(archive, source, host, directory, token, float(told["time"]), *more)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    # It may be better the next time: a byte may have changed on the way.
    what = "it is not what binlog-relay wrote there"
    raise ObjectDamaged(what, url=url, advice="Look at what else writes to this bucket.")


def _sum(told: dict[str, Any]) -> int:
    return crc32(json.dumps(told, sort_keys=True).encode())


def _machine(directory: Path) -> str:
    """Return a text that only the same directory of the same machine has: a host name and a path are the same in each container of a
    set."""
    try:
        status = directory.stat()
        return f"{_BOOT_ID.read_text().strip()}:{status.st_dev}:{status.st_ino}"
    except OSError:
        return ""


class Ownership:
    """Ensures that this process, and no other one, writes to the place of one archive. Blocking; any thread.

    `term` changes after the place was another process's for a while: what was known of the bucket before may be wrong.
    """

    def __init__(
        self,
        store: ObjectStore,
        archive: str,
        directory: Path,
        settles_s: float = 0.5,
        *,
        token: str = "",
        is_whole: bool = True,
    ) -> None:
        """archive: its uuid. directory: the archive's, which this process has locked. settles_s: of two that claim the place at once,
        the earlier one sees within this time what the later one wrote. token: of the process, if several of its parts write there;
        empty: no other does. is_whole: as in `ArchiveObject`."""
        self._settles_s = settles_s
        self._store = store
        self.archive = archive
        self.root = directory
        """The archive's directory."""
        place = str(directory.resolve())
        token = token or secrets.token_hex(8)
        about = (archive, directory.name, socket.gethostname(), place, token, 0.0, is_whole, _machine(directory))
        self._mine = ArchiveObject(*about)
        self._written_s = float("-inf")
        """The time of the last write, by the monotonic clock."""
        self._lock = threading.Lock()

    @property
    def term(self) -> int:
        """The term as it was when the place was checked last."""
        return self._mine.term

    def claim(self) -> None:
        """Take the place, if no other process has it. Raises: PrefixBusy and other MirrorRefused; ObjectStoreError."""
        with self._lock:
            found = read_archive_object(self._store)
            if found is None:
                refuse_unknown(self._store)
            self._check(found, is_begun=False)
            self._write(found)
            # Of two that came at once each reads what the later one wrote.
            time.sleep(self._settles_s)
            found = read_archive_object(self._store)
            if found is None or found.token != self._mine.token:
                self._check(found)
                self._write(found)

    @staticmethod
    def take_over(
        store: ObjectStore, archive: str, directory: Path, found: ArchiveObject | None, *, is_whole: bool
    ) -> None:
        """Make the place, of `found`, this archive's; it is free for each process of it. Raises: ObjectStoreError."""
        place, term = str(directory.resolve()), 0 if found is None else found.term + 1
        mine = ArchiveObject(archive, directory.name, socket.gethostname(), place, "", 0.0, is_whole, term=term)
        store.put_bytes(ARCHIVE_KEY, mine.encode())

    def hold(self) -> None:
        """Claim or renew the place before each write of an occasional writer. Raises: as these two."""
        if self._written_s == float("-inf"):
            self.claim()
        else:
            self.renew()

    def check(self) -> None:
        """Check, without writing, whether the place is this archive's, and free. Raises: as `claim`."""
        found = read_archive_object(self._store)
        if found is None:
            refuse_unknown(self._store)
        self._check(found, is_begun=False)

    def renew(self) -> None:
        """Report again that this process writes, when it is time.

        Raises: PrefixBusy and other MirrorRefused; ObjectStoreError.
        """
        with self._lock:
            if time.monotonic() - self._written_s >= RENEWED_S:
                found = read_archive_object(self._store)
                self._check(found)
                self._write(found)

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Renew the place during the block, whatever its thread waits for. Raises at the end what `renew` raises."""
        ended = threading.Event()
        raised: list[Exception] = []

        def keep() -> None:
            while not ended.wait(RENEWED_S / 4):
                try:
                    self.renew()
                except Exception as error:  # the thread that copies gets the error, and no other
                    raised.append(error)
                    return

        thread = threading.Thread(target=keep, name="place-renewal", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
        if raised:
            raise raised[0]

    def _check(self, found: ArchiveObject | None, *, is_begun: bool = True) -> None:
        """Check the object. is_begun: this process has written there."""
        if found is None:
            return
        if found.is_whole and not self._mine.is_whole:
            # The mirror of the same process writes there too, or wrote before it was switched off.
            self._mine = replace(self._mine, is_whole=True)
        url = self._store.url()
        if found.archive != self._mine.archive or found.source != self._mine.source:
            raise MirrorRefused(
                f"{url} is the copy of another archive: {found.source!r} of the relay {found.archive}, written by {found.host}; this "
                f"is {self._mine.source!r} of the relay {self._mine.archive}. {_OTHER_PLACE} If this relay goes on with that archive, "
                "under another server_uuid: docs/TIERS.md, `archive claim`."
            )
        age = time.time() - found.time
        # An earlier writer from this very directory has ended: this process has the directory locked.
        is_left = not is_begun and found.machine != "" and found.machine == self._mine.machine
        if found.token != self._mine.token and age < STALE_S and not is_left:
            raise PrefixBusy(
                f"{url} is written by another process of this archive, on {found.host} from {found.directory}, last "
                f"{max(0.0, age):.0f} s ago. Two relays on copies of one archive must not write to one place. Stop the other one: "
                f"{STALE_S:.0f} s later this one goes on by itself. {_OTHER_PLACE}"
            )

    def _write(self, found: ArchiveObject | None) -> None:
        """Write the object. found: the present one."""
        if found is not None and found.token == self._mine.token:
            term = found.term
        else:
            term = max(self._mine.term, 0 if found is None else found.term) + 1
        mine = replace(self._mine, time=time.time(), term=term)
        self._store.put_bytes(ARCHIVE_KEY, mine.encode())
        self._mine = mine
        self._written_s = time.monotonic()
