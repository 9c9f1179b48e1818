"""A source that sends what cannot be, or is not who it was: a named error, once, the archive untouched, replicas served."""

import asyncio
import copy
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from relay.upstream.source import reconnect
from relay.upstream.source.source_errors import FailureKind
from tests.support.binlog_builder import ALONE, BinlogBuilder
from tests.support.fake_source import Dump, FakeSource, serve_all, with_crc
from tests.support.relay_inside import RelayInside, damage, ledger, relay_inside

FIRST, SECOND = "mysql-bin.000001", "mysql-bin.000002"
HEARTBEAT = 27
Fault = Callable[[Dump, bytearray], Any]

BUILT = BinlogBuilder().ddl().transaction(10, 40).transaction(5)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The policy is tested here, not the patience."""
    pauses = dict.fromkeys(reconnect._PAUSES, (0.02, 0.2))
    monkeypatch.setattr(reconnect, "_PAUSES", pauses)


@pytest.fixture
def source() -> Iterator[FakeSource]:
    with FakeSource({FIRST: bytes(BUILT.data)}) as fake:
        yield fake


def next_event(kind: int | None = None, flags: int = 0) -> bytearray:
    """The event that would come next in the file."""
    more = copy.deepcopy(BUILT)
    if kind is None:
        more.ddl("CREATE TABLE later (a INT)")
    else:
        more.event(kind, b"whatever it is", ALONE, flags=flags)
    return more.data[BUILT.size :]


def patched(event: bytearray, at: int, form: str, value: int) -> bytearray:
    """The event with a header field changed and its CRC made right again."""
    struct.pack_into(form, event, at, value)
    return bytearray(with_crc(bytes(event)))


async def filled(relay: RelayInside) -> None:
    await relay.until_published(FIRST, BUILT.size)


async def still_served(relay: RelayInside, replica: Any, held: bytes) -> None:
    """A replica that was connected goes on getting heartbeats, a new one gets the whole archive."""

    def hears_for(seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            event = replica.event()
            assert event is not None
            assert event.kind == HEARTBEAT or event.end_log_pos <= BUILT.size

    await asyncio.to_thread(hears_for, 0.2)
    assert await relay.served(FIRST) == held[4:]


# ---- bytes that cannot be: three tries, then an operator must look ---------------------------------------------------


def wrong_crc(dump: Dump, event: bytearray) -> None:
    event[-1] ^= 0x40
    dump.event(event)


def length_below_a_header(dump: Dump, event: bytearray) -> None:
    dump.event(patched(event, 9, "<I", 18))


def length_beyond_the_packet(dump: Dump, event: bytearray) -> None:
    dump.event(patched(event, 9, "<I", len(event) + 1000))


def length_short_of_the_packet(dump: Dump, event: bytearray) -> None:
    dump.event(patched(event, 9, "<I", len(event) - 1))


def length_of_four_gib(dump: Dump, event: bytearray) -> None:
    dump.event(patched(event, 9, "<I", 0xFFFFFFFF))


def position_jumps(dump: Dump, event: bytearray) -> None:
    dump.event(patched(event, 13, "<I", BUILT.size + len(event) + 100))


def position_goes_back(dump: Dump, event: bytearray) -> None:
    dump.event(patched(event, 13, "<I", BUILT.size))


def packet_is_missing(dump: Dump, event: bytearray) -> None:
    dump.skip_sequence()
    dump.event(event)


def packet_is_empty(dump: Dump, event: bytearray) -> None:
    dump.packet(b"")
    dump.event(event)


def packet_has_another_status(dump: Dump, event: bytearray) -> None:
    dump.packet(b"\x01" + event)


def packet_ends_in_the_header(dump: Dump, event: bytearray) -> None:
    dump.packet(b"\0" + event[:12])


def rotate_to_a_path(dump: Dump, event: bytearray) -> None:
    dump.rotate("../../mysql-bin.000002")


def rotate_to_no_number(dump: Dump, event: bytearray) -> None:
    dump.rotate("mysql-bin.index")


def rotate_over_a_file(dump: Dump, event: bytearray) -> None:
    dump.rotate("mysql-bin.000003")


def rotate_to_another_series(dump: Dump, event: bytearray) -> None:
    dump.rotate("other-bin.000002")


def rotate_back(dump: Dump, event: bytearray) -> None:
    dump.rotate("mysql-bin.000000")


def rotate_into_a_file(dump: Dump, event: bytearray) -> None:
    dump.rotate(SECOND, 500)


def rotate_within_the_file(dump: Dump, event: bytearray) -> None:
    dump.rotate(FIRST, BUILT.size - 10)


def file_without_format_description(dump: Dump, event: bytearray) -> None:
    dump.rotate(SECOND)
    dump.event(patched(event, 13, "<I", 4 + len(event)))


BROKEN: list[tuple[Fault, str]] = [
    (wrong_crc, "checksum_mismatch"),
    (length_below_a_header, "event_length_wrong"),
    (length_beyond_the_packet, "event_length_wrong"),
    (length_short_of_the_packet, "event_length_wrong"),
    (length_of_four_gib, "event_length_wrong"),
    (position_jumps, "position_chain_broken"),
    (position_goes_back, "position_chain_broken"),
    (packet_is_missing, "packet_sequence_broken"),
    (packet_is_empty, "packet_malformed"),
    (packet_has_another_status, "packet_malformed"),
    (packet_ends_in_the_header, "event_length_wrong"),
    (rotate_to_a_path, "file_name_malformed"),
    (rotate_to_no_number, "file_name_malformed"),
    (rotate_over_a_file, "file_chain_broken"),
    (rotate_to_another_series, "file_chain_broken"),
    (rotate_back, "file_chain_broken"),
    (rotate_into_a_file, "position_chain_broken"),
    (rotate_within_the_file, "position_chain_broken"),
    (file_without_format_description, "format_description_missing"),
]


@pytest.mark.parametrize(("fault", "name"), BROKEN, ids=[fault.__name__ for fault, _ in BROKEN])
async def test_broken_bytes_are_asked_for_three_times_then_named_and_given_up(
    tmp_path: Path, source: FakeSource, fault: Fault, name: str
) -> None:
    async with relay_inside(tmp_path, source) as relay:
        await filled(relay)
        replica = await relay.replica(FIRST)
        before = relay.held()
        source.then(lambda dump: (fault(dump, next_event()), dump.until_gone()))
        line = await relay.until_logged("source_given_up")
        assert (line["trouble"], line["retry_in_s"]) == (name, None)
        assert FIRST.removesuffix("1") in line["what"] and line["log_level"] == "error"
        assert [lost["trouble"] for lost in relay.logged("source_lost")] == [name, name]
        await relay.until_logged("serving_what_is_archived")
        assert source.dumps == [("mysql-bin.000001", 4)] + [(FIRST, BUILT.size)] * 2
        assert relay.held() == before
        await still_served(relay, replica, before[FIRST])
        replica.cut()
    assert [(row.kind, row.file, row.offset) for row in ledger(relay.archive)] == [(name, FIRST, BUILT.size)]
    assert relay.held() == before
    assert damage(relay.archive) == []


async def test_good_events_before_a_broken_one_are_kept(tmp_path: Path, source: FakeSource) -> None:
    more = copy.deepcopy(BUILT).transaction(7)

    def good_then_bad(dump: Dump) -> None:
        dump.source.files[FIRST] = bytes(more.data)
        dump.rest()
        dump.event(b"\0" * 30)
        dump.until_gone()

    async with relay_inside(tmp_path, source) as relay:
        await filled(relay)
        source.then(good_then_bad)
        line = await relay.until_logged("source_given_up")
        assert line["archive_end"] == f"{FIRST}:{more.size}"
        assert len(relay.held()[FIRST]) == more.size
    assert damage(relay.archive) == []


async def test_a_transaction_without_its_end_is_taken_back_when_what_follows_is_broken(
    tmp_path: Path, source: FakeSource
) -> None:
    begun = copy.deepcopy(BUILT).begin().table_map().rows(30)

    def half_then_bad(dump: Dump) -> None:
        data = bytes(begun.data)
        for event in begun.events[-3:]:
            dump.event(data[event.start : event.end])
        dump.event(b"\0" * 30)
        dump.until_gone()

    async with relay_inside(tmp_path, source) as relay:
        await filled(relay)
        before = relay.held()
        source.then(half_then_bad)
        await relay.until_logged("source_given_up")
        # What is left of the third try is taken back at the end; nobody is served it meanwhile.
        assert await relay.served(FIRST) == before[FIRST][4:]
    assert relay.held() == before
    assert damage(relay.archive) == []


# ---- the way to the source: tried for ever ---------------------------------------------------------------------------


async def test_a_truncated_packet_and_a_close_cost_a_reconnect_and_nothing_else(
    tmp_path: Path, source: FakeSource
) -> None:
    more = copy.deepcopy(BUILT).transaction(2000)

    def cut(dump: Dump) -> None:
        event = more.data[more.events[-3].start : more.events[-3].end]
        source.files[FIRST] = bytes(more.data)
        source.serve = serve_all
        dump.raw((len(event) + 1).to_bytes(3, "little") + b"\x77\0" + event[:40])

    async with relay_inside(tmp_path, source) as relay:
        await filled(relay)
        source.then(cut)
        await relay.until_held(FIRST, more.size)
        assert len(relay.held()[FIRST]) == more.size
        assert len(relay.logged("source_lost")) == 1
    assert damage(relay.archive) == []


async def test_a_dead_network_is_tried_for_ever_with_growing_pauses(tmp_path: Path, source: FakeSource) -> None:
    async with relay_inside(tmp_path, source) as relay:
        await filled(relay)
        source.close()
        await relay.until_logged("source_lost", 9)
        pauses = [line["retry_in_s"] for line in relay.logged("source_lost")]
        assert relay.logged("source_given_up") == []
        # Halves to wholes of 0.02, 0.04 ... 0.2 s.
        for number, pause in enumerate(pauses):
            whole = min(0.2, 0.02 * 2**number)
            assert whole / 2 <= pause <= whole, f"pause {number} of {pauses}"
        with FakeSource(dict(source.files), port=source.port):
            await relay.until_logged("source_attached", 2)
        assert relay.logged("source_given_up") == []
    assert ledger(relay.archive) == []


async def test_a_source_without_heartbeats_is_dead_after_three_periods(tmp_path: Path, source: FakeSource) -> None:
    async with relay_inside(tmp_path, source, heartbeat_period_s=0.1) as relay:
        await filled(relay)
        await asyncio.sleep(0.6)
        assert relay.logged("source_lost") == []
        source.then(Dump.until_gone)
        started = time.monotonic()
        line = await relay.until_logged("source_lost")
        assert 0.2 <= time.monotonic() - started < 2.0
        assert line["trouble"] == "source_silent"
        assert "heartbeats were due every 0.1 s" in line["what"]


async def test_an_end_of_file_packet_is_a_lost_connection(tmp_path: Path, source: FakeSource) -> None:
    async with relay_inside(tmp_path, source) as relay:
        await filled(relay)

        def end(dump: Dump) -> None:
            source.serve = serve_all
            dump.packet(b"\xfe\0\0\x02\0")

        source.then(end)
        await relay.until_logged("source_attached", 2)
        assert [line["trouble"] for line in relay.logged("source_lost")] == ["stream_ended"]


@pytest.mark.parametrize(("number", "text"), [(1040, "Too many connections"), (1129, "Host '10.0.0.1' is blocked")])
async def test_a_source_that_refuses_to_greet_is_tried_again(
    tmp_path: Path, source: FakeSource, number: int, text: str
) -> None:
    async with relay_inside(tmp_path, source) as relay:
        await filled(relay)
        payload = b"\xff" + struct.pack("<H", number) + text.encode()
        source.greeting = len(payload).to_bytes(3, "little") + b"\0" + payload
        source.drop()
        await relay.until_logged("source_lost", 4)
        assert text in relay.logged("source_lost")[-1]["what"]
        source.greeting = None
        await relay.until_logged("source_attached", 2)
        assert relay.logged("source_given_up") == []


async def test_a_refused_login_is_tried_again_until_the_password_is_right(tmp_path: Path, source: FakeSource) -> None:
    async with relay_inside(tmp_path, source) as relay:
        await filled(relay)
        source.password = "another"
        source.drop()
        line = await relay.until_logged("source_lost", 2)
        assert line["trouble"] == "authentication"
        assert "refuses the user 'repl'" in line["what"]
        source.password = source.replication_password
        await relay.until_logged("source_attached", 2)
        assert source.replication_password not in str(relay.logs)


# ---- what a retry cannot cure ----------------------------------------------------------------------------------------


def another_greeting(source: FakeSource) -> None:
    source.greeting = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"


def a_proxy(source: FakeSource) -> None:
    source.version = "5.5.30 (ProxySQL)"
    source.query_error = (1148, "The used command is not allowed by this proxy")


def came_back_shorter(source: FakeSource) -> None:
    source.files[FIRST] = bytes(BUILT.data[: BUILT.boundaries[-2]])


def reset_and_short(source: FakeSource) -> None:
    source.files = {FIRST: bytes(BinlogBuilder(timestamp=1_800_000_000).data)}


def reset_and_long(source: FakeSource) -> None:
    source.files = {FIRST: bytes(BinlogBuilder(timestamp=1_800_000_000).transaction(100_000).data)}


def reset_and_just_as_long(source: FakeSource) -> None:
    again = BinlogBuilder(timestamp=BUILT.timestamp + 1).ddl().transaction(10, 40).transaction(5)
    source.files = {FIRST: bytes(again.data)}


def another_uuid(source: FakeSource) -> None:
    source.server_uuid = "99999999-2222-3333-4444-555555555555"


def turned_into_mariadb(source: FakeSource) -> None:
    source.flavour, source.version = "mariadb", "10.11.14-MariaDB-log"


def took_our_server_id(source: FakeSource) -> None:
    source.server_id = 4242


def purged_our_file(source: FakeSource) -> None:
    source.files = {"mysql-bin.000007": bytes(BinlogBuilder().data)}


def renamed_its_binlogs(source: FakeSource) -> None:
    source.files = {"binlog.000001": bytes(BUILT.data)}


def says_it_was_purged(source: FakeSource) -> None:
    text = "Could not find first log file name in binary log index file"
    source.serve = lambda dump: (dump.error(1236, text), dump.until_gone())


def says_there_is_a_twin(source: FakeSource) -> None:
    text = "A slave with the same server_uuid/server_id as this slave has connected to the master"
    source.serve = lambda dump: (dump.error(1236, text), dump.until_gone())


TERMINAL: list[tuple[Callable[[FakeSource], None], str, str]] = [
    (
        another_greeting,
        "not_mysql_protocol",
        "something that is not the MySQL protocol: its first packet has the number 80",
    ),
    (a_proxy, "setup", "refuses what every source answers: 1148"),
    (came_back_shorter, "source_lost_its_tail", f"the archive holds it up to {BUILT.size}"),
    (reset_and_short, "source_lost_its_tail", f"the archive holds it up to {BUILT.size}"),
    (reset_and_long, "source_was_reset", "was made at 1800000000"),
    (reset_and_just_as_long, "source_was_reset", f"was made at {BUILT.timestamp + 1}"),
    (another_uuid, "source_identity_changed", "has server_uuid 99999999-"),
    (turned_into_mariadb, "source_identity_changed", "is a mariadb server"),
    (took_our_server_id, "server_id_clash", "is the source's own server_id"),
    (purged_our_file, "position_purged", "it has mysql-bin.000007 to mysql-bin.000007"),
    (renamed_its_binlogs, "source_was_reset", f"no longer has {FIRST}"),
    (says_it_was_purged, "position_gone", "error 1236: Could not find first log file name"),
    (says_there_is_a_twin, "server_id_clash", "error 1236: A slave with the same"),
]


@pytest.mark.parametrize(("change", "name", "what"), TERMINAL, ids=[change.__name__ for change, _, _ in TERMINAL])
async def test_a_source_that_is_not_what_it_was_is_named_once_and_not_tried_again(
    tmp_path: Path, source: FakeSource, change: Callable[[FakeSource], None], name: str, what: str
) -> None:
    async with relay_inside(tmp_path, source) as relay:
        await filled(relay)
        replica = await relay.replica(FIRST)
        before = relay.held()
        change(source)
        source.drop()
        line = await relay.until_logged("source_given_up")
        assert (line["trouble"], line["log_level"]) == (name, "error")
        assert what in line["what"]
        assert line["advice"]
        assert [lost["trouble"] for lost in relay.logged("source_lost")] == ["connection_lost"]
        attempts = source.attempts
        await still_served(relay, replica, before[FIRST])
        assert source.attempts == attempts
        assert len(relay.logged("source_given_up")) == 1
        assert relay.held() == before
        replica.cut()
    expected = [] if name in ("setup", "server_id_clash", "not_mysql_protocol") else [(name, FIRST, BUILT.size)]
    assert [(row.kind, row.file, row.offset) for row in ledger(relay.archive)] == expected
    assert relay.held() == before
    assert damage(relay.archive) == []


# ---- what is passed on -----------------------------------------------------------------------------------------------


async def test_an_unknown_event_type_is_passed_on_and_noted(tmp_path: Path, source: FakeSource) -> None:
    event = next_event(kind=201)
    async with relay_inside(tmp_path, source) as relay:
        await filled(relay)

        def unknown(dump: Dump) -> None:
            source.files[FIRST] = bytes(BUILT.data) + bytes(event)
            dump.rest()
            dump.wait()

        source.then(unknown)
        await relay.until_held(FIRST, BUILT.size + len(event))
        served = await relay.served(FIRST)
        assert len(served) == BUILT.size - 4 + len(event)
        assert served[-4 - 14 : -4] == b"whatever it is"
        assert relay.logged("source_lost") == []
    rows = [(row.kind, row.file, row.offset) for row in ledger(relay.archive)]
    assert rows == [("event_type_unknown", FIRST, BUILT.size)]
    assert damage(relay.archive) == []


async def test_an_unknown_event_type_with_the_ignorable_flag_is_not_worth_a_note(
    tmp_path: Path, source: FakeSource
) -> None:
    event = next_event(kind=201, flags=0x80)
    async with relay_inside(tmp_path, source) as relay:
        await filled(relay)
        source.files[FIRST] = bytes(BUILT.data) + bytes(event)
        source.drop()
        await relay.until_held(FIRST, BUILT.size + len(event))
    assert ledger(relay.archive) == []


# ---- a source that never was one -------------------------------------------------------------------------------------


async def test_broken_bytes_before_anything_is_archived_end_the_relay_with_code_3(tmp_path: Path) -> None:
    with FakeSource({FIRST: bytes(BUILT.data)}) as fake:
        another_greeting(fake)
        with pytest.raises(AssertionError, match="ended with 3"):
            async with relay_inside(tmp_path, fake) as relay:
                await relay.until_logged("source_given_up")


def test_the_classes_of_trouble_are_all_either_terminal_or_retried() -> None:
    assert set(FailureKind) == set(reconnect.TERMINAL) | set(reconnect._PAUSES)
