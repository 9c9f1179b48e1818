"""What anybody may send to the relay's port: garbage, lies, silence. Each gets a named refusal; the relay goes on."""

import contextlib
import os
import random
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pymysql
import pytest

from tests.support.binlog_builder import BinlogBuilder
from tests.support.free_port import free_port
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess
from tests.support.replica_client import ReplicaClient

pytestmark = pytest.mark.usefixtures("relays_of_their_own")

FIRST = "mysql-bin.000001"
BUILT = BinlogBuilder().ddl().transaction(10, 40).transaction(5)
LOGIN_WAIT_S = 1.0
DUMP, REGISTER, SLEEP, FIELD_LIST, CHANGE_USER, STMT_EXECUTE, DUMP_GTID = 0x12, 0x15, 0x00, 0x04, 0x11, 0x17, 0x1E


@pytest.fixture(scope="module")
def relay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RelayProcess]:
    directory = tmp_path_factory.mktemp("clients")
    binlogs = directory / "binlogs"
    binlogs.mkdir()
    (binlogs / FIRST).write_bytes(BUILT.data)
    (binlogs / "mysql-bin.index").write_text(f"./{FIRST}\n")
    sections = {"listen": {"handshake_timeout_s": LOGIN_WAIT_S, "position_wait_s": 0.2}}
    with RelayProcess(directory, binlogs, port=free_port(), sections=sections) as running:
        running.wait_archived(FIRST, BUILT.size)
        yield running
        assert running.stop() == 0
        assert not [line for line in running.log_lines() if "Traceback" in str(line) or "exception" in line]


@pytest.fixture(autouse=True)
def alive_and_nothing_left(relay: RelayProcess) -> Iterator[None]:
    """Behind every test: a replica is served the whole archive, and no descriptor was kept."""
    before = _descriptors(relay)
    yield
    client = logged_in(relay)
    client.set_up()
    client.ask_dump(FIRST, 4, flags=1)
    events = client.events_to_eof()
    client.cut()
    assert sum(len(event.data) for event in events[1:]) == BUILT.size - 4
    deadline = time.monotonic() + 5
    while _descriptors(relay) > before:
        assert time.monotonic() < deadline, f"{_descriptors(relay) - before} descriptors are left"
        time.sleep(0.05)


def _descriptors(relay: RelayProcess) -> int:
    """Open sockets of the relay."""
    count = 0
    directory = f"/proc/{relay.pid}/fd"
    for name in os.listdir(directory):
        with contextlib.suppress(FileNotFoundError):
            count += os.readlink(f"{directory}/{name}").startswith("socket:")
    return count


def logged_in(relay: RelayProcess) -> ReplicaClient:
    return ReplicaClient(relay.port, user=REPLICA_USER, password=REPLICA_PASSWORD)


@contextlib.contextmanager
def raw(relay: RelayProcess) -> Iterator[socket.socket]:
    """A connection that got its greeting."""
    with socket.create_connection(("127.0.0.1", relay.port), timeout=5) as link:
        greeting = link.recv(4096)
        assert greeting[4] == 10
        yield link


def packet(payload: bytes, sequence: int = 0) -> bytes:
    return len(payload).to_bytes(3, "little") + bytes([sequence]) + payload


def to_the_end(link: socket.socket) -> bytes:
    """All that comes until the relay closes."""
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while more := link.recv(65536):
            data += more
    return data


def error_of(data: bytes) -> tuple[int, str]:
    """Number and text of the one ERR packet in `data`."""
    assert data[4] == 0xFF, data
    assert len(data) == 4 + int.from_bytes(data[:3], "little"), data
    return int.from_bytes(data[5:7], "little"), data[13:].decode()


# ---- before the login ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "number"),
    [
        (b"GET / HTTP/1.1\r\nHost: relay\r\n\r\n", 1156),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(200)), 1156),
        (packet(b"", 1), 1043),
        (packet(b"\x00" * 10, 1), 1043),
        (packet(b"\xff" * 300, 1), 1043),
        (packet(bytes([DUMP]) + struct.pack("<IHI", 4, 0, 7) + FIRST.encode(), 1), 1043),
        (packet(bytes([DUMP]) + struct.pack("<IHI", 4, 0, 7) + FIRST.encode(), 0), 1156),
        (packet(b"\x03SELECT 1", 1), 1043),
        (packet(b"\x00" * 40, 9), 1156),
        (b"\xff\xff\xff\x01", 1153),
    ],
    ids=[
        "http", "tls", "empty", "zeros", "ones", "dump", "dump numbered as a command", "query", "wrong number", "16 MiB",
    ],
)  # fmt: skip
def test_what_is_no_login_is_refused_by_name_and_the_connection_closed(
    relay: RelayProcess, sent: bytes, number: int
) -> None:
    with raw(relay) as link:
        link.sendall(sent)
        found, text = error_of(to_the_end(link))
        assert (found, bool(text)) == (number, True)


def test_a_login_whose_inner_lengths_lie_is_refused(relay: RelayProcess) -> None:
    body = struct.pack("<IIB23x", 0x0008A20D, 1 << 24, 33) + REPLICA_USER.encode() + b"\0" + b"\xfa" + b"abc"
    with raw(relay) as link:
        link.sendall(packet(body, 1))
        assert error_of(to_the_end(link))[0] == 1043


def test_nothing_is_answered_after_a_refused_login(relay: RelayProcess) -> None:
    body = struct.pack("<IIB23x", 0x0008A20D, 1 << 24, 33) + b"nobody\0" + b"\x14" + b"x" * 20
    body += b"mysql_native_password\0"
    with raw(relay) as link:
        link.sendall(packet(body, 1) + packet(b"\x03SELECT 1") + packet(b"\x03SELECT @@version"))
        number, text = error_of(to_the_end(link))
        assert (number, "nobody" in text) == (1045, True)


def test_who_says_nothing_is_sent_away_in_time(relay: RelayProcess) -> None:
    with raw(relay) as link:
        started = time.monotonic()
        to_the_end(link)
        assert LOGIN_WAIT_S / 2 < time.monotonic() - started < LOGIN_WAIT_S + 3


def test_who_sends_a_login_byte_by_byte_is_sent_away_in_time(relay: RelayProcess) -> None:
    with raw(relay) as link:
        started = time.monotonic()
        with contextlib.suppress(OSError):
            for byte in packet(b"\x0d\xa2" + bytes(200), 1):
                link.sendall(bytes([byte]))
                time.sleep(0.05)
                if time.monotonic() - started > LOGIN_WAIT_S + 3:
                    break
        assert time.monotonic() - started < LOGIN_WAIT_S + 3


def test_a_connection_half_closed_before_the_login_ends(relay: RelayProcess) -> None:
    with raw(relay) as link:
        link.shutdown(socket.SHUT_WR)
        to_the_end(link)


def test_three_hundred_connections_of_garbage_leave_no_trace(relay: RelayProcess) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    dice = random.Random(seed)
    for _ in range(300):
        with (
            contextlib.suppress(ConnectionResetError, BrokenPipeError),
            socket.create_connection(("127.0.0.1", relay.port), timeout=5) as link,
        ):
            if dice.random() < 0.5:
                link.recv(4096)
            garbage = dice.randbytes(dice.randrange(1, 2000))
            link.sendall(packet(garbage, 1) if dice.random() < 0.5 else garbage)


# ---- behind the login ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "number"),
    [(SLEEP, 1047), (FIELD_LIST, 1046), (CHANGE_USER, 1047), (STMT_EXECUTE, 1243), (0x42, 1047), (0xFF, 1047)],
)
def test_a_command_that_is_not_taken_gets_an_error_and_the_connection_stays(
    relay: RelayProcess, code: int, number: int
) -> None:
    client = logged_in(relay)
    client.command(code, b"whatever")
    with pytest.raises(pymysql.err.MySQLError) as caught:
        client.connection._read_ok_packet()
    assert caught.value.args[0] == number
    assert client.query("SELECT 1") == ((1,),)
    client.cut()


def test_an_empty_command_gets_an_error(relay: RelayProcess) -> None:
    client = logged_in(relay)
    client.connection._sock.sendall(packet(b""))
    client.connection._next_seq_id = 1
    with pytest.raises(pymysql.err.MySQLError, match="1047"):
        client.connection._read_ok_packet()
    client.cut()


def test_a_statement_that_announces_more_than_is_allowed_is_cut_off_at_its_header(relay: RelayProcess) -> None:
    client = logged_in(relay)
    link = client.connection._sock
    link.sendall(b"\xff\xff\xff\x00\x03SELECT")
    assert error_of(to_the_end(link))[0] == 1153
    client.cut()


def test_a_command_with_a_wrong_number_ends_the_connection(relay: RelayProcess) -> None:
    client = logged_in(relay)
    link = client.connection._sock
    link.sendall(packet(b"\x03SELECT 1", 5))
    assert error_of(to_the_end(link))[0] == 1156
    client.cut()


def test_a_command_half_sent_and_half_closed_ends(relay: RelayProcess) -> None:
    client = logged_in(relay)
    link = client.connection._sock
    link.sendall(packet(b"\x03SELECT 1")[:7])
    link.shutdown(socket.SHUT_WR)
    assert to_the_end(link) == b""
    client.cut()


@pytest.mark.parametrize("body", [b"", b"\x04", struct.pack("<IH", 4, 0), struct.pack("<IHB", 4, 0, 7)])
def test_a_dump_request_that_is_too_short_is_refused(relay: RelayProcess, body: bytes) -> None:
    client = logged_in(relay)
    client.set_up()
    client.command(DUMP, body)
    with pytest.raises(pymysql.err.MySQLError, match="1835"):
        client.connection._read_ok_packet()
    client.cut()


@pytest.mark.parametrize(
    ("file", "offset", "number", "words"),
    [
        (FIRST, 0, 1236, "4"),
        (FIRST, 3, 1236, "4"),
        (FIRST, 5, 1236, "4"),
        (FIRST, BUILT.events[3].start + 1, 1236, str(BUILT.events[3].group_start)),
        (FIRST, BUILT.events[4].start, 1236, str(BUILT.events[4].group_start)),
        (FIRST, 0xFFFFFFFF, 1236, "2^32-1"),
        (FIRST, BUILT.size + 1, 1105, f"ends at {FIRST}:{BUILT.size}"),
        ("mysql-bin.000002", 4, 1105, "mysql-bin.000002"),
        ("mysql-bin.000009", 4, 1236, FIRST),
        ("../../../etc/passwd", 4, 1236, "no path"),
        ("/etc/passwd", 4, 1236, "no path"),
        ("mysql-bin\0.000001", 4, 1236, "is not a binlog file name"),
        ("mysql-bin.000009\0.000001", 4, 1236, FIRST),
        (f"./{FIRST}", 4, 1236, "no path"),
        ("x" * 5000, 4, 1835, "at most 512"),
    ],
    ids=lambda value: str(value)[:30].replace("\0", "0") if not isinstance(value, int) else str(value),
)
def test_a_dump_that_cannot_be_served_is_refused_before_its_first_event(
    relay: RelayProcess, file: str, offset: int, number: int, words: str
) -> None:
    client = logged_in(relay)
    # Another one than the replica of the fixture: that one was sent the file and may resume inside a transaction.
    client.set_up(server_id=5000)
    client.ask_dump(file, offset, server_id=5000)
    with pytest.raises(pymysql.err.MySQLError) as caught:
        client.event()
    assert caught.value.args[0] == number
    assert words in caught.value.args[1]
    assert len(caught.value.args[1].encode()) <= 480
    client.cut()


def test_what_stands_behind_a_zero_byte_of_a_file_name_counts_no_more_than_in_a_server(relay: RelayProcess) -> None:
    streams = []
    for file in (FIRST, f"{FIRST}\0/../{FIRST}"):
        client = logged_in(relay)
        client.set_up(server_id=5000)
        client.ask_dump(file, 4, server_id=5000)
        streams.append([event.data for event in client.events(5)])
        client.cut()
    assert streams[0] == streams[1]


def test_a_dump_by_gtid_is_refused_by_name(relay: RelayProcess) -> None:
    client = logged_in(relay)
    client.set_up()
    client.command(DUMP_GTID, struct.pack("<HIIQI", 4, 7, 0, 4, 0))
    with pytest.raises(pymysql.err.MySQLError, match=r"1236.*GTID_MODE = OFF instead of ON"):
        client.event()
    client.cut()


def test_a_replica_that_half_closes_in_the_dump_is_let_go(relay: RelayProcess) -> None:
    client = logged_in(relay)
    client.set_up(heartbeat_s=0.05)
    client.ask_dump(FIRST, 4)
    client.events(5)
    link = client.connection._sock
    link.shutdown(socket.SHUT_WR)
    link.settimeout(5)
    to_the_end(link)
    client.cut()


def test_commands_in_the_middle_of_a_dump_end_it(relay: RelayProcess) -> None:
    client = logged_in(relay)
    client.set_up(heartbeat_s=0.05)
    client.ask_dump(FIRST, 4)
    client.events(5)
    client.connection._sock.sendall(packet(b"\x03SELECT 1"))
    with pytest.raises((pymysql.err.MySQLError, AssertionError)):
        while client.event() is not None:
            pass
    client.cut()


def test_a_thousand_statements_sent_without_reading_an_answer_are_taken_slowly(relay: RelayProcess) -> None:
    client = logged_in(relay)
    link = client.connection._sock
    link.settimeout(0.5)
    before = _resident_kib(relay)
    with contextlib.suppress(TimeoutError, OSError):
        for _ in range(2000):
            link.sendall(packet(b"\x03SHOW VARIABLES LIKE '%'") * 50)
    assert _resident_kib(relay) - before < 20_000
    client.cut()


def _resident_kib(relay: RelayProcess) -> int:
    for line in Path(f"/proc/{relay.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1])
    raise AssertionError("no VmRSS")
