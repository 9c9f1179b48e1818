"""The GTIDs that a view gives to the groups of a MariaDB source: of each domain one uuid, and the group's own number."""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID, uuid5

from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import DomainGtid
from relay.view.stops import transaction_stops

LAST_GNO: Final = 2**63 - 2
"""The greatest number that MySQL takes."""
_HEAD: Final = struct.Struct("<BQII")
_DOMAIN: Final = struct.Struct("<IHI")
_INTERVAL: Final = struct.Struct("<QQ")
_FORMER: Final = 2
"""In the first byte of a state: the numbers are of a former source, and which of them count is said by the first list."""


def domain_uuid(base: UUID, domain: int, extra: int = 0) -> UUID:
    """Whose GTIDs groups of `domain` get. base: the view's uuid. extra: 0: the last transaction that a group becomes; 1, 2 …: those
    before it."""
    return uuid5(base, f"mariadb {domain}" if not extra else f"mariadb {domain} extra {extra}")


@dataclass(slots=True)
class NumbersGiven:
    """Of one uuid: closed intervals, each as two numbers, and [start, following) that still grows; 0, 0: none was given."""

    closed: bytearray = field(default_factory=bytearray)
    start: int = 0
    following: int = 0

    def add(self, number: int) -> None:
        """It is not below `following`."""
        if number != self.following:
            if self.following:
                self.closed += _INTERVAL.pack(self.start, self.following)
            self.start = number
        self.following = number + 1

    def intervals(self) -> bytes:
        """All of them, as `GtidSet.from_intervals` has them."""
        return bytes(self.closed) + (_INTERVAL.pack(self.start, self.following) if self.following else b"")

    def up_to(self, last: int) -> "NumbersGiven | None":
        """Those of them that are not above `last`; None: there is none."""
        kept = NumbersGiven()
        for start, stop in _INTERVAL.iter_unpack(self.intervals()):
            if start <= last:
                if kept.following:
                    kept.closed += _INTERVAL.pack(kept.start, kept.following)
                kept.start, kept.following = start, min(stop, last + 1)
        return kept if kept.following else None


class AssignedGtids:
    """What was given, and which groups were committed together. base: the view's uuid."""

    def __init__(self, base: UUID) -> None:
        self._base = base
        self._uuids: dict[tuple[int, int], UUID] = {}
        self.given: dict[tuple[int, int], NumbersGiven] = {}
        """By domain, and which of the transactions that one group becomes."""
        self._is_former = False
        self.commit_id = 0
        self.back = 0
        """How many transactions of the view stand behind the last one that those with `commit_id` wait for; 0: there is none."""

    def uuid(self, domain: int, extra: int = 0) -> UUID:
        """See `domain_uuid`."""
        key = domain, extra
        found = self._uuids.get(key)
        if found is None:
            found = self._uuids[key] = domain_uuid(self._base, domain, extra)
        return found

    def last(self, domain: int) -> int:
        """The last number of the domain; 0: it has none yet."""
        given = self.given.get((domain, 0))
        return given.following - 1 if given is not None else 0

    def check(self, domain: int, sequence: int) -> None:
        """Raises: Untranslatable for a number that the next group of the domain must not have."""
        last = self.last(domain)
        if sequence <= last:
            raise transaction_stops.sequence_not_increasing(domain, sequence, last)
        if sequence > LAST_GNO:
            raise transaction_stops.sequence_too_large(domain, sequence)

    def give(self, domain: int, sequence: int, commit_id: int | None, transactions: int = 1) -> int:
        """The group becomes so many transactions, one behind the other. How far before the first of them the last one stands that it
        waits for: 0: it is the one before it. A number that `check` took."""
        for extra in range(transactions - 1, -1, -1):
            self.given.setdefault((domain, extra), NumbersGiven()).add(sequence)
        if commit_id is None or transactions > 1:
            self.commit_id = self.back = 0
            return 0
        back = self.back if commit_id == self.commit_id else 0
        self.commit_id, self.back = commit_id, back + 1
        return back

    def next_numbers(self) -> Iterator[tuple[int, int]]:
        """Each domain, with the number behind its last one."""
        return ((domain, given.following) for (domain, extra), given in self.given.items() if not extra)

    def go_on(self, domain: int, following: int) -> None:
        """The numbers of the domain went on, without a hole, up to the one before `following`."""
        self.given[domain, 0].following = following

    def begin_file(self) -> None:
        """The numbers of transactions that others wait for begin anew."""
        self.commit_id = self.back = 0

    def executed_before(self, groups: Iterable[DomainGtid]) -> None:
        """What a Gtid_list says of domains that nothing is known of: all up to the greatest number was executed. Behind a change of
        source, of what was given before: that part."""
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
        """All that was given, with what was executed before."""
        return GtidSet.from_intervals({self.uuid(*key).bytes: one.intervals() for key, one in self.given.items()})

    def state(self) -> bytes:
        """To go on from here."""
        parts = [_HEAD.pack(_FORMER if self._is_former else self.back > 0, self.commit_id, self.back, len(self.given))]
        for (domain, extra), given in sorted(self.given.items()):
            intervals = given.intervals()
            parts.append(_DOMAIN.pack(domain, extra, len(intervals) // _INTERVAL.size) + intervals)
        return b"".join(parts)

    def restore(self, state: bytes) -> None:
        """Knows what `state` says and nothing else. b"": nothing."""
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
    """The state behind a change of source, where `state` is that at the end of the former one."""
    if not state:
        return b""
    _, _, _, count = _HEAD.unpack_from(state)
    return _HEAD.pack(_FORMER, 0, 0, count) + state[_HEAD.size :]
