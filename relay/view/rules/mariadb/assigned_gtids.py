"""The GTIDs that a view assigns to the groups of a MariaDB source: one uuid for each domain, and the group's own number."""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID, uuid5

from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import DomainGtid
from relay.view.stops import transaction_stops

LAST_GNO: Final = 2**63 - 2
"""The greatest number that MySQL accepts."""
_HEAD: Final = struct.Struct("<BQII")
_DOMAIN: Final = struct.Struct("<IHI")
_INTERVAL: Final = struct.Struct("<QQ")
_FORMER: Final = 2
"""The first byte of a state whose numbers belong to a former source; the first list says which of them count."""


def domain_uuid(base: UUID, domain: int, extra: int = 0) -> UUID:
    """Return the uuid of the GTIDs of groups of `domain`. `base` is the view's uuid. `extra` is 0 for the last transaction that a group
    becomes; 1, 2 … for those before it."""
    return uuid5(base, f"mariadb {domain}" if not extra else f"mariadb {domain} extra {extra}")


@dataclass(slots=True)
class NumbersGiven:
    """The numbers of one uuid: closed intervals, each as two numbers, and [start, following) that still grows; 0, 0: there are none."""

    closed: bytearray = field(default_factory=bytearray)
    start: int = 0
    following: int = 0

    def add(self, number: int) -> None:
        """Add a number that is not below `following`."""
        if number != self.following:
            if self.following:
                self.closed += _INTERVAL.pack(self.start, self.following)
            self.start = number
        self.following = number + 1

    def intervals(self) -> bytes:
        """Return all of them, as `GtidSet.from_intervals` takes them."""
        return bytes(self.closed) + (_INTERVAL.pack(self.start, self.following) if self.following else b"")

    def up_to(self, last: int) -> "NumbersGiven | None":
        """Return those that are not above `last`; None: there is none."""
        kept = NumbersGiven()
        for start, stop in _INTERVAL.iter_unpack(self.intervals()):
            if start <= last:
                if kept.following:
                    kept.closed += _INTERVAL.pack(kept.start, kept.following)
                kept.start, kept.following = start, min(stop, last + 1)
        return kept if kept.following else None


class AssignedGtids:
    """The assigned numbers, and which groups were committed together. `base` is the view's uuid."""

    def __init__(self, base: UUID) -> None:
        self._base = base
        self._uuids: dict[tuple[int, int], UUID] = {}
        self.given: dict[tuple[int, int], NumbersGiven] = {}
        """The numbers by domain, and by which of the transactions that one group becomes."""
        self._is_former = False
        self.commit_id = 0
        self.back = 0
        """The number of the view's transactions after the last one that those with `commit_id` wait for; 0: there is none."""

    def uuid(self, domain: int, extra: int = 0) -> UUID:
        """Return the `domain_uuid`."""
        key = domain, extra
        found = self._uuids.get(key)
        if found is None:
            found = self._uuids[key] = domain_uuid(self._base, domain, extra)
        return found

    def last(self, domain: int) -> int:
        """Return the last number of the domain; 0: it has none yet."""
        given = self.given.get((domain, 0))
        return given.following - 1 if given is not None else 0

    def check(self, domain: int, sequence: int) -> None:
        """Check that the next group of the domain may have the number. Raises: Untranslatable."""
        last = self.last(domain)
        if sequence <= last:
            raise transaction_stops.sequence_not_increasing(domain, sequence, last)
        if sequence > LAST_GNO:
            raise transaction_stops.sequence_too_large(domain, sequence)

    def give(self, domain: int, sequence: int, commit_id: int | None, transactions: int = 1) -> int:
        """Assign the number, which `check` accepted, to a group that becomes so many consecutive transactions. Return the distance from
        the first of them to the last one that it waits for; 0: it is the one just before."""
        for extra in range(transactions - 1, -1, -1):
            self.given.setdefault((domain, extra), NumbersGiven()).add(sequence)
        if commit_id is None or transactions > 1:
            self.commit_id = self.back = 0
            return 0
        back = self.back if commit_id == self.commit_id else 0
        self.commit_id, self.back = commit_id, back + 1
        return back

    def next_numbers(self) -> Iterator[tuple[int, int]]:
        """Return each domain, with the number after its last one."""
        return ((domain, given.following) for (domain, extra), given in self.given.items() if not extra)

    def go_on(self, domain: int, following: int) -> None:
        """Note that the numbers of the domain continued, without a hole, up to the one before `following`."""
        self.given[domain, 0].following = following

    def begin_file(self) -> None:
        """Restart the numbers of transactions that others wait for."""
        self.commit_id = self.back = 0

    def executed_before(self, groups: Iterable[DomainGtid]) -> None:
        """Take a Gtid_list: in domains of which nothing is known, everything up to the greatest number was executed. After a change of
        source it limits the numbers that were assigned before."""
        groups = list(groups)
        if self._is_former:
            self._is_former = False
            lasts: dict[int, int] = {}
            for gtid in groups:
                lasts[gtid.domain_id] = max(lasts.get(gtid.domain_id, 0), gtid.sequence_number)
            cut = {key: one.up_to(lasts.get(key[0], 0)) for key, one in self.given.items()}
            self.given = {key: one for key, one in cut.items() if one is not None}
        found: dict[int, int] = {}
        for gtid in groups:
            if (gtid.domain_id, 0) not in self.given and 0 < gtid.sequence_number <= LAST_GNO:
                found[gtid.domain_id] = max(found.get(gtid.domain_id, 0), gtid.sequence_number)
        for domain, last in found.items():
            self.given[domain, 0] = NumbersGiven(start=1, following=last + 1)

    def executed(self) -> GtidSet:
        """Return everything that was assigned, with what was executed before."""
        return GtidSet.from_intervals({self.uuid(*key).bytes: one.intervals() for key, one in self.given.items()})

    def state(self) -> bytes:
        """Return the state to continue from here."""
        parts = [_HEAD.pack(_FORMER if self._is_former else self.back > 0, self.commit_id, self.back, len(self.given))]
        for (domain, extra), given in sorted(self.given.items()):
            intervals = given.intervals()
            parts.append(_DOMAIN.pack(domain, extra, len(intervals) // _INTERVAL.size) + intervals)
        return b"".join(parts)

    def restore(self, state: bytes) -> None:
        """Set the knowledge to `state` and nothing else. b"": nothing."""
        self.given = {}
        self.commit_id = self.back = 0
        self._is_former = False
        if not state:
            return
        first, self.commit_id, self.back, count = _HEAD.unpack_from(state)
        self._is_former = first == _FORMER
        at = _HEAD.size
        for _ in range(count):
            domain, extra, intervals = _DOMAIN.unpack_from(state, at)
            at += _DOMAIN.size
            stop = at + intervals * _INTERVAL.size
            start, following = _INTERVAL.unpack_from(state, stop - _INTERVAL.size)
            closed = bytearray(state[at : stop - _INTERVAL.size])
            self.given[domain, extra] = NumbersGiven(closed, start, following)
            at = stop


def given_before(state: bytes) -> bytes:
    """Return the state after a change of source, where `state` is that at the end of the former one."""
    if not state:
        return b""
    _, _, _, count = _HEAD.unpack_from(state)
    return _HEAD.pack(_FORMER, 0, 0, count) + state[_HEAD.size :]
