"""The object that says which archive a place of a bucket belongs to, and which process writes there now.

It is written again every 20 seconds. A process that was killed has not written it for a minute: another one may go on.
"""

import json
import secrets
import socket
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from relay.object_store.object_errors import MirrorRefused, ObjectDamaged, ObjectMissing, PrefixBusy, PrefixTaken
from relay.object_store.object_store import ObjectStore

ARCHIVE_KEY: Final = "binlog-relay.json"
FORMAT: Final = 1
RENEWED_S: Final = 20.0
STALE_S: Final = 60.0
_OTHER_PLACE: Final = "Give each archive a prefix of its own in [archive.bucket] url."


@dataclass(frozen=True, slots=True)
class ArchiveObject:
    """archive: the uuid of the archive's relay, which travels with the archive. source: the name of its directory.

    host, directory, token: of the process that writes; time: when it said so last, Unix seconds. is_whole: all of the archive goes
    there, so that one can be made again from it; else old binlogs only.
    """

    archive: str
    source: str
    host: str
    directory: str
    token: str
    time: float
    is_whole: bool = True

    def encode(self) -> bytes:
        """As it is stored."""
        told = {"format": FORMAT, **asdict(self)}
        return json.dumps({**told, "sum": _sum(told)}).encode()


def read_archive_object(store: ObjectStore) -> ArchiveObject | None:
    """What a bucket says of itself; None: nothing. Blocking. Raises: MirrorRefused; ObjectStoreError."""
    try:
        data = store.get(ARCHIVE_KEY)
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
            is_whole = bool(told.get("is_whole", True))
            return ArchiveObject(archive, source, host, directory, token, float(told["time"]), is_whole)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    # It may be better the next time: a byte may have changed on the way.
    what = "it is not what binlog-relay wrote there"
    raise ObjectDamaged(what, url=url, advice="Look at what else writes to this bucket.")


def _sum(told: dict[str, Any]) -> int:
    return crc32(json.dumps(told, sort_keys=True).encode())


class Ownership:
    """That this process, and no other one, writes to the place of one archive. Blocking, for one thread."""

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
        """archive: its uuid. directory: the archive's, which this process has locked. settles_s: of two that claim the place at
        once, the earlier one sees within this time what the later one wrote. token: of the process, where several of it write there;
        empty: nobody else does. is_whole: see `ArchiveObject`."""
        self._settles_s = settles_s
        self._store = store
        place = str(directory.resolve())
        token = token or secrets.token_hex(8)
        self._mine = ArchiveObject(archive, directory.name, socket.gethostname(), place, token, 0.0, is_whole)
        self._written_s = float("-inf")
        """By the monotonic clock."""

    def claim(self) -> None:
        """Takes the place, if nobody else has it. Raises: PrefixTaken; PrefixBusy; MirrorRefused; ObjectStoreError."""
        self._check(read_archive_object(self._store))
        self._write()
        # Of two that came at once each reads what the later one wrote.
        time.sleep(self._settles_s)
        self._check_mine()

    def hold(self) -> None:
        """Before each write of one who writes now and then: claims, or renews. Raises: as these two."""
        if self._written_s == float("-inf"):
            self.claim()
        else:
            self.renew()

    def check(self) -> None:
        """Only asks whether the place is this archive's, and free. Raises: as `claim`."""
        self._check(read_archive_object(self._store))

    def renew(self) -> None:
        """Says again that this process writes, when it is time. Raises: PrefixTaken; MirrorRefused; ObjectStoreError."""
        if time.monotonic() - self._written_s >= RENEWED_S:
            self._check_mine()
            self._write()

    def _check_mine(self) -> None:
        found = read_archive_object(self._store)
        if found is None or found.token != self._mine.token:
            self._check(found)
            self._write()

    def _check(self, found: ArchiveObject | None) -> None:
        if found is None:
            return
        if found.is_whole and not self._mine.is_whole:
            # The mirror of the same process writes there too, or one that was switched off.
            self._mine = replace(self._mine, is_whole=True)
        url = self._store.url()
        if found.archive != self._mine.archive or found.source != self._mine.source:
            raise PrefixTaken(
                f"{url} is the copy of another archive: {found.source!r} of the relay {found.archive}, written by {found.host}; this "
                f"is {self._mine.source!r} of the relay {self._mine.archive}. {_OTHER_PLACE}"
            )
        age = time.time() - found.time
        # This process has the directory locked: who wrote from there is gone.
        same_place = (found.host, found.directory) == (self._mine.host, self._mine.directory)
        if found.token != self._mine.token and age < STALE_S and not same_place:
            raise PrefixBusy(
                f"{url} is written by another process of this archive, on {found.host} from {found.directory}, last "
                f"{max(0.0, age):.0f} s ago. Two relays on copies of one archive must not write to one place. Stop the other one: "
                f"{STALE_S:.0f} s later this one goes on by itself. {_OTHER_PLACE}"
            )

    def _write(self) -> None:
        self._mine = replace(self._mine, time=time.time())
        self._store.put_bytes(ARCHIVE_KEY, self._mine.encode())
        self._written_s = time.monotonic()
