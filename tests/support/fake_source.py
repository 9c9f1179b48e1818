"""A source that is none: logs a replica in, answers its set-up, then sends whatever packets a test wants.

source = FakeSource({"mysql-bin.000001": data})
source.serve = lambda dump: (dump.head(), dump.rest(), dump.event(bad), dump.wait())
"""

import contextlib
import hashlib
import os
import re
import socket
import struct
import threading
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self

from protocol.binlog.encoded_events import heartbeat_event, patch_format_description, rotate_event
from protocol.position import Position

USER: Final = "repl"
PASSWORD: Final = "repl-password"
_CAPABILITIES: Final = 0x0008A20D  # long password and flag, a database, protocol 4.1, transactions, plugins by name
_LONG_PASSWORD: Final = 1  # which MariaDB does not say it has
_PACKET_LIMIT: Final = (1 << 24) - 1
_FIRST_EVENT: Final = 4
# Rows of SHOW GLOBAL VARIABLES and values of SELECT @@global.x that a relay asks for.
_VARIABLE: Final = re.compile(r"SELECT @@global\.(\w+)|SHOW GLOBAL VARIABLES LIKE '(\w+)'", re.IGNORECASE)


class _Gone(Exception):
    """The error that the peer closed, or the test cut the connection."""


_VARIABLES: Final = re.compile(r"SHOW GLOBAL VARIABLES WHERE Variable_name IN \((.*)\)")


def with_crc(event: bytes) -> bytes:
    """Return `event`, which ends in 4 bytes for a CRC32, with the right one."""
    return event[:-4] + struct.pack("<I", zlib.crc32(event[:-4]))


@dataclass
class FakeSource:
    """A fake source that listens on a free port of 127.0.0.1; every connection has a thread. `with` closes it.

    `files` are whole binlogs by name, in order. `serve(dump)` is called for each dump request; by default it sends all that `files`
    contain and then heartbeats. `greeting` are raw bytes instead of the greeting; `query_error` is (number, text) in answer to every
    statement. `variables` is what it has besides those that every source has. `answers` are rows, by statement. `dumps` is what was
    requested, (file, offset). Attributes may be changed at any time.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    flavour: str = "mysql"
    version: str = "5.6.24-log"
    server_id: int = 1
    server_uuid: str = "11111111-2222-3333-4444-555555555555"
    checksum: bool = True
    greeting: bytes | None = None
    query_error: tuple[int, str] | None = None
    password: str = PASSWORD
    port: int = 0
    heartbeats: bool = True
    replication_user: str = USER
    replication_password: str = PASSWORD
    variables: dict[str, str] = field(default_factory=dict)
    answers: dict[str, list[list[str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.serve: Callable[[Dump], Any] = serve_all
        self.dumps: list[tuple[str, int]] = []
        self.attempts = 0
        self._wake = threading.Event()
        self._links: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", self.port), backlog=32)
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, name="fake-source", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening and drop all connections."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        self.drop()

    def drop(self) -> None:
        """Close all connections."""
        for link in tuple(self._links):
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)

    def then(self, serve: "Callable[[Dump], Any]") -> None:
        """Use `serve` for current connections (its `wait` ends) and for every dump from now on, after what is sent already."""

        def all_then(dump: Dump) -> None:
            dump.head()
            dump.rest()
            serve(dump)

        self.serve = all_then
        self._next = serve
        woken, self._wake = self._wake, threading.Event()
        woken.set()

    _next: "Callable[[Dump], Any] | None" = None

    def _accept(self) -> None:
        while True:
            try:
                link, _ = self._listener.accept()
            except OSError:
                return
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.attempts += 1
            self._links.add(link)
            threading.Thread(target=self._converse, args=(link,), daemon=True).start()

    def _converse(self, link: socket.socket) -> None:
        try:
            _Conversation(self, link).run()
        except (OSError, _Gone):
            pass  # the relay left, or the test cut
        finally:
            self._links.discard(link)
            link.close()


class _Conversation:
    """One connection: greeting, login, statements, dump."""

    def __init__(self, source: FakeSource, link: socket.socket) -> None:
        self._source = source
        self._link = link
        self._sequence = 0

    def run(self) -> None:
        source = self._source
        if source.greeting is not None:
            self._link.sendall(source.greeting)
            with contextlib.suppress(OSError):
                self._link.shutdown(socket.SHUT_WR)
                self._link.recv(65536)
            return
        scramble = bytes(33 + byte % 90 for byte in os.urandom(20))
        self.send(self._greeting(scramble))
        if not self._login(self.receive(), scramble):
            self.refuse(1045, f"Access denied for user '{USER}'@'127.0.0.1' (using password: YES)", "28000")
            return
        self.send_ok()
        while True:
            self._sequence = 0
            command = self.receive()
            if command[0] == 0x01:
                return
            if command[0] == 0x12:
                offset, _, _ = struct.unpack_from("<IHI", command, 1)
                name = command[11:].decode()
                source.dumps.append((name, offset))
                source.serve(Dump(source, self, name or next(iter(source.files)), offset))
                return
            if command[0] == 0x03:
                self._answer(command[1:].decode())
            else:
                self.send_ok()

    def _greeting(self, scramble: bytes) -> bytes:
        version = self._source.version
        capabilities = _CAPABILITIES
        if self._source.flavour == "mariadb":
            capabilities &= ~_LONG_PASSWORD
            if "mariadb" in version.lower():
                version = "5.5.5-" + version
        return (
            b"\x0a" + version.encode() + b"\0" + struct.pack("<I", 77) + scramble[:8] + b"\0"
            + struct.pack("<HBHHB", capabilities & 0xFFFF, 33, 2, capabilities >> 16, 21) + bytes(10)
            + scramble[8:] + b"\0mysql_native_password\0"
        )  # fmt: skip

    def _login(self, answer: bytes, scramble: bytes) -> bool:
        user, rest = answer[32:].split(b"\0", 1)
        token = rest[1 : 1 + rest[0]]
        once = hashlib.sha1(self._source.password.encode()).digest()
        mask = hashlib.sha1(scramble + hashlib.sha1(once).digest()).digest()
        return user.decode() == USER and token == bytes(a ^ b for a, b in zip(once, mask, strict=True))

    def _answer(self, statement: str) -> None:
        source = self._source
        if source.query_error is not None:
            self.refuse(*source.query_error)
            return
        if statement.upper().startswith("SET"):
            self.send_ok()
        elif statement == "SHOW BINARY LOGS":
            self._rows(("Log_name", "File_size"), [(name, str(len(data))) for name, data in source.files.items()])
        elif statement == "SHOW MASTER STATUS":
            newest = list(source.files)[-1]
            self._rows(("File", "Position"), [(newest, str(len(source.files[newest])))])
        elif statement in source.answers:
            rows = source.answers[statement]
            self._rows([f"c{number}" for number in range(len(rows[0]))], rows)
        elif found := _VARIABLES.fullmatch(statement):
            names = re.findall(r"'(\w+)'", found[1])
            self._rows(("Variable_name", "Value"), [(n, source.variables[n]) for n in names if n in source.variables])
        elif found := _VARIABLE.fullmatch(statement):
            self._variable(found[1], found[2])
        else:
            self.refuse(1064, f"the fake source does not know {statement!r}")

    def _variable(self, selected: str | None, shown: str | None) -> None:
        source = self._source
        values = {
            "server_id": str(source.server_id),
            "log_bin": "ON",
            "binlog_checksum": "CRC32" if source.checksum else "NONE",
            **source.variables,
        }
        if source.flavour == "mysql":
            values["server_uuid"] = source.server_uuid
        name = (selected or shown or "").lower()
        if selected is not None and name not in values:
            self.refuse(1193, f"Unknown system variable '{name}'")
        elif selected is not None:
            self._rows((f"@@global.{name}",), [(values[name],)])
        else:
            self._rows(("Variable_name", "Value"), [(name, values[name])] if name in values else [])

    def _rows(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        eof = b"\xfe\0\0\x02\0"
        self.send(bytes([len(columns)]))
        for column in columns:
            names = b"".join(_counted(part) for part in ("def", "", "", "", column, ""))
            self.send(names + struct.pack("<BHIBHB2x", 12, 33, 1024, 253, 0, 0))
        self.send(eof)
        for row in rows:
            self.send(b"".join(map(_counted, row)))
        self.send(eof)

    # ---- packets ---------------------------------------------------------------------------------------------------

    def receive(self) -> bytes:
        head = self._exactly(4)
        self._sequence = (head[3] + 1) & 0xFF
        return self._exactly(int.from_bytes(head[:3], "little"))

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._link.recv(size - len(data))
            if not more:
                raise _Gone
            data += more
        return data

    def send(self, payload: bytes) -> None:
        while True:
            part, payload = payload[:_PACKET_LIMIT], payload[_PACKET_LIMIT:]
            self.send_raw(len(part).to_bytes(3, "little") + bytes([self._sequence]) + part)
            self._sequence = (self._sequence + 1) & 0xFF
            if len(part) < _PACKET_LIMIT:
                return

    def send_raw(self, data: bytes) -> None:
        self._link.sendall(data)

    def skip_sequence(self, count: int) -> None:
        self._sequence = (self._sequence + count) & 0xFF

    def send_ok(self) -> None:
        self.send(b"\0\0\0\x02\0\0\0")

    def refuse(self, number: int, text: str, state: str = "HY000") -> None:
        self.send(b"\xff" + struct.pack("<H", number) + b"#" + state.encode() + text.encode())

    def peer_gone(self, wait_s: float) -> bool:
        self._link.settimeout(wait_s)
        try:
            return not self._link.recv(4096)
        except TimeoutError:
            return False
        finally:
            self._link.settimeout(None)


def _counted(text: str) -> bytes:
    data = text.encode()
    return bytes([len(data)]) + data


class Dump:
    """One stream that a relay requested, at `file` and `offset`."""

    def __init__(self, source: FakeSource, conversation: _Conversation, file: str, offset: int) -> None:
        self.source = source
        self.file = file
        self.offset = offset
        self._conversation = conversation

    def event(self, event: bytes) -> None:
        """Send an event as a packet of the stream."""
        self._conversation.send(b"\0" + event)

    def packet(self, payload: bytes) -> None:
        """Send any packet."""
        self._conversation.send(payload)

    def raw(self, data: bytes) -> None:
        """Send bytes as they are, including the packet header."""
        self._conversation.send_raw(data)

    def skip_sequence(self, count: int = 1) -> None:
        """Make the next packet's number too high by `count`."""
        self._conversation.skip_sequence(count)

    def error(self, number: int, text: str) -> None:
        """Send an ERR packet."""
        self._conversation.refuse(number, text)

    def rotate(self, file: str, offset: int = _FIRST_EVENT) -> None:
        """Send an artificial Rotate."""
        self.event(rotate_event(Position(file, offset), self.source.server_id, with_checksum=self.source.checksum))

    def head(self) -> None:
        """Send what precedes the events: the artificial Rotate and, in the middle of a file, its format description."""
        self.rotate(self.file, self.offset)
        if self.offset > _FIRST_EVENT:
            data = self.source.files[self.file]
            size = int.from_bytes(data[13:17], "little")
            self.event(patch_format_description(data[4 : 4 + size], mid_file=True, strip_markers=False))

    def rest(self) -> None:
        """Send every event from here to the end of the newest file; `file` and `offset` move on."""
        while True:
            data = self.source.files[self.file]
            while self.offset + 19 <= len(data):
                size = int.from_bytes(data[self.offset + 9 : self.offset + 13], "little")
                self.event(data[self.offset : self.offset + size])
                self.offset += size
            names = list(self.source.files)
            if self.file == names[-1]:
                return
            self.file, self.offset = names[names.index(self.file) + 1], _FIRST_EVENT
            self.rotate(self.file)

    def heartbeat(self) -> None:
        """Send a heartbeat for this place."""
        place = Position(self.file, self.offset)
        self.event(heartbeat_event(place, self.source.server_id, with_checksum=self.source.checksum))

    def wait(self) -> None:
        """Send heartbeats (unless switched off) until the relay leaves, or until `FakeSource.then` gives a new task."""
        wake = self.source._wake
        while not wake.is_set():
            if self.source.heartbeats:
                self.heartbeat()
            if self._conversation.peer_gone(0.03):
                raise _Gone
        if self.source._next is not None:
            self.source._next(self)

    def until_gone(self) -> None:
        """Send nothing more, until the relay leaves."""
        while not self._conversation.peer_gone(1.0):
            pass


def serve_all(dump: Dump) -> None:
    """Send all that the files contain, then heartbeats."""
    dump.head()
    dump.rest()
    dump.wait()
