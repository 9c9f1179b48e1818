"""The known replicas, connected or not, and the file from which on each still needs the archive.

A replica is a client that registered as one (COM_REGISTER_SLAVE) and was sent binlogs. What was given to its socket may not have
arrived: it is taken to need as much before that as both systems' buffers may hold, until it was seen at rest with nothing unread.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, Final, NamedTuple

from protocol.errors import Malformed
from protocol.position import binlog_number
from relay.archive.storage.replica_marks import ARRIVED_AFTER_BYTES
from relay.downstream.connection.client_status import ClientStatus
from relay.fairness.shares import fair_part
from relay.retention.decision import HeldFile, Place

MOST_REPLICAS: Final = 10_000
"""The limit; beyond it, the account that has most loses those that have been away longest."""
_Key = tuple[str, int, str, str]
"""View, server_id and uuid of a replica, and its account: a replica of another account is another replica."""


class SeenReplica(NamedTuple):
    """A connection as it is now. unread_bytes: written and not read by the replica, as far as the system knows; None: unknown."""

    status: ClientStatus
    unread_bytes: int | None


@dataclass(slots=True, kw_only=True)
class KnownReplica:
    """One replica of the mirror, or of a view."""

    view: str
    """The name of the view, empty for the mirror."""
    server_id: int
    server_uuid: str
    user: str
    address: str
    generation: int
    file: str
    offset: int
    """With `generation` and `file`, the position up to which it was sent."""
    arrived_generation: int = 0
    arrived_file: str = ""
    """With `arrived_generation`, the newest file before which everything has certainly arrived; empty: none."""
    seen: float = 0.0
    """The time when it was connected last, Unix seconds."""
    absent_s: float = 0.0
    """The time since then, counted while the relay ran."""
    connected: bool = False

    @property
    def named(self) -> str:
        """The name for people."""
        away = "" if self.connected else f", away for {duration_text(self.absent_s)}"
        return f"replica {self.server_id} ('{self.user}'@'{self.address}'{away})"


_FIELDS: Final = tuple(field.name for field in fields(KnownReplica))
_VALUES: Final = attrgetter(*_FIELDS)
RecordValues = Sequence[tuple[Any, ...]]


class KnownReplicas:
    """All replicas of one relay. On the event loop; `values` and `of_records` serve to store them in a file."""

    def __init__(self, replicas: Iterable[KnownReplica] = ()) -> None:
        self._replicas = {_key(replica): replica for replica in replicas}
        for replica in self._replicas.values():
            replica.connected = False

    def __iter__(self) -> Iterator[KnownReplica]:
        return iter(tuple(self._replicas.values()))

    def __len__(self) -> int:
        return len(self._replicas)

    def look(self, connections: Iterable[SeenReplica], elapsed_s: float, now: float) -> None:
        """Take the present connections. elapsed_s: since the last look, by a clock that does not jump; now: Unix seconds."""
        present, before = set(), self._replicas.keys() - ()
        for status, unread_bytes in connections:
            if status.registered is None or not status.server_id:
                continue
            if status.sent_position is None or status.generation is None:
                continue
            present.add(self._look_at(status, unread_bytes, now))
        renamed = {(key[:3], self._replicas[key].address) for key in present - before}
        for key, replica in list(self._replicas.items()):
            if key in present:
                continue
            replica.connected = False
            replica.absent_s += elapsed_s
            if (key[:3], replica.address) in renamed:
                self.forget(replica)  # it logs in as another account now
        if len(self._replicas) > MOST_REPLICAS:
            newest_first = sorted(self._replicas.values(), key=lambda replica: replica.absent_s)
            kept = fair_part(newest_first, attrgetter("user"), MOST_REPLICAS)
            self._replicas = {_key(replica): replica for replica in kept}

    def _look_at(self, status: ClientStatus, unread_bytes: int | None, now: float) -> _Key:
        assert status.sent_position is not None and status.generation is not None
        key = (status.view or "", status.server_id, status.replica_uuid, status.user)
        (file, offset), generation = status.sent_position, status.generation
        replica = self._replicas.get(key)
        if replica is None:
            replica = KnownReplica(
                view=key[0],
                server_id=key[1],
                server_uuid=key[2],
                user=status.user,
                address=status.address.rpartition(":")[0],
                generation=generation,
                file=file,
                offset=offset,
            )
            self._replicas[key] = replica
        rests = replica.connected and (replica.generation, replica.file, replica.offset) == (generation, file, offset)
        if rests and status.is_at_end and unread_bytes == 0:
            replica.arrived_generation, replica.arrived_file = generation, file
        elif _is_before(generation, file, replica):
            # It was sent from an earlier place than the one that it had reached.
            replica.arrived_generation, replica.arrived_file = 0, ""
        replica.generation, replica.file, replica.offset = generation, file, offset
        replica.address = status.address.rpartition(":")[0]
        replica.connected, replica.absent_s, replica.seen = True, 0.0, now
        return key

    def forget(self, replica: KnownReplica) -> None:
        """Forget a replica, which keeps nothing any more."""
        self._replicas.pop(_key(replica), None)

    def values(self) -> RecordValues:
        """Return them as they are now, for `records` in another thread: 10,000 take some 5 ms."""
        return list(map(_VALUES, self._replicas.values()))

    @staticmethod
    def records(values: RecordValues) -> list[dict[str, object]]:
        """Return them as they are stored."""
        return [dict(zip(_FIELDS, one, strict=True)) for one in values]

    @classmethod
    def of_records(cls, records: object) -> "KnownReplicas":
        """Restore them as they were stored. Raises: ValueError for anything else."""
        if not isinstance(records, list):
            raise ValueError("no list of replicas")
        replicas = []
        for record in records:
            if not isinstance(record, dict) or not record.keys() <= set(_FIELDS):
                raise ValueError("a replica with unknown facts")
            try:
                replica = KnownReplica(**record)
                binlog_number(replica.file)
                replica.absent_s, replica.generation = float(replica.absent_s), int(replica.generation)
                replica.offset, replica.server_id = int(replica.offset), int(replica.server_id)
            except (TypeError, Malformed) as error:
                raise ValueError(f"a replica that cannot be understood: {error}") from error
            replicas.append(replica)
        return cls(replicas)


FileOrder = Mapping[tuple[int, str], int]
"""The number of files before the one of a generation and a name."""


def order_of(files: Sequence[HeldFile]) -> FileOrder:
    """Return the order of all files of an archive, oldest first."""
    return {(file.generation, file.name): number for number, file in enumerate(files)}


def needed_place(replica: KnownReplica, files: Sequence[HeldFile], order: FileOrder) -> Place | None:
    """Return the first of the archive's files that the replica needs; None: the archive does not have that file any more, nor a later
    one with which the replica could continue."""
    number = order.get((replica.generation, replica.file))
    if number is None:
        return None
    arrived = order.get((replica.arrived_generation, replica.arrived_file), 0)
    before = replica.offset
    while number > arrived and before < ARRIVED_AFTER_BYTES:
        number -= 1
        before += files[number].size_bytes
    return files[number].place


def duration_text(seconds: float) -> str:
    """Return the duration, rounded down: 3 days, 5 hours, 12 minutes, 40 seconds."""
    for unit, name in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= unit:
            count = int(seconds // unit)
            return f"{count} {name}" if count == 1 else f"{count} {name}s"
    return f"{int(seconds)} seconds"


def _key(replica: KnownReplica) -> _Key:
    return replica.view, replica.server_id, replica.server_uuid, replica.user


def _is_before(generation: int, file: str, replica: KnownReplica) -> bool:
    arrived = (replica.arrived_generation, binlog_number(replica.arrived_file) if replica.arrived_file else 0)
    return (generation, binlog_number(file)) < arrived
