"""MySQL's sets of GTIDs: the values, which never change, and the builder, which grows.

A set keeps, for each source (uuid and tag), the bytes that the wire has for its intervals (`protocol.kernel.intervals`). So
decoding is a check and a copy, sets share their common parts, and a copy costs nothing.
"""

import struct
from array import array
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Final

from protocol.errors import Malformed
from protocol.gtid.mysql_gtid import MAX_GNO, MysqlGtid, Tsid, parse_gno, parse_tag, parse_uuid, shown
from protocol.kernel import intervals
from protocol.pieces import Pieces

# Runs that did not continue the one before them are merged once there are this many, or an eighth of the merged ones: so
# numbers in any order cost a constant number of copies each.
_FEWEST_WAITING: Final = 4096


class GtidSet:
    """A set of MySQL's transactions. Immutable, hashable, compared by value.

    Operators: | union, - difference, & intersection, <= and >= subset, `in` for one transaction; an empty set is falsy. `str`
    returns the text that servers print, with ",\\n" between servers.
    """

    __slots__ = ("_by_key",)

    def __init__(self, members: Iterable[MysqlGtid] = ()) -> None:
        builder = GtidSetBuilder()
        for gtid in members:
            builder.add(gtid.tsid.key, gtid.gno)
        self._by_key: Mapping[bytes, bytes] = builder.intervals_by_key()

    @classmethod
    def from_intervals(cls, by_key: Mapping[bytes, bytes]) -> "GtidSet":
        """Make a set from canonical intervals (`protocol.kernel.intervals`) by `Tsid.key`, without checking them."""
        made = cls.__new__(cls)
        made._by_key = {key: numbers for key, numbers in by_key.items() if numbers}
        return made

    @classmethod
    def of_intervals(cls, by_key: Mapping[bytes, bytes]) -> "GtidSet":
        """Do the same for a mapping without empty members: it is kept, and must not change."""
        made = cls.__new__(cls)
        made._by_key = by_key
        return made

    @classmethod
    def from_text(cls, text: str) -> "GtidSet":
        """Parse `uuid:1-3:5:tag:1-7,uuid:...`, as servers and people write it.

        Spaces and newlines around the parts, any case, any order, overlaps, and empty members between commas are accepted.
        Raises: Malformed; also, unlike servers, for an interval that runs backwards and for a uuid or tag without a number: an
        operator who wrote that did not mean the empty set.
        """
        runs: dict[bytes, array[int]] = {}
        for member in text.split(","):
            if member.strip():
                _parse_member(member, runs)
        return cls.from_intervals({key: _canonical(found) for key, found in runs.items()})

    def __str__(self) -> str:
        return self._text(",\n")

    @property
    def line(self) -> str:
        """The text in one line, for logs, lists of events and error messages."""
        return self._text(",")

    def __repr__(self) -> str:
        return f"GtidSet.from_text({self.line!r})"

    def _text(self, separator: str) -> str:
        members: list[str] = []
        uuid = b""
        for key in sorted(self._by_key):
            numbers = _interval_text(self._by_key[key])
            tag = key[16:].decode()
            if key[:16] == uuid:
                members[-1] = f"{members[-1]}:{tag}:{numbers}"
            else:
                members.append(f"{Tsid.from_key(key)}:{numbers}")
                uuid = key[:16]
        return separator.join(members)

    # --- its members -------------------------------------------------------------------------------------------------

    def intervals_by_key(self) -> Mapping[bytes, bytes]:
        """Return the canonical, non-empty intervals by `Tsid.key`. The mapping must not be changed."""
        return self._by_key

    def tsids(self) -> list[Tsid]:
        """Return the sources, in order."""
        return [Tsid.from_key(key) for key in sorted(self._by_key)]

    def intervals(self, tsid: Tsid) -> list[tuple[int, int]]:
        """Return the source's intervals as (first, last), both in the set."""
        numbers = array("Q", self._by_key.get(tsid.key, b""))
        return [(numbers[i], numbers[i + 1] - 1) for i in range(0, len(numbers), 2)]

    @property
    def first_run(self) -> tuple[Tsid, int, int]:
        """The first source's first interval as (source, first, last); the others are not decoded. Raises: ValueError for an empty
        set.
        """
        key = min(self._by_key)
        first, stop = struct.unpack_from("<QQ", self._by_key[key])
        return Tsid.from_key(key), first, stop - 1

    def members(self) -> Iterator[MysqlGtid]:
        """Yield each transaction, in order. For small sets."""
        for tsid in self.tsids():
            for first, last in self.intervals(tsid):
                for gno in range(first, last + 1):
                    yield MysqlGtid(tsid, gno)

    @property
    def count(self) -> int:
        """The number of transactions."""
        return sum(map(intervals.count, self._by_key.values()))

    @property
    def interval_count(self) -> int:
        """The number of intervals, with which its work and memory grow."""
        return sum(map(len, self._by_key.values())) // 16

    def has(self, key: bytes, gno: int) -> bool:
        """Return whether number `gno` of the source with this `Tsid.key` is in the set."""
        numbers = self._by_key.get(key)
        return numbers is not None and 0 < gno <= MAX_GNO and intervals.contains(numbers, gno)

    def has_run(self, key: bytes, first: int, last: int) -> bool:
        """Return whether all numbers from `first` to `last` of the source with this `Tsid.key` are in the set."""
        numbers = self._by_key.get(key)
        if numbers is None or not 0 < first <= last <= MAX_GNO:
            return False
        return intervals.is_subset(first.to_bytes(8, "little") + (last + 1).to_bytes(8, "little"), numbers)

    def meets_run(self, key: bytes, first: int, last: int) -> bool:
        """Return whether a number from `first` to `last` of the source with this `Tsid.key` is in the set."""
        numbers = self._by_key.get(key)
        return numbers is not None and 0 < first <= last <= MAX_GNO and intervals.meets_run(numbers, first, last)

    def __contains__(self, gtid: MysqlGtid) -> bool:
        return self.has(gtid.tsid.key, gtid.gno)

    def __bool__(self) -> bool:
        return bool(self._by_key)

    def __eq__(self, other: object) -> bool:
        return self._by_key == other._by_key if isinstance(other, GtidSet) else NotImplemented

    def __hash__(self) -> int:
        return hash(frozenset(self._by_key.items()))

    @property
    def has_tags(self) -> bool:
        """True if a transaction in the set has a tag: the wire's second format is needed then."""
        for key in self._by_key:  # noqa: SIM110 - any() takes three times as long, and each set that is encoded asks
            if len(key) > 16:
                return True
        return False

    # --- arithmetic --------------------------------------------------------------------------------------------------

    def __or__(self, other: "GtidSet") -> "GtidSet":
        if len(self._by_key) < len(other._by_key):
            self, other = other, self
        if not other._by_key:
            return self
        merged = dict(self._by_key)
        for key, numbers in other._by_key.items():
            held = merged.get(key)
            merged[key] = numbers if held is None else intervals.union(held, numbers)
        return GtidSet.of_intervals(merged)

    def __sub__(self, other: "GtidSet") -> "GtidSet":
        if not other._by_key:
            return self
        own, taken = self._by_key, other._by_key
        return GtidSet.from_intervals(
            {key: own[key] if key not in taken else intervals.difference(own[key], taken[key]) for key in own}
        )

    def __and__(self, other: "GtidSet") -> "GtidSet":
        few, many = self._by_key, other._by_key
        if len(few) > len(many):
            few, many = many, few
        return GtidSet.from_intervals({key: intervals.intersection(few[key], many[key]) for key in few if key in many})

    def __le__(self, other: "GtidSet") -> bool:
        own, whole = self._by_key, other._by_key
        if len(own) > len(whole):
            return False
        return all(key in whole and intervals.is_subset(own[key], whole[key]) for key in own)

    def __ge__(self, other: "GtidSet") -> bool:
        return other <= self

    def __lt__(self, other: "GtidSet") -> bool:
        return self <= other and self != other

    def __gt__(self, other: "GtidSet") -> bool:
        return other < self

    def meets(self, other: "GtidSet") -> bool:
        """Return whether the two sets have a transaction in common."""
        own, kept = self._by_key, other._by_key
        return any(key in kept and intervals.intersection(own[key], kept[key]) for key in own)

    def of_sources(self, keys: Iterable[bytes]) -> "GtidSet":
        """Return the transactions of the sources with these `Tsid.key`s. Each of them is looked up."""
        by_key = self._by_key
        if isinstance(by_key, EncodedIntervals):
            return GtidSet.of_intervals(by_key.of_sources(keys))
        return GtidSet.from_intervals({key: by_key[key] for key in keys if key in by_key})

    def split(self, keys: Container[bytes]) -> tuple["GtidSet", "GtidSet"]:
        """Return the transactions of sources whose `Tsid.key` is in `keys`, and those of all others."""
        found: tuple[list[bytes], list[bytes]] = ([], [])
        for key in self._by_key:
            found[key not in keys].append(key)
        return self.of_sources(found[0]), self.of_sources(found[1])

    def without_tags(self) -> "GtidSet":
        """Return the transactions that have no tag, which are all that servers before 8.3 know."""
        return GtidSet.from_intervals({key: numbers for key, numbers in self._by_key.items() if len(key) == 16})


class EncodedIntervals(Mapping[bytes, bytes]):
    """Canonical, non-empty intervals by `Tsid.key`, as in `GtidSet.intervals_by_key`, that are slices of an encoded set.

    A copy of a dump request of 16 MB costs more than its answer, so each source's slice is made when it is asked for.
    """

    __slots__ = ("_data", "_places")

    def __init__(self, data: Pieces, places: Mapping[bytes, tuple[int, int]]) -> None:
        self._data = data
        self._places = places

    def __getitem__(self, key: bytes) -> bytes:
        return self._data.part(*self._places[key])

    def __contains__(self, key: object) -> bool:
        return key in self._places

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def of_sources(self, keys: Iterable[bytes]) -> "EncodedIntervals":
        """Return the intervals of these keys, of the same bytes."""
        places = self._places
        return EncodedIntervals(self._data, {key: places[key] for key in keys if key in places})


class GtidSetBuilder:
    """A set that grows, mostly by the next number, which costs no more than an addition.

    `snapshot` merges the additions since the last one into only those sources that changed.
    """

    def __init__(self, start: GtidSet | None = None) -> None:
        self._merged: dict[bytes, bytes] = dict(start.intervals_by_key()) if start is not None else {}
        self._runs: dict[bytes, _Run] = {}
        self.sources = list(self._merged)
        """The `Tsid.key`s that have a transaction in the set, in the order in which they came."""

    def add(self, key: bytes, gno: int) -> None:
        """Add one transaction, of the source with this `Tsid.key`. Raises: Malformed for a number out of range."""
        run = self._runs.get(key)
        if run is not None and gno == run.stop and gno <= MAX_GNO:
            run.stop = gno + 1
            return
        self.add_run(key, gno, gno + 1)

    def add_run(self, key: bytes, start: int, stop: int) -> None:
        """Add the numbers in [start, stop). Raises: Malformed for numbers out of range, or none."""
        if not 0 < start < stop <= MAX_GNO + 1:
            raise Malformed(f"transactions {start} to {stop - 1} of {Tsid.from_key(key)}: not within 1 and {MAX_GNO}")
        run = self._runs.get(key)
        if run is None:
            if key not in self._merged:
                Tsid.from_key(key)
                self.sources.append(key)
            self._runs[key] = _Run(start, stop)
        elif run.start <= start <= run.stop:
            run.stop = max(run.stop, stop)
        else:
            run.waiting.extend((run.start, run.stop))
            run.start, run.stop = start, stop
            if len(run.waiting) > max(_FEWEST_WAITING, len(self._merged.get(key, b"")) // 64):
                self._merge(key, run)
                del self._runs[key]

    def add_set(self, other: GtidSet) -> None:
        """Add all of another set."""
        for key, numbers in other.intervals_by_key().items():
            if key not in self._merged and key not in self._runs:
                self.sources.append(key)
            self._merged[key] = intervals.union(self._merged.get(key, b""), numbers)

    def snapshot(self) -> GtidSet:
        """Return the set at this moment."""
        return GtidSet.from_intervals(self.intervals_by_key())

    def intervals_by_key(self) -> dict[bytes, bytes]:
        """Return `GtidSet.intervals_by_key` of this moment as a dictionary of its own."""
        for key, run in self._runs.items():
            self._merge(key, run)
        self._runs.clear()
        return dict(self._merged)

    def _merge(self, key: bytes, run: "_Run") -> None:
        run.waiting.extend((run.start, run.stop))
        self._merged[key] = intervals.union(self._merged.get(key, b""), _canonical(run.waiting))


class _Run:
    """The numbers of one source that were added lately: one interval that grows, and others that wait to be merged."""

    __slots__ = ("start", "stop", "waiting")

    def __init__(self, start: int, stop: int) -> None:
        self.start = start
        self.stop = stop
        self.waiting: array[int] = array("Q")


def _canonical(runs: "array[int]") -> bytes:
    """Return the canonical intervals of (start, stop) pairs in any order."""
    data = little_endian(runs)
    if intervals.check(data, 0, len(runs) // 2) < 0:
        return data
    pairs = sorted(zip(runs[::2], runs[1::2], strict=True))
    return intervals.merge_runs(little_endian(array("Q", [number for pair in pairs for number in pair])))


def little_endian(numbers: "array[int]") -> bytes:
    """Return the numbers, 8 bytes each, as the wire has them."""
    if _BIG_ENDIAN:  # pragma: no cover - the uncompiled relay on a big-endian machine
        numbers = numbers[:]
        numbers.byteswap()
    return numbers.tobytes()


_BIG_ENDIAN: Final = array("Q", [1]).tobytes()[0] == 0


def _parse_member(member: str, runs: "dict[bytes, array[int]]") -> None:
    uuid_text, *parts = [part.strip() for part in member.split(":")]
    uuid = parse_uuid(uuid_text).bytes
    key = uuid
    expecting = f"the transactions of {shown(uuid_text)}"
    for part in parts:
        if part[:1].isalpha() or part[:1] == "_":
            if expecting and key != uuid:
                break
            tag = parse_tag(part)
            key = uuid + tag.encode()
            expecting = f"the transactions of {shown(uuid_text)} with tag {tag}"
            continue
        first, hyphen, last = part.partition("-")
        start = parse_gno(first.rstrip())
        stop = (parse_gno(last.lstrip()) if hyphen else start) + 1
        if stop <= start:
            raise Malformed(f"interval {shown(part)} of {shown(uuid_text)} runs backwards")
        runs.setdefault(key, array("Q")).extend((start, stop))
        expecting = ""
    if expecting:
        raise Malformed(f"{expecting} are missing in {shown(member)}")


def _interval_text(numbers: bytes) -> str:
    pairs = array("Q", numbers)
    if _BIG_ENDIAN:  # pragma: no cover - as above
        pairs.byteswap()
    return ":".join(
        [
            f"{start}" if stop == start + 1 else f"{start}-{stop - 1}"
            for start, stop in zip(pairs[::2], pairs[1::2], strict=True)
        ]
    )
