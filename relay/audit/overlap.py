"""What the files of a later source repeat of the sources before it, so that each transaction of an archive is read once.

The first file of a generation is its source's file from the first byte on: it may begin with transactions that stand in the
generation before, too (relay/archive/generations.py). They are known by their GTIDs.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Final, Protocol

from protocol.binlog.format_description import decode_format_description
from protocol.errors import ProtocolError
from protocol.gtid.file_gtids import STRETCH_BYTES, FileGtidCollector, Run, Stretch
from protocol.gtid.gtid_set import GtidSet, GtidSetBuilder
from protocol.gtid.mariadb import GtidList
from relay.archive.archived_file import FIRST_EVENT
from relay.archive.beginning import joined
from relay.archive.catalog import Catalog
from relay.archive.errors import ArchiveError
from relay.archive.files import CATALOG_NAME
from relay.archive.gtid_facts import GtidValue, state_behind
from relay.audit.files import AuditedFile
from relay.audit.store import LocalStore, Reader, Store, plain_path

_HEADER_BYTES: Final = 19
_CHUNK_BYTES: Final = 1 << 20
_LONGEST_HEAD: Final = 64 << 20

Span = tuple[int, int]
"""Offsets [start, stop) in a file, both of them between two transactions."""


class Overlap:
    """Of all `files` of one reading, in their order.

    held: only what the earlier of the files hold is repeated, so that each transaction which they hold is read once. Otherwise
    all is that was executed by the end of the generation before: the same whatever is purged meanwhile, as a stream needs it.
    """

    def __init__(self, store: Store, files: Sequence[AuditedFile], *, held: bool) -> None:
        self._store = store
        self._held = held
        self._generations = [list(group) for _name, group in groupby(files, lambda file: file.generation)]
        self._known: dict[str, _Numbers | None] = {}

    def spans(self, file: AuditedFile, format_event: bytes, reader: Reader, start: int, stop: int) -> tuple[Span, ...]:
        """Where repeated transactions stand in [start, stop) of `file`, both between two transactions. Raises: OSError."""
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

    def _repeated(self, file: AuditedFile) -> "_Numbers | None":
        before = [group for group in self._generations if group[0].generation < file.generation]
        if self._held and not before:
            return None
        executed = self._written_down(file)
        if executed is None:
            for group in before:
                executed = joined(executed, self._executed_by(group[-1]))
        if not self._held:
            return _numbers(executed, None)
        unheld = self._before(before[0][0])
        # Where the oldest file does not tell what was before it nobody knows what is in the files.
        return None if unheld is None else _numbers(executed, unheld)

    def _written_down(self, file: AuditedFile) -> GtidValue | None:
        """What was executed before the file's generation began, as its catalog says."""
        if not isinstance(self._store, LocalStore):
            return None
        path = Path(plain_path(file.path)).parent / CATALOG_NAME
        if not path.exists():
            return None
        try:
            catalog = Catalog.open_read_only(path)
        except (ArchiveError, OSError):
            return None
        try:
            beginning = catalog.beginning()
        finally:
            catalog.close()
        return None if beginning is None else beginning.state

    def _before(self, file: AuditedFile) -> GtidValue | None:
        """What the head of the file says of all before it; None: it cannot be read."""
        return self._read(file, inside=False)

    def _executed_by(self, file: AuditedFile) -> GtidValue | None:
        """What was executed by the end of the file; None: it cannot be read."""
        return self._read(file, inside=True)

    def _read(self, file: AuditedFile, *, inside: bool) -> GtidValue | None:
        try:
            reader = self._store.open(file.path)
        except OSError:
            return None
        try:
            form = _form(_first_event(reader))
            if form is None:
                return None
            head = _head(reader, form)
            if head is None:
                head = GtidSet() if form.flavour == "mysql" else GtidList()
            if not inside:
                return head
            collector = _collector(form, FIRST_EVENT, STRETCH_BYTES)
            stop = reader.size if file.end is None else file.end
            for _stretch in _stretches(reader, collector, FIRST_EVENT, stop):
                pass
            return state_behind(head, collector.inside())
        except (OSError, ProtocolError):
            return None
        finally:
            reader.close()


# ---- which transactions --------------------------------------------------------------------------------------------------


class _Numbers(Protocol):
    """Transactions, by their GTIDs; false: none."""

    flavour: str

    def __bool__(self) -> bool: ...

    def are_before(self, head: GtidValue) -> bool:
        """Whether a file with this head holds none of them, because they were executed before it."""

    def all_of(self, run: Run) -> bool:
        """Whether the whole run is among them."""

    def some_of(self, run: Run) -> bool:
        """Whether part of the run is among them."""


def _numbers(executed: GtidValue | None, unheld: GtidValue | None) -> _Numbers | None:
    """What is in `executed`, and not in `unheld`; None: it is not known."""
    if isinstance(executed, GtidSet):
        return _MysqlNumbers(executed - unheld if isinstance(unheld, GtidSet) else executed)
    if isinstance(executed, GtidList):
        return _MariadbNumbers(executed, unheld if isinstance(unheld, GtidList) else GtidList())
    return None


class _MysqlNumbers:
    flavour = "mysql"

    def __init__(self, gtids: GtidSet) -> None:
        self._gtids = gtids

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
    """Of each server in each domain the numbers behind its last one in `unheld`, up to its last one in `executed`."""

    flavour = "mariadb"

    def __init__(self, executed: GtidList, unheld: GtidList) -> None:
        self._executed = executed
        self._ranges: dict[bytes, tuple[int, int]] = {}
        for gtid in executed:
            held = unheld.server(gtid.domain_id, gtid.server_id)
            low = held.sequence_number + 1 if held is not None else 0
            key = gtid.domain_id.to_bytes(4, "little") + gtid.server_id.to_bytes(4, "little")
            if low <= gtid.sequence_number:
                self._ranges[key] = (low, gtid.sequence_number)

    def __bool__(self) -> bool:
        return bool(self._ranges)

    def are_before(self, head: GtidValue) -> bool:
        return isinstance(head, GtidList) and all(head.contains(gtid) for gtid in self._executed)

    def all_of(self, run: Run) -> bool:
        low, high = self._ranges.get(run.key, (1, 0))
        return low <= run.first and run.last <= high

    def some_of(self, run: Run) -> bool:
        low, high = self._ranges.get(run.key, (1, 0))
        return low <= run.last and run.first <= high and low <= high


# ---- where they are ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Form:
    """What a format description says that a walk over GTIDs needs."""

    flavour: str
    checksum: bool


def _form(format_event: bytes) -> _Form | None:
    try:
        described = decode_format_description(format_event[_HEADER_BYTES:])
    except ProtocolError:
        return None
    flavour = "mariadb" if "mariadb" in described.server_version.lower() else "mysql"
    return _Form(flavour, bool(described.checksum_bytes))


def _first_event(reader: Reader) -> bytes:
    data = bytearray(_CHUNK_BYTES)
    have = reader.read_into(memoryview(data), FIRST_EVENT)
    length = int.from_bytes(data[9:13], "little")
    return bytes(data[: min(have, length)])


def _collector(form: _Form, start: int, gap_bytes: int) -> FileGtidCollector:
    collector = FileGtidCollector(form.flavour, checksum=form.checksum, gap_bytes=gap_bytes)
    if start != FIRST_EVENT:
        collector.begin(start)
    return collector


def _head(reader: Reader, form: _Form) -> GtidValue | None:
    """What the file's head says; None: nothing that can be read. Raises: OSError."""
    collector = _collector(form, FIRST_EVENT, STRETCH_BYTES)
    buffer = bytearray(STRETCH_BYTES)
    at = FIRST_EVENT
    try:
        while not collector.head_complete and at < _LONGEST_HEAD:
            got = reader.read_into(memoryview(buffer), at)
            if not got:
                break
            collector.take(memoryview(buffer)[:got])
            at += got
        return collector.before
    except ProtocolError:
        return None


def _stretches(reader: Reader, collector: FileGtidCollector, start: int, stop: int) -> Iterator[Stretch]:
    """What `collector` makes of [start, stop). Raises: OSError; ProtocolError where it cannot be walked on."""
    buffer = bytearray(min(_CHUNK_BYTES, max(stop - start, 1)))
    while start < stop:
        got = reader.read_into(memoryview(buffer)[: min(len(buffer), stop - start)], start)
        if not got:
            break
        start += got
        collector.take(memoryview(buffer)[:got])
        yield from collector.take_stretches()
    collector.finish()
    yield from collector.take_stretches()


def _walk(reader: Reader, form: _Form, start: int, stop: int, numbers: _Numbers) -> Iterator[Span]:
    """Spans of repeated transactions. What stands behind damaged bytes is not told: it is read, and perhaps twice."""
    try:
        for stretch in _stretches(reader, _collector(form, start, STRETCH_BYTES), start, stop):
            if _is_repeated(stretch, numbers):
                yield stretch.start, stretch.stop
            elif any(numbers.some_of(run) for run in stretch.runs):
                one_by_one = _collector(form, stretch.start, 0)
                for single in _stretches(reader, one_by_one, stretch.start, stretch.stop):
                    if _is_repeated(single, numbers):
                        yield single.start, single.stop
    except ProtocolError:
        return


def _is_repeated(stretch: Stretch, numbers: _Numbers) -> bool:
    return not stretch.anonymous and bool(stretch.runs) and all(numbers.all_of(run) for run in stretch.runs)


def _merged(spans: Iterable[Span]) -> Iterator[Span]:
    """The same offsets, those that touch in one."""
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
