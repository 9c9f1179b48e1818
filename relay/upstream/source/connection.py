"""A connection to the source: aiomysql logs in and sets up, then the transport is taken over for the dump stream."""

import asyncio
import contextlib
import struct
import zlib
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pymysql.err
from aiomysql import Cursor

from protocol.binlog.event_type import EventType
from protocol.binlog.layout import HEADER_SIZE
from protocol.capabilities import Capability
from protocol.errors import ErrorCode, Malformed
from protocol.position import Position, binlog_number
from protocol.printable import printable
from relay.upstream.source.answer_bound import BINLOG_LIST, EVENT, ORDINARY, AnswerBound
from relay.upstream.source.connect_errors import (
    AUTHENTICATION_ERRORS,
    ITS_LOG,
    other_protocol,
    refused_entry,
    server_text,
    silent,
)
from relay.upstream.source.identity import ListedReplica, Registration
from relay.upstream.source.login import SourceLogin
from relay.upstream.source.source_errors import FailureKind, UpstreamError
from relay.upstream.source.source_tls import SourceTls, make_context, make_secrets

_COM_BINLOG_DUMP: Final = 0x12
_COM_REGISTER_SLAVE: Final = 0x15
_COM_BINLOG_DUMP_GTID: Final = 0x1E
_DUMP_NON_BLOCK: Final = 0x0001
_SHOWN_CHARACTERS: Final = 100
"""The number of characters of a statement that an error shows."""
# This covers SERVER_VERSION_LENGTH of servers and the text of a uuid, and exceeds every variable that is asked for with others.
_LONGEST_VERSION: Final = 60
_LONGEST_UUID: Final = 36
_LONGEST_VALUE: Final = 1024
_EOF_BYTES: Final = 9
# These include sets that cannot be used, and MariaDB's error for purged positions.
_REFUSED_STARTS: Final = {
    ErrorCode.ER_MASTER_FATAL_ERROR_READING_BINLOG, ErrorCode.ER_MALFORMED_GTID_SET_SPECIFICATION,
    ErrorCode.ER_MALFORMED_GTID_SET_ENCODING, ErrorCode.ER_MALFORMED_PACKET, ErrorCode.ER_GTID_POSITION_NOT_FOUND_IN_BINLOG,
    ErrorCode.ER_CANNOT_LOAD_SLAVE_GTID_STATE, ErrorCode.ER_MASTER_GTID_POS_CONFLICTS_WITH_BINLOG,
    ErrorCode.ER_GTID_POSITION_NOT_FOUND_IN_BINLOG2,
}  # fmt: skip
# An event's header, and the position that precedes a Rotate's name.
_ROTATE_NAME: Final = HEADER_SIZE + 8
_ROWS_A_TURN: Final = 8192
"""So many are processed before others have their turn on the event loop."""
OFFSET_LIMIT: Final = 1 << 32
"""The dump command has four bytes for the offset."""
# MariaDB's BINLOG_SEND_ANNOTATE_ROWS_EVENT. To a MySQL source the same bit asks for heartbeats of version 2.
_DUMP_SEND_ANNOTATE: Final = 0x0002
# GTID-aware: the source sends its events as they are, nothing rewritten for weaker replicas.
_MARIADB_CAPABILITY: Final = 4
# Errors that pass: of the connection, of a server that shuts down or is full, of a statement that was ended.
_PASSING_ERRORS: Final = {
    ErrorCode.CR_SERVER_GONE_ERROR, ErrorCode.CR_SERVER_LOST, *range(ErrorCode.ER_ABORTING_CONNECTION,
    ErrorCode.ER_NET_WRITE_INTERRUPTED + 1), ErrorCode.ER_NEW_ABORTING_CONNECTION, ErrorCode.ER_CLIENT_INTERACTION_TIMEOUT,
    ErrorCode.ER_OUTOFMEMORY, ErrorCode.ER_OUT_OF_SORTMEMORY, ErrorCode.ER_CON_COUNT_ERROR, ErrorCode.ER_OUT_OF_RESOURCES,
    ErrorCode.ER_SERVER_SHUTDOWN, ErrorCode.ER_CANT_CREATE_THREAD, ErrorCode.ER_TOO_MANY_USER_CONNECTIONS,
    ErrorCode.ER_USER_LIMIT_REACHED, ErrorCode.ER_LOCK_WAIT_TIMEOUT, ErrorCode.ER_QUERY_INTERRUPTED, ErrorCode.ER_CONNECTION_KILLED,
    ErrorCode.ER_STATEMENT_TIMEOUT, ErrorCode.ER_QUERY_TIMEOUT, ErrorCode.ER_SESSION_WAS_KILLED,
}  # fmt: skip


# Reading an impossible packet or row ends in one of these. The last one is raised if the server asks for a file of this machine, which
# aiomysql is not allowed to send.
_BAD_BYTES: Final = (struct.error, IndexError, AssertionError, ValueError, TypeError, RuntimeError)
# The list of many files on a slow disk takes a while; if it takes longer, it waits for a lock.
_LIST_TIMEOUT_S: Final = 3.0
# For these variables MariaDB waits as for its list, while a commit holds the binlog.
_NEEDS_BINLOG: Final = {"gtid_binlog_state"}


class BinlogsWithheld(UpstreamError):
    """The error that the source did not list its binlogs in time."""


class _QuietCursor(Cursor):  # type: ignore[misc]
    """A cursor that prints no warnings of the server (SHOW PROCESSLIST is deprecated), which no operator could change."""

    async def _show_warnings(self, conn: object) -> None:
        pass


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """The facts that the source reports about itself."""

    flavour: str  # "mysql" or "mariadb"
    version: str
    server_id: int
    server_uuid: str | None
    checksum: bool  # its global binlog_checksum is CRC32


@dataclass(frozen=True, slots=True)
class SourceAddress:
    """The address and the account of the source. The password is left out of the repr."""

    host: str
    port: int
    user: str
    password: str
    connect_timeout_s: float
    tls: SourceTls

    def __repr__(self) -> str:
        return f"SourceAddress({self.user}@{self.host}:{self.port})"


class SourceConnection:
    """A logged-in connection. `open`, ask, `start_dump`; after that the transport belongs to the caller."""

    def __init__(self, connection: SourceLogin, address: SourceAddress) -> None:
        self._connection: Any = connection
        self.security = connection.security()
        """The TLS version and the cipher; None in clear text."""
        self.certificate = connection.peer_certificate()
        """The server's certificate, DER; None in clear text."""
        self.plugin = connection.plugin
        """The plugin by which it logged in."""
        self._address = address
        self._taken: tuple[object, object] | None = None
        self.facts: SourceFacts

    @classmethod
    async def open(cls, address: SourceAddress, *, needs_binlog: bool = True) -> "SourceConnection":
        """Connect, log in and read the source's facts. With `needs_binlog` a server that writes no binlog is refused.

        Raises: UpstreamError; NETWORK for an endpoint that does not answer, AUTHENTICATION for a refused login, SETUP for one that is
        not a source.
        """
        where = f"{address.host}:{address.port}"
        context = await asyncio.to_thread(make_context, address.tls)
        secrets = await asyncio.to_thread(make_secrets, address.tls, address.password)
        connection = SourceLogin(
            where=where,
            tls=address.tls,
            context=context,
            host=address.host,
            port=address.port,
            user=address.user,
            secrets=secrets,
            charset="utf8",  # every server since 4.1 knows it
            autocommit=None,
            connect_timeout=address.connect_timeout_s,
            program_name="binlog-relay",
        )
        try:
            async with asyncio.timeout(address.connect_timeout_s):
                await connection.enter()
        except pymysql.err.Error as error:
            tls = context is not None
            raise refused_entry(error, where, address.user, connection.entering, tls=tls, of=address.tls) from error
        except TimeoutError as error:
            raise silent(where, address.connect_timeout_s, connection.entering, address.tls.who) from error
        except (OSError, asyncio.IncompleteReadError, EOFError) as error:
            text = f"{address.tls.who} {where}: {error}"
            raise UpstreamError(FailureKind.NETWORK, text, "Check host and port.") from error
        except (
            *_BAD_BYTES,
            AttributeError,
            Malformed,
        ) as error:
            raise other_protocol(where, connection.entering, f"{type(error).__name__}: {error}") from error
        self = cls(connection, address)
        try:
            self.facts = await self._read_facts(needs_binlog)
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    async def query(
        self, statement: str, timeout_s: float | None = None, bound: AnswerBound = ORDINARY
    ) -> list[tuple[Any, ...]]:
        """Run one statement.

        Raises: UpstreamError (NETWORK) for what a later try may cure, and for an answer beyond its bound; pymysql.err.MySQLError for
        other refusals. After a timeout or a bound the connection cannot be used any more.
        """
        return (await self._answer(statement, timeout_s, bound))[1]

    async def named_rows(self, statement: str) -> list[dict[str, Any]]:
        """Run one statement as `query` does; return its rows by the names of their columns."""
        names, rows = await self._answer(statement, None, ORDINARY)
        return [dict(zip(names, row, strict=True)) for row in rows]

    async def _answer(
        self, statement: str, timeout_s: float | None, bound: AnswerBound
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        self._connection.meter.asks(repr(statement[:_SHOWN_CHARACTERS]), bound)
        try:
            async with asyncio.timeout(timeout_s or self._address.connect_timeout_s):
                async with self._connection.cursor(_QuietCursor) as cursor:
                    await cursor.execute(statement)
                    return [str(one[0]) for one in cursor.description or ()], list(await cursor.fetchall())
        except TimeoutError as error:
            text, advice = (
                f"{self._address.tls.who} did not answer {statement!r} in time",
                "SHOW PROCESSLIST there tells what it waits for.",
            )
            raise UpstreamError(FailureKind.NETWORK, text, advice) from error
        except pymysql.err.MySQLError as error:
            if _passes(error):
                text = f"{self._address.tls.who} did not go through with {statement!r}: {server_text(error)}"
                raise UpstreamError(FailureKind.NETWORK, text, ITS_LOG) from error
            raise
        except _BAD_BYTES as error:
            raise self._not_understood(repr(statement), error) from error

    @contextlib.contextmanager
    def _understanding(self, request: str) -> Iterator[None]:
        """Wrap the reading of an answer. Raises: UpstreamError SETUP if it is none."""
        try:
            yield
        except (*_BAD_BYTES, Malformed) as error:
            raise self._not_understood(request, error) from error

    def _not_understood(self, request: str, error: Exception) -> UpstreamError:
        text = f"the answer of {self._address.host}:{self._address.port} to {request} is none ({type(error).__name__}: {error})"
        return UpstreamError(FailureKind.SETUP, text, "A proxy in front of the source cannot serve binlogs.")

    async def _read_facts(self, needs_binlog: bool) -> SourceFacts:
        version = printable(str(self._connection.get_server_info()), _LONGEST_VERSION)
        version = version.removeprefix("5.5.5-") if "MariaDB" in version else version
        try:
            server_id = int((await self.query("SELECT @@global.server_id"))[0][0])
            flavour = await self._read_flavour()
            uuid_rows = await self.query("SHOW GLOBAL VARIABLES LIKE 'server_uuid'")
            uuid = printable(str(uuid_rows[0][1]), _LONGEST_UUID) if uuid_rows and flavour == "mysql" else None
            log_bin_rows = await self.query("SHOW GLOBAL VARIABLES LIKE 'log_bin'")
            log_bin = str(log_bin_rows[0][1]).upper() if log_bin_rows else "ON"
            checksum = await self.variable("binlog_checksum")
        except pymysql.err.MySQLError as error:
            text = f"{self._address.host}:{self._address.port} refuses what every source answers: {server_text(error)}"
            raise UpstreamError(
                FailureKind.SETUP, text, "A proxy in front of the source cannot serve binlogs."
            ) from error
        except _BAD_BYTES as error:
            raise self._not_understood("who it is", error) from error
        if needs_binlog and log_bin != "ON":
            raise UpstreamError(
                FailureKind.SETUP,
                f"the source {self._address.host}:{self._address.port} writes no binlog (log_bin is {log_bin})",
                "Start it with --log-bin, or name another source.",
            )
        return SourceFacts(
            flavour=flavour,
            version=version,
            server_id=server_id,
            server_uuid=uuid,
            checksum=checksum is not None and checksum.upper() == "CRC32",
        )

    async def _read_flavour(self) -> str:
        """Return `mariadb` or `mysql`, by features that cannot be configured: MariaDB may be started with any version (`--version`)."""
        # MariaDB from 10.2 on greets without this bit, where its own capabilities begin.
        if not self._connection.server_capabilities & Capability.LONG_PASSWORD:
            return "mariadb"
        # Older ones, and a relay in front of one, are recognized by variables. The first has existed since 5.3, the second since 10.0.
        return "mariadb" if await self.variables(["binlog_annotate_row_events", "gtid_domain_id"]) else "mysql"

    async def variable(self, name: str) -> str | None:
        """Return a global variable's text; None if the source does not know it. Raises: UpstreamError as `query`."""
        timeout_s = min(_LIST_TIMEOUT_S, self._address.connect_timeout_s) if name in _NEEDS_BINLOG else None
        try:
            return str((await self.query(f"SELECT @@global.{name}", timeout_s))[0][0])
        except pymysql.err.MySQLError as error:
            if error.args and error.args[0] == ErrorCode.ER_UNKNOWN_SYSTEM_VARIABLE:
                return None
            raise

    async def variables(self, names: Sequence[str]) -> dict[str, str]:
        """Return the texts of those of the named global variables that the source has, by name in lower case.

        Raises: UpstreamError as `query`; pymysql.err.MySQLError if it refuses.
        """
        wanted = ", ".join(f"'{name}'" for name in names)
        rows = await self.query(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({wanted})")
        with self._understanding("SHOW GLOBAL VARIABLES"):
            return {str(row[0]).lower(): printable(str(row[1]), _LONGEST_VALUE) for row in rows}

    async def binlogs(self) -> list[tuple[str, int]] | None:
        """Return the source's binlogs with their sizes in bytes, oldest first; None without the privilege to ask.

        Raises: BinlogsWithheld if it does not answer soon, UpstreamError as `query`.
        """
        try:
            timeout_s = min(_LIST_TIMEOUT_S, self._address.connect_timeout_s)
            rows = await self.query("SHOW BINARY LOGS", timeout_s, BINLOG_LIST)
        except pymysql.err.MySQLError:
            return None
        except UpstreamError as error:
            if isinstance(error.__cause__, TimeoutError):
                raise BinlogsWithheld(error.kind, error.what) from error
            raise
        found: list[tuple[str, int]] = []
        with self._understanding("SHOW BINARY LOGS"):
            for first in range(0, len(rows), _ROWS_A_TURN):
                found += [(str(row[0]), int(row[1])) for row in rows[first : first + _ROWS_A_TURN]]
                await asyncio.sleep(0)
        return found

    async def newest_binlog(self) -> str:
        """Return the file that the source writes now. Raises: UpstreamError SETUP without the privilege to ask."""
        error: pymysql.err.MySQLError | None = None
        for statement in ("SHOW MASTER STATUS", "SHOW BINARY LOG STATUS"):
            try:
                rows = await self.query(statement)
            except pymysql.err.MySQLError as refused:
                error = refused
                continue
            if rows:
                return str(rows[0][0])
        text = f"the source does not tell its newest binlog: {server_text(error) if error else 'no rows'}"
        advice = 'start = "latest" needs the privilege REPLICATION CLIENT; or name a file: start = { file = …, position = 4 }.'
        raise UpstreamError(FailureKind.SETUP, text, advice)

    async def newest_position(self) -> Position | None:
        """Return the end of the source's binlog; None without the privilege to ask. Raises: UpstreamError as `query`."""
        for statement in ("SHOW MASTER STATUS", "SHOW BINARY LOG STATUS"):
            try:
                rows = await self.query(statement)
            except pymysql.err.MySQLError:
                continue
            if rows:
                with self._understanding(statement):
                    return Position(str(rows[0][0]), int(rows[0][1]))
        return None

    async def ask_semi_sync(self) -> str | None:
        """Announce a semi-synchronous replica: from the dump on, every packet has the semi-synchronous header.

        Returns whether the source asks for acknowledgements now, "ON" or "OFF" (that may change at any time); None for a source without
        it, in which case nothing was announced. Raises: UpstreamError.
        """
        try:
            rows = await self.query("SHOW GLOBAL VARIABLES LIKE 'rpl_semi_sync_%_enabled'")
            found = {str(row[0]).lower(): printable(str(row[1]), _LONGEST_VALUE).upper() for row in rows}
            # These are the plugin of MySQL from 8.0.26 on, the one before it, and MariaDB's built-in one.
            state = found.get("rpl_semi_sync_source_enabled", found.get("rpl_semi_sync_master_enabled"))
            if state is not None:
                await self.query("SET @rpl_semi_sync_replica= 1, @rpl_semi_sync_slave= 1")
            return state
        except pymysql.err.MySQLError as error:
            raise _command_error(error, self._address.user) from error

    async def replicas(self) -> list[ListedReplica]:
        """Return the replicas that registered at the source, as far as it reports them; empty without the privilege to ask."""
        for statement in ("SHOW REPLICAS", "SHOW SLAVE HOSTS"):
            try:
                rows = await self.query(statement)
            except pymysql.err.MySQLError:
                continue
            # The columns are Server_Id, Host, Port, Source_Id and, on MySQL, Replica_UUID; with --show-replica-auth-info a user and a
            # password are in between.
            with self._understanding(statement):
                return [
                    ListedReplica(
                        int(row[0]),
                        str(row[1]),
                        int(row[-3] if self.facts.flavour == "mysql" and len(row) > 4 else row[-2]),
                        str(row[-1]) if self.facts.flavour == "mysql" and len(row) > 4 else None,
                    )
                    for row in rows
                ]
        return []

    async def dumping_hosts(self, *, own_account: bool = False) -> list[str]:
        """Return the hosts that are reading binlogs at the source now, as far as it reports them; with `own_account` only this
        connection's."""
        try:
            rows = await self.query("SHOW PROCESSLIST")
        except pymysql.err.MySQLError:
            return []
        with self._understanding("SHOW PROCESSLIST"):
            dumps = [row for row in rows if str(row[4]).startswith("Binlog Dump")]
            return sorted(str(row[2]) for row in dumps if not own_account or str(row[1]) == self._address.user)

    async def events_up_to_end(self, file: str, position: int) -> AsyncGenerator[bytes, None]:
        """Yield the events of a dump that ends where the newest file does, for a look. The connection is used up by it.

        Nothing is registered, and server_id is 0 as mysqlbinlog's: no other stream is ended by it. Each event has at least a whole
        header. Raises: UpstreamError.
        """
        if position >= OFFSET_LIMIT:
            text = f"{file}:{position} lies beyond 4 GiB, where a source cannot be asked for its events"
            raise UpstreamError(FailureKind.POSITION_GONE, text, name="position_beyond_4gib")
        try:
            await self._announce([])
            flags = _DUMP_NON_BLOCK | (_DUMP_SEND_ANNOTATE if self.facts.flavour == "mariadb" else 0)
            command = struct.pack("<IHI", position, flags, 0) + file.encode()
            self._connection.meter.asks(f"the dump of {file}", EVENT)
            await self._connection._execute_command(_COM_BINLOG_DUMP, command)
            while True:
                async with asyncio.timeout(self._address.connect_timeout_s):
                    packet = (await self._connection._read_packet()).get_all_data()
                if packet[:1] == b"\xfe" and len(packet) < _EOF_BYTES:
                    return
                if len(packet) <= HEADER_SIZE:
                    raise ValueError(f"a packet of {len(packet)} bytes holds no event")
                yield packet[1:]
        except TimeoutError as error:
            raise UpstreamError(FailureKind.NETWORK, f"the source did not send its {file} in time") from error
        except _BAD_BYTES as error:
            raise self._not_understood(f"the dump of {file}", error) from error
        except pymysql.err.MySQLError as error:
            if error.args and error.args[0] == ErrorCode.ER_MASTER_FATAL_ERROR_READING_BINLOG:
                text = f"the source does not send {file} from {position}: {server_text(error)}"
                raise UpstreamError(FailureKind.POSITION_GONE, text, name="position_gone") from error
            raise _command_error(error, self._address.user) from error

    async def file_for_set(self, request: bytes, of: str) -> str:
        """Return the file in which a dump with this COM_BINLOG_DUMP_GTID begins. The connection is used up.

        `of` says whose transactions they are, "source.start" or "the archive", for the messages. Raises: UpstreamError.
        """
        return await self._first_file(_COM_BINLOG_DUMP_GTID, request, [], of)

    async def file_for_position(self, position: str, of: str) -> str:
        """Return the file in which a MariaDB source's dump begins for a replica at this GTID position. The connection is used up.

        `of` is as for `file_for_set`. Raises: UpstreamError.
        """
        request = struct.pack("<IHI", 4, _DUMP_NON_BLOCK | _DUMP_SEND_ANNOTATE, 0)
        return await self._first_file(_COM_BINLOG_DUMP, request, [f"SET @slave_connect_state= '{position}'"], of)

    async def _first_file(self, command: int, request: bytes, statements: list[str], of: str) -> str:
        try:
            await self._announce(statements)
            self._connection.meter.asks(f"the question for the transactions of {of}", EVENT)
            await self._connection._execute_command(command, request)
            while True:
                async with asyncio.timeout(self._address.connect_timeout_s):
                    packet = (await self._connection._read_packet()).get_all_data()
                if packet[:1] == b"\xfe" and len(packet) < _EOF_BYTES:
                    raise UpstreamError(FailureKind.NETWORK, f"the source named no file for the transactions of {of}")
                event = packet[1:]
                if len(event) < _ROTATE_NAME:
                    raise ValueError(f"a packet of {len(packet)} bytes names no file")
                if event[4] == EventType.ROTATE:
                    # The first one was made for this stream; whether a checksum follows the name is not known yet.
                    name = event[_ROTATE_NAME:]
                    whole = len(event) - 4
                    if zlib.crc32(event[:whole]) == int.from_bytes(event[whole:], "little"):
                        name = event[_ROTATE_NAME:whole]
                    file = bytes(name).decode()
                    binlog_number(file)
                    return file
        except (*_BAD_BYTES, Malformed) as error:
            raise self._not_understood(f"the question for the transactions of {of}", error) from error
        except TimeoutError as error:
            raise UpstreamError(
                FailureKind.NETWORK, f"the source did not find the file for the transactions of {of} in time"
            ) from error
        except pymysql.err.MySQLError as error:
            if error.args and error.args[0] in _REFUSED_STARTS:
                text = f"the source cannot go on from the transactions of {of}: {server_text(error)}"
                advice = "Correct source.start." if of == "source.start" else "Name a source that has what comes next."
                raise UpstreamError(FailureKind.POSITION_GONE, text, advice, name="gtid_refused") from error
            raise _command_error(error, self._address.user) from error

    async def _announce(self, statements: list[str]) -> None:
        """Announce that the source's checksums and all of its event types are understood, after running `statements`."""
        checksum = (
            "SET @master_binlog_checksum= @@global.binlog_checksum, @source_binlog_checksum= @@global.binlog_checksum"
        )
        for statement in statements:
            await self.query(statement)
        if self.facts.flavour == "mariadb":
            await self.query(f"SET @mariadb_slave_capability= {_MARIADB_CAPABILITY}")
        if await self.variable("binlog_checksum") is not None:
            await self.query(checksum)

    async def set_up_look(self) -> None:
        """Send what precedes an unannounced dump, without registration. Raises: UpstreamError; pymysql.err.MySQLError."""
        await self._announce([])

    async def set_up_dump(self, own: Registration, server_uuid: str, heartbeat_period_s: float) -> None:
        """Send what a replica sends before its dump. Raises: UpstreamError."""
        period = int(heartbeat_period_s * 1_000_000_000)
        statements = [f"SET @master_heartbeat_period= {period}, @source_heartbeat_period= {period}"]
        if self.facts.flavour == "mysql":
            statements.append(f"SET @slave_uuid= '{server_uuid}', @replica_uuid= '{server_uuid}'")
        try:
            await self._announce(statements)
            async with asyncio.timeout(self._address.connect_timeout_s):
                # server_id u32 | host, user, password with a length byte each | port u16 | rank u32 | source's id u32
                host = own.host.encode()
                registration = struct.pack("<IB", own.server_id, len(host)) + host
                registration += struct.pack("<BBHII", 0, 0, own.port, 0, 0)
                self._connection.meter.asks("the registration", ORDINARY)
                await self._connection._execute_command(_COM_REGISTER_SLAVE, registration)
                await self._connection._read_packet()
        except TimeoutError as error:
            raise UpstreamError(FailureKind.NETWORK, "the source did not answer the registration in time") from error
        except pymysql.err.MySQLError as error:
            raise _command_error(error, self._address.user) from error
        except _BAD_BYTES as error:
            raise self._not_understood("the registration", error) from error

    def start_dump(
        self,
        file: str,
        position: int,
        server_id: int,
        protocol: Callable[[asyncio.Transport, bytes], asyncio.BaseProtocol],
    ) -> asyncio.Transport:
        """Ask for the stream and hand the transport over; `protocol(transport, bytes already read)` makes its owner.

        An empty `file` means the source's oldest. `position` must be below 2**32, as the command has four bytes for it. Raises:
        UpstreamError (NETWORK) if the source has closed by now.
        """
        flags = _DUMP_SEND_ANNOTATE if self.facts.flavour == "mariadb" else 0
        payload = struct.pack("<BIHI", _COM_BINLOG_DUMP, position, flags, server_id) + file.encode()
        packet = len(payload).to_bytes(3, "little") + b"\0" + payload
        # aiomysql has no public way to do this: its reader's buffer and transport are taken away from it.
        reader, writer = self._connection._reader, self._connection._writer
        transport: asyncio.Transport = writer.transport
        if transport.is_closing() or reader.at_eof() or reader.exception() is not None:
            # The reader was notified, and the new owner would not be.
            raise UpstreamError(
                FailureKind.NETWORK, "the source closed the connection before the dump", name="connection_lost"
            )
        transport.pause_reading()
        early = bytes(reader._buffer)
        owner = protocol(transport, early)
        transport.set_protocol(owner)
        transport.write(packet)
        self._taken = (reader, writer)  # A StreamWriter that is garbage-collected closes its transport
        self._connection._reader = self._connection._writer = None
        self._connection._close_reason = "the relay took the connection over"
        transport.resume_reading()
        return transport


def _passes(error: pymysql.err.MySQLError) -> bool:
    """Return whether the error may be absent at the next try, as it says nothing about the source itself. InterfaceError means that the
    link is closed."""
    number = error.args[0] if error.args else 0
    return isinstance(error, pymysql.err.InterfaceError) or number in _PASSING_ERRORS


def _command_error(error: pymysql.err.MySQLError, user: str) -> UpstreamError:
    number = error.args[0] if error.args else 0
    if number in AUTHENTICATION_ERRORS:
        return UpstreamError(
            FailureKind.AUTHENTICATION,
            f"the source does not let {user!r} replicate: {server_text(error)}",
            f"On the source: GRANT REPLICATION SLAVE ON *.* TO '{user}'@'<relay host>'.",
        )
    if _passes(error):
        text = f"the source did not go through with the set-up: {server_text(error)}"
        return UpstreamError(FailureKind.NETWORK, text, ITS_LOG)
    return UpstreamError(FailureKind.SETUP, f"the source refuses the set-up of a replica: {server_text(error)}")
