"""PyMySQL's connection with the login that all our clients share, and TLS as the section requests it."""

import ssl
import struct
from typing import Any, Final

import pymysql
from pymysql.charset import charset_by_name
from pymysql.constants import CLIENT
from pymysql.protocol import FieldDescriptorPacket, MysqlPacket

from protocol.auth.client_login import ClientLogin, LoginWithheld
from protocol.errors import Malformed
from protocol.handshake import login_head, login_payload
from relay.upstream.source.answer_bound import AnswerBound, AnswerMeter
from relay.upstream.source.connect_errors import login_refusal, other_protocol
from relay.upstream.source.login import LONGEST_LOGIN_PACKET, MAX_PACKET_BYTES
from relay.upstream.source.source_errors import UpstreamError
from relay.upstream.source.source_tls import SourceTls, handshake_error, make_context, make_secrets, tls_not_offered

BROKEN: Final = (
    *(Malformed, ValueError, LookupError, TypeError, AttributeError, AssertionError, struct.error),
    *(ArithmeticError, NameError, RuntimeError),
)
"""PyMySQL raises these errors for impossible bytes. RuntimeError: the server asks for a file of this machine, which is refused."""
_MOST_COLUMNS: Final = 8192
"""A table has at most 4,096 columns, and a query some more."""
_PACKET_BYTES: Final = 64
"""The memory that a row takes beside its bytes."""


class BlockingLogin(pymysql.connections.Connection):  # type: ignore[misc]
    """A connection to a server. Raises pymysql's errors, and UpstreamError for what they cannot express.

    The password is not among PyMySQL's own values: only `ClientLogin` answers with it.
    """

    _sock: Any

    def __init__(self, *, where: str, tls: SourceTls, password: str, **options: Any) -> None:
        """Connect and log in. `options` are PyMySQL's."""
        self._where = where
        self._tls = tls
        self._context = make_context(tls)
        self._secrets = make_secrets(tls, password)
        self._logging_in = True
        self._meter = AnswerMeter(where)
        self._columns = 0
        super().__init__(ssl_disabled=True, **options)

    def asks(self, question: str, bound: AnswerBound) -> None:
        """Declare what the next answer belongs to. An answer beyond the bound is an UpstreamError, and ends the connection."""
        self._meter.asks(question, bound)

    def give_up(self) -> None:
        """End the connection without a goodbye, where the next bytes are unpredictable."""
        self._force_close()

    def _read_packet(self, packet_type: type[MysqlPacket] = MysqlPacket) -> Any:
        self._columns = self._columns + 1 if packet_type is FieldDescriptorPacket else 0
        if self._columns > _MOST_COLUMNS:
            self._force_close()
            raise ValueError(f"an answer of more than {_MOST_COLUMNS} columns")
        self._meter.new_packet()
        return super()._read_packet(packet_type)

    def _read_bytes(self, num_bytes: int) -> bytes:
        try:
            self._meter.takes(num_bytes + _PACKET_BYTES)
        except UpstreamError:
            self._force_close()  # what follows is the rest of it
            raise
        if self._logging_in and num_bytes > LONGEST_LOGIN_PACKET:
            raise ValueError(f"a packet of {num_bytes} bytes in the login")
        return bytes(super()._read_bytes(num_bytes))

    def _get_server_information(self) -> None:
        # The limit for a server's answers counts from the login's end; a silent server is given up before.
        self._read_timeout, self._kept_timeout = self.connect_timeout, self._read_timeout
        try:
            super()._get_server_information()
        except BROKEN as error:
            raise other_protocol(self._where, None, f"{type(error).__name__}: {error}") from error

    def _request_authentication(self) -> None:
        """Run the whole login: PyMySQL's own would answer anyone who asks."""
        self.client_flag |= CLIENT.MULTI_RESULTS
        context = self._context
        if context is not None and not self.server_capabilities & CLIENT.SSL:
            if self._tls.required:
                raise tls_not_offered(self._where, self._tls, f" ({self.server_version})")
            context = None
        flags = self.client_flag | (CLIENT.SSL if context is not None else 0)
        head = login_head(flags, MAX_PACKET_BYTES, charset_by_name(self.charset).id)
        if context is not None:
            self._begin_tls(context, head)
        login = ClientLogin(self._secrets, self._tls.peer(secured=self._secure))
        try:
            self._converse(login, head)
        except LoginWithheld as error:
            raise login_refusal(error, login, self._where, self._tls) from error
        except BROKEN as error:
            raise other_protocol(self._where, None, f"{type(error).__name__}: {error}") from error
        self._logging_in = False
        self._read_timeout = self._kept_timeout

    def _begin_tls(self, context: ssl.SSLContext, head: bytes) -> None:
        self.write_packet(head)
        self._current_timeout = self.connect_timeout
        self._sock.settimeout(self.connect_timeout)
        # What the peer has sent ahead in clear text is in the old reader, which is no longer read.
        try:
            self._sock = context.wrap_socket(self._sock, server_hostname=self.host)
        except OSError as error:
            raise handshake_error(error, self._where, self._tls) from error
        self._rfile = self._sock.makefile("rb")
        self._secure = True

    def _converse(self, login: ClientLogin, head: bytes) -> None:
        plugin, data = login.first(self._auth_plugin_name, bytes(self.salt))
        user = self.user.encode(self.encoding) if isinstance(self.user, str) else self.user
        self.write_packet(login_payload(user, plugin, data, self.server_capabilities, head, self._connect_attrs))
        while not login.is_over:
            answer = login.answer(self._read_packet().get_all_data())
            if answer is not None:
                self.write_packet(answer)
