"""A replica's side of a connection: PyMySQL logs in, and a test reads the stream. It blocks, for use in a thread."""

import socket
import ssl
import struct
from dataclasses import dataclass
from typing import Any

import pymysql
from pymysql.constants import COMMAND

USER = "replica"
PASSWORD = "pass word"


@dataclass(frozen=True, slots=True)
class StreamedEvent:
    """An event as it came."""

    data: bytes

    @property
    def kind(self) -> int:
        """Its type code."""
        return self.data[4]

    @property
    def end_log_pos(self) -> int:
        """The end position in its header."""
        return int.from_bytes(self.data[13:17], "little")


class ReplicaClient:
    """A logged-in connection that can ask for a dump."""

    def __init__(
        self,
        port: int,
        *,
        user: str = USER,
        password: str = PASSWORD,
        timeout_s: float = 10.0,
        context: ssl.SSLContext | None = None,
        speaks: bool = True,
    ) -> None:
        """Log in. With `speaks` PyMySQL sends SET AUTOCOMMIT after the login; otherwise only SET NAMES."""
        tls: dict[str, Any] = {"ssl_disabled": True} if context is None else {"ssl": context}
        self.connection: Any = pymysql.connect(
            host="127.0.0.1",
            port=port,
            user=user,
            password=password,
            read_timeout=timeout_s,
            autocommit=False if speaks else None,
            **tls,
        )

    def query(self, statement: str) -> tuple[tuple[Any, ...], ...]:
        """Return the rows of a statement."""
        with self.connection.cursor() as cursor:
            cursor.execute(statement)
            return tuple(cursor.fetchall())

    def set_up(
        self, *, server_id: int = 77, uuid: str | None = None, checksum: bool = True, heartbeat_s: float = 0.0
    ) -> None:
        """Send what a 5.6 replica sends before it asks for the dump."""
        self.query("SELECT UNIX_TIMESTAMP()")
        self.query(f"SET @master_heartbeat_period= {int(heartbeat_s * 1e9)}")
        if checksum:
            self.query("SET @master_binlog_checksum= @@global.binlog_checksum")
        if uuid:
            self.query(f"SET @slave_uuid= '{uuid}'")
        self.command(COMMAND.COM_REGISTER_SLAVE, struct.pack("<IBBBHII", server_id, 0, 0, 0, 3306, 0, 0))
        self.connection._read_ok_packet()

    def command(self, code: int, body: bytes) -> None:
        """Send any command."""
        self.connection._execute_command(code, body)

    def ask_dump(self, file: str, offset: int, *, server_id: int = 77, flags: int = 0) -> None:
        """Send COM_BINLOG_DUMP."""
        self.command(
            COMMAND.COM_BINLOG_DUMP, struct.pack("<IHI", offset & 0xFFFFFFFF, flags, server_id) + file.encode()
        )

    def event(self) -> StreamedEvent | None:
        """Return the next event; None at EOF. Raises: pymysql.MySQLError for an error packet."""
        packet = self.connection._read_packet()
        if packet.is_eof_packet():
            return None
        data = packet.get_all_data()
        assert data[0] == 0
        return StreamedEvent(data[1:])

    def events(self, count: int) -> list[StreamedEvent]:
        """Return the next `count` events."""
        events = []
        for _ in range(count):
            event = self.event()
            assert event is not None
            events.append(event)
        return events

    def events_to_eof(self) -> list[StreamedEvent]:
        """Return all events up to EOF."""
        events = []
        while (event := self.event()) is not None:
            events.append(event)
        return events

    def close(self) -> None:
        """Send COM_QUIT."""
        self.connection.close()

    def shut_down(self) -> None:
        """End both directions as a replica's STOP SLAVE does, which leaves the socket to be closed later."""
        self.connection._sock.shutdown(socket.SHUT_RDWR)

    def read_out_and_leave(self) -> None:
        """Announce that nothing more will be asked, read what comes until then, and close with nothing unread."""
        self.connection._sock.shutdown(socket.SHUT_WR)
        while self.connection._sock.recv(65536):
            pass
        self.cut()

    def cut(self) -> None:
        """Drop the connection without a goodbye."""
        self.connection._force_close()
