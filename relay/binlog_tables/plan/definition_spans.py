"""The search in the binlogs of a directory for statements that define tables, as far as they are not recorded."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from protocol.binlog.format_description import decode_first_event
from protocol.binlog.layout import FIRST_EVENT
from protocol.errors import Malformed, ProtocolError
from protocol.position import binlog_number
from relay.binlog_file.broken import Broken
from relay.binlog_file.event_reader import EventReader
from relay.binlog_file.head import read_start
from relay.binlog_tables.plan.splits import is_incomplete
from relay.binlog_tables.plan.store import Reader, Store
from relay.schema_history.definition_scan import events_in_run, last_bytes, logged_event
from relay.schema_history.logged_definition import LoggedDefinition
from relay.schema_history.schema_facts import DefinedSpan, Place

_KEPT: Final = 4096
_FAR: Final = (1 << 63, 0)


@dataclass(frozen=True, slots=True)
class _Scanned:
    """The scanned part [first, last) of a file that had this head. With `is_all` nothing follows it, by the next file of its series."""

    head: bytes
    span: DefinedSpan
    last: int
    is_all: bool = False


# Spark's workers live for many tasks, and a stream's driver for many batches: what was scanned is not read again.
_scanned: dict[str, _Scanned] = {}


def definition_spans(
    store: Store,
    directory: str,
    file: str,
    stop: int | None,
    recorded: Sequence[tuple[Place, Place]],
    further: int = 0,
) -> tuple[list[DefinedSpan], Place]:
    """Return the statements in the directory's binlogs of the same series up to `stop` (None: the end) in `file`, without the
    `recorded` stretches, and up to where that is complete.

    A file that cannot be read to its end ends a stretch; after it nothing from before is known. So does one that is not complete yet,
    and what is returned about what follows it may differ the next time. `further` of the following files that are no longer written are
    scanned as well. Blocking.
    """
    number = _number(file)
    if number is None:
        return [], (0, 0)
    series = file.rpartition(".")[0]
    names = {
        found: name for name in store.names(directory) if name.rpartition(".")[0] == series and (found := _number(name))
    }
    following = sorted(one for one in names if one > number)
    wanted = [one for one in sorted(names) if one < number]
    wanted += [number, *following[: min(further, len(following) - 1)]] if following else [number]
    spans = []
    reached = FIRST_EVENT
    known: Place = _FAR
    for found in wanted:
        limit = stop if found == number and not following else None
        start = _not_recorded(found, recorded)
        if found in names and start is not None and (limit is None or start <= limit):
            path = store.join(directory, names[found])
            next_path = store.join(directory, names[found + 1]) if found + 1 in names else ""
            span = _scan(store, path, next_path, found, start, limit)
            if span is not None:
                reached = _scanned[path].last
                if next_path and not _scanned[path].is_all:
                    span = replace(span, last=min(span.last, (found, reached + 1)))
                    known = min(known, (found, reached))
                spans.append(span)
        elif limit is not None:
            reached = limit
    if following:
        return spans, min(known, (wanted[-1] + 1, 0))
    # The newest file is still written: what follows this was not scanned, whatever was requested.
    return spans, min(known, (number, reached if stop is None else min(stop, reached)))


def looked_through(store: Store, path: str) -> bool:
    """Return whether a file that was scanned is still the same. Raises: OSError."""
    known = _scanned.get(path)
    if known is None:
        return False
    reader = store.open(path)
    try:
        return read_start(reader).event == known.head
    finally:
        reader.close()


def _number(name: str) -> int | None:
    try:
        return binlog_number(name)
    except Malformed:
        return None


def _not_recorded(number: int, recorded: Sequence[tuple[Place, Place]]) -> int | None:
    """Return the offset in a file from which it must be scanned; None if all of it is recorded."""
    for first, last in recorded:
        if first <= (number, FIRST_EVENT) < last:
            if last[0] > number:
                return None
            return max(last[1], FIRST_EVENT)
    return FIRST_EVENT


def _scan(store: Store, path: str, following: str, number: int, start: int, stop: int | None) -> DefinedSpan | None:
    """Return the statements in [start, stop) of a file."""
    try:
        reader = store.open(path)
    except OSError:
        return None
    try:
        span = _scan_open(reader, path, number, start, stop)
        scanned = _scanned[path]
        if following and not scanned.is_all:
            is_all = not is_incomplete(store, reader, reader.size, following)
            _scanned[path] = replace(scanned, is_all=is_all)
        return span
    except (OSError, ProtocolError):
        return None
    finally:
        reader.close()


def _scan_open(reader: Reader, path: str, number: int, start: int, stop: int | None) -> DefinedSpan:
    """Return the statements in [start, stop) of an open file. Raises: OSError; ProtocolError if the file does not begin as a binlog."""
    head = read_start(reader).event
    version = decode_first_event(head)[1].server_version
    known = _scanned.get(path)
    if known is not None and (known.head != head or known.span.first != _place(number, start)):
        known = None
    definitions = list(known.span.definitions) if known is not None else []
    at = known.last if known is not None else start
    limit = min(stop, reader.size) if stop is not None else reader.size
    whole = True
    if at < limit:
        events = EventReader(reader, format_event=head)
        try:
            before = b""
            for run in events.runs(at, limit):
                found = events_in_run(events.ingest, run.buffer, run.start, run.consumed, run.position, before)
                before = last_bytes(run.buffer, run.start, run.consumed, before)
                for event in found:
                    made = logged_event(event, version)
                    if made is not None:
                        definitions.append(((number, event.offset), made))
                at = run.position + run.consumed - run.start
        except Broken:
            whole = False
        if not events.ingest.in_event:
            at = max(at, min(events.ingest.position, limit))
        if not whole:
            definitions.append(((number, at), LoggedDefinition(None)))  # What follows may be anything
    span = DefinedSpan(_place(number, start), (number, at), tuple(definitions))
    while len(_scanned) >= _KEPT:
        del _scanned[next(iter(_scanned))]
    is_all = known is not None and known.is_all and known.last == at
    _scanned[path] = _Scanned(head, span, at, is_all)
    upto = [one for one in definitions if one[0] < (number, limit)]
    # What comes at the end itself is preceded by everything before it.
    last = (number + 1, 0) if stop is None and whole else (number, min(at, limit) + 1)
    return DefinedSpan(span.first, last, tuple(upto))


def _place(number: int, offset: int) -> Place:
    return (number, 0) if offset <= FIRST_EVENT else (number, offset)
