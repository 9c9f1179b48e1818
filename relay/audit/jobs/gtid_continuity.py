"""GTIDs over the files of an archive: numbers that are missing, that come twice, and heads that contradict the files before.

Spark makes of each file's transactions the ranges of their numbers; the ranges are few, and are compared here.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from protocol.binlog.event_type import EventType
from protocol.errors import ProtocolError
from protocol.gtid.codec import decode_gtid_set
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidList, decode_gtid_list
from relay.audit.jobs.files_read import FileHead
from relay.audit.jobs.job import Place
from relay.audit.splits import FIRST_EVENT, MAGIC
from relay.audit.store import Reader, Store

_HEADER_BYTES: Final = 19
_LONGEST_HEAD: Final = 64 << 20
_HEADS_LOOKED_AT: Final = 4
_SHOWN: Final = 400

Ranges = list[tuple[int, int]]
"""Numbers, both ends included, in order and apart."""


@dataclass(frozen=True, slots=True)
class FileRange:
    """Transactions first to last of one sequence in a file. `key`: uuid, uuid:tag, or MariaDB's domain.

    `extra`: how many of them come more than once.
    """

    file: str
    key: str
    first: int
    last: int
    extra: int = 0


@dataclass(slots=True)
class GtidReport:
    """What was found. `missing` and `twice` name the numbers; `differs`: heads; `sequences`: key -> ranges in the archive."""

    missing: list[Place] = field(default_factory=list)
    twice: list[Place] = field(default_factory=list)
    differs: list[Place] = field(default_factory=list)
    sequences: dict[str, Ranges] = field(default_factory=dict)
    gaps: dict[str, Ranges] = field(default_factory=dict)


def head_state(store: Store, head: FileHead) -> GtidSet | GtidList | None:
    """What the file's Previous_gtids or Gtid_list says was executed before it; None: it says nothing that can be read."""
    try:
        reader = store.open(head.file.path)
    except OSError:
        return None
    try:
        return _state(reader, head.checksum)
    except (OSError, ProtocolError, ValueError):
        return None
    finally:
        reader.close()


def _state(reader: Reader, checksum: bool) -> GtidSet | GtidList | None:
    if _read(reader, 0, FIRST_EVENT) != MAGIC:
        return None
    at = FIRST_EVENT
    for _ in range(_HEADS_LOOKED_AT):
        header = _read(reader, at, _HEADER_BYTES)
        if len(header) < _HEADER_BYTES:
            return None
        kind, length = header[4], int.from_bytes(header[9:13], "little")
        if not _HEADER_BYTES <= length <= _LONGEST_HEAD:
            return None
        if kind in (EventType.PREVIOUS_GTIDS, EventType.GTID_LIST):
            body = _read(reader, at + _HEADER_BYTES, length - _HEADER_BYTES - (4 if checksum else 0))
            return decode_gtid_set(body) if kind == EventType.PREVIOUS_GTIDS else decode_gtid_list(body)
        at += length
    return None


def _read(reader: Reader, offset: int, count: int) -> bytes:
    buffer = bytearray(count)
    have = 0
    while have < count:
        got = reader.read_into(memoryview(buffer)[have:], offset + have)
        if not got:
            break
        have += got
    return bytes(buffer[:have])


def compare(
    files: Sequence[str], heads: Sequence[GtidSet | GtidList | None], ranges: Iterable[FileRange]
) -> GtidReport:
    """Goes over the files in order. `heads`: of each file, as `head_state` gives it."""
    inside: defaultdict[str, list[FileRange]] = defaultdict(list)
    for one in ranges:
        inside[one.file].append(one)
    report = GtidReport()
    begun: dict[str, Ranges] | None = None
    known: dict[str, Ranges] = {}
    for file, head in zip(files, heads, strict=True):
        stated = None if head is None else _stated(head)
        if stated is not None and begun is None:
            begun = stated
            known = {key: list(there) for key, there in stated.items()}
        elif stated is not None and isinstance(head, GtidSet):
            _compare_head(report, file, stated, known)
        elif stated is not None:
            _compare_last(report, file, stated, known)
        for one in sorted(inside[file], key=lambda one: (one.key, one.first)):
            own = [(one.first, one.last)]
            again = _common(own, known.get(one.key, []))
            if again or one.extra:
                what = _text({one.key: again}) if again else f"{one.extra} of {_text({one.key: own})}"
                report.twice.append(Place(file, None, f"{what} came before"))
            known[one.key] = merged([*known.get(one.key, []), *own])
            report.sequences[one.key] = merged([*report.sequences.get(one.key, []), *own])
    for key, there in report.sequences.items():
        before = (begun or {}).get(key, [])
        # What was missing already when the archive begins is not missing here.
        floor = before[-1][1] + 1 if before else 1 if begun is not None else there[0][0]
        holes = list(_holes(known[key], min(floor, there[0][0]), there[-1][1]))
        if holes:
            report.gaps[key] = holes
            for first, last in holes:
                report.missing.append(
                    Place(_file_behind(inside, files, key, last), None, _text({key: [(first, last)]}))
                )
    return report


def _stated(head: GtidSet | GtidList) -> dict[str, Ranges]:
    if isinstance(head, GtidSet):
        return {str(tsid): merged(head.intervals(tsid)) for tsid in head.tsids()}
    last: defaultdict[str, int] = defaultdict(int)
    for one in head:
        last[str(one.domain_id)] = max(last[str(one.domain_id)], one.sequence_number)
    return {key: [(1, number)] for key, number in last.items()}


def _compare_head(report: GtidReport, file: str, stated: dict[str, Ranges], known: dict[str, Ranges]) -> None:
    lost = {key: without(there, known.get(key, [])) for key, there in stated.items()}
    more = {key: without(there, stated.get(key, [])) for key, there in known.items()}
    parts = []
    if any(lost.values()):
        parts.append(f"the files before it do not hold {_text(lost)}")
    if any(more.values()):
        parts.append(f"they hold {_text(more)}, which its head does not name")
    if parts:
        report.differs.append(Place(file, FIRST_EVENT, "; ".join(parts)))
    for key, there in lost.items():
        known[key] = merged([*known.get(key, []), *there])


def _compare_last(report: GtidReport, file: str, stated: dict[str, Ranges], known: dict[str, Ranges]) -> None:
    """A Gtid_list names the last group of each domain only."""
    for key, there in stated.items():
        last, seen = there[-1][1], known.get(key, [])
        newest = seen[-1][1] if seen else 0
        if last != newest:
            text = f"its head says that domain {key} was at {last}; the files before it end at {newest or 'nothing'}"
            report.differs.append(Place(file, FIRST_EVENT, text))
            known[key] = merged([*seen, (newest + 1, last)]) if last > newest else seen


def _file_behind(inside: dict[str, list[FileRange]], files: Sequence[str], key: str, number: int) -> str:
    """The file in which the sequence goes on behind a gap."""
    for file in files:
        if any(one.key == key and one.first > number for one in inside[file]):
            return file
    return files[-1]


def merged(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The same numbers, in order and apart."""
    made: Ranges = []
    for first, last in sorted(ranges):
        if made and first <= made[-1][1] + 1:
            made[-1] = (made[-1][0], max(made[-1][1], last))
        else:
            made.append((first, last))
    return made


def without(ranges: Ranges, taken: Ranges) -> Ranges:
    """The numbers of `ranges` that are not in `taken`."""
    left: Ranges = []
    for first, last in ranges:
        left += _holes(taken, first, last)
    return left


def _common(ranges: Ranges, others: Ranges) -> Ranges:
    return [
        (max(first, start), min(last, stop))
        for first, last in ranges
        for start, stop in others
        if max(first, start) <= min(last, stop)
    ]


def _holes(ranges: Ranges, first: int, last: int) -> Iterator[tuple[int, int]]:
    at = first
    for start, stop in ranges:
        if start > last:
            break
        if start > at:
            yield at, min(start - 1, last)
        at = max(at, stop + 1)
    if at <= last:
        yield at, last


def _text(ranges: dict[str, Ranges]) -> str:
    parts = [
        f"{key}:{first}" if first == last else f"{key}:{first}-{last}"
        for key, there in ranges.items()
        for first, last in there
    ]
    text = ", ".join(parts)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(parts)} ranges)"
