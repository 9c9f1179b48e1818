"""GTIDs over the files of an archive: missing numbers, repeated numbers, and heads that contradict the previous files.

Spark turns each file's transactions into ranges of their numbers; the ranges are few, and are compared here.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from protocol.binlog.layout import FIRST_EVENT
from protocol.errors import ProtocolError
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidList
from relay.audit.runner.audit_result import Place
from relay.binlog_file.gtids_before import gtids_before
from relay.binlog_tables.plan.series_head import SeriesHead
from relay.binlog_tables.plan.store import Store

_SHOWN: Final = 400
_SHOWN_RANGES: Final = 10

Ranges = list[tuple[int, int]]
"""These are numbers, both ends included, in order and not adjacent."""


@dataclass(frozen=True, slots=True)
class FileRange:
    """The transactions from `first` to `last` of one sequence in a file. `key` is uuid, uuid:tag, or MariaDB's domain.

    `extra` is how many of them come more than once.
    """

    file: str
    key: str
    first: int
    last: int
    extra: int = 0


@dataclass(slots=True)
class GtidReport:
    """The result. `missing` and `twice` are the first such places, with their numbers; `missing_count` is that of all missing
    stretches; `differs` are heads; `sequences` maps a key to its ranges in the archive; `gaps` maps a key to what is missing between
    them."""

    missing: list[Place] = field(default_factory=list)
    missing_count: int = 0
    twice: list[Place] = field(default_factory=list)
    differs: list[Place] = field(default_factory=list)
    sequences: dict[str, Ranges] = field(default_factory=dict)
    gaps: dict[str, Ranges] = field(default_factory=dict)


def head_state(store: Store, head: SeriesHead) -> GtidSet | GtidList | None:
    """Return what the file's Previous_gtids or Gtid_list says was executed before it; None if it says nothing readable."""
    if head.flavour is None:
        return None
    try:
        reader = store.open(head.file.path)
    except OSError:
        return None
    try:
        return gtids_before(reader, head.flavour, checksum=head.checksum)
    except (OSError, ProtocolError, ValueError):
        return None
    finally:
        reader.close()


def compare(
    files: Sequence[str],
    heads: Sequence[GtidSet | GtidList | None],
    ranges: Iterable[FileRange],
    most: int = 1000,
) -> GtidReport:
    """Check the files in order. `heads` has the result of `head_state` for each file; `most` limits the places of missing stretches.

    Where an archive went on with another source (see `generation_of`), that one's files may repeat transactions of the previous one (in
    `ranges` or not), and their heads need not name all that it wrote: they must only not name anything that is missing from the
    archive.
    """
    inside: defaultdict[str, defaultdict[str, list[FileRange]]] = defaultdict(lambda: defaultdict(list))
    for one in ranges:
        inside[one.file][one.key].append(one)
    report = GtidReport()
    begun: dict[str, Ranges] | None = None
    held = _Numbers()  # This is the whole archive, and what was executed before it
    known = _Numbers()  # These are the files of one source
    sequences = _Numbers()
    headed = False
    for number, (file, head) in enumerate(zip(files, heads, strict=True)):
        if number and generation_of(file) != generation_of(files[number - 1]):
            known, headed = _Numbers(), False
        stated = None if head is None else _stated(head)
        if stated is not None and begun is None:
            # If a sequence existed before the archive, it is unknown whether it existed before the first readable head.
            begun = {key: there for key, there in stated.items() if key not in sequences.ranges}
            begun |= {key: [(1, there[0][0] - 1)] for key, there in sequences.ranges.items()}
        elif stated is not None and not headed:
            _compare_first(report, file, stated, held)
        elif stated is not None and isinstance(head, GtidSet):
            _compare_head(report, file, stated, known, held)
        elif stated is not None:
            _compare_last(report, file, stated, known, held)
        if stated is not None:
            # A Gtid_list does not say that all before its numbers was executed: only what is new in it is taken.
            known.add(stated if isinstance(head, GtidSet) or not headed else known.beyond(stated))
            held.add(stated if isinstance(head, GtidSet) or not number else held.beyond(stated))
            headed = True
        for key, own in sorted(inside[file].items()):
            numbers = {key: merged((one.first, one.last) for one in own)}
            _find_again(report, file, key, own, known)
            for those in (known, held, sequences):
                those.add(numbers)
    report.sequences = dict(sequences.ranges)
    _find_missing(report, files, inside, begun, held, most)
    return report


def generation_of(file: str) -> str:
    """Return the directory of a later source in an archive, as names of files have it: g0002; "" for the first source."""
    return file.rpartition("/")[0]


class _Numbers:
    """The numbers of some sequences. Adding numbers after the others, as in a binlog, is cheap."""

    def __init__(self) -> None:
        self.ranges: defaultdict[str, Ranges] = defaultdict(list)

    def add(self, more: Mapping[str, Ranges]) -> None:
        """Add the numbers of `more`."""
        for key, there in more.items():
            ranges = self.ranges[key]
            for first, last in there:
                low = high = bisect_left(ranges, first - 1, key=_last)
                while high < len(ranges) and ranges[high][0] <= last + 1:
                    first, last = min(first, ranges[high][0]), max(last, ranges[high][1])
                    high += 1
                ranges[low:high] = [(first, last)]

    def newest(self, key: str) -> int:
        """Return the highest number of a sequence; 0 if there is none."""
        return self.ranges[key][-1][1] if self.ranges.get(key) else 0

    def beyond(self, stated: Mapping[str, Ranges]) -> dict[str, Ranges]:
        """Return what is above the highest numbers."""
        lasts = {key: there[-1][1] for key, there in stated.items()}
        return {key: [(self.newest(key) + 1, last)] for key, last in lasts.items() if last > self.newest(key)}


def _last(one: tuple[int, int]) -> int:
    return one[1]


def _stated(head: GtidSet | GtidList) -> dict[str, Ranges]:
    if isinstance(head, GtidSet):
        return {str(tsid): merged(head.intervals(tsid)) for tsid in head.tsids()}
    last: defaultdict[str, int] = defaultdict(int)
    for one in head:
        last[str(one.domain_id)] = max(last[str(one.domain_id)], one.sequence_number)
    return {key: [(1, number)] for key, number in last.items()}


def _compare_first(report: GtidReport, file: str, stated: dict[str, Ranges], held: _Numbers) -> None:
    """Compare the first head of a later source."""
    lost = {key: without(there, held.ranges.get(key, [])) for key, there in stated.items()}
    if any(lost.values()):
        text = f"its source had executed {_text(lost)}, which the sources before it did not write here"
        report.differs.append(Place(file, FIRST_EVENT, text))


def _compare_head(report: GtidReport, file: str, stated: dict[str, Ranges], known: _Numbers, held: _Numbers) -> None:
    lost = {key: without(there, held.ranges.get(key, [])) for key, there in stated.items()}
    more = {key: without(there, stated.get(key, [])) for key, there in known.ranges.items()}
    parts = []
    if any(lost.values()):
        parts.append(f"the files before it do not hold {_text(lost)}")
    if any(more.values()):
        parts.append(f"they hold {_text(more)}, which its head does not name")
    if parts:
        report.differs.append(Place(file, FIRST_EVENT, "; ".join(parts)))


def _compare_last(report: GtidReport, file: str, stated: dict[str, Ranges], known: _Numbers, held: _Numbers) -> None:
    """Compare a Gtid_list, which names only the last group of each domain."""
    for key, there in stated.items():
        last, newest = there[-1][1], known.newest(key)
        if last < newest or last > max(newest, held.newest(key)):
            text = f"its head says that domain {key} was at {last}; the files before it end at {newest or 'nothing'}"
            report.differs.append(Place(file, FIRST_EVENT, text))


def _find_again(report: GtidReport, file: str, key: str, own: list[FileRange], known: _Numbers) -> None:
    """Find transactions of one sequence in a file that came before, in the file or in an earlier one."""
    again = _common(merged((one.first, one.last) for one in own), known.ranges.get(key, []))
    parts = [_text({key: again})] if again else []
    parts += [f"{one.extra} of {_text({key: [(one.first, one.last)]})}" for one in own if one.extra][:_SHOWN_RANGES]
    if parts:
        report.twice.append(Place(file, None, f"{', '.join(parts)} came before"))


def _find_missing(
    report: GtidReport,
    files: Sequence[str],
    inside: Mapping[str, Mapping[str, list[FileRange]]],
    begun: dict[str, Ranges] | None,
    held: _Numbers,
    most: int,
) -> None:
    """Find missing numbers between existing ones; a gap's place is the file in which the sequence goes on after it."""
    goes_on: dict[tuple[str, int], str] = {}
    for file in files:
        for key, own in inside[file].items():
            for one in own:
                goes_on.setdefault((key, one.first), file)
    for key, there in report.sequences.items():
        before = (begun or {}).get(key, [])
        # What was missing already when the archive begins is not missing here.
        floor = before[-1][1] + 1 if before else 1 if begun is not None else there[0][0]
        holes = list(_holes(held.ranges[key], min(floor, there[0][0]), there[-1][1]))
        if not holes:
            continue
        report.gaps[key] = holes
        report.missing_count += len(holes)
        for first, last in holes[: most - len(report.missing)]:
            file = goes_on.get((key, last + 1), files[-1])
            report.missing.append(Place(file, None, _text({key: [(first, last)]})))


def merged(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Return the same numbers, in order and not adjacent."""
    made: Ranges = []
    for first, last in sorted(ranges):
        if made and first <= made[-1][1] + 1:
            made[-1] = (made[-1][0], max(made[-1][1], last))
        else:
            made.append((first, last))
    return made


def without(ranges: Ranges, taken: Ranges) -> Ranges:
    """Return the numbers of `ranges` that are not in `taken`."""
    left: Ranges = []
    for first, last in ranges:
        left += _holes(taken, first, last)
    return left


def _common(ranges: Ranges, others: Ranges) -> Ranges:
    found: Ranges = []
    for first, last in ranges:
        for at in range(bisect_left(others, first, key=_last), len(others)):
            start, stop = others[at]
            if start > last:
                break
            found.append((max(first, start), min(last, stop)))
    return found


def _holes(ranges: Ranges, first: int, last: int) -> Iterator[tuple[int, int]]:
    at = first
    for number in range(bisect_left(ranges, first, key=_last), len(ranges)):
        start, stop = ranges[number]
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
