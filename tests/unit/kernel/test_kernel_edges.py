"""The layout `edges` (WL#4162, 6.0 idea), made from stored `tbm` markers while a file is framed."""

import zlib
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from tests.support.event_stream import EventStream, query_body, rows_body
from tests.support.kernel_builds import KernelBuild, builds

NO_START, STATEMENT, TRANSACTION = 1, 2, 3
NO_END, COMMIT, ROLLBACK, STATEMENT_END = 0, 1, 2, 3
OUTSIDE: Final = (NO_START, NO_END)


def stamped(build: KernelBuild, stream: EventStream) -> bytearray:
    """The stream with its tbm markers, as the archive holds it."""
    data = bytearray(stream.data)
    ingest = build.ingest.Ingest(packets=False, stamp=True)
    assert ingest.feed(data, 0, len(data)) in (0, 5)
    assert ingest.consumed == len(data)
    return data


def framed(build: KernelBuild, data: bytearray, mode: int, checksum: bool = True) -> list[bytes]:
    """The events of the packets that one replica is sent."""
    framer = build.frame.Framer(mode)
    framer.begin_file(int(checksum))
    out = bytearray(build.frame.required_size(len(data)))
    size = framer.frame(data, 0, len(data), out)
    assert framer.consumed == len(data)
    events, at = [], 0
    while at < size:
        length = int.from_bytes(out[at : at + 3], "little")
        events.append(bytes(out[at + 5 : at + 4 + length]))
        at += 4 + length
    return events


def edges_of(build: KernelBuild, stream: EventStream) -> list[tuple[int, int]]:
    """(start, end) of each event behind the format description."""
    events = framed(build, stamped(build, stream), 2, stream.checksum)
    flags = [int.from_bytes(event[17:19], "little") for event in events]
    assert not any(flag & 0xC000 for flag in flags)
    return [(flag >> 10 & 3, flag >> 12 & 3) for flag in flags][1:]


def test_an_autocommitted_statement_is_a_whole_transaction(build: KernelBuild) -> None:
    assert edges_of(build, EventStream().query("DROP TABLE t")) == [(TRANSACTION, COMMIT)]


def test_statements_in_a_transaction_start_and_end_and_the_xid_commits(build: KernelBuild) -> None:
    stream = EventStream().query("BEGIN").query("INSERT INTO t VALUES (1)").query("UPDATE t SET a = 2")
    stream.add(16, bytes(8))
    assert edges_of(build, stream) == [
        (TRANSACTION, NO_END),
        (STATEMENT, STATEMENT_END),
        (STATEMENT, STATEMENT_END),
        (NO_START, COMMIT),
    ]


def test_a_statement_in_row_format_ends_with_the_event_that_says_so(build: KernelBuild) -> None:
    stream = EventStream().query("BEGIN").add(19, bytes(20)).add(19, bytes(20))
    stream.add(23, rows_body(last=False)).add(23, rows_body(last=True)).add(19, bytes(20)).add(24, rows_body(last=True))
    stream.query("COMMIT")
    assert edges_of(build, stream) == [
        (TRANSACTION, NO_END),
        (STATEMENT, NO_END),
        (NO_START, NO_END),
        (NO_START, NO_END),
        (NO_START, STATEMENT_END),
        (STATEMENT, NO_END),
        (NO_START, STATEMENT_END),
        (NO_START, COMMIT),
    ]


def test_seeds_start_the_statement_they_belong_to(build: KernelBuild) -> None:
    stream = EventStream().query("BEGIN").add(5, bytes(9)).add(13, bytes(16)).query("INSERT INTO t VALUES (RAND())")
    stream.add(16, bytes(8))
    assert edges_of(build, stream)[1:4] == [(STATEMENT, NO_END), (NO_START, NO_END), (NO_START, STATEMENT_END)]


def test_a_seed_outside_of_begin_starts_the_transaction_and_its_query_commits_it(build: KernelBuild) -> None:
    stream = EventStream().add(5, bytes(9)).query("INSERT INTO t VALUES (NULL)")
    assert edges_of(build, stream) == [(TRANSACTION, NO_END), (NO_START, COMMIT)]


def test_a_group_that_was_rolled_back_ends_with_rollback(build: KernelBuild) -> None:
    stream = EventStream().query("BEGIN").query("INSERT INTO isam VALUES (1)").query("ROLLBACK")
    assert edges_of(build, stream) == [(TRANSACTION, NO_END), (STATEMENT, STATEMENT_END), (NO_START, ROLLBACK)]


def test_rollback_to_a_savepoint_is_a_statement_and_no_rollback_of_the_group(build: KernelBuild) -> None:
    stream = EventStream().query("BEGIN").query("SAVEPOINT s").query("ROLLBACK TO s").query("COMMIT")
    assert edges_of(build, stream) == [
        (TRANSACTION, NO_END),
        (STATEMENT, STATEMENT_END),
        (STATEMENT, STATEMENT_END),
        (NO_START, COMMIT),
    ]


def test_a_gtid_starts_the_transaction_and_neither_it_nor_begin_is_a_statement(build: KernelBuild) -> None:
    stream = EventStream().add(33, bytes(25)).query("BEGIN").query("DELETE FROM t").add(16, bytes(8))
    stream.add(33, bytes(25)).query("DROP TABLE t")
    assert edges_of(build, stream) == [
        (TRANSACTION, NO_END),
        (NO_START, NO_END),
        (STATEMENT, STATEMENT_END),
        (NO_START, COMMIT),
        (TRANSACTION, NO_END),
        (STATEMENT, COMMIT),
    ]


def test_a_load_data_is_one_statement_from_its_first_block(build: KernelBuild) -> None:
    file_id = (7).to_bytes(4, "little")
    body = query_body("LOAD DATA INFILE 'x' INTO TABLE t")
    execute = body[:13] + file_id + bytes(9) + body[13:]
    stream = EventStream().query("BEGIN").add(17, file_id + b"1\n").add(9, file_id + b"2\n").add(18, execute)
    stream.add(16, bytes(8))
    assert edges_of(build, stream)[1:4] == [(STATEMENT, NO_END), (NO_START, NO_END), (NO_START, STATEMENT_END)]


def test_events_outside_of_transactions_neither_start_nor_end_one_and_do_not_look_like_an_old_source(
    build: KernelBuild,
) -> None:
    assert edges_of(build, EventStream().add(3).add(28, b"x", flags=0x80)) == [OUTSIDE, OUTSIDE]


def test_a_start_behind_a_transaction_needs_the_format_description_told(build: KernelBuild) -> None:
    stream = EventStream().query("DROP TABLE a")
    head = len(stream.data)
    stream.query("BEGIN").add(19, bytes(20)).add(23, rows_body(last=True)).query("COMMIT")
    data = stamped(build, stream)
    framer = build.frame.Framer(2)
    framer.begin_file(1)
    framer.read_format(bytes(data[: len(stream.events[0])]))
    out = bytearray(build.frame.required_size(len(data)))
    framer.frame(data, head, len(data), out)
    assert _unframed(out, len(data) - head) == b"".join(framed(build, data, 2)[2:])


def _unframed(out: bytearray, wanted: int) -> bytes:
    events, at = b"", 0
    while len(events) < wanted:
        length = int.from_bytes(out[at : at + 3], "little")
        events += bytes(out[at + 5 : at + 4 + length])
        at += 4 + length
    return events


STATEMENTS: Final = st.sampled_from(
    [
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "ROLLBACK TO s",
        "SAVEPOINT s",
        "INSERT INTO t VALUES (1)",
        "XA START 'x'",
        "XA ROLLBACK 'x'",
    ]
)


@st.composite
def streams(draw: Any) -> EventStream:
    stream = EventStream(checksum=draw(st.booleans()))
    for _ in range(draw(st.integers(0, 25))):
        kind = draw(st.sampled_from([2, 2, 2, 3, 5, 16, 19, 23, 26, 29, 33, 38, 40, 160, 99]))
        if kind == 2:
            stream.query(draw(STATEMENTS))
        elif kind == 23:
            stream.add(23, rows_body(last=draw(st.booleans())))
        else:
            stream.add(kind, bytes(30))
    return stream


@given(streams())
def test_only_the_marker_bits_and_the_checksum_change_and_the_checksum_is_right(stream: EventStream) -> None:
    for build in builds():
        kept = framed(build, stamped(build, stream), 0, stream.checksum)
        converted = framed(build, stamped(build, stream), 2, stream.checksum)
        assert len(kept) == len(converted)
        for one, other in zip(kept, converted, strict=True):
            changed = int.from_bytes(one[17:19], "little") ^ int.from_bytes(other[17:19], "little")
            assert changed & ~0x3C00 == 0
            body = -4 if stream.checksum or one[4] == 15 else None
            assert one[:17] == other[:17] and one[19:body] == other[19:body]
            assert other[18] >> 2 & 3 != 0, "start bits 00 are an old source's"
            if stream.checksum:
                assert zlib.crc32(other[:-4]) == int.from_bytes(other[-4:], "little")


@given(streams(), st.integers(1, 2000))
def test_it_does_not_matter_how_the_file_is_cut_for_reading(stream: EventStream, step: int) -> None:
    for build in builds():
        data = stamped(build, stream)
        framer = build.frame.Framer(2)
        framer.begin_file(int(stream.checksum))
        out = bytearray(build.frame.required_size(len(data)))
        whole, start, stop = b"", 0, 0
        while start < len(data):
            stop = min(len(data), max(stop, start) + step)
            whole += bytes(out[: framer.frame(data, start, stop, out)])
            start = framer.consumed
        reference = build.frame.Framer(2)
        reference.begin_file(int(stream.checksum))
        assert whole == bytes(out[: reference.frame(data, 0, len(data), out)])
