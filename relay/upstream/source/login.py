"""aiomysql's connection with the login that all our clients share, and TLS decided by what the server offers."""

import asyncio
import ssl
from typing import Any, Final

import aiomysql
import pymysql.err
from aiomysql.connection import _open_connection
from pymysql.charset import charset_by_name
from pymysql.constants import CLIENT

from protocol.auth.client_login import ClientLogin, LoginSecrets, LoginWithheld
from protocol.auth.greeting import why_no_greeting
from protocol.handshake import login_head, login_payload
from relay.upstream.source.answer_bound import AnswerMeter, BoundedResult
from relay.upstream.source.connect_errors import Entering, login_refusal, other_protocol
from relay.upstream.source.source_errors import UpstreamError
from relay.upstream.source.source_tls import SourceTls, handshake_error, tls_not_offered

_FIRST_BYTES: Final = 64
"""The number of first bytes from the other side that are kept, for the message if they are no greeting."""
MAX_PACKET_BYTES: Final = (1 << 24) - 1
LONGEST_LOGIN_PACKET: Final = 1 << 16
"""Challenges have some dozen bytes, errors some hundred."""


class SourceLogin(aiomysql.Connection):  # type: ignore[misc]
    """One connection to a source. Raises pymysql's errors, and UpstreamError for what they cannot express.

    The password is not among aiomysql's own values: only `ClientLogin` answers with it.
    """

    def __init__(
        self, *, where: str, tls: SourceTls, context: ssl.SSLContext | None, secrets: LoginSecrets, **options: Any
    ) -> None:
        super().__init__(ssl=context, **options)
        self._ssl_context: ssl.SSLContext | None
        self._secure: bool
        self._reader: Any
        self._writer: Any
        self._where = where
        self._tls = tls
        self._secrets = secrets
        self._greeter: asyncio.StreamReader | None = None
        self._came = Entering()
        self.meter = AnswerMeter(where)
        """This meter limits what is read: each question sets its bound."""

    async def enter(self) -> None:
        """Connect and log in. Raises: UpstreamError, pymysql.err.Error and the errors that a peer's bad bytes cause."""
        try:
            await self._connect()
        except BaseException as error:
            self.close()  # A login that took too long
            if self._secured is not None:
                self._secured.abort()  # Its goodbye is not awaited
            cause = error.__cause__ if isinstance(error, pymysql.err.OperationalError) else None
            if isinstance(cause, ssl.SSLError) or (isinstance(cause, OSError) and self._in_handshake):
                raise handshake_error(cause, self._where, self._tls) from error
            raise

    @property
    def entering(self) -> Entering:
        """The progress, with those of its first bytes that were not read yet."""
        came = self._came
        unread = bytes(getattr(self._greeter, "_buffer", b"")[:_FIRST_BYTES]) if not came.is_greeted else b""
        return Entering(came.is_taken, came.is_greeted, came.first + unread)

    @property
    def plugin(self) -> str:
        """The plugin by which it logged in."""
        return str(self._auth_plugin_used)

    async def _get_server_information(self) -> None:
        self._came.is_taken = True
        await super()._get_server_information()
        self._came.is_greeted = True

    async def _read_bytes(self, num_bytes: int) -> bytes:
        try:
            self.meter.takes(num_bytes)
        except UpstreamError:
            self.close()  # What follows is the rest of it
            raise
        came = self._came
        if came.is_greeted:
            if self._logging_in and num_bytes > LONGEST_LOGIN_PACKET:
                raise ValueError(f"a packet of {num_bytes} bytes in the login")
            return bytes(await super()._read_bytes(num_bytes))
        self._greeter = self._reader
        try:
            data = bytes(await super()._read_bytes(num_bytes))
        except pymysql.err.OperationalError as error:
            if isinstance(error.__cause__, asyncio.IncompleteReadError):
                came.first += error.__cause__.partial[:_FIRST_BYTES]
            raise
        came.first += data[:_FIRST_BYTES]
        # This is checked at once: an impossible header may announce megabytes, which would be awaited in vain.
        entering = self.entering
        if (why := why_no_greeting(entering.first)) is not None:
            raise other_protocol(self._where, entering, why)
        return data

    _in_handshake = False
    _logging_in = False
    _secured: asyncio.WriteTransport | None = None

    async def _request_authentication(self) -> None:
        """Run the whole login: aiomysql's own would answer anyone who asks."""
        self.client_flag |= CLIENT.MULTI_RESULTS
        if self._ssl_context is not None and not self.server_capabilities & CLIENT.SSL:
            if self._tls.required:
                raise tls_not_offered(self._where, self._tls, f" ({self.server_version})")
            self._ssl_context = None
            self.client_flag &= ~CLIENT.SSL
        head = login_head(self.client_flag, MAX_PACKET_BYTES, charset_by_name(self.charset).id)
        if self._ssl_context is not None:
            self._in_handshake = True
            await self._begin_tls(self._ssl_context, head)
        self._logging_in = True
        login = ClientLogin(self._secrets, self._tls.peer(secured=self._secure))
        try:
            await self._converse(login, head)
        except LoginWithheld as error:
            raise login_refusal(error, login, self._where, self._tls) from error
        self._logging_in = False
        self._auth_plugin_used = login.plugin

    async def _begin_tls(self, context: ssl.SSLContext, head: bytes) -> None:
        """Begin TLS in the middle of the connection: its socket moves to a separate transport."""
        self.write_packet(head)
        transport = self._writer.transport
        # What comes from now on is TLS; what the peer has sent ahead in clear text is not read.
        transport.pause_reading()
        socket = transport.get_extra_info("socket").dup()
        transport.close()
        self._reader, self._writer = await _open_connection(sock=socket, ssl=context, server_hostname=self._host)
        self._secured = self._writer.transport
        self._secure = True

    async def _converse(self, login: ClientLogin, head: bytes) -> None:
        plugin, data = login.first(self._server_auth_plugin, bytes(self.salt))
        user = self.user.encode(self.encoding)
        self.write_packet(login_payload(user, plugin, data, self.server_capabilities, head, self._connect_attrs))
        while not login.is_over:
            packet = await self._read_packet()
            self._in_handshake = False
            answer = login.answer(packet.get_all_data())
            if answer is not None:
                self.write_packet(answer)

    async def _read_packet(self, *args: Any) -> Any:
        await self.meter.begins_packet()
        return await super()._read_packet(*args)

    async def _read_query_result(self, unbuffered: bool = False) -> None:
        # It works as aiomysql's, for answers that are read whole.
        self._result = None
        result = BoundedResult(self, self.meter)
        try:
            await result.read()
        except UpstreamError:
            self.close()
            raise
        self._result = result
        self._affected_rows = result.affected_rows
        if result.server_status is not None:
            self.server_status = result.server_status

    def security(self) -> tuple[str, str] | None:
        """The (TLS version, cipher) of the connection; None in clear text."""
        if not self._secure or self._writer is None:
            return None
        cipher = self._writer.transport.get_extra_info("cipher")
        secured = self._writer.transport.get_extra_info("ssl_object")
        version = secured.version() if secured is not None else None
        return (version or (cipher[1] if cipher else "TLS"), cipher[0] if cipher else "unknown")

    def peer_certificate(self) -> bytes | None:
        """Return the server's certificate, DER; None in clear text."""
        if not self._secure or self._writer is None:
            return None
        secured = self._writer.transport.get_extra_info("ssl_object")
        return secured.getpeercert(binary_form=True) if secured is not None else None
