"""Any archive becomes a view that decodes to the same transactions, but for what the rules change, however often it was begun again."""

import zlib
from collections.abc import Iterator
from random import Random
from unittest.mock import patch

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from protocol.binlog.format_description import FormatDescription, decode_format_description
from protocol.binlog.gtid_event import Gtid, decode_gtid
from protocol.binlog.query import decode_execute_load_query, decode_query
from protocol.binlog.rows_event import decode_rows_event
from protocol.binlog.table_map import decode_table_map, table_id_bytes
from protocol.gtid.codec import decode_gtid_set
from protocol.gtid.gtid_set import GtidSet
from protocol.kernel import codes
from protocol.kernel.ingest import Ingest
from relay.view import translation
from relay.view.inspect.dry_run_stops import find_stops
from relay.view.stops.view_stop import ViewStopped
from relay.view.translation import FileTranslation
from relay.view.view_checkpoint import ViewCheckpoint
from relay.view.view_rules import rules_of
from tests.support.any_archive import (
    ANONYMOUS,
    GTID,
    QUERY,
    AnyArchive,
    Event,
    Groups,
    Piece,
    SourceBinlog,
    Transaction,
    Wanted,
    archives,
)
from tests.support.event_stream import HEADER
from tests.support.memory_file import looked_at
from tests.support.view_making import UUID_OF_VIEW
from tests.support.view_oracle import with_explicit

LIMITS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
ROOM = 1 << 20
GTIDS = (GTID, ANONYMOUS)


# --- making ---------------------------------------------------------------------------------------------------------------


class Made:
    """A view's files, and where it stopped before somebody said to leave that out: (file, offset)."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.stops: list[tuple[str, int]] = []


def in_one_go(archive: AnyArchive) -> Made:
    """Each file is complete when it is made."""
    made = Made()
    state = ViewCheckpoint.of_file(1, b"")
    for file in archive.files:
        data, _ = file.data()
        out = bytearray(b"\xfebin")
        skips: dict[int, int] = {}
        while True:
            one = translated(archive, file, data, state, skips, Random(0))
            try:
                room = bytearray(ROOM)
                while count := one.fill(
                    room, 0, len(data), sealed=file.ending != "open", ends_cut=file.ending == "cut"
                ):
                    out += room[:count]
                break
            except ViewStopped as stopped:
                stop = stopped.stop
                made.stops.append((file.name, stop.offset))
                skips[stop.offset] = stop.group_stop
                state = one.checkpoint()
        made.files[file.name] = bytes(out)
        state = ViewCheckpoint.of_file(one.checkpoint().next_gno, one.checkpoint().rules)
    return made


def in_pieces(archive: AnyArchive, chance: Random, skips: dict[str, dict[int, int]]) -> dict[str, bytes]:
    """As files grow, with little room, short reads and small buffers, begun again from any mark. skips: decided long ago."""
    made: dict[str, bytes] = {}
    state = ViewCheckpoint.of_file(1, b"")
    for file in archive.files:
        data, places = file.data()
        out = bytearray(b"\xfebin")
        ends = sorted({*chance.sample(places, chance.randint(0, len(places))), len(data)})
        marks = [state]
        at = state
        restarts = 4
        while True:
            buffer = chance.choice([8192, 20_000, 1 << 20])
            with patch.object(translation, "BUFFER_BYTES", buffer):
                one = translated(archive, file, data, at, skips.get(file.name, {}), chance)
                again = False
                for end in ends:
                    if end <= at.source:
                        continue
                    last = end == len(data)
                    room = bytearray(chance.choice([130, 500, 9000, ROOM]))
                    while count := one.fill(
                        room, 0, end, sealed=last and file.ending != "open", ends_cut=last and file.ending == "cut"
                    ):
                        out += room[:count]
                        marks += one.marks
                        one.marks.clear()
                        if restarts and chance.random() < 0.2:
                            again = True
                            break
                    if again:
                        break
            if not again:
                break
            restarts -= 1
            at = chance.choice(marks)
            marks = [mark for mark in marks if mark.source <= at.source]
            del out[at.view :]
        made[file.name] = bytes(out)
        state = ViewCheckpoint.of_file(one.checkpoint().next_gno, one.checkpoint().rules)
    return made


def translated(
    archive: AnyArchive,
    file: SourceBinlog,
    data: bytes,
    at: ViewCheckpoint,
    skips: dict[int, int],
    chance: Random,
) -> FileTranslation:
    def read_into(view: memoryview, offset: int) -> int:
        count = min(len(view), max(len(data) - offset, 0))
        if chance.random() < 0.3 and count > 1:
            count = chance.randint(1, count)
        view[:count] = data[offset : offset + count]
        return count

    given = archive.wanted.settings()
    return FileTranslation(
        file.name, read_into, given, rules_of(given), at, skips, mark_gap=chance.choice([1, 300, 64 << 10])
    )


# --- what it should be ------------------------------------------------------------------------------------------------------


def in_the_view(event: Event, wanted: Wanted, source: int) -> Event:
    """An event as a view has it. source: the server's version."""
    kind, body = event
    if kind in (23, 24, 25):
        return kind + 7, body[:8] + b"\2\0" + body[8:]
    if kind in (2, 18) and wanted.adds_explicit and source < 80000 and not is_control(event):
        body = with_explicit(body, 13 if kind == 2 else 26, int(wanted.explicit))
    return kind, body


def is_control(event: Event) -> bool:
    kind, body = event
    text = text_of(body)
    return kind == 2 and (text in (b"BEGIN", b"COMMIT", b"ROLLBACK") or text.startswith((b"SAVEPOINT", b"ROLLBACK TO")))


def text_of(body: bytes) -> bytes:
    return body[13 + int.from_bytes(body[11:13], "little") + body[8] + 1 :]


def with_text(event: Event, text: str) -> Event:
    kind, body = event
    return kind, body[: len(body) - len(text_of(body))] + text.encode()


def expected_groups(one: Transaction, wanted: Wanted) -> Groups:
    groups = one.expected(wanted)
    if groups is None:  # left out
        return [["BEGIN", "COMMIT"]] if wanted.gtids != "keep" or one.head is not None else []
    return groups


# --- decoding ---------------------------------------------------------------------------------------------------------------


def events_of(data: bytes, trailer: int, of_format: int) -> Iterator[tuple[int, tuple[int, int, int, int], bytes]]:
    """(offset, (timestamp, type, server id, flags), body); sizes, positions and checksums are what they are to be. of_format: bytes of
    checksum of the format description."""
    at = 4
    while at < len(data):
        timestamp, kind, server_id, size, end, flags = HEADER.unpack_from(data, at)
        assert end == at + size
        behind = of_format if kind == 15 else trailer
        body = data[at + 19 : at + size - behind]
        if behind:
            assert zlib.crc32(data[at : at + size - 4]) == int.from_bytes(data[at + size - 4 : at + size], "little")
        yield at, (timestamp, kind, server_id, flags), body
        at += size
    assert at == len(data)


def check_decodes(kind: int, body: bytes, format: FormatDescription) -> None:
    """The project's decoders read it."""
    if kind == QUERY:
        assert decode_query(body, format).text == text_of(body)
    elif kind == 18:
        assert decode_execute_load_query(body, format).file_id == 1
    elif kind == 19:
        assert decode_table_map(body, table_id_bytes(format.post_header_length(19))).schema in (
            "d",
            "mysql",
            b"d",
            b"mysql",
        )
    elif kind in (30, 31, 32):
        assert decode_rows_event(body, kind, format).column_count == 1


class Numbers:
    """Of the view's transactions."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.gno = 1
        self.sequence = 1
        self.is_renumbered = False
        """Whether the source's numbers of dependencies do not count any more in this file: one transaction became several."""
        self.server_version = 0

    def check(self, kind: int, body: bytes, head: Event | None, size: int, last_time: int) -> None:
        """The event in front of a transaction. head: the source's own. size: of the transaction, with it."""
        told = decode_gtid(body)
        assigned = self.wanted.gtids == "assign" and (head is None or head[0] == ANONYMOUS)
        if head is not None:
            own = decode_gtid(head[1])
            if not self.is_renumbered:
                assert own.sequence_number is not None
                self.sequence = own.sequence_number
            assert (told.last_committed, told.sequence_number) == (self.sequence - 1, self.sequence)
            assert told.transaction_length in (None, size)
            assert told.immediate_commit_us == own.immediate_commit_us
            assert (kind, told.uuid, told.gno) == (
                (GTID, UUID_OF_VIEW, self.gno) if assigned else (head[0], own.uuid, own.gno)
            )
        else:
            self._check_new(kind, told, assigned, size, last_time)
        self.gno += assigned
        self.sequence += 1

    def _check_new(self, kind: int, told: Gtid, assigned: bool, size: int, last_time: int) -> None:
        assert (kind, told.gno) == ((GTID, self.gno) if assigned else (ANONYMOUS, 0))
        assert told.uuid.int == (UUID_OF_VIEW.int if assigned else 0)
        version = self.wanted.version
        clock = (self.sequence - 1, self.sequence) if version >= (5, 7) else (None, None)
        assert (told.last_committed, told.sequence_number) == clock
        if version >= (8, 0):
            assert told.immediate_commit_us == told.original_commit_us == last_time * 10**6
            assert (told.transaction_length, told.immediate_server_version) == (size, self.server_version)


def check_file(file: SourceBinlog, data: bytes, archive: AnyArchive, numbers: Numbers) -> None:
    wanted = archive.wanted
    source, _ = file.data()
    events = list(events_of(data, 4 * file.checksum, 4 * (not file.is_old)))
    if len(events) == 1:  # what was executed before is written with what comes next
        assert (file.ending, file.transactions) == ("open", ())
        return
    format = decode_format_description(data[4 + 19 : events[1][0]])
    assert (events[0][1][1], events[1][1][1]) == (15, 35)
    before = [file.previous] if file.previous else []
    if numbers.gno > 1 and wanted.gtids == "assign":
        before.append(f"{UUID_OF_VIEW}:1-{numbers.gno - 1}")
    assert decode_gtid_set(events[1][2]) == GtidSet.from_text(",".join(before))
    numbers.sequence, numbers.is_renumbered = 1, False
    numbers.server_version = file.numbered_version
    at = 2
    for one in file.transactions:
        groups = expected_groups(one, wanted)
        for number, pieces in enumerate(groups):
            head = one.head if not number else None
            group = events[at : at + len(pieces) + (wanted.gtids != "keep" or head is not None)]
            at += len(group)
            stop = events[at][0] if at < len(events) else len(data)
            if len(group) > len(pieces):
                (offset, (time, kind, server_id, _), body), *group = group
                last_time = group[-1][1][0]
                numbers.check(kind, body, head, stop - offset, last_time)
                assert (time, server_id) == (one.timestamp, one.server_id)
            else:
                numbers.sequence += 1
            for piece, (_, (time, kind, server_id, flags), body) in zip(pieces, group, strict=True):
                check_event(one, piece, (kind, body), flags, wanted, file.numbered_version)
                check_decodes(kind, body, format)
                assert (time, server_id) == (one.timestamp, one.server_id)
        numbers.is_renumbered |= len(groups) > 1
    rest = [(kind, body) for _, (_, kind, _, _), body in events[at:]]
    ending = {"rotate": 4, "stop": 3}.get(file.ending)
    assert [kind for kind, _ in rest] == ([] if ending is None else [ending])
    assert ending is None or rest[0][1] in source
    check_marks(data)


def check_event(one: Transaction, piece: Piece, found: Event, flags: int, wanted: Wanted, source: int) -> None:
    if isinstance(piece, str):
        assert (found[0], text_of(found[1])) == (QUERY, piece.encode())
        return
    if isinstance(piece, tuple):
        event = with_text(one.events[piece[0]], piece[1])
    else:
        event = one.events[piece]
    assert found == in_the_view(event, wanted, source), one.name
    assert flags & 0x3FF == (8 if event[1].endswith((b"\0BEGIN", b"\0COMMIT")) else 0)


def check_marks(data: bytes) -> None:
    """The boundaries that are marked are those that the events say."""
    ingest = Ingest(stamp=True)
    ingest.begin_file(4)
    walked = bytearray(data)
    assert ingest.feed(walked, 4, len(walked)) < codes.BAD_CRC, ingest.error_text
    assert (ingest.consumed, bytes(walked), ingest.in_group) == (len(data), data, False)
    assert (ingest.disagreements, ingest.violations) == (0, 0)


@LIMITS
@given(archive=archives(), seed=st.integers(0, 1 << 32))
def test_a_view_has_the_transactions_of_its_archive_however_it_was_made(archive: AnyArchive, seed: int) -> None:
    made = in_one_go(archive)
    given = archive.wanted.settings()
    stops = []
    skips: dict[str, dict[int, int]] = {}
    for file in archive.files:
        _, places = file.data()
        for one, start, stop in zip(file.transactions, places[:-1], places[1:], strict=True):
            if one.expected(archive.wanted) is None:
                stops.append((file.name, start))
                skips.setdefault(file.name, {})[start] = stop
    assert made.stops == stops
    files = (looked_at(file.name, file.data()[0]) for file in archive.files)
    assert [(stop.file, stop.offset) for stop in find_stops(files, given).stops] == stops
    numbers = Numbers(archive.wanted)
    for file in archive.files:
        check_file(file, made.files[file.name], archive, numbers)
    assert in_pieces(archive, Random(seed), skips) == made.files
