"""The splits of files at transaction boundaries: by the archive's index, or by one pass if there is none."""

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from protocol.binlog.event_type import EventType
from protocol.binlog.header import decode_header
from protocol.binlog.layout import FIRST_EVENT, MAGIC, TYPE_AT
from protocol.kernel.ingest import Ingest
from relay.archive.storage.boundary_index import RECORD, RECORD_SIZE, IndexRecord
from relay.archive.storage.files import IDX_SUFFIX
from relay.binlog_file import file_end
from relay.binlog_file.broken import THROUGH_ITS_SERVER, Broken, wrong_magic
from relay.binlog_file.event_places import event_headers
from relay.binlog_file.event_reader import EventReader
from relay.binlog_file.file_bytes import read_bytes
from relay.binlog_file.file_end import INCOMPLETE, INCOMPLETE_TEXT
from relay.binlog_file.head import BinlogStart, read_start
from relay.binlog_tables.plan.overlap import Overlap, Span
from relay.binlog_tables.plan.read_finding import Finding
from relay.binlog_tables.plan.series_files import SeriesFile
from relay.binlog_tables.plan.store import Reader, Store
from relay.packed.packed_facts import plain_name

_TABLE_ROWS: Final = 4096
_LOOKED_AT_BYTES: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Split:
    """Events [start, stop) of a file: whole transactions.

    `format_event` is the file's format description if the split does not begin with it, and `in_use` its flag. With `last` the file
    ends here. `following` is the next file, which shows whether this one is complete. `cut` means with a transaction that its source's
    end cut. `findings` were known before anything is read. `skips` are not read: whole transactions that an earlier source's files
    contain (see overlap). `sequence_base` is the file's (see sequence).
    """

    path: str
    name: str
    start: int
    stop: int
    format_event: bytes = field(default=b"", repr=False)
    in_use: bool = False
    last: bool = True
    following: str = ""
    cut: bool = False
    findings: tuple[Finding, ...] = ()
    skips: tuple[Span, ...] = ()
    sequence_base: int | None = None

    @property
    def parts(self) -> list[Span]:
        """The parts of it that are read, in order."""
        edges = [self.start, *itertools.chain.from_iterable(self.skips), self.stop]
        return [(start, stop) for start, stop in zip(edges[::2], edges[1::2], strict=True) if start < stop]


def plan(
    store: Store,
    files: list[SeriesFile],
    split_bytes: int,
    wanted: Callable[[str], bool] = lambda name: True,
    *,
    whole_files: bool = False,
    overlap: Overlap | None = None,
) -> list[Split]:
    """Return the splits of all `files` whose name is `wanted`, in order. An unreadable part is a split with a finding."""
    splits: list[Split] = []
    sources = SourceChain()
    for file in files:
        if wanted(file.name):
            splits += plan_file(store, file, split_bytes, whole_files=whole_files, sources=sources, overlap=overlap)
    return splits


class SourceChain:
    """The writers of consecutive files, as far as their first events say."""

    def __init__(self) -> None:
        self._series = ""
        self._before: tuple[str, int] = ("", 0)

    def follow(self, file: SeriesFile, format_event: bytes) -> tuple[Finding, ...]:
        """Take the next file, with its format description; return a finding if it is of another source than the one before."""
        if not format_event:
            return ()
        header = decode_header(format_event)
        server_id = header.server_id
        before, series = self._before, self._series
        self._before, self._series = (file.name, server_id), file.series
        if series != file.series or before[1] == server_id:
            return ()
        text = (
            f"server_id {server_id} wrote this file, and {before[1]} the one before, {before[0]}: it is another server's, "
            "or the server was given another id."
        )
        return (
            Finding(file.name, FIRST_EVENT, FIRST_EVENT + len(format_event), header.timestamp, "source_changed", text),
        )

    def look_at(self, store: Store, file: SeriesFile) -> None:
        """Take a file that is not read itself."""
        try:
            reader = store.open(file.path)
        except OSError:
            return
        try:
            self.follow(file, _format_event(read_start(reader), reader.size))
        except OSError:
            return
        finally:
            reader.close()


def plan_file(
    store: Store,
    file: SeriesFile,
    split_bytes: int,
    *,
    whole_files: bool = False,
    start: int = FIRST_EVENT,
    stop: int | None = None,
    sources: SourceChain | None = None,
    overlap: Overlap | None = None,
) -> list[Split]:
    """Return the splits of [start, stop) of one file, both of them transaction boundaries; `stop` None means its end.

    `sources` knows the file before, if that was of the same source. `overlap` says what is left out because the files of an earlier
    source contain it.
    """

    def nothing(name: str, text: str, position: int = 0, end: int = 0) -> list[Split]:
        finding = Finding(file.name, position, end, 0, name, text)
        base = file.sequence_base
        return [Split(file.path, file.name, FIRST_EVENT, FIRST_EVENT, findings=(finding,), sequence_base=base)]

    try:
        reader = store.open(file.path)
    except OSError as error:
        gone = isinstance(error, FileNotFoundError)
        return nothing("file_gone" if gone else "file_unreadable", f"The file cannot be opened: {error}.")
    try:
        size = reader.size if file.end is None else file.end
        begin = read_start(reader)
        wrong = wrong_magic(begin.magic)
        if wrong is not None:
            if file.growing and MAGIC.startswith(begin.magic):
                return []
            name, what = wrong
            advice = f" {THROUGH_ITS_SERVER}" if name == "file_encrypted" else ""
            return nothing(name, f"The file {what}.{advice}", end=size)
        format_event = _format_event(begin, size)
        in_use = bool(len(format_event) > 17 and format_event[17] & 1)
        records = _Records(store, file.path) if format_event else None
        to_end = stop is None or stop >= size
        if stop is not None:
            size = min(size, stop)
        elif file.growing:
            boundary, whole = _last_boundary(reader, size, format_event, records)
            # What cannot be walked over is read, so that it becomes a finding.
            size = boundary if whole else size
        cuts = []
        if not whole_files and size - start > 2 * split_bytes and format_event:
            if records is None or not records.count:
                records = _records_up_to(store, file.path, reader, format_event, size)
                if not records.count:  # It cannot be walked over from its beginning
                    records = _Records.of(_scan(reader, size, start, format_event)[1])
            cuts = _cuts(records, start, size, split_bytes)
        findings = sources.follow(file, format_event) if sources is not None and start == FIRST_EVENT else ()
        if file.damaged and stop is None:
            text = "The archive marked the file as damaged from here on; what follows is not served and not read."
            findings += (Finding(file.name, size, size, 0, "file_damaged", text),)
        following = file.following if to_end else ""
        lacks = is_incomplete(store, reader, size, following) if in_use or start >= size else False
        if lacks and start >= size:
            findings += (Finding(file.name, size, size, 0, INCOMPLETE, INCOMPLETE_TEXT),)
        cut = (file.cut or (in_use and file.followed and not lacks)) and to_end
        edges = [start, *cuts, max(size, start)]
        splits = [
            Split(
                file.path,
                file.name,
                first,
                behind,
                format_event if first != FIRST_EVENT else b"",
                in_use,
                behind == edges[-1],
                following if behind == edges[-1] else "",
                cut and behind == edges[-1],
                sequence_base=file.sequence_base,
            )
            for first, behind in itertools.pairwise(edges)
        ]
        splits[-1] = replace(splits[-1], findings=findings)
        if overlap is not None:
            repeated = overlap.spans(file, format_event, reader, start, max(size, start))
            splits = [replace(split, skips=_within(repeated, split.start, split.stop)) for split in splits]
        return [split for split in splits if split.findings or split.parts]
    except OSError as error:
        return nothing("file_unreadable", f"The file cannot be read: {error}.")
    finally:
        reader.close()


def is_incomplete(store: Store, file: Reader, end: int, following: str) -> bool:
    """Return whether events are missing after `end`, where a file ends, by the next one, if there is any. Raises: OSError."""
    if not following:
        return False
    try:
        reader = store.open(following)
    except FileNotFoundError:
        return False
    try:
        return file_end.is_incomplete(file, end, reader)
    finally:
        reader.close()


def _within(spans: Iterable[Span], start: int, stop: int) -> tuple[Span, ...]:
    """Return the parts of the spans in [start, stop)."""
    cut = ((max(first, start), min(behind, stop)) for first, behind in spans)
    return tuple((first, behind) for first, behind in cut if first < behind)


def written_between(store: Store, files: list[SeriesFile], since_s: float, until_s: float) -> list[SeriesFile]:
    """Return the files that may contain events of [since, until), by the times in their first events.

    Nothing is written to a file once the source has begun the next one. The first events of a file may be older than the file: a source
    that is another one's replica keeps the times of what it repeats. A file without a known time is kept.
    """
    times = [_first_times(store, file) for file in files]
    kept = []
    for number, file in enumerate(files):
        begun, oldest = times[number]
        ended = times[number + 1][0] if file.followed else None
        if ended is not None and (begun is None or ended < begun):
            ended = None  # The clock went back: the file may contain later times than it says
        if (oldest is None or oldest < until_s) and (ended is None or ended >= since_s):
            kept.append(file)
    return kept


def _first_times(store: Store, file: SeriesFile) -> tuple[int | None, int | None]:
    """Return the start time of the file, and the oldest time in its first 64 KiB; None if unknown."""
    try:
        reader = store.open(file.path)
    except OSError:
        return None, None
    try:
        if read_bytes(reader, 0, len(MAGIC)) != MAGIC:
            return None, None
        times = [fields.timestamp for _, fields in event_headers(reader, FIRST_EVENT, _LOOKED_AT_BYTES)]
    except OSError:
        return None, None
    finally:
        reader.close()
    if not times or not times[0]:
        return None, None
    return times[0], min(time for time in times if time)


def _format_event(begin: BinlogStart, size: int) -> bytes:
    """Return the format description that heads a file; empty if there is none that a later split could use."""
    event = begin.event
    if not begin.is_whole or event[TYPE_AT] != EventType.FORMAT_DESCRIPTION or len(event) > size:
        return b""
    return event if Ingest().read_format(bytearray(event), 0, len(event)) else b""


class _Records:
    """The records of a boundary index, from NAME.idx or from memory."""

    def __init__(self, store: Store, path: str) -> None:
        self._reader: Reader | None = None
        self._data = b""
        try:
            index = (plain_name(path) or path) + IDX_SUFFIX
            if store.is_file(index):
                self._reader = store.open(index)
                # What bisection touches is small, and the whole is 400 kB for a gigabyte of binlog
                self._data = read_bytes(self._reader, 0, self._reader.size)
        except OSError:
            self._data = b""
        finally:
            if self._reader is not None:
                self._reader.close()
        self.count = len(self._data) // RECORD_SIZE
        if self.count and self[0].offset != FIRST_EVENT:
            self.count = 0

    @classmethod
    def of(cls, data: bytes) -> "_Records":
        """Return records that were made just now."""
        made = cls.__new__(cls)
        made._reader = None
        made._data = data
        made.count = len(data) // RECORD_SIZE
        return made

    def __getitem__(self, number: int) -> IndexRecord:
        return IndexRecord(*RECORD.unpack_from(self._data, number * RECORD_SIZE))

    def bytes_before(self, offset: int) -> bytes:
        """Return the records of places before `offset`, as they are stored."""
        return self._data[: self.first_from(offset) * RECORD_SIZE]

    def first_from(self, offset: int) -> int:
        """Return the number of the first record whose offset is at or after `offset`."""
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            if self[middle].offset < offset:
                low = middle + 1
            else:
                high = middle
        return low


@dataclass(frozen=True, slots=True)
class _Walked:
    """The records of [FIRST_EVENT, upto) of a file that had this head; `upto` is a boundary."""

    head: bytes
    upto: int
    data: bytes


# A reader that goes from place to place asks for each of them: what was walked over is not walked over again.
_walked: dict[str, _Walked] = {}
_MOST_WALKED: Final = 64


def _records_up_to(store: Store, path: str, reader: Reader, format_event: bytes, size: int) -> _Records:
    """Return records of a file up to `size`: those of its index, or else from one walk over it, once in a process.

    They are empty if there is no index and it cannot be walked over.
    """
    found = _Records(store, path)
    if found.count:
        return found
    known = _walked.get(path)
    if known is None or known.head != format_event:
        known = _Walked(format_event, FIRST_EVENT, b"")
    if known.upto < size:
        boundary, more, whole = _scan(reader, size, known.upto, format_event)
        if not whole:
            return found
        # After the boundary another walk makes them again
        kept = _Records.of(known.data + more)
        known = _Walked(format_event, boundary, kept.bytes_before(boundary))
        while len(_walked) >= _MOST_WALKED:
            _walked.pop(next(iter(_walked)), None)
        _walked[path] = known
    return _Records.of(known.data)


def _cuts(records: _Records, start: int, size: int, split_bytes: int) -> list[int]:
    """Return where to cut [start, size): after each `split_bytes` the next boundary."""
    cuts: list[int] = []
    target = start + split_bytes
    while target < size - split_bytes // 2:
        number = records.first_from(target)
        while number < records.count and not (records[number].at_boundary and records[number].plausible):
            number += 1
        if number >= records.count or records[number].offset >= size:
            break
        cuts.append(records[number].offset)
        target = cuts[-1] + split_bytes
    return cuts


def _scan(reader: Reader, size: int, start: int, format_event: bytes) -> tuple[int, bytes, bool]:
    """Walk [start, size); return the end of the last whole transaction, index records, and whether all could be walked.

    A bad checksum or position does not end the walk, as what follows it can be read. A wrong length does.
    """
    events = EventReader(reader, table_rows=_TABLE_ROWS, tolerant=True, format_event=format_event)
    records = []
    whole = True
    try:
        for run in events.runs(start, size):
            records.append(run.records)
    except Broken:
        whole = False
    return max(events.ingest.boundary, start), b"".join(records), whole


def _last_boundary(
    reader: Reader, size: int, format_event: bytes, records: _Records | None, start: int = FIRST_EVENT
) -> tuple[int, bool]:
    """Return the end of the last whole transaction of a growing file, and whether all up to `size` could be walked.

    `start` is a known boundary.
    """
    if records is not None:
        number = records.first_from(size + 1) - 1
        while number >= 0 and not records[number].at_boundary:
            number -= 1
        if number >= 0:
            start = max(start, records[number].offset)
    boundary, _records, whole = _scan(reader, size, start, format_event)
    return boundary, whole


def end_of(store: Store, file: SeriesFile, start: int = FIRST_EVENT) -> int:
    """Return up to where the file can be read now: its end, or that of its last whole transaction while it grows.

    `start` is a known boundary. Raises: OSError.
    """
    reader = store.open(file.path)
    try:
        begin = read_start(reader)
        if wrong_magic(begin.magic) is not None:
            return FIRST_EVENT
        size = reader.size if file.end is None else file.end
        if not file.growing:
            return max(size, FIRST_EVENT)
        size = min(size, reader.size)
        format_event = _format_event(begin, size)
        if not format_event:
            return FIRST_EVENT
        is_known = file.path in _walked
        records = (
            _records_up_to(store, file.path, reader, format_event, size) if is_known else _Records(store, file.path)
        )
        return _last_boundary(reader, size, format_event, records, start)[0]
    finally:
        reader.close()


def is_boundary(store: Store, file: SeriesFile, position: int) -> bool:
    """Return whether a transaction, or the first event, starts at `position`, or the last one ends there."""
    if position == FIRST_EVENT:
        return True
    try:
        reader = store.open(file.path)
    except OSError:
        return False
    try:
        format_event = _format_event(read_start(reader), reader.size)
        if position > reader.size or not format_event:
            return False
        records = _records_up_to(store, file.path, reader, format_event, position)
        return _last_boundary(reader, position, format_event, records)[0] == position
    finally:
        reader.close()
