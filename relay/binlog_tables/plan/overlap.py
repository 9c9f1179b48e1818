"""Transactions that the files of a later source repeat: they are omitted so that each transaction of an archive is read once.

The first file of a generation is its source's file from the first byte on: it may begin with transactions that the previous generation
contains, too (relay/archive/archive.py). They are identified by their GTIDs.
"""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from pathlib import Path
from typing import Final, Protocol

from protocol.binlog.format_description import FormatDescription, decode_first_event
from protocol.binlog.layout import FIRST_EVENT
from protocol.errors import ProtocolError
from protocol.gtid.file_gtids import BLOCK_BYTES, FileGtidCollector, IndexBlock, Run
from protocol.gtid.gtid_set import GtidSet, GtidSetBuilder
from protocol.gtid.mariadb import DomainGtid, GtidList
from relay.archive.catalog.catalog import Catalog
from relay.archive.storage.archive_errors import ArchiveError
from relay.archive.storage.files import CATALOG_NAME
from relay.archive.storage.gtid_facts import GtidValue, state_behind
from relay.archive.storage.origin import joined
from relay.binlog_file.file_bytes import pieces
from relay.binlog_file.gtids_before import gtids_before
from relay.binlog_file.head import read_start
from relay.binlog_tables.plan.series_files import SeriesFile
from relay.binlog_tables.plan.store import LocalStore, Reader, Store, plain_path

_WITH_GTIDS: Final = 4
"""This is the first binlog version with GTIDs; files of 4.1 and older have none."""

Span = tuple[int, int]
"""This is a range of offsets [start, stop) in a file, both of them between two transactions."""

_Unheld = tuple[GtidValue | None, GtidValue | None]
"""These are transactions that are in the second state and not in the first; None in the first means all in the second."""
_Part = tuple[GtidValue | None, list[_Unheld]]
"""This pair contains what was executed by the end of one source's files, and what of it they do not contain, in order."""


class Overlap:
    """The overlap of all `files` of one read, in their order.

    With `held` only what the earlier of the files contain is repeated, so that each transaction that they contain is read once.
    Otherwise everything is that was executed by the end of the previous generation: the result is the same whatever is purged
    meanwhile, as a stream needs it.
    """

    def __init__(self, store: Store, files: Sequence[SeriesFile], *, held: bool) -> None:
        self._store = store
        self._held = held
        self._generations = [list(group) for _name, group in groupby(files, lambda file: file.generation)]
        self._known: dict[str, _EarlierNumbers | None] = {}
        self._ends: dict[str, GtidValue | None] = {}

    def spans(self, file: SeriesFile, format_event: bytes, reader: Reader, start: int, stop: int) -> tuple[Span, ...]:
        """Return the spans of repeated transactions in [start, stop) of `file`, both between two transactions. Raises: OSError."""
        if not file.generation or not format_event:
            return ()
        if file.generation not in self._known:
            self._known[file.generation] = self._repeated(file)
        numbers = self._known[file.generation]
        if not numbers:
            return ()
        form = _form(format_event)
        if form is None or form.flavour != numbers.flavour:
            return ()
        head = _head(reader, form)
        if head is not None and numbers.are_before(head):
            return ()
        return tuple(_merged(_walk(reader, form, start, stop, numbers)))

    def _repeated(self, file: SeriesFile) -> "_EarlierNumbers | None":
        before = [group for group in self._generations if group[0].generation < file.generation]
        if not self._held:
            return _numbers([(self._executed_before(file, before), [])])
        parts: list[_Part] = []
        for number, group in enumerate(before, 1):
            following = before[number][0] if number < len(before) else file
            executed = self._executed_before(following, before[:number])
            unheld = self._unheld(group, executed)
            # If a file does not record what was before it, it is unknown what the files contain.
            if unheld is not None:
                parts.append((executed, unheld))
        return _numbers(parts)

    def _executed_before(self, file: SeriesFile, before: Sequence[Sequence[SeriesFile]]) -> GtidValue | None:
        """Return what was executed before the file's generation began, by its catalog, else by the files `before`."""
        executed = self._written_down(file)
        if executed is None:
            for group in before:
                executed = joined(executed, self._executed_by(group[-1]))
        return executed

    def _unheld(self, group: Sequence[SeriesFile], executed: GtidValue | None) -> "list[_Unheld] | None":
        """Return what the files of one source do not contain, though it was executed by their end; None if it cannot be read.

        Such transactions precede the first of them, or were in a missing or damaged file.
        """
        found: list[_Unheld] = [(None, self._before(group[0]))]
        for file, following in pairwise(group):
            if file.damaged or following.number != file.number + 1:
                found.append((self._executed_by(file), self._before(following)))
        if group[-1].damaged:
            found.append((self._executed_by(group[-1]), executed))
        known = all(high is not None and (low is not None or not number) for number, (low, high) in enumerate(found))
        return found if known else None

    def _written_down(self, file: SeriesFile) -> GtidValue | None:
        """Return what was executed before the file's generation began, by its catalog."""
        if not isinstance(self._store, LocalStore):
            return None
        path = Path(plain_path(file.path)).parent / CATALOG_NAME
        if not path.exists():
            return None
        try:
            with contextlib.closing(Catalog.open_read_only(path)) as catalog:
                origin = catalog.origin()
        except (ArchiveError, OSError):
            return None
        return None if origin is None else origin.state

    def _before(self, file: SeriesFile) -> GtidValue | None:
        """Return what the head of the file says about everything before it; None if it cannot be read."""
        return self._read(file, inside=False)

    def _executed_by(self, file: SeriesFile) -> GtidValue | None:
        """Return what was executed by the end of the file; None if it cannot be read. Reads all of it, once."""
        if file.path not in self._ends:
            self._ends[file.path] = self._read(file, inside=True)
        return self._ends[file.path]

    def _read(self, file: SeriesFile, *, inside: bool) -> GtidValue | None:
        try:
            reader = self._store.open(file.path)
        except OSError:
            return None
        try:
            form = _form(read_start(reader).event)
            if form is None:
                return None
            head = _head(reader, form)
            if head is None:
                head = GtidSet() if form.flavour == "mysql" else GtidList()
            if not inside:
                return head
            collector = _collector(form, FIRST_EVENT, BLOCK_BYTES)
            stop = reader.size if file.end is None else file.end
            for _block in _blocks(reader, collector, FIRST_EVENT, stop):
                pass
            return state_behind(head, collector.inside())
        except (OSError, ProtocolError):
            return None
        finally:
            reader.close()


def executed_before(store: Store, file: SeriesFile) -> GtidValue | None:
    """Return what the head of a file says was executed before it; None if it says nothing, or cannot be read."""
    try:
        reader = store.open(file.path)
    except OSError:
        return None
    try:
        form = _form(read_start(reader).event)
        return None if form is None else _head(reader, form)
    except OSError:
        return None
    finally:
        reader.close()


# ---- which transactions --------------------------------------------------------------------------------------------------


class _EarlierNumbers(Protocol):
    """A set of transactions, by their GTIDs; it is false if empty."""

    flavour: str

    def __bool__(self) -> bool: ...

    def are_before(self, head: GtidValue) -> bool:
        """Return whether a file with this head contains none of them, because they were executed before it."""

    def all_of(self, run: Run) -> bool:
        """Return whether the whole run is among them."""

    def some_of(self, run: Run) -> bool:
        """Return whether part of the run is among them."""


def _numbers(parts: "Sequence[_Part]") -> _EarlierNumbers | None:
    """Return the union of the parts; None if it is not known."""
    flavour = next((type(executed) for executed, _unheld in reversed(parts) if executed is not None), None)
    if flavour is GtidSet:
        return _MysqlNumbers(parts)
    return None if flavour is None else _MariadbNumbers(parts)


class _MysqlNumbers:
    flavour = "mysql"

    def __init__(self, parts: "Sequence[_Part]") -> None:
        self._gtids = GtidSet()
        for executed, unheld in parts:
            if isinstance(executed, GtidSet):
                for low, high in unheld:
                    if isinstance(high, GtidSet):
                        executed -= high - low if isinstance(low, GtidSet) else high
                self._gtids |= executed

    def __bool__(self) -> bool:
        return bool(self._gtids)

    def are_before(self, head: GtidValue) -> bool:
        return isinstance(head, GtidSet) and self._gtids <= head

    def all_of(self, run: Run) -> bool:
        return self._gtids.has_run(run.key, run.first, run.last)

    def some_of(self, run: Run) -> bool:
        builder = GtidSetBuilder()
        builder.add_run(run.key, run.first, run.last + 1)
        return builder.snapshot().meets(self._gtids)


class _MariadbNumbers:
    """For each server in each domain, the numbers up to its last one in `executed`, without those that are not contained."""

    flavour = "mariadb"

    def __init__(self, parts: "Sequence[_Part]") -> None:
        self._executed: list[GtidList] = []
        self._ranges: dict[bytes, list[tuple[int, int]]] = {}
        for executed, unheld in parts:
            if isinstance(executed, GtidList):
                self._executed.append(executed)
                for gtid in executed:
                    key = gtid.domain_id.to_bytes(4, "little") + gtid.server_id.to_bytes(4, "little")
                    self._ranges.setdefault(key, []).extend(_held(gtid, unheld))

    def __bool__(self) -> bool:
        return any(self._ranges.values())

    def are_before(self, head: GtidValue) -> bool:
        return isinstance(head, GtidList) and all(head.contains(gtid) for part in self._executed for gtid in part)

    def all_of(self, run: Run) -> bool:
        return any(low <= run.first and run.last <= high for low, high in self._ranges.get(run.key, ()))

    def some_of(self, run: Run) -> bool:
        return any(low <= run.last and run.first <= high for low, high in self._ranges.get(run.key, ()))


def _held(last: DomainGtid, unheld: "Sequence[_Unheld]") -> Iterator[tuple[int, int]]:
    """Yield the numbers of one server in one domain up to `last`, without the missing ones, which come in their order."""

    def number_in(state: GtidValue | None) -> int:
        found = state.server(last.domain_id, last.server_id) if isinstance(state, GtidList) else None
        return -1 if found is None else found.sequence_number

    at = 0
    for low, high in unheld:
        if at <= number_in(low):
            yield at, number_in(low)
        at = max(at, number_in(high) + 1)
    if at <= last.sequence_number:
        yield at, last.sequence_number


# ---- where they are ------------------------------------------------------------------------------------------------------


def _form(format_event: bytes) -> FormatDescription | None:
    try:
        described = decode_first_event(format_event)[1]
    except ProtocolError:
        return None
    return described if described.binlog_version == _WITH_GTIDS else None


def _collector(form: FormatDescription, start: int, gap_bytes: int) -> FileGtidCollector:
    collector = FileGtidCollector(form.flavour, checksum=bool(form.checksum_bytes), gap_bytes=gap_bytes)
    if start != FIRST_EVENT:
        collector.begin(start)
    return collector


def _head(reader: Reader, form: FormatDescription) -> GtidValue | None:
    """Return what the file's head says; None if nothing can be read. Raises: OSError."""
    try:
        return gtids_before(reader, form.flavour, checksum=bool(form.checksum_bytes))
    except ProtocolError:
        return None


def _blocks(reader: Reader, collector: FileGtidCollector, start: int, stop: int) -> Iterator[IndexBlock]:
    """Yield what `collector` makes of [start, stop). Raises: OSError; ProtocolError if it cannot be walked further."""
    for piece in pieces(reader, start, stop):
        collector.take(piece)
        yield from collector.take_blocks()
    collector.finish()
    yield from collector.take_blocks()


def _walk(reader: Reader, form: FormatDescription, start: int, stop: int, numbers: _EarlierNumbers) -> Iterator[Span]:
    """Yield spans of repeated transactions. Those after damaged bytes are not found: they are read, and perhaps twice."""
    try:
        for block in _blocks(reader, _collector(form, start, BLOCK_BYTES), start, stop):
            if _is_repeated(block, numbers):
                yield block.start, block.stop
            elif any(numbers.some_of(run) for run in block.runs):
                one_by_one = _collector(form, block.start, 0)
                for single in _blocks(reader, one_by_one, block.start, block.stop):
                    if _is_repeated(single, numbers):
                        yield single.start, single.stop
    except ProtocolError:
        return


def _is_repeated(block: IndexBlock, numbers: _EarlierNumbers) -> bool:
    return not block.anonymous and bool(block.runs) and all(numbers.all_of(run) for run in block.runs)


def _merged(spans: Iterable[Span]) -> Iterator[Span]:
    """Yield the same offsets, with adjacent spans joined."""
    open_span: Span | None = None
    for span in spans:
        if open_span is not None and open_span[1] == span[0]:
            open_span = (open_span[0], span[1])
            continue
        if open_span is not None:
            yield open_span
        open_span = span
    if open_span is not None:
        yield open_span
