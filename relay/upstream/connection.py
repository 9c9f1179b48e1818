"""A connection to the source: aiomysql logs in and sets up, then the transport is taken over for the dump stream."""

import asyncio
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import aiomysql
import pymysql.err

from relay.upstream.errors import Trouble, UpstreamError

_COM_BINLOG_DUMP: Final = 0x12
_COM_REGISTER_SLAVE: Final = 0x15
# MariaDB's BINLOG_SEND_ANNOTATE_ROWS_EVENT. To a MySQL source the same bit asks for heartbeats of version 2.
_DUMP_SEND_ANNOTATE: Final = 0x0002
# GTID-aware: the source sends its events as they are, nothing rewritten for weaker replicas.
_MARIADB_CAPABILITY: Final = 4
_AUTHENTICATION_ERRORS: Final = {1044, 1045, 1130, 1227, 1251, 1698, 1820, 1862, 2059, 3118, 4151}
_NO_SUCH_VARIABLE: Final = 1193
# Errors that pass: of the connection (2006, 2013, 1152 to 1161, 1184, 4031), of a server that goes down or is full (1037, 1038,
# 1040, 1041, 1053, 1135, 1203, 1226), of a statement that was ended (1205, 1317, 1927, 1969, 3024, 3169).
_PASSING_ERRORS: Final = {
    *(2006, 2013, *range(1152, 1162), 1184, 4031),
    *(1037, 1038, 1040, 1041, 1053, 1135, 1203, 1226),
    *(1205, 1317, 1927, 1969, 3024, 3169),
}


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """What the source says of itself."""

    flavour: str  # "mysql" or "mariadb"
    version: str
    server_id: int
    server_uuid: str | None
    checksum: bool  # its global binlog_checksum is CRC32


@dataclass(frozen=True, slots=True)
class SourceAddress:
    """How to reach and enter the source. The password is left out of the repr."""

    host: str
    port: int
    user: str
    password: str
    connect_timeout_s: float

    def __repr__(self) -> str:
        return f"SourceAddress({self.user}@{self.host}:{self.port})"


class SourceConnection:
    """A logged-in connection. `open`, ask, `start_dump`; after that the transport belongs to the caller."""

    def __init__(self, connection: Any, address: SourceAddress) -> None:
        self._connection = connection
        self._address = address
        self._taken: tuple[object, object] | None = None
        self.facts: SourceFacts

    @classmethod
    async def open(cls, address: SourceAddress) -> "SourceConnection":
        """Connects, logs in and reads the source's facts.

        Raises: UpstreamError; NETWORK for an endpoint that does not answer, AUTHENTICATION for a refused login, SETUP for
        one that is not a source.
        """
        where = f"{address.host}:{address.port}"
        try:
            async with asyncio.timeout(address.connect_timeout_s):
                connection = await aiomysql.connect(
                    host=address.host,
                    port=address.port,
                    user=address.user,
                    password=address.password,
                    charset="utf8",  # every server since 4.1 knows it
                    autocommit=None,
                    connect_timeout=address.connect_timeout_s,
                    program_name="binlog-relay",
                )
        except pymysql.err.Error as error:
            raise _connect_error(error, where, address.user) from error
        except TimeoutError as error:
            text = f"the source {where} did not answer within {address.connect_timeout_s:g} s"
            raise UpstreamError(Trouble.NETWORK, text, "Check host, port and the network between.") from error
        except (OSError, asyncio.IncompleteReadError, EOFError) as error:
            raise UpstreamError(Trouble.NETWORK, f"the source {where}: {error}", "Check host and port.") from error
        except (struct.error, IndexError, AssertionError, ValueError, UnicodeDecodeError) as error:
            text = f"{where} does not speak the MySQL protocol as a source does ({type(error).__name__}: {error})"
            raise UpstreamError(Trouble.SETUP, text, "Is this the port of a MySQL or MariaDB server?") from error
        self = cls(connection, address)
        try:
            self.facts = await self._read_facts()
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """Ends the connection."""
        self._connection.close()

    async def query(self, statement: str) -> list[tuple[Any, ...]]:
        """Runs one statement.

        Raises: UpstreamError (NETWORK) for what a later try may cure; pymysql.err.MySQLError for other refusals.
        """
        try:
            async with asyncio.timeout(self._address.connect_timeout_s):
                async with self._connection.cursor() as cursor:
                    await cursor.execute(statement)
                    return list(await cursor.fetchall())
        except TimeoutError as error:
            raise UpstreamError(Trouble.NETWORK, f"the source did not answer {statement!r} in time") from error
        except pymysql.err.MySQLError as error:
            if _passes(error):
                text = f"the source did not go through with {statement!r}: {_server_text(error)}"
                raise UpstreamError(Trouble.NETWORK, text) from error
            raise

    async def _read_facts(self) -> SourceFacts:
        version = str(self._connection.get_server_info())
        version = version.removeprefix("5.5.5-") if "MariaDB" in version else version
        flavour = "mariadb" if "mariadb" in version.lower() else "mysql"
        try:
            server_id = int((await self.query("SELECT @@global.server_id"))[0][0])
            uuid_rows = await self.query("SHOW GLOBAL VARIABLES LIKE 'server_uuid'")
            log_bin = await self.query("SHOW GLOBAL VARIABLES LIKE 'log_bin'")
            checksum = await self._variable("binlog_checksum")
        except pymysql.err.MySQLError as error:
            text = f"the endpoint refuses what every source answers: {_server_text(error)}"
            raise UpstreamError(Trouble.SETUP, text, "A proxy in front of the source cannot serve binlogs.") from error
        if log_bin and str(log_bin[0][1]).upper() != "ON":
            raise UpstreamError(
                Trouble.SETUP,
                f"the source {self._address.host}:{self._address.port} writes no binlog (log_bin is {log_bin[0][1]})",
                "Start it with --log-bin, or name another source.",
            )
        return SourceFacts(
            flavour=flavour,
            version=version,
            server_id=server_id,
            server_uuid=str(uuid_rows[0][1]) if uuid_rows and flavour == "mysql" else None,
            checksum=checksum is not None and checksum.upper() == "CRC32",
        )

    async def _variable(self, name: str) -> str | None:
        try:
            return str((await self.query(f"SELECT @@global.{name}"))[0][0])
        except pymysql.err.MySQLError as error:
            if error.args and error.args[0] == _NO_SUCH_VARIABLE:
                return None
            raise

    async def binlogs(self) -> list[tuple[str, int]] | None:
        """The source's binlogs with their sizes in bytes, oldest first; None without the privilege to ask."""
        try:
            return [(str(row[0]), int(row[1])) for row in await self.query("SHOW BINARY LOGS")]
        except pymysql.err.MySQLError:
            return None

    async def newest_binlog(self) -> str:
        """The file that the source writes now. Raises: UpstreamError SETUP without the privilege to ask."""
        error: pymysql.err.MySQLError | None = None
        for statement in ("SHOW MASTER STATUS", "SHOW BINARY LOG STATUS"):
            try:
                rows = await self.query(statement)
            except pymysql.err.MySQLError as refused:
                error = refused
                continue
            if rows:
                return str(rows[0][0])
        text = f"the source does not tell its newest binlog: {_server_text(error) if error else 'no rows'}"
        advice = 'start = "latest" needs the privilege REPLICATION CLIENT; or name a file: start = { file = …, position = 4 }.'
        raise UpstreamError(Trouble.SETUP, text, advice)

    async def set_up_dump(self, server_id: int, server_uuid: str, heartbeat_period_s: float) -> None:
        """What a replica says before its dump. Raises: UpstreamError."""
        period = int(heartbeat_period_s * 1_000_000_000)
        statements = [f"SET @master_heartbeat_period= {period}, @source_heartbeat_period= {period}"]
        checksum = (
            "SET @master_binlog_checksum= @@global.binlog_checksum, @source_binlog_checksum= @@global.binlog_checksum"
        )
        if self.facts.flavour == "mariadb":
            statements.append(f"SET @mariadb_slave_capability= {_MARIADB_CAPABILITY}")
        else:
            statements.append(f"SET @slave_uuid= '{server_uuid}', @replica_uuid= '{server_uuid}'")
        try:
            for statement in statements:
                await self.query(statement)
            if await self._variable("binlog_checksum") is not None:
                await self.query(checksum)
            async with asyncio.timeout(self._address.connect_timeout_s):
                registration = struct.pack("<IBBBHII", server_id, 0, 0, 0, 0, 0, 0)
                await self._connection._execute_command(_COM_REGISTER_SLAVE, registration)
                await self._connection._read_packet()
        except TimeoutError as error:
            raise UpstreamError(Trouble.NETWORK, "the source did not answer the registration in time") from error
        except pymysql.err.MySQLError as error:
            raise _command_error(error, self._address.user) from error

    def start_dump(
        self,
        file: str,
        position: int,
        server_id: int,
        protocol: Callable[[asyncio.Transport, bytes], asyncio.BaseProtocol],
    ) -> asyncio.Transport:
        """Asks for the stream and hands the transport over; `protocol(transport, bytes already read)` makes its owner.

        `file` empty: the source's oldest. position: below 2**32, the command has four bytes for it.
        """
        flags = _DUMP_SEND_ANNOTATE if self.facts.flavour == "mariadb" else 0
        payload = struct.pack("<BIHI", _COM_BINLOG_DUMP, position, flags, server_id) + file.encode()
        packet = len(payload).to_bytes(3, "little") + b"\0" + payload
        # aiomysql has no public way to do this: its reader's buffer and transport are taken, and it is left empty-handed.
        reader, writer = self._connection._reader, self._connection._writer
        transport: asyncio.Transport = writer.transport
        transport.pause_reading()
        early = bytes(reader._buffer)
        owner = protocol(transport, early)
        transport.set_protocol(owner)
        transport.write(packet)
        self._taken = (reader, writer)  # a StreamWriter that is collected closes its transport
        self._connection._reader = self._connection._writer = None
        self._connection._close_reason = "the relay took the connection over"
        transport.resume_reading()
        return transport


def _passes(error: pymysql.err.MySQLError) -> bool:
    """Whether the error says nothing about the source that would be true at the next try. InterfaceError: the link is closed."""
    number = error.args[0] if error.args else 0
    return isinstance(error, pymysql.err.InterfaceError) or number in _PASSING_ERRORS


def _server_text(error: BaseException) -> str:
    args = error.args
    return f"{args[0]} {args[1]}" if len(args) > 1 else str(error)


def _connect_error(error: pymysql.err.Error, where: str, user: str) -> UpstreamError:
    number = error.args[0] if error.args else 0
    if number in _AUTHENTICATION_ERRORS:
        return UpstreamError(
            Trouble.AUTHENTICATION,
            f"the source {where} refuses the user {user!r}: {_server_text(error)}",
            f"On the source: CREATE USER '{user}'@'<relay host>' …; GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO it.",
        )
    if isinstance(error, pymysql.err.InternalError):
        # What the client raises for bytes that are no MySQL packet; an error that the server sent is an OperationalError.
        return UpstreamError(
            Trouble.SETUP,
            f"{where} does not speak the MySQL protocol as a source does ({_server_text(error)})",
            "Is this the port of a MySQL or MariaDB server?",
        )
    cause = error.__cause__
    text = f"{_server_text(error)}" + (f" ({cause})" if cause is not None and str(cause) else "")
    return UpstreamError(
        Trouble.NETWORK, f"the source {where} cannot be reached: {text}", "Check host, port and firewall."
    )


def _command_error(error: pymysql.err.MySQLError, user: str) -> UpstreamError:
    number = error.args[0] if error.args else 0
    if number in _AUTHENTICATION_ERRORS:
        return UpstreamError(
            Trouble.AUTHENTICATION,
            f"the source does not let {user!r} replicate: {_server_text(error)}",
            f"On the source: GRANT REPLICATION SLAVE ON *.* TO '{user}'@'<relay host>'.",
        )
    if _passes(error):
        return UpstreamError(Trouble.NETWORK, f"the source did not go through with the set-up: {_server_text(error)}")
    return UpstreamError(Trouble.SETUP, f"the source refuses the set-up of a replica: {_server_text(error)}")
