"""MariaDB's GTIDs: domain-server-sequence, the position of a replica, and the list that starts each binlog.

Within a domain the order is the stream's: sequence numbers show it only as long as all servers increase them.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from protocol.errors import Malformed, Truncated
from protocol.gtid.mysql_gtid import shown
from protocol.wire import Cursor

_MAX_U32: Final = 2**32 - 1
_MAX_SEQUENCE: Final = 2**64 - 1
_GTID: Final = re.compile(r"([0-9]{1,20})-([0-9]{1,20})-([0-9]{1,40})")
_COUNT_MASK: Final = 0x0FFF_FFFF
_FLAGS_SHIFT: Final = 28
_LEAST_BODY_BYTES: Final = 6

UNTIL_REACHED: Final = 0x1
"""The Gtid_list flag for the place at which the replica was to stop (`@slave_until_gtid`)."""
IGN_GTIDS: Final = 0x2
"""The Gtid_list flag for the beginning of a relay log in which GTIDs are ignored."""


class DomainTwice(Malformed):
    """A position has two groups of one domain, where one is allowed."""

    def __init__(self, first: "DomainGtid", second: "DomainGtid") -> None:
        super().__init__(f"GTID {first} and {second} conflict (duplicate domain id {first.domain_id})")


@dataclass(frozen=True, slots=True, order=True)
class DomainGtid:
    """One event group. `domain_id` and `server_id` are u32, `sequence_number` u64 (0 only before the first group)."""

    domain_id: int
    server_id: int
    sequence_number: int

    @classmethod
    def from_text(cls, text: str) -> "DomainGtid":
        """Parse `domain-server-sequence` with spaces around it. Raises: Malformed, also for numbers that are too great."""
        match = _GTID.fullmatch(text.strip())
        if match is None:
            raise Malformed(f"{shown(text)} is not a GTID such as 0-1-100")
        domain, server, sequence = (int(group) for group in match.groups())
        if domain > _MAX_U32 or server > _MAX_U32 or sequence > _MAX_SEQUENCE:
            raise Malformed(
                f"{shown(text)}: domain and server are at most {_MAX_U32}, the sequence number {_MAX_SEQUENCE}"
            )
        return cls(domain, server, sequence)

    def __str__(self) -> str:
        return f"{self.domain_id}-{self.server_id}-{self.sequence_number}"


class GtidPosition:
    """A replica's position: the last group it has of each domain. Immutable, hashable, compared by value.

    `str` returns the text that servers print (`@@gtid_slave_pos`) and replicas send (`@slave_connect_state`).
    """

    __slots__ = ("_by_domain",)

    def __init__(self, gtids: Iterable[DomainGtid] = ()) -> None:
        """Take at most one group of each domain. Raises: DomainTwice."""
        self._by_domain: dict[int, DomainGtid] = {}
        for gtid in gtids:
            held = self._by_domain.setdefault(gtid.domain_id, gtid)
            if held is not gtid:
                raise DomainTwice(gtid, held)

    @classmethod
    def from_text(cls, text: str) -> "GtidPosition":
        """Parse a comma list; spaces around members, and empty members, are accepted. Raises: Malformed."""
        return cls(_parse_list(text))

    def __str__(self) -> str:
        return ",".join(str(self._by_domain[domain]) for domain in sorted(self._by_domain))

    def __repr__(self) -> str:
        return f"GtidPosition.from_text({str(self)!r})"

    def __iter__(self) -> Iterator[DomainGtid]:
        return iter([self._by_domain[domain] for domain in sorted(self._by_domain)])

    def __len__(self) -> int:
        return len(self._by_domain)

    def domain(self, domain_id: int) -> DomainGtid | None:
        """Return the last group of the domain, or None if there is none."""
        return self._by_domain.get(domain_id)

    def advanced(self, gtid: DomainGtid) -> "GtidPosition":
        """Return this position after `gtid`, the next group of the stream."""
        made = GtidPosition()
        made._by_domain = {**self._by_domain, gtid.domain_id: gtid}
        return made

    def __eq__(self, other: object) -> bool:
        return self._by_domain == other._by_domain if isinstance(other, GtidPosition) else NotImplemented

    def __hash__(self) -> int:
        return hash(frozenset(self._by_domain.values()))


class GtidList:
    """A server's binlog state: in each domain, the last group of each server. Immutable, hashable, compared by value.

    It keeps the order of servers' events, in which a domain's last group is its newest.
    `flags` are UNTIL_REACHED and IGN_GTIDS; the highest two bits are kept as they are.
    """

    __slots__ = ("_by_server", "flags")

    def __init__(self, gtids: Iterable[DomainGtid] = (), flags: int = 0) -> None:
        """Keep, of several groups of a domain and server, the last in its place."""
        self._by_server: dict[tuple[int, int], DomainGtid] = {}
        self.flags = flags
        for gtid in gtids:
            self._by_server.pop((gtid.domain_id, gtid.server_id), None)
            self._by_server[gtid.domain_id, gtid.server_id] = gtid

    @classmethod
    def from_text(cls, text: str) -> "GtidList":
        """Parse a comma list such as `@@gtid_binlog_state`. Raises: Malformed."""
        return cls(_parse_list(text))

    def __str__(self) -> str:
        """Return the text of `@@gtid_binlog_state`: by domain, in each the newest group last."""
        return ",".join(map(str, sorted(self._by_server.values(), key=lambda gtid: gtid.domain_id)))

    @property
    def event_text(self) -> str:
        """The list as SHOW BINLOG EVENTS prints it after its bracket: by domain, in each by sequence number."""
        ordered = sorted(self._by_server.values(), key=lambda gtid: (gtid.domain_id, gtid.sequence_number))
        return ",".join(map(str, ordered))

    def __repr__(self) -> str:
        return f"GtidList.from_text({str(self)!r})"

    def __iter__(self) -> Iterator[DomainGtid]:
        return iter(self._by_server.values())

    def __len__(self) -> int:
        return len(self._by_server)

    @property
    def position(self) -> GtidPosition:
        """The newest group of each domain, which is the position of a replica that has all of it (`@@gtid_binlog_pos`)."""
        return GtidPosition({gtid.domain_id: gtid for gtid in self._by_server.values()}.values())

    def server(self, domain_id: int, server_id: int) -> DomainGtid | None:
        """Return the last group of this server in this domain, or None."""
        return self._by_server.get((domain_id, server_id))

    def contains(self, gtid: DomainGtid) -> bool:
        """Return whether a binlog with this state had `gtid`: that server's last group in the domain is it or a later one."""
        last = self._by_server.get((gtid.domain_id, gtid.server_id))
        return last is not None and last.sequence_number >= gtid.sequence_number

    def advanced(self, gtids: Iterable[DomainGtid]) -> "GtidList":
        """Return the state after `gtids`, the next groups of the stream, were written."""
        return GtidList((*self._by_server.values(), *gtids))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GtidList):
            return NotImplemented
        return self._state() == other._state()

    def __hash__(self) -> int:
        return hash(self._state())

    def _state(self) -> tuple[frozenset[DomainGtid], GtidPosition, int]:
        # The order of a domain's older groups, and of domains, is the accident of a hash table.
        return frozenset(self._by_server.values()), self.position, self.flags


def decode_gtid_list(body: bytes) -> GtidList:
    """Decode a Gtid_list event (163).

    Layout: count u32 (low 28 bits; flags above) | per entry: domain u32, server u32, sequence u64.
    Raises: Truncated; trailing bytes are left alone. Source: MariaDB 11.8 `Gtid_list_log_event`; checked on 10.11.
    """
    cursor = Cursor(body)
    count = cursor.uint(4)
    flags, count = count >> _FLAGS_SHIFT, count & _COUNT_MASK
    if count * 16 > cursor.remaining:
        raise Truncated(f"{count} GTIDs announced, {cursor.remaining} bytes left")
    return GtidList((DomainGtid(cursor.uint(4), cursor.uint(4), cursor.uint(8)) for _ in range(count)), flags)


def encode_gtid_list(gtid_list: GtidList) -> bytes:
    """Encode the body of a Gtid_list event, entries in the list's order; servers write at least 6 bytes."""
    parts = [(gtid_list.flags << _FLAGS_SHIFT | len(gtid_list)).to_bytes(4, "little")]
    for gtid in gtid_list:
        parts.append(gtid.domain_id.to_bytes(4, "little"))
        parts.append(gtid.server_id.to_bytes(4, "little"))
        parts.append(gtid.sequence_number.to_bytes(8, "little"))
    return b"".join(parts).ljust(_LEAST_BODY_BYTES, b"\0")


def _parse_list(text: str) -> list[DomainGtid]:
    return [DomainGtid.from_text(member) for member in text.split(",") if member.strip()]
