"""Clients that make a relay hold memory: each kind does one expensive thing, and then waits.

They need only the account of a replica; unauthenticated peers need none. What a connection could send is cut short if the relay ends
it.
"""

import contextlib
import random
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pymysql
from pymysql.constants import COMMAND

from protocol.framing import MAX_CHUNK_BYTES
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER
from tests.support.replica_client import ReplicaClient

WHOLE_SET: Final = (64 << 20) - 64
_PATIENCE_S: Final = 3.0
_WITHHELD: Final = 16
"""The number of bytes of a packet that never come."""
_PIECE: Final = bytes(1 << 18)
_FOUR_BYTES: Final = "\U0001f600"
SMALL_BUFFER: Final = 4096


def resident_mib(pid: int, what: str = "VmRSS") -> float:
    """Return a process's resident memory; VmHWM is the most that it had."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(what):
            return int(line.split()[1]) / 1024
    raise AssertionError(f"no {what}")


class Attacker:
    """A logged-in connection."""

    def __init__(self, port: int, user: str = REPLICA_USER, password: str = REPLICA_PASSWORD) -> None:
        self._client = ReplicaClient(port, user=user, password=password, timeout_s=_PATIENCE_S)
        self.socket: socket.socket = self._client.connection._sock
        self.socket.settimeout(_PATIENCE_S)

    def unfinished_packet(self, command: int, size: int = WHOLE_SET) -> None:
        """Send all but the last bytes, in as many packets as it takes."""
        sequence, left, sent = 0, size, 0
        with self._ended():
            while left > 0:
                chunk = min(left, MAX_CHUNK_BYTES)
                self.socket.sendall(chunk.to_bytes(3, "little") + bytes((sequence & 0xFF,)))
                body = chunk if chunk == MAX_CHUNK_BYTES else chunk - _WITHHELD
                while body > 0:
                    piece = _PIECE[:body] if sent else bytes((command,)) + _PIECE[1:body]
                    self.socket.sendall(piece)
                    sent += len(piece)
                    body -= len(piece)
                left, sequence = left - MAX_CHUNK_BYTES, sequence + 1

    def unread_answer(self) -> None:
        """Request a large answer, of which nothing is read."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
        text = f"SELECT REPLACE('{'x' * 500}', 'x', '{'y' * 120}') FROM information_schema.COLUMNS LIMIT 540"
        with self._ended():
            self._client.command(COMMAND.COM_QUERY, text.encode())

    def unread_answers(self, statement: str = "SHOW VARIABLES", count: int = 2000) -> None:
        """Request many answers, of which nothing is read: a small request is worth a large answer."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
        body = bytes((COMMAND.COM_QUERY,)) + statement.encode()
        with self._ended():
            self.socket.settimeout(1)
            self.socket.sendall((len(body).to_bytes(3, "little") + b"\0" + body) * count)

    def statements(self, count: int = 64) -> None:
        """Prepare statements of long texts, or of question marks."""
        with self._ended():
            self._client.query("SET NAMES utf8mb4")
            for number in range(count):
                text = f"SELECT '{_FOUR_BYTES * 65500}'" if number % 2 else f"SELECT {'?,' * 400}?"
                self._client.command(COMMAND.COM_STMT_PREPARE, text.encode())
                answer = self._client.connection._read_packet().get_all_data()
                places = int.from_bytes(answer[7:9], "little")
                for _ in range(places + 1 if places else 0):
                    self._client.connection._read_packet()

    def variables(self, count: int = 64) -> None:
        """Set user variables as long as they may be."""
        with self._ended():
            self._client.query("SET NAMES utf8mb4")
            for number in range(count):
                with contextlib.suppress(pymysql.MySQLError):
                    self._client.query(f"SET @v{number} = '{_FOUR_BYTES * 16384}'")

    def stalled_stream(self, file: str, server_id: int) -> None:
        """Request a stream of everything, of which nothing is read."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
        with self._ended():
            self._client.set_up(server_id=server_id)
            self._client.ask_dump(file, 4, server_id=server_id)

    def answer_of_end(self) -> int:
        """Return the number of the error that ended the connection; 0 if it was cut. Raises: TimeoutError while it has not ended."""
        received = b""
        with contextlib.suppress(ConnectionError):
            while piece := self.socket.recv(1 << 16):
                received += piece
        return struct.unpack_from("<H", received, 5)[0] if received[4:5] == b"\xff" else 0

    def close(self) -> None:
        """Drop the connection."""
        self._client.cut()

    @contextlib.contextmanager
    def _ended(self) -> Iterator[None]:
        """Allow the relay to end the connection at any time."""
        with contextlib.suppress(OSError, pymysql.MySQLError, TimeoutError):
            yield


def random_attack(attacker: Attacker, draw: random.Random, file: str) -> str:
    """Run one of the kinds, and return its name."""
    kinds: dict[str, Callable[[], None]] = {
        "unfinished set": lambda: attacker.unfinished_packet(COMMAND.COM_BINLOG_DUMP_GTID, draw.randrange(1, 64) << 20),
        "unfinished statement": lambda: attacker.unfinished_packet(COMMAND.COM_QUERY, (1 << 20) - 8),
        "unread answer": attacker.unread_answer,
        "unread answers": attacker.unread_answers,
        "statements": lambda: attacker.statements(16),
        "variables": lambda: attacker.variables(16),
        "stalled stream": lambda: attacker.stalled_stream(file, draw.randrange(1000, 1 << 30)),
    }
    # The kind that takes most memory in least time is the most frequent.
    name = draw.choice([*sorted(kinds), *["unfinished set"] * 6])
    kinds[name]()
    return name
