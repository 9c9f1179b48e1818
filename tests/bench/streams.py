"""Dump streams for measuring: logged in here, read by a small C program, so that the client costs next to nothing."""

import contextlib
import functools
import hashlib
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymysql

from protocol.gtid.codec import encode_gtid_set
from protocol.gtid.dump_request import encode_binlog_dump_gtid
from protocol.gtid.gtid_set import GtidSet

_HERE = Path(__file__).parent
_COM_BINLOG_DUMP = 0x12
_COM_BINLOG_DUMP_GTID = 0x1E
_NON_BLOCK = 1
_SEND_ANNOTATE = 2


@dataclass(frozen=True, slots=True)
class Server:
    """Where to log in: the source or the relay."""

    port: int
    user: str
    password: str


@functools.cache
def client_command() -> tuple[str, ...]:
    """How to call the reading program: compiled where there is a compiler, else in Python."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    text = (_HERE / "dump_client.c").read_bytes()
    if compiler is None:
        return (sys.executable, str(_HERE / "dump_client.py"))
    digest = hashlib.sha256(text).hexdigest()[:16]
    program = Path(tempfile.gettempdir()) / f"binlog-relay-dump-client-{os.getuid()}-{digest}"
    if not program.exists():
        part = program.with_suffix(f".{os.getpid()}")
        subprocess.run([compiler, "-O2", "-o", str(part), str(_HERE / "dump_client.c")], check=True)
        part.rename(program)
    return (str(program),)


_CHECKSUMS = (
    "SET @master_heartbeat_period = 30000000000",
    "SET @master_binlog_checksum = @@global.binlog_checksum",
)


class Stream:
    """A connection that is logged in, ready for its dump command `payload`, once `statements` were said."""

    def __init__(
        self,
        server: Server,
        payload: bytes,
        *,
        statements: Sequence[str] = _CHECKSUMS,
        receive_buffer_bytes: int = 0,
    ) -> None:
        link = socket.socket()
        if receive_buffer_bytes:
            link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        link.connect(("127.0.0.1", server.port))
        self.connection: Any = pymysql.connect(
            host="127.0.0.1", user=server.user, password=server.password, ssl_disabled=True, defer_connect=True
        )
        self.connection.connect(link)
        self.link = link
        with self.connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
        link.settimeout(None)
        self.command = struct.pack("<I", len(payload)) + payload

    @classmethod
    def by_position(
        cls,
        server: Server,
        file: str,
        offset: int = 4,
        *,
        server_id: int,
        ends: bool = False,
        receive_buffer_bytes: int = 0,
    ) -> "Stream":
        """Set up as a MariaDB replica's, from a file and position."""
        flags = _SEND_ANNOTATE | (_NON_BLOCK if ends else 0)
        payload = struct.pack("<BIHI", _COM_BINLOG_DUMP, offset, flags, server_id) + file.encode()
        statements = (*_CHECKSUMS, "SET @mariadb_slave_capability = 4")
        return cls(server, payload, statements=statements, receive_buffer_bytes=receive_buffer_bytes)

    @classmethod
    def by_gtid(cls, server: Server, held: GtidSet, *, server_id: int, ends: bool = False) -> "Stream":
        """Set up as a MySQL replica's that has `held`."""
        flags = _NON_BLOCK if ends else 0
        request = encode_binlog_dump_gtid(encode_gtid_set(held), flags=flags, server_id=server_id)
        return cls(server, bytes([_COM_BINLOG_DUMP_GTID]) + request)

    @classmethod
    def of_mysql(cls, server: Server, file: str, *, server_id: int, ends: bool = False) -> "Stream":
        """Set up as a MySQL replica's, from the start of a file."""
        flags = _NON_BLOCK if ends else 0
        return cls(server, struct.pack("<BIHI", _COM_BINLOG_DUMP, 4, flags, server_id) + file.encode())

    def send(self) -> None:
        """Asks for the dump from here, for a stream that nobody will read."""
        self.link.sendall(self.command)

    def close(self) -> None:
        """Cuts the connection."""
        self.connection._force_close()


class Reading:
    """A run of the reading program over some streams."""

    def __init__(self, *arguments: str, streams: Sequence[Stream]) -> None:
        numbers = [stream.link.fileno() for stream in streams]
        self._process = subprocess.Popen(
            [*client_command(), *arguments, *map(str, numbers)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=numbers,
        )
        self._commands = b"".join(struct.pack("<H", len(stream.command)) + stream.command for stream in streams)

    def begin(self) -> None:
        """Sends the dump commands; the program's clock starts."""
        assert self._process.stdin is not None
        self._process.stdin.write(self._commands)
        self._process.stdin.flush()

    def wait_ready(self) -> None:
        """Returns when the program says that its commands are sent (`commits` only)."""
        assert self._process.stderr is not None
        self._process.stderr.readline()

    def result(self, timeout_s: float = 300.0) -> dict[str, Any]:
        """What it printed; ends the program's standard input first. Raises: RuntimeError with what it complained of."""
        output, complaint = self._process.communicate(timeout=timeout_s)
        if self._process.returncode:
            raise RuntimeError(f"the reading program ended with {self._process.returncode}: {complaint.decode()}")
        return dict(json.loads(output))

    def end(self) -> None:
        """Ends the program if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()


@contextlib.contextmanager
def reading(*arguments: str, streams: Sequence[Stream]) -> Iterator[Reading]:
    """A begun run; streams are closed and the program ended afterwards."""
    run: Reading | None = None
    try:
        run = Reading(*arguments, streams=streams)
        run.begin()
        yield run
    finally:
        if run is not None:
            run.end()
        for stream in streams:
            stream.close()


def stream_size(server: Server, file: str) -> int:
    """Bytes on the wire from the start of `file` to the end of the newest file."""
    return counted(Stream.by_position(server, file, server_id=990, ends=True))


def counted(stream: Stream) -> int:
    """Bytes on the wire of a stream that ends at the end."""
    with reading("count", streams=[stream]) as run:
        return int(run.result()["bytes"])


def drain(server: Server, file: str, wanted: int, clients: int = 1) -> dict[str, Any]:
    """Reads `wanted` bytes on each of `clients` streams at once. Gives seconds, bytes, cpu (of the reading program)."""
    streams = [Stream.by_position(server, file, server_id=1000 + number) for number in range(clients)]
    return drained(streams, wanted)


def drained(streams: Sequence[Stream], wanted: int) -> dict[str, Any]:
    """Reads `wanted` bytes on each stream, and gives the same as `drain`."""
    with reading("drain", str(wanted), streams=streams) as run:
        # communicate() closes standard input, which ends nothing where an amount is wanted
        return run.result()
